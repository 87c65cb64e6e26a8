//! Rewriting, in words: of a segment that is mostly dead what is left stays, and its space goes.

use nova_sim::script::check;

#[test]
fn a_mostly_dead_segment_is_rewritten_and_what_is_left_is_read() {
    check(
        "start segment 262144
         bucket b auto
         append b/rest a
         append b/s *60000
         append b/s *60000
         append b/s *60000
         append b/rest b
         append b/s *60000
         append b/s *60000
         rewritten
         trim b/s 4
         wait 1000000 80
         rewritten
         read b/rest 0..
         read b/s 4..
         read b/s 3..
         power
         rewritten
         describe b/rest
         append b/rest c
         unindex 1
         power
         read b/rest 0..
         trim b/rest 3
         wait 1000000 80
         rewritten
         power
         describe b/rest",
        "bucket made
         acked 0..1
         acked 0..1
         acked 1..2
         acked 2..3
         acked 1..2
         acked 3..4
         acked 4..5
         0 rewritten
         trimmed to 4
         1 rewritten
         from 0
         0:a
         1:b
         end 2
         from 4
         4:*60000
         end 5
         TRIMMED first 4
         1 rewritten
         stream there 0..2 epoch-1
         acked 2..3
         from 0
         0:a
         1:b
         2:c
         end 3
         trimmed to 3
         0 rewritten
         stream there 3..3 epoch-3",
    );
}

/// A core reads records of a stream that it leads where another core has rewritten them.
#[test]
fn a_core_reads_what_another_core_has_rewritten() {
    check(
        "start cores 2 segment 262144 idle 900000000
         bucket b auto
         at 1 append b/t x
         at 1 handoff b/t 0
         at 0 append b/s0 a
         at 0 append b/t *60000
         at 0 append b/t *60000
         at 0 append b/t *60000
         at 0 append b/s0 b
         at 0 append b/t *60000
         at 0 append b/t *60000
         at 0 handoff b/s0 1
         at 1 read b/s0 0..
         at 1 session x b/s0
         at 0 trim b/t 5
         wait 1000000 80
         rewritten
         at 1 read b/s0 0..
         at 1 append b/s0 c
         power
         rewritten
         at 0 read b/s0 0..",
        "bucket made
         acked 0..1
         led by core-0 under epoch-2
         acked 0..1
         acked 1..2
         acked 2..3
         acked 3..4
         acked 1..2
         acked 4..5
         acked 5..6
         led by core-1 under epoch-2
         from 0
         0:a
         1:b
         end 2
         x open at 2 epoch-2
         trimmed to 5
         1 rewritten
         from 0
         0:a
         1:b
         end 2
         acked 2..3
         1 rewritten
         from 0
         0:a
         1:b
         2:c
         end 3",
    );
}

/// Where little is free a round does not wait for its half minute: what is dead is in the way.
#[test]
fn little_space_is_reason_to_rewrite_at_once() {
    check(
        "start segment 262144
         bucket b auto
         append b/rest a
         append b/s *60000
         append b/s *60000
         append b/s *60000
         append b/rest b
         append b/s *60000
         append b/s *60000
         wait 100000 100
         trim b/s 4
         wait 100000 100
         rewritten
         free 900000
         wait 20000 100
         rewritten
         append b/rest c
         read b/rest 0..",
        "bucket made
         acked 0..1
         acked 0..1
         acked 1..2
         acked 2..3
         acked 1..2
         acked 3..4
         acked 4..5
         trimmed to 4
         0 rewritten
         1 rewritten
         acked 2..3
         from 0
         0:a
         1:b
         2:c
         end 3",
    );
}
