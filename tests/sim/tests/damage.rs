//! Bits that turn in what was written long ago: a start refuses with the file's name, and when it
//! is told to go on, exactly what is damaged is answered with `CORRUPT`, and nothing else is lost.

use nova_sim::script::check;

#[test]
fn a_damaged_record_is_told_and_the_others_are_served() {
    check(
        "start segment 16384
         bucket b auto
         append b/s *3000
         append b/t *3000
         append b/s *3000
         append b/t *3000
         append b/s *3000
         segments
         crash
         flip 1 9000
         read b/t 0..
         read b/s 0..
         crash
         append b/s *3000
         read b/s 1..",
        "bucket made
         acked 0..1
         acked 0..1
         acked 1..2
         acked 1..2
         acked 2..3
         3 segments
         from 0
         0:*3000
         1:*3000
         end 2
         from 0
         CORRUPT 0..1
         acked 3..4
         from 1
         1:*3000
         2:*3000
         3:*3000
         end 4",
    );
}

#[test]
fn damage_in_the_newest_segment_keeps_the_star_from_starting_until_it_is_accepted() {
    check(
        "start
         bucket b auto
         append b/s a
         append b/t a
         append b/s b
         append b/t b
         flip 1 16484
         crash
         start corrupt yes
         read b/s 0..
         read b/t 0..
         append b/s c
         read b/s 2..
         crash
         read b/s 1..
         append b/t c match 2",
        "bucket made
         acked 0..1
         acked 0..1
         acked 1..2
         acked 1..2
         start refused
         from 0
         0:a
         CORRUPT 1..2
         from 0
         0:a
         1:b
         end 2
         acked 2..3
         from 2
         2:c
         end 3
         from 1
         CORRUPT 1..2
         acked 2..3",
    );
}

#[test]
fn a_lost_index_is_built_again() {
    check(
        "start segment 16384
         bucket b auto
         append b/s *3000
         append b/s *3000
         append b/s *3000
         append b/s *3000
         segments
         crash
         unindex 1
         crash
         read b/s 0..",
        "bucket made
         acked 0..1
         acked 1..2
         acked 2..3
         acked 3..4
         2 segments
         from 0
         0:*3000
         1:*3000
         2:*3000
         3:*3000
         end 4",
    );
}
