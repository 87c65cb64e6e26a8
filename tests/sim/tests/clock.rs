//! Wall clocks that are set, in words: no time of a stream goes back, and what is kept is kept.

use nova_sim::script::check;

#[test]
fn times_of_a_stream_never_go_back() {
    check(
        "start
         bucket b auto
         append b/s a
         clock back 3600
         append b/s b
         power
         append b/s c
         read b/s time-1000000
         clock back 0
         wait 1000000
         append b/s d
         read b/s time-500000
         read b/s time-3000000",
        "bucket made
         acked 0..1
         acked 1..2
         acked 2..3
         from 0
         0:a
         1:b
         2:c
         end 3
         acked 3..4
         from 3
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
fn retention_goes_on_behind_a_clock_that_was_ahead() {
    check(
        "start
         bucket b
         create b/s age 10
         append b/s *30000
         clock ahead 86400
         append b/s *30001
         clock back 0
         append b/s *30002
         append b/s *30003
         wait 1000000 3
         describe b/s
         wait 1000000 30
         describe b/s
         read b/s 0..",
        "bucket made
         stream made 0..0 epoch-1
         acked 0..1
         acked 1..2
         acked 2..3
         acked 3..4
         stream there 0..4 epoch-1
         stream there 4..4 epoch-1
         TRIMMED first 4",
    );
}

/// A machine that starts with a clock of long ago gets records, and then the right time.
#[test]
fn retention_keeps_what_comes_before_a_clock_that_was_back() {
    check(
        "start
         bucket b
         create b/s age 10
         append b/s *30000
         clock back 86400
         append b/s *30001
         append b/s *30002
         wait 1000000 3
         describe b/s
         clock back 0
         append b/s *30003
         describe b/s
         wait 1000000 3
         describe b/s
         wait 1000000 30
         describe b/s",
        "bucket made
         stream made 0..0 epoch-1
         acked 0..1
         acked 1..2
         acked 2..3
         stream there 0..3 epoch-1
         acked 3..4
         stream there 0..4 epoch-1
         stream there 0..4 epoch-1
         stream there 4..4 epoch-1",
    );
}

/// Where an index looks at one place for many records, too.
#[test]
fn retention_keeps_each_record_before_a_clock_that_was_back() {
    check(
        "start
         bucket b
         create b/s age 60
         append b/s old
         wait 1000000 50
         append b/s young
         clock back 86400
         append b/s c
         clock back 0
         wait 1000000 20
         describe b/s
         wait 1000000 80
         describe b/s",
        "bucket made
         stream made 0..0 epoch-1
         acked 0..1
         acked 1..2
         acked 2..3
         stream there 0..3 epoch-2
         stream there 3..3 epoch-3",
    );
}

/// What is in the last segment alone looks old, and what looks young lies in one before it.
#[test]
fn a_stream_at_rest_is_kept_before_a_clock_that_was_back() {
    check(
        "start idle 1000
         bucket b
         create b/s age 60
         append b/s *30000
         append b/s *30001
         append b/s *30002
         clock back 86400
         append b/s *30003
         power
         clock back 0
         wait 1000000 40
         describe b/s
         wait 1000000 60
         describe b/s",
        "bucket made
         stream made 0..0 epoch-1
         acked 0..1
         acked 1..2
         acked 2..3
         acked 3..4
         stream there 0..4 epoch-1
         stream there 4..4 epoch-2",
    );
}
