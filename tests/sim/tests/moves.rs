//! Leadership that moves: nothing acked is lost, nothing is applied twice, history is read where it
//! lies.

use nova_sim::script::check;

#[test]
fn a_stream_is_handed_to_another_core_and_read_there() {
    check(
        "start cores 2
         bucket b auto
         at 0 append b/s0 a b
         at 0 handoff b/s0 1
         at 0 append b/s0 c
         at 1 append b/s0 c
         at 1 read b/s0 0..
         at 0 read b/s0 0..
         at 1 describe b/s0
         at 1 handoff b/s0 1
         at 1 handoff b/s0 7",
        "bucket made
         acked 0..2
         led by core-1 under epoch-2
         NOT_OWNER at core-1
         acked 2..3
         from 0
         0:a 1:b
         2:c
         end 3
         NOT_OWNER at core-1
         stream there 0..3 epoch-2
         led by core-1 under epoch-2
         INVALID",
    );
}

#[test]
fn a_start_forgets_moves_and_finds_the_newest_statement() {
    for end in ["crash", "power"] {
        check(
            &format!(
                "start cores 2
                 bucket b auto
                 at 0 append b/s0 a
                 at 0 handoff b/s0 1
                 at 1 append b/s0 b
                 {end}
                 at 0 append b/s0 c
                 at 0 read b/s0 0..
                 at 0 handoff b/s0 1
                 at 1 append b/s0 d
                 at 1 read b/s0 0..
                 {end}
                 at 0 read b/s0 0.."
            ),
            "bucket made
             acked 0..1
             led by core-1 under epoch-2
             acked 1..2
             acked 2..3
             from 0
             0:a
             1:b
             2:c
             end 3
             led by core-1 under epoch-4
             acked 3..4
             from 0
             0:a
             1:b
             2:c
             3:d
             end 4
             from 0
             0:a
             1:b
             2:c
             3:d
             end 4",
        );
    }
}

/// Back and forth, the records of one segment are not without a gap any more: each stay gets a
/// segment of its own.
#[test]
fn a_stream_that_comes_back_is_read_across_all_its_stays() {
    check(
        "start cores 2 recent 0
         bucket b auto
         at 0 append b/s0 a
         at 0 handoff b/s0 1
         at 1 append b/s0 b
         at 1 handoff b/s0 0
         at 0 append b/s0 c
         at 0 handoff b/s0 1
         at 1 append b/s0 d
         at 1 read b/s0 0..
         at 1 handoff b/s0 0
         at 0 read b/s0 0..
         at 0 read b/s0 2..
         crash
         at 0 read b/s0 0..",
        "bucket made
         acked 0..1
         led by core-1 under epoch-2
         acked 1..2
         led by core-0 under epoch-3
         acked 2..3
         led by core-1 under epoch-4
         acked 3..4
         from 0
         0:a
         1:b
         2:c
         3:d
         end 4
         led by core-0 under epoch-5
         from 0
         0:a
         1:b
         2:c
         3:d
         end 4
         from 2
         2:c
         3:d
         end 4
         from 0
         0:a
         1:b
         2:c
         3:d
         end 4",
    );
}

#[test]
fn what_was_admitted_is_answered_and_sessions_learn_the_new_leader() {
    check(
        "start cores 2
         bucket b auto
         at 0 session x b/s0
         at 0 follow r b/s0 0..
         hold
         x append a
         at 0 handoff b/s0 1
         x append b
         go
         at 1 append b/s0 c
         at 1 read b/s0 0..",
        "bucket made
         x open at 0 epoch-1
         r from 0
         r has all to 0
         x acked 0..1
         r 0:a
         r has all to 1
         x broken NOT_OWNER at core-1
         r NOT_OWNER at core-1
         led by core-1 under epoch-2
         acked 1..2
         from 0
         0:a
         1:c
         end 2",
    );
}

#[test]
fn a_stream_led_away_goes_home_when_it_is_idle() {
    check(
        "start cores 2 idle 1000
         bucket b auto
         at 0 append b/s0 a
         at 0 handoff b/s0 1
         at 1 append b/s0 b
         wait 5000
         at 1 tail b/s0
         at 0 append b/s0 c
         at 0 read b/s0 0..
         wait 5000
         loaded
         at 0 read b/s0 0..",
        "bucket made
         acked 0..1
         led by core-1 under epoch-2
         acked 1..2
         NOT_OWNER at core-0
         acked 2..3
         from 0
         0:a
         1:b
         2:c
         end 3
         0 in memory
         from 0
         0:a
         1:b
         2:c
         end 3",
    );
}
