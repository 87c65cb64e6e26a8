//! The gate's order and its two ways out.

use super::*;

#[test]
fn answers_leave_with_their_group_in_order() {
    let mut gate = Gate::new();
    assert_eq!(gate.hold(Ticket(0), "free"), Some("free"));
    assert_eq!(gate.hold(Ticket(2), "c"), None);
    assert_eq!(gate.hold(Ticket(1), "a"), None);
    assert_eq!(gate.hold(Ticket(1), "b"), None);
    assert_eq!(gate.hold(Ticket(3), "d"), None);
    assert_eq!(gate.held(), 4);
    assert_eq!(gate.release(Ticket(2)), ["a", "b", "c"]);
    assert_eq!(gate.hold(Ticket(2), "late"), Some("late"));
    assert_eq!(gate.release(Ticket(3)), ["d"]);
    assert_eq!(gate.held(), 0);
}

#[test]
#[should_panic(expected = "in order")]
fn a_group_is_never_durable_twice() {
    let mut gate: Gate<()> = Gate::new();
    gate.release(Ticket(1));
    gate.release(Ticket(1));
}
