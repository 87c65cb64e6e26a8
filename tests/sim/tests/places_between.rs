//! What is on its way between two cores: lists do not leave it out, buckets are not deleted under
//! it, and what it leaves behind is found.
//!
//! Of the streams of bucket `b`, with three cores, s9 is at home at core 1 and s1 at core 2.

use nova_sim::script::check;

/// Core 1 was drained with a stream that it led; the next home got where its records lie along.
/// That one rested when its home was drained as well, and core 1 had not sealed what only it and
/// the drained home knew: reads were refused CORRUPT until the next start. The simulator saw it,
/// seeds 887 and, without locks, 50341.
#[test]
fn what_an_earlier_home_holds_is_found_by_the_home_after_the_next() {
    check(
        "start cores 3 idle 1000 recent 0
         bucket b auto
         at 1 append b/s9 a b
         drain 1
         at 0 append b/s9 c
         wait 5000
         loaded
         drain 0
         at 2 read b/s9 0..
         at 2 append b/s9 d
         undrain all
         at 1 read b/s9 0..",
        "bucket made
         acked 0..2
         moved 1, drained: core-1
         acked 2..3
         0 in memory
         moved 0, drained: core-0 core-1
         from 0
         0:a 1:b
         2:c
         end 3
         acked 3..4
         moved 1, drained: none
         from 0
         0:a 1:b
         2:c
         3:d
         end 4",
    );
}

/// The question whether core 1 holds streams came before the stream did, and the one to core 2 was
/// late, behind the stream's leaving: the bucket was deleted under it.
#[test]
fn a_bucket_is_not_deleted_under_a_stream_that_moves() {
    check(
        "start cores 3
         bucket b auto
         at 2 append b/s1 a
         late 0 2
         unbucket b
         at 2 handoff b/s1 1
         timely
         at 1 append b/s1 b
         at 1 delete b/s1
         at 1 append b/s1 c
         at 1 delete b/s1
         unbucket b
         buckets",
        "bucket made
         acked 0..1
         led by core-1 under epoch-2
         INVALID
         acked 1..2
         deleted
         acked 0..1
         deleted
         deleted
         none",
    );
}

/// The same with a stream that goes on at once: the core that it only passed through remembers it.
#[test]
fn a_bucket_is_not_deleted_under_a_stream_that_moves_on() {
    check(
        "start cores 3
         bucket b auto
         at 2 append b/s1 a
         late 0 2
         unbucket b
         at 2 handoff b/s1 1
         at 1 handoff b/s1 2
         at 2 handoff b/s1 1
         timely
         at 1 append b/s1 b",
        "bucket made
         acked 0..1
         led by core-1 under epoch-2
         led by core-2 under epoch-3
         led by core-1 under epoch-4
         INVALID
         acked 1..2",
    );
}

/// Neither core speaks for a stream between them: a list that left it out would be wrong.
#[test]
fn a_list_waits_for_a_stream_between_two_cores() {
    check(
        "start cores 2
         bucket b auto
         bucket c auto
         at 0 append b/s0 a
         at 0 append b/s1 a
         hold
         at 0 handoff b/s0 1
         at 0 list b
         at 1 list b
         at 0 list c
         at 1 list c
         go
         at 0 list b
         at 1 list b",
        "bucket made
         bucket made
         acked 0..1
         acked 0..1
         DRAINING at ?
         DRAINING at ?
         none
         none
         led by core-1 under epoch-2
         s1:1
         s0:1",
    );
}
