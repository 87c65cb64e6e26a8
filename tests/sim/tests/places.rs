//! Where streams are: lists and buckets, cores and their number, memory, and starts that die.

use nova_sim::script::check;

#[test]
fn lists_come_in_pages_and_tell_the_newest_state() {
    check(
        "start
         bucket b auto
         list b
         append b/c1 a
         append b/a1 a
         append b/b1 a
         append b/a2 a
         list b limit 2
         list b limit 2 after a2
         list b prefix a
         crash
         append b/a1 b
         delete b/b1
         list b
         power
         list b
         list d",
        "bucket made
         none
         acked 0..1
         acked 0..1
         acked 0..1
         acked 0..1
         a1:1 a2:1 and more
         b1:1 c1:1
         a1:1 a2:1
         acked 1..2
         deleted
         a1:2 a2:1 c1:1
         a1:2 a2:1 c1:1
         BUCKET_NOT_FOUND",
    );
}

/// A leadership that goes on through several segments states its stream in each of them. Lists
/// took the oldest of those statements: the simulator saw a deleted stream listed, seed 1.
#[test]
fn a_list_tells_a_stream_by_its_newest_segment() {
    check(
        "start segment 16384
         bucket b auto
         append b/s *3000
         append b/t *3000
         append b/s *3000
         append b/s *3000
         append b/s *3000
         delete b/t
         append b/s *3000
         append b/s *3000
         append b/s *3000
         segments
         list b
         crash
         list b",
        "bucket made
         acked 0..1
         acked 0..1
         acked 1..2
         acked 2..3
         acked 3..4
         deleted
         acked 4..5
         acked 5..6
         acked 6..7
         4 segments
         s:7
         s:7",
    );
}

#[test]
fn a_bucket_with_streams_stays() {
    check(
        "start cores 3
         bucket b auto
         append b/one a
         append b/two a
         unbucket b
         append b/three a
         delete b/one
         delete b/two
         delete b/three
         unbucket b
         append b/one a
         buckets
         crash
         buckets
         bucket b
         describe b/one",
        "bucket made
         acked 0..1
         acked 0..1
         INVALID
         acked 0..1
         deleted
         deleted
         deleted
         deleted
         BUCKET_NOT_FOUND
         none
         none
         bucket made
         STREAM_NOT_FOUND",
    );
}

/// A stream that was being created was not counted, since its core does not speak for it before it
/// is durable: the bucket was deleted, and the stream told to be made (seed 20479).
#[test]
fn a_bucket_with_a_stream_that_is_being_created_stays() {
    check(
        "start cores 1
         bucket b
         hold
         create b/s
         unbucket b
         go
         describe b/s
         list b",
        "bucket made
         INVALID
         stream made 0..0 epoch-1
         stream there 0..0 epoch-1
         s:0",
    );
}

#[test]
fn another_core_names_the_one_that_has_the_stream() {
    check(
        "start cores 2
         bucket b auto
         at 0 append b/s0 a
         at 1 append b/s0 a
         at 0 tail b/s0
         at 1 tail b/s0
         at 1 bucket c",
        "bucket made
         acked 0..1
         NOT_OWNER at core-0
         tail 1
         NOT_OWNER at core-0
         NOT_OWNER at core-0",
    );
}

/// A stream that had moved to a log with a higher number was looked for in the first log that knew
/// it: its newer records were gone. The simulator saw the tail go back, seed 14.
#[test]
fn streams_move_with_the_number_of_cores() {
    check(
        "start cores 1
         bucket main auto
         append main/s1 a
         crash
         start cores 3
         at 1 append main/s1 b
         crash
         read main/s1 0..
         start cores 1
         append main/s1 c
         list main
         crash
         read main/s1 0..
         start cores 3
         at 0 list main
         at 1 list main",
        "bucket made
         acked 0..1
         acked 1..2
         from 0
         0:a
         1:b
         end 2
         acked 2..3
         s1:3
         from 0
         0:a
         1:b
         2:c
         end 3
         none
         s1:3",
    );
}

#[test]
fn idle_streams_leave_memory_and_come_back() {
    check(
        "start idle 1000
         bucket b auto
         append b/s a
         append b/t a
         follow f b/t 0..
         loaded
         wait 5000
         loaded
         append b/s b match 1
         loaded
         read b/s 0..
         unfollow f
         wait 5000
         loaded",
        "bucket made
         acked 0..1
         acked 0..1
         f from 0
         f 0:a
         f has all to 1
         2 in memory
         1 in memory
         acked 1..2
         2 in memory
         from 0
         0:a
         1:b
         end 2
         0 in memory",
    );
}

/// A start on a full disk makes a segment of its header alone. When space came, the star stopped
/// with a failed assertion: it wanted to seal that segment, in which no group is. Seen with seed
/// 13086.
#[test]
fn a_start_on_a_full_disk_serves_and_goes_on_when_there_is_space() {
    check(
        "start
         bucket b auto
         append b/s a b
         full
         fall
         read b/s 0..
         append b/s c
         trim b/s 1
         space
         wait 2000000
         append b/s c
         crash
         read b/s 1..",
        "bucket made
         acked 0..2
         from 0
         0:a 1:b
         end 2
         DISK_FULL
         trimmed to 1
         acked 2..3
         from 1
         0:a 1:b
         2:c
         end 3",
    );
}

/// A start may die at any of its calls, before or after the call took effect; the next one finds
/// the same.
#[test]
fn a_start_that_dies_anywhere_changes_nothing() {
    for call in 1..60 {
        let script = format!(
            "start cores 2 segment 16384
             bucket b auto
             append b/s *3000
             append b/s *3000
             append b/t *3000
             append b/s *3000
             append b/t *3000
             append b/s *3000
             append b/u a
             hold
             append b/s lost
             fall dies {call}
             append b/s c
             append b/u b
             fall cores 1 dies {call}
             append b/s d
             fall cores 2 dies {call}
             read b/s 3..
             read b/t 0..
             read b/u 0.."
        );
        check(
            &script,
            "bucket made
             acked 0..1
             acked 1..2
             acked 0..1
             acked 2..3
             acked 1..2
             acked 3..4
             acked 0..1
             acked 4..5
             acked 1..2
             acked 5..6
             from 3
             3:*3000
             4:c
             5:d
             end 6
             from 0
             0:*3000
             1:*3000
             end 2
             from 0
             0:a
             1:b
             end 2",
        );
    }
}

/// The disk took its time with the index of segment 1, and that of segment 2 was stored before it.
/// A stream that came back into memory then was looked for in segment 1, which was in memory still,
/// before segment 2: it went back to an older tail, and what was acked was not read. Seen in a read
/// of an entity writer, which found fewer records than the one before (seed 7242).
#[test]
fn a_stream_is_found_by_its_newest_segment_in_whatever_order_indexes_are_stored() {
    check(
        "start segment 65536 idle 1000
         bucket b auto
         append b/x a
         append b/fill *30000
         append b/fill *30000
         slow 1
         append b/fill *30000
         append b/x b
         append b/fill *30000
         append b/fill *30000
         append b/fill *30000
         segments
         wait 5000
         loaded
         tail b/x
         append b/x c
         go
         read b/x 0..",
        "bucket made
         acked 0..1
         acked 0..1
         acked 1..2
         acked 2..3
         acked 1..2
         acked 3..4
         acked 4..5
         acked 5..6
         6 segments
         0 in memory
         tail 2
         acked 2..3
         from 0
         0:a
         1:b
         2:c
         end 3",
    );
}
