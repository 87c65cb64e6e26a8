//! Background operations that fail, in words: nothing is lost by it, and all of it is made good.

use nova_sim::script::check;

/// One failure kept the index of every later segment in memory, and all of them on the disk, until
/// the next start.
#[test]
fn an_index_that_could_not_be_stored_is_stored_later() {
    check(
        "start
         bucket b auto
         failing index
         append b/s *30000
         append b/s *30001
         append b/s *30002
         append b/s *30003
         trim b/s 3
         wait 1000000 8
         segments
         works
         wait 1000000 8
         segments
         read b/s 3..
         power
         segments
         read b/s 3..",
        "bucket made
         acked 0..1
         acked 1..2
         no index of core-000/00000000000000000001.seg
         no index of core-000/00000000000000000002.seg
         acked 2..3
         no index of core-000/00000000000000000003.seg
         acked 3..4
         trimmed to 3
         4 segments
         2 segments
         from 3
         3:*30003
         end 4
         2 segments
         from 3
         3:*30003
         end 4",
    );
}

#[test]
fn a_segment_that_could_not_be_recycled_goes_later() {
    check(
        "start
         bucket b auto
         append b/s *30000
         append b/s *30001
         append b/s *30002
         append b/s *30003
         failing recycle
         trim b/s 3
         wait 1000000 8
         segments
         works
         wait 1000000 8
         segments
         read b/s 3..",
        "bucket made
         acked 0..1
         acked 1..2
         acked 2..3
         acked 3..4
         trimmed to 3
         core-000/00000000000000000001.seg stays
         core-000/00000000000000000002.seg stays
         core-000/00000000000000000003.seg stays
         5 segments
         2 segments
         from 3
         3:*30003
         end 4",
    );
}

#[test]
fn a_start_ends_what_could_not_be_recycled() {
    check(
        "start
         bucket b auto
         create b/d
         append b/d gone
         append b/s *30000
         append b/s *30001
         delete b/d
         append b/s *30002
         append b/s *30003
         failing recycle
         trim b/s 3
         wait 1000000 20
         segments
         power
         segments
         describe b/d
         read b/s 3..",
        "bucket made
         stream made 0..0 epoch-1
         acked 0..1
         acked 0..1
         acked 1..2
         deleted
         acked 2..3
         acked 3..4
         trimmed to 3
         core-000/00000000000000000001.seg stays
         core-000/00000000000000000002.seg stays
         core-000/00000000000000000003.seg stays
         5 segments
         2 segments
         STREAM_NOT_FOUND
         from 3
         3:*30003
         end 4",
    );
}

#[test]
fn a_full_disk_keeps_an_index_waiting() {
    check(
        "start
         bucket b auto
         append b/s *30000
         full
         append b/s *30001
         append b/s *30002
         read b/s 0..
         wait 1000000 8
         space
         wait 1000000 8
         append b/s *30003
         trim b/s 2
         wait 1000000 8
         append b/s *30004
         segments
         read b/s 2..",
        "bucket made
         acked 0..1
         acked 1..2
         no index of core-000/00000000000000000001.seg
         DISK_FULL
         from 0
         0:*30000
         1:*30001
         end 2
         acked 2..3
         trimmed to 2
         acked 3..4
         2 segments
         from 2
         2:*30003
         3:*30004
         end 4",
    );
}

#[test]
fn a_segment_that_could_not_be_rewritten_is_rewritten_after_the_next_start() {
    check(
        "start segment 262144
         bucket b auto
         append b/rest a
         append b/s *60000
         append b/s *60000
         append b/s *60000
         append b/s *60000
         append b/s *60000
         failing place
         trim b/s 4
         wait 1000000 80
         rewritten
         works
         wait 1000000 80
         rewritten
         read b/rest 0..
         power
         wait 1000000 80
         rewritten
         read b/rest 0..
         read b/s 4..",
        "bucket made
         acked 0..1
         acked 0..1
         acked 1..2
         acked 2..3
         acked 3..4
         acked 4..5
         trimmed to 4
         core-000/00000000000000000001.seg is not rewritten: place of \
         core-000/00000000000000000001.seg at 0 for 0 bytes failed: the simulated disk says so
         0 rewritten
         0 rewritten
         from 0
         0:a
         end 1
         1 rewritten
         from 0
         0:a
         end 1
         from 4
         4:*60000
         end 5",
    );
}
