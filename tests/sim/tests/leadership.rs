//! When leadership ends: guests that are deleted, and the policy that gives it up with its handle.

use nova_sim::script::check;

/// A deleted guest was let go where it was led, and its home was not told: each of the two sent
/// clients to the other one.
#[test]
fn a_deleted_guest_is_no_riddle_to_its_home() {
    check(
        "start cores 2 idle 1000
         bucket b auto
         at 0 append b/s0 a
         at 0 handoff b/s0 1
         at 1 delete b/s0
         at 1 tail b/s0
         wait 5000
         wait 5000
         loaded
         at 1 tail b/s0
         at 0 tail b/s0
         at 0 append b/s0 b
         at 0 read b/s0 0..
         crash
         at 0 read b/s0 0..",
        "bucket made
         acked 0..1
         led by core-1 under epoch-2
         deleted
         STREAM_NOT_FOUND
         0 in memory
         NOT_OWNER at core-0
         STREAM_NOT_FOUND
         acked 0..1
         from 0
         0:b
         end 1
         from 0
         0:b
         end 1",
    );
}

#[test]
fn a_guest_that_is_deleted_and_made_again_stays_one_stream() {
    check(
        "start cores 2 idle 1000
         bucket b auto
         at 0 append b/s0 a
         at 0 handoff b/s0 1
         at 1 delete b/s0
         at 1 append b/s0 b
         wait 5000
         wait 5000
         loaded
         at 1 tail b/s0
         at 0 read b/s0 0..
         drain 0
         at 1 read b/s0 0..",
        "bucket made
         acked 0..1
         led by core-1 under epoch-2
         deleted
         acked 0..1
         0 in memory
         NOT_OWNER at core-0
         from 0
         0:b
         end 1
         moved 0, drained: core-0
         from 0
         0:b
         end 1",
    );
}

#[test]
fn a_fenced_stream_is_given_up_with_its_last_handle() {
    check(
        "start cores 2
         bucket b
         at 0 create b/s0 fenced
         at 0 session x b/s0
         x append a
         loaded
         x close
         wait 1
         loaded
         at 0 append b/s0 b
         at 0 append b/s0 c
         loaded
         at 0 follow r b/s0 0..
         at 0 session y b/s0
         y append d
         y close
         wait 1
         loaded
         at 0 session z b/s0
         at 0 handoff b/s0 1
         at 1 session z b/s0
         z append e
         z close
         wait 1
         at 1 tail b/s0
         at 0 describe b/s0",
        "bucket made
         stream made 0..0 epoch-1
         x open at 0 epoch-2
         x acked 0..1
         1 in memory
         0 in memory
         acked 1..2
         acked 2..3
         0 in memory
         r from 0
         r 0:a
         r 1:b
         r 2:c
         r has all to 3
         y open at 3 epoch-5
         y acked 3..4
         r 3:d
         r has all to 4
         1 in memory
         z open at 4 epoch-6
         z broken NOT_OWNER at core-1
         r NOT_OWNER at core-1
         led by core-1 under epoch-7
         z open at 4 epoch-7
         z acked 4..5
         NOT_OWNER at core-0
         stream there 0..5 epoch-8",
    );
}

/// A stop admits nothing more, answers what was admitted, and a move in hand does not hold it up.
#[test]
fn a_stop_answers_what_was_admitted_and_tells_sessions_and_readers() {
    check(
        "start cores 2
         bucket b auto
         at 0 session x b/s0
         at 0 follow r b/s0 0..
         at 1 append b/s2 a
         hold
         x append a
         at 1 append b/s2 b
         at 1 handoff b/s2 0
         stop
         x append b
         at 0 session y b/s1
         at 0 append b/s0 c
         at 0 tail b/s0
         drain 0
         go
         crash
         at 0 read b/s0 0..
         at 1 tail b/s2",
        "bucket made
         x open at 0 epoch-1
         r from 0
         r has all to 0
         acked 0..1
         r DRAINING at ?
         y refused DRAINING at ?
         DRAINING at ?
         DRAINING at ?
         DRAINING at ?
         x acked 0..1
         x broken DRAINING at ?
         acked 1..2
         led by core-0 under epoch-2
         from 0
         0:a
         end 1
         tail 2",
    );
}

/// A stream at rest was said to be led by the core that was asked, under the epoch of the core that
/// had led it before a drain. The simulator saw one epoch told of two cores, seed 2443.
#[test]
fn a_handoff_to_the_core_where_a_stream_rests_makes_it_lead() {
    check(
        "start cores 2 idle 1000
         bucket b auto
         at 0 append b/s0 a
         wait 5000
         drain 0
         at 1 handoff b/s0 1
         at 1 handoff b/s0 1",
        "bucket made
         acked 0..1
         moved 0, drained: core-0
         led by core-1 under epoch-2
         led by core-1 under epoch-2",
    );
}
