//! Tests of the thread check.

use std::{cell::Cell, rc::Rc, thread};

use super::*;

struct CountsDrops(Rc<Cell<u32>>);

impl Drop for CountsDrops {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn the_value_is_dropped_at_home() {
    let drops = Rc::new(Cell::new(0));
    drop(Local::new(CountsDrops(Rc::clone(&drops))));
    assert_eq!(drops.get(), 1);
}

#[test]
fn the_value_is_leaked_abroad_without_a_panic() {
    let drops = Rc::new(Cell::new(0));
    let local = Local::new(CountsDrops(Rc::clone(&drops)));
    thread::spawn(move || drop(local)).join().unwrap();
    assert_eq!(drops.get(), 0);
}

#[test]
fn an_access_abroad_panics() {
    let local = Local::new(Cell::new(1));
    let outcome = thread::spawn(move || {
        local.get().set(2);
    })
    .join();
    assert!(outcome.is_err());
}
