//! Batches, turns and bounds of the per-key queue.

use super::*;

fn config() -> KeyedConfig {
    KeyedConfig {
        keys_in_flight: 2,
        queueing_max: 100,
        queueing_bytes_max: 1000,
        batch_inputs_max: 3,
        batch_bytes_max: 50,
    }
}

fn queue(config: KeyedConfig, inputs: &[(char, u32)]) -> KeyedQueue<char, u32> {
    let mut queue = KeyedQueue::new(config);
    for &(key, input) in inputs {
        queue.push(key, input, 1).expect("there is room");
    }
    queue
}

#[test]
fn inputs_of_a_key_gather_while_its_batch_runs() {
    let mut queue = queue(config(), &[('a', 1)]);
    assert_eq!(queue.poll_batch(), Some(('a', vec![1])));
    for input in [2, 3] {
        queue.push('a', input, 1).expect("there is room");
        assert_eq!(queue.poll_batch(), None, "one batch of a key at a time");
    }
    queue.handle_done(&'a');
    assert_eq!(queue.poll_batch(), Some(('a', vec![2, 3])));
    assert!(!queue.is_idle());
    queue.handle_done(&'a');
    assert!(queue.is_idle());
}

#[test]
fn keys_take_turns_however_much_each_of_them_has() {
    let mut inputs: Vec<_> = (0..12).map(|input| ('a', input)).collect();
    inputs.extend([('b', 100), ('c', 101)]);
    let mut queue = queue(
        KeyedConfig {
            keys_in_flight: 1,
            ..config()
        },
        &inputs,
    );
    let mut turns = String::new();
    while let Some((key, _)) = queue.poll_batch() {
        assert_eq!(queue.poll_batch(), None, "one key is in flight");
        turns.push(key);
        queue.handle_done(&key);
        if turns.len() == 3 {
            queue.push('b', 102, 1).expect("there is room");
        }
    }
    assert_eq!(turns, "abcabaa");
}

/// How many batches run before the single input of a key behind a busy one, on virtual time: each
/// batch takes a millisecond, and the busy key gets three inputs in each.
fn turns_until_served(keeps_turn: bool) -> Option<u64> {
    let mut queue = KeyedQueue::new(KeyedConfig {
        keys_in_flight: 1,
        ..config()
    });
    queue.keeps_turn = keeps_turn;
    let push = |queue: &mut KeyedQueue<char, u64>, key, time| {
        queue.push(key, time, 1).expect("there is room");
    };
    (0..3).for_each(|_| push(&mut queue, 'a', 0));
    let mut running = queue.poll_batch();
    push(&mut queue, 'b', 0);
    for time in 1..1_000 {
        (0..3).for_each(|_| push(&mut queue, 'a', time));
        let (done, _) = running.take()?;
        queue.handle_done(&done);
        if done == 'b' {
            return Some(time);
        }
        running = queue.poll_batch();
    }
    None
}

#[test]
fn a_busy_key_does_not_starve_the_others() {
    assert_eq!(turns_until_served(false), Some(2));
    assert_eq!(turns_until_served(true), None, "nobody missed the turns");
}

#[test]
fn a_batch_keeps_its_limits_and_a_larger_input_runs_alone() {
    let mut queue = KeyedQueue::new(config());
    for (input, bytes) in [
        (1, 30),
        (2, 20),
        (3, 1),
        (4, 90),
        (5, 1),
        (6, 1),
        (7, 1),
        (8, 1),
    ] {
        queue.push('a', input, bytes).expect("there is room");
    }
    let mut batches = Vec::new();
    while let Some((key, batch)) = queue.poll_batch() {
        batches.push(batch);
        queue.handle_done(&key);
    }
    assert_eq!(
        batches,
        [vec![1, 2], vec![3], vec![4], vec![5, 6, 7], vec![8]]
    );
}

#[test]
fn one_input_more_than_may_wait_is_rejected() {
    let mut queue = queue(
        KeyedConfig {
            queueing_max: 2,
            ..config()
        },
        &[('a', 1), ('b', 2)],
    );
    let rejected = queue.push('c', 3, 1).expect_err("two wait");
    assert_eq!((rejected.input, rejected.waiting), (3, 2));
    assert_eq!(
        queue.poll_batch(),
        Some(('a', vec![1])),
        "what runs does not wait"
    );
    queue.push('c', 3, 1).expect("there is room again");
    assert_eq!(queue.waiting(), 2);
}

#[test]
fn the_bytes_that_wait_are_bounded_too() {
    let mut queue = KeyedQueue::new(config());
    queue.push('a', 1, 600).expect("there is room");
    assert_eq!(
        queue
            .push('b', 2, 401)
            .expect_err("1001 bytes")
            .waiting_bytes,
        600
    );
    queue.push('b', 2, 400).expect("1000 bytes");
    queue.poll_batch().expect("a batch");
    queue.push('b', 3, 600).expect("there is room again");
}

#[test]
fn a_rejected_input_leaves_no_trace() {
    let mut queue = KeyedQueue::new(KeyedConfig {
        queueing_max: 1,
        ..config()
    });
    queue.push('a', 1, 1).expect("there is room");
    queue.push('b', 2, 1).expect_err("one waits");
    assert_eq!(queue.poll_batch(), Some(('a', vec![1])));
    assert_eq!(queue.poll_batch(), None);
    queue.handle_done(&'a');
    assert!(queue.is_idle());
}

#[test]
fn what_waits_can_be_taken_out_while_batches_run() {
    let mut queue = queue(config(), &[('a', 1), ('b', 2), ('c', 3)]);
    queue.poll_batch().expect("a batch");
    queue.push('a', 4, 1).expect("there is room");
    let mut taken = queue.take_waiting();
    taken.sort_unstable();
    assert_eq!(taken, [2, 3, 4]);
    assert_eq!(queue.poll_batch(), None);
    queue.handle_done(&'a');
    assert!(queue.is_idle());
    queue.push('a', 5, 1).expect("there is room");
    assert_eq!(queue.poll_batch(), Some(('a', vec![5])));
}

#[test]
fn without_room_for_anything_the_configuration_is_refused() {
    config().check().expect("all is at least 1");
    let cases: [fn(&mut KeyedConfig); 5] = [
        |config| config.keys_in_flight = 0,
        |config| config.queueing_max = 0,
        |config| config.queueing_bytes_max = 0,
        |config| config.batch_inputs_max = 0,
        |config| config.batch_bytes_max = 0,
    ];
    for spoil in cases {
        let mut config = config();
        spoil(&mut config);
        config.check().expect_err("a bound of 0");
    }
}
