//! Forgetting, in words: what has had its time or its room goes, and nothing else does.

use nova_sim::script::check;

#[test]
fn records_that_had_their_time_are_trimmed_for_good() {
    check(
        "start
         bucket b
         create b/s age 10
         append b/s *30000
         append b/s *30001
         wait 6000000
         append b/s *30002
         describe b/s
         wait 6000000
         describe b/s
         read b/s 0..
         read b/s 2..
         wait 1000000 40
         describe b/s
         power
         describe b/s
         tail b/s",
        "bucket made
         stream made 0..0 epoch-1
         acked 0..1
         acked 1..2
         acked 2..3
         stream there 0..3 epoch-1
         stream there 1..3 epoch-1
         TRIMMED first 1
         from 2
         2:*30002
         end 3
         stream there 3..3 epoch-2
         stream there 3..3 epoch-2
         tail 3",
    );
}

#[test]
fn a_stream_keeps_its_newest_bytes() {
    check(
        "start
         bucket b
         create b/s keep 50000
         append b/s *30000
         append b/s *30001
         append b/s *30002
         append b/s *30003
         wait 1000000
         describe b/s
         read b/s 2..
         set b/s keep 100
         wait 1000000
         describe b/s
         power
         describe b/s",
        "bucket made
         stream made 0..0 epoch-1
         acked 0..1
         acked 1..2
         acked 2..3
         acked 3..4
         stream there 2..4 epoch-1
         from 2
         2:*30002
         3:*30003
         end 4
         stream there 2..4 epoch-1
         stream there 3..4 epoch-1
         stream there 3..4 epoch-1",
    );
}

#[test]
fn a_stream_at_rest_is_looked_at_too() {
    check(
        "start idle 1000
         bucket b
         rebucket b auto age 10
         append b/s a b
         append b/t a age
         wait 2000
         loaded
         crash
         loaded
         wait 1000000 60
         loaded
         describe b/s
         describe b/t",
        "bucket made
         bucket there
         acked 0..2
         acked 0..2
         0 in memory
         0 in memory
         0 in memory
         stream there 2..2 epoch-2
         stream there 2..2 epoch-2",
    );
}

#[test]
fn a_stream_that_is_empty_for_long_is_deleted_for_good() {
    check(
        "start
         bucket b
         create b/s age 2 empty 10
         create b/t empty 10
         session x b/t
         append b/s a
         wait 3000000
         describe b/s
         wait 6000000
         describe b/s
         wait 7000000
         describe b/s
         x append held
         create b/s
         power
         describe b/t
         describe b/s",
        "bucket made
         stream made 0..0 epoch-1
         stream made 0..0 epoch-1
         x open at 0 epoch-1
         acked 0..1
         stream there 1..1 epoch-1
         stream there 1..1 epoch-1
         STREAM_NOT_FOUND
         x acked 0..1
         stream made 0..0 epoch-2
         stream there 0..1 epoch-1
         stream there 0..0 epoch-2",
    );
}

#[test]
fn a_segment_in_which_all_is_trimmed_is_recycled() {
    check(
        "start
         bucket b auto
         append b/rest a
         append b/s *30000
         append b/s *30001
         append b/s *30002
         append b/s *30003
         segments
         trim b/s 2
         wait 1000000 8
         segments
         read b/s 1..
         read b/s 2..
         read b/rest 0..
         trim b/rest 1
         wait 1000000 8
         segments
         power
         segments
         describe b/rest
         append b/rest b
         read b/rest 1..
         describe b/s
         read b/s 2..
         buckets",
        "bucket made
         acked 0..1
         acked 0..1
         acked 1..2
         acked 2..3
         acked 3..4
         4 segments
         trimmed to 2
         4 segments
         TRIMMED first 2
         from 2
         2:*30002
         3:*30003
         end 4
         from 0
         0:a
         end 1
         trimmed to 1
         3 segments
         3 segments
         stream there 1..1 epoch-1
         acked 1..2
         from 1
         1:b
         end 2
         stream there 2..4 epoch-1
         from 2
         2:*30002
         3:*30003
         end 4
         b",
    );
}

/// A busy stream kept its trimmed segments: they were not judged while an append was on its way,
/// and with a writer at work one nearly always is. Seen as 267 MiB on disk where 112 were due.
#[test]
fn a_segment_goes_while_its_stream_is_written() {
    check(
        "start
         bucket b auto
         append b/s *30000
         append b/s *30001
         append b/s *30002
         append b/s *30003
         segments
         trim b/s 3
         hold
         append b/s a
         wait 1000000
         go
         segments",
        "bucket made
         acked 0..1
         acked 1..2
         acked 2..3
         acked 3..4
         4 segments
         trimmed to 3
         acked 4..5
         3 segments",
    );
}

/// A stream at rest that another core's segment is the last to state: its home states it anew, and
/// when that is sealed the segment goes.
#[test]
fn a_segment_goes_whose_streams_belong_to_other_cores() {
    check(
        "start cores 2
         bucket b auto
         at 0 append b/s0 a
         at 0 handoff b/s0 1
         at 1 trim b/s0 1
         power
         segments
         wait 1000000 12
         segments
         at 0 describe b/s0
         power
         at 0 describe b/s0
         at 0 append b/s0 b
         at 0 read b/s0 1..",
        "bucket made
         acked 0..1
         led by core-1 under epoch-2
         trimmed to 1
         4 segments
         2 segments
         stream there 1..1 epoch-3
         stream there 1..1 epoch-3
         acked 1..2
         from 1
         1:b
         end 2",
    );
}

#[test]
fn a_full_disk_refuses_appends_and_takes_them_again_by_itself() {
    check(
        "start
         bucket b auto
         append b/s a
         wait 1000000
         full
         append b/s b
         wait 1000000
         append b/s c
         create b/t
         read b/s 1..
         trim b/s 1
         fence b/s t
         delete b/s
         space
         append b/u d
         wait 1000000
         append b/u d",
        "bucket made
         acked 0..1
         acked 1..2
         DISK_FULL
         DISK_FULL
         from 1
         1:b
         end 2
         trimmed to 1
         fenced at 2
         deleted
         DISK_FULL
         acked 0..1",
    );
}
