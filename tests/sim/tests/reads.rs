//! Reads from disk, in words: who waits for which.

use nova_sim::script::check;

/// Readers of one stream, or of two with records in the same group. One that goes takes nothing
/// from the others.
#[test]
fn readers_that_come_to_the_same_place_share_its_read() {
    check(
        "start recent 1 segment 262144
         bucket b auto
         hold
         append b/u x
         append b/s *9000
         append b/t *9001
         go
         append b/u *9002
         hold
         follow x b/s 0..
         follow y b/s 0..
         follow z b/t 0..
         flights
         unfollow x
         go
         flights",
        "bucket made
         acked 0..1
         acked 0..1
         acked 0..1
         acked 1..2
         x from 0
         y from 0
         z from 0
         1 at the disk
         y 0:*9000
         z 0:*9001
         y has all to 1
         z has all to 1
         0 at the disk",
    );
}
