//! Ids and contents of updates.

use super::*;
use nova_model::{Code, EncodedBatch, Timestamp};

fn stored(record: &Record) -> Option<(Bytes, Content)> {
    let batch = EncodedBatch::encode(std::slice::from_ref(record)).expect("a legal batch");
    let mut found = None;
    batch.for_each(|view| found = Content::of_stored(view));
    found
}

#[test]
fn an_update_is_recognised_as_it_is_stored() {
    let record = Record::new("body").with_header("kind", "deposit");
    let update = Update::new("id-1", record).expect("a legal update");
    let (id, content) = stored(update.record()).expect("an update");
    assert_eq!((&id, content), (update.id(), update.content()));
    assert_eq!(stored(&Record::new("no update")), None);
}

#[test]
fn the_content_is_headers_and_body_without_the_id_and_the_time() {
    let content = |id: &'static str, record| Update::new(id, record).expect("legal").content();
    let plain = content("a", Record::new("body"));
    assert_eq!(plain, content("b", Record::new("body")));
    let timed = Record::new("body").with_timestamp(Timestamp(7));
    assert_eq!(plain, content("a", timed));
    assert_ne!(plain, content("a", Record::new("other")));
    let headed = Record::new("body").with_header("x", "");
    assert_ne!(plain, content("a", headed));
    // The same bytes in other places are another content.
    let one = Record::new("c").with_header("a", "b");
    let other = Record::new("bc").with_header("a", "");
    assert_ne!(content("a", one), content("a", other));
}

#[test]
fn ids_have_1_to_64_bytes_and_one_place() {
    for (id, fits) in [(0, false), (1, true), (64, true), (65, false)] {
        let update = Update::new("i".repeat(id), Record::new("body"));
        assert_eq!(update.is_ok(), fits, "{id} bytes");
    }
    let twice = Record::new("body").with_header(UPDATE_ID_HEADER, "other");
    let refusal = Update::new("id", twice).expect_err("it has an id already");
    assert_eq!(refusal.code, Code::Invalid);
    let full = Record::new(vec![0; nova_model::limits::RECORD_METERED_BYTES_MAX - 8]);
    full.check().expect("the largest record");
    let refusal = Update::new("id", full).expect_err("no room for the id");
    assert_eq!(refusal.code, Code::TooLarge);
}

#[test]
fn a_stored_id_over_the_limit_is_no_id() {
    let long = Record::new("body").with_header(UPDATE_ID_HEADER, "i".repeat(65));
    assert_eq!(stored(&long), None);
}
