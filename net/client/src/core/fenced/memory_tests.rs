//! What is remembered, for how long, and within which bounds.

use super::*;
use crate::core::fenced::update::Update;
use nova_model::Record;

fn learned(known_records: u64, records: u64) -> Memory {
    let mut memory = Memory::new(known_records);
    memory.begin(StreamId(1), SequenceNumber(0));
    for at in 0..records {
        learn(&mut memory, at, &at.to_string());
    }
    memory
}

fn learn(memory: &mut Memory, at: u64, id: &str) {
    let update = Update::new(id.to_owned(), Record::new("body")).expect("a legal update");
    memory.learn(SequenceNumber(at), update.id().clone(), update.content());
    memory.advance(SequenceNumber(at + 1));
}

fn find(memory: &Memory, id: &'static str) -> Option<u64> {
    memory.find(&Bytes::from(id)).map(|stored| stored.at.0)
}

#[test]
fn the_newest_records_are_known() {
    let memory = learned(3, 10);
    assert_eq!(memory.ids(), 3);
    assert_eq!(find(&memory, "6"), None);
    assert_eq!(find(&memory, "7"), Some(7));
    assert_eq!(memory.read_start(), ReadStart::Sequence(SequenceNumber(10)));
}

#[test]
fn an_id_that_is_stored_twice_is_known_while_one_of_them_is() {
    let mut memory = learned(3, 3);
    learn(&mut memory, 3, "0");
    assert_eq!(find(&memory, "0"), Some(3));
    learn(&mut memory, 4, "4");
    assert_eq!(
        find(&memory, "0"),
        Some(3),
        "the first is forgotten, not the second"
    );
}

#[test]
fn without_a_place_the_newest_records_are_read() {
    let mut memory = Memory::new(5);
    assert_eq!(memory.read_start(), ReadStart::TailOffset(5));
    memory.begin_absent();
    assert_eq!(
        memory.read_start(),
        ReadStart::TailOffset(5),
        "the stream may be made"
    );
    memory.begin(StreamId(1), SequenceNumber(7));
    assert_eq!(memory.next(), Some(SequenceNumber(7)));
    memory.lose_place();
    assert_eq!(memory.read_start(), ReadStart::TailOffset(5));
}

fn name(number: usize) -> StreamName {
    StreamName::parse(&format!("bucket/{number}")).expect("a legal name")
}

#[test]
fn the_memory_that_was_used_longest_ago_is_forgotten_first() {
    let mut memories = Memories::new(3);
    memories.ids_max = 10;
    for number in 0..3 {
        memories.keep(name(number), learned(3, 3));
    }
    let used = memories.take(&name(0));
    memories.keep(name(0), used);
    memories.keep(name(3), learned(3, 3));
    let ids: Vec<_> = (0..4).map(|n| memories.take(&name(n)).ids()).collect();
    assert_eq!(ids, [3, 0, 3, 3]);
    assert_eq!(memories.ids, 0);
}

#[test]
fn a_memory_over_the_limit_by_itself_is_not_kept() {
    let mut memories = Memories::new(100);
    memories.ids_max = 10;
    memories.keep(name(0), learned(100, 11));
    assert_eq!(memories.take(&name(0)).ids(), 0);
    assert!(memories.by_use.is_empty());
}
