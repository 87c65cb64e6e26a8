//! The star has the first CPUs, the client the others, one at least.

use super::*;

#[test]
fn cpus_are_shared_out() {
    let cases = [
        (1, None, false, 1, vec![0]),
        (2, None, false, 1, vec![1]),
        (4, None, false, 2, vec![2, 3]),
        (4, Some(1), false, 1, vec![1, 2, 3]),
        (4, Some(4), false, 4, vec![3]),
        (2, None, true, 1, vec![0, 1]),
    ];
    for (there, cores, is_elsewhere, expected, clients) in cases {
        let seats = Seats::share_out((0..there).collect(), cores, is_elsewhere).unwrap();
        assert_eq!((seats.cores, seats.clients.clone()), (expected, clients));
        assert_eq!(seats.bare().client, there - 1);
    }
    assert!(Seats::share_out(vec![0, 1], Some(3), false).is_err());
}
