//! The keyed batcher with functions of every kind: they answer, fail, panic, miscount.

use nova_client::{BatchError, KeyedBatcher, KeyedConfig};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

type Batches = Arc<Mutex<Vec<(char, Vec<u32>)>>>;
type Doubler = KeyedBatcher<char, u32, u32, String>;

/// A batcher that doubles numbers, each batch once it gets a permit of the gate.
fn doubler(config: KeyedConfig) -> (Doubler, Arc<Semaphore>, Batches) {
    let (gate, batches) = (Arc::new(Semaphore::new(0)), Batches::default());
    let (passed, seen) = (Arc::clone(&gate), Arc::clone(&batches));
    let double = move |key: char, inputs: Vec<u32>| {
        let (gate, seen) = (Arc::clone(&passed), Arc::clone(&seen));
        async move {
            seen.lock().expect("no panic").push((key, inputs.clone()));
            gate.acquire().await.expect("it is open").forget();
            match inputs[0] {
                13 => Err("thirteen".to_owned()),
                14 => panic!("fourteen"),
                15 => Ok(Vec::new()),
                _ => Ok(inputs.iter().map(|input| 2 * input).collect()),
            }
        }
    };
    let batcher = KeyedBatcher::new(config, double).expect("a batcher");
    (batcher, gate, batches)
}

#[tokio::test]
async fn each_caller_gets_its_own_output_and_what_gathers_rides_together() {
    let (batcher, gate, batches) = doubler(KeyedConfig::default());
    let mut submitted = Vec::new();
    for (key, input) in [('a', 1), ('a', 2), ('b', 3), ('a', 4)] {
        submitted.push(batcher.submit_async(key, input, 1).expect("there is room"));
    }
    gate.add_permits(10);
    let mut outputs = Vec::new();
    for submitted in submitted {
        outputs.push(submitted.await.expect("doubled"));
    }
    assert_eq!(outputs, [2, 4, 6, 8]);
    let batches = batches.lock().expect("no panic");
    let of_a: Vec<_> = batches.iter().filter(|(key, _)| *key == 'a').collect();
    assert_eq!(of_a, [&('a', vec![1]), &('a', vec![2, 4])]);
}

#[tokio::test]
async fn a_batch_that_goes_wrong_is_told_to_its_callers_and_stops_nobody() {
    let (batcher, gate, _) = doubler(KeyedConfig::default());
    gate.add_permits(10);
    let failed = BatchError::Failed("thirteen".to_owned());
    assert_eq!(batcher.submit('a', 13).await, Err(failed));
    assert_eq!(batcher.submit('a', 14).await, Err(BatchError::Panicked));
    let miscounted = BatchError::Miscounted {
        inputs: 1,
        outputs: 0,
    };
    assert_eq!(batcher.submit('a', 15).await, Err(miscounted));
    assert_eq!(batcher.submit('a', 1).await, Ok(2));
}

#[tokio::test]
async fn a_function_that_panics_before_its_future_is_survived() {
    let run = |key: u32, inputs: Vec<u32>| {
        assert!(key != 7, "seven");
        async move { Ok::<_, String>(inputs) }
    };
    let batcher = KeyedBatcher::new(KeyedConfig::default(), run).expect("a batcher");
    assert_eq!(batcher.submit(7, 1).await, Err(BatchError::Panicked));
    assert_eq!(batcher.submit(8, 1).await, Ok(1));
}

#[tokio::test]
async fn one_input_more_than_may_wait_is_rejected() {
    let (batcher, gate, _) = doubler(KeyedConfig {
        keys_in_flight: 1,
        queueing_max: 2,
        ..KeyedConfig::default()
    });
    let running = batcher.submit_async('a', 1, 1).expect("it runs at once");
    let waiting: Vec<_> = (2..4).map(|n| batcher.submit_async('b', n, 1)).collect();
    assert_eq!(batcher.waiting(), 2);
    assert_eq!(batcher.submit('c', 4).await, Err(BatchError::Rejected));
    gate.add_permits(10);
    assert_eq!(running.await, Ok(2));
    for (submitted, output) in waiting.into_iter().zip([4, 6]) {
        assert_eq!(submitted.expect("there was room").await, Ok(output));
    }
    assert_eq!(batcher.submit('c', 4).await, Ok(8));
}

#[tokio::test]
async fn close_waits_for_all_that_was_submitted() {
    let (batcher, gate, batches) = doubler(KeyedConfig {
        keys_in_flight: 1,
        ..KeyedConfig::default()
    });
    let submitted: Vec<_> = (1..4).map(|n| batcher.submit_async('a', n, 1)).collect();
    gate.add_permits(10);
    batcher.close().await;
    assert_eq!(batches.lock().expect("no panic").len(), 2);
    assert_eq!(batcher.submit('a', 1).await, Err(BatchError::Closed));
    for submitted in submitted {
        submitted.expect("there was room").await.expect("doubled");
    }
}

#[tokio::test]
async fn dropped_it_begins_no_further_batch() {
    let (batcher, gate, _) = doubler(KeyedConfig::default());
    let running = batcher.submit_async('a', 1, 1).expect("it runs at once");
    let waiting = batcher.submit_async('a', 2, 1).expect("it waits");
    drop(batcher);
    gate.add_permits(10);
    assert_eq!(waiting.await, Err(BatchError::Closed));
    assert_eq!(running.await, Ok(2));
}
