//! What is remembered of holders, and for how long.

use super::*;

#[test]
fn a_holder_is_remembered_until_its_own_address_fails() {
    let holders = Holders::default();
    holders.remember("b/s", "one:1");
    holders.remember("b/s", "two:1");
    holders.remember("b/t", "two:1");
    holders.remember("b/u", "one:1");
    holders.forget("one:1");
    assert_eq!(holders.get("b/s").as_deref(), Some("two:1"));
    assert_eq!(holders.get("b/u"), None);
    holders.forget("two:1");
    assert_eq!((holders.get("b/s"), holders.get("b/t")), (None, None));
}

#[test]
fn what_is_remembered_is_bounded() {
    let holders = Holders::default();
    for n in 0..=HOLDERS_MAX {
        holders.remember(&format!("b/{n}"), "one:1");
    }
    assert_eq!(holders.get("b/0"), None);
    assert!(holders.get(&format!("b/{HOLDERS_MAX}")).is_some());
}

/// The story: an entity writer gives a call up after 5 s, and a dead connection, or an attempt to
/// connect, takes as long to end. After a restart with fewer cores it asked the core that was gone
/// until its budget was spent.
#[test]
fn the_holder_of_a_call_that_is_given_up_is_forgotten() {
    let holders = Holders::default();
    holders.remember("b/s", "one:1");
    holders.remember("b/t", "one:1");
    holders.asking("b/s").finish();
    assert_eq!(holders.get("b/s").as_deref(), Some("one:1"));
    drop(holders.asking("b/s"));
    assert_eq!(holders.get("b/s"), None);
    assert_eq!(holders.get("b/t").as_deref(), Some("one:1"), "it may live");
}

#[test]
fn redirects_are_counted() {
    let holders = Holders::default();
    assert_eq!(holders.redirects(), 0);
    holders.note_redirect();
    holders.note_redirect();
    assert_eq!(holders.redirects(), 2);
}
