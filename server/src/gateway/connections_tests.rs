//! Tests of who goes when there are too many.

use super::*;

fn admitted(connections: &Connections) -> Option<(Arc<Slot>, bool)> {
    match connections.admit() {
        Admitted::Yes(slot) => Some((slot, false)),
        Admitted::Instead(slot) => Some((slot, true)),
        Admitted::No => None,
    }
}

fn set_since(slot: &Slot, us: u64) {
    slot.waiting_since.store(us, Ordering::Relaxed);
}

#[tokio::test]
async fn the_one_that_lets_the_star_wait_longest_goes() {
    let connections = Connections::with_most(3);
    let slots: Vec<_> = (0..3).map(|_| admitted(&connections).unwrap().0).collect();
    set_since(&slots[0], 30);
    set_since(&slots[1], 10);
    set_since(&slots[2], 20);
    slots[1].work();
    let (fourth, is_instead) = admitted(&connections).unwrap();
    assert!(is_instead);
    slots[2].told_to_go().await;
    connections.remove(&slots[2]);
    assert_eq!(connections.count(), 3);
    slots[0].work();
    fourth.work();
    assert!(admitted(&connections).is_none(), "all are at work");
    connections.remove(&fourth);
    assert!(!admitted(&connections).unwrap().1, "there is room again");
}
