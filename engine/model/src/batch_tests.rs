//! The encoded batch: round trip, exact size, every refusal, and no input that panics.

use super::*;
use proptest::prelude::*;

fn encode(records: &[Record]) -> EncodedBatch {
    EncodedBatch::encode(records).expect("a legal batch")
}

#[test]
fn a_record_costs_24_bytes_and_a_header_16() {
    let one = encode(&[Record::new("body")]);
    assert_eq!(one.bytes().len(), 8 + 24 + 4);
    let two = encode(&[Record::new("body").with_header("n", "vv")]);
    assert_eq!(two.bytes().len(), 8 + 24 + 4 + 16 + 3);
    assert_eq!(two.metered_bytes(), 8 + 2 + 3 + 4);
}

#[test]
fn the_size_is_known_before_encoding() {
    let record = Record::new(vec![7; 1000])
        .with_header("a", "b")
        .with_timestamp(Timestamp(5));
    let batch = encode(std::slice::from_ref(&record));
    assert_eq!(batch.bytes().len(), 8 + encoded_bytes(&record));
}

#[test]
fn a_body_over_the_limit_names_field_and_limit() {
    let refusal = EncodedBatch::encode(&[Record::new(vec![0; 1 << 20])]).expect_err("8 too many");
    assert_eq!(refusal.code, crate::Code::TooLarge);
    assert!(matches!(
        refusal.facts,
        crate::Facts::Field { ref field, limit: Some(1_048_576) } if field == "record"
    ));
}

#[test]
fn the_largest_record_passes_and_two_of_them_do_not() {
    let largest = Record::new(vec![0; (1 << 20) - 8]);
    encode(std::slice::from_ref(&largest));
    let refusal = EncodedBatch::encode(&[largest, Record::new("")]).expect_err("over 1 MiB");
    assert_eq!(refusal.code, crate::Code::TooLarge);
}

#[test]
fn the_worst_inflation_stays_within_the_encoded_limit() {
    let mut record = Record::new("");
    record.headers = vec![Default::default(); (BATCH_METERED_BYTES_MAX - 8) / 2];
    let batch = encode(&[record]);
    assert!(batch.bytes().len() <= BATCH_ENCODED_BYTES_MAX);
    EncodedBatch::check(batch.bytes().clone(), batch.checksum()).expect("its own check");
}

#[test]
fn an_empty_batch_is_refused_on_both_ways() {
    assert_eq!(
        EncodedBatch::encode(&[]).expect_err("empty").code,
        crate::Code::Invalid
    );
    let empty: &[Record] = &[];
    let archive = BatchArchive {
        records: std::borrow::Cow::Borrowed(empty),
    };
    let bytes = rkyv::to_bytes::<rancor::Error>(&archive).expect("encodes");
    let bytes = Bytes::copy_from_slice(&bytes);
    let checksum = Checksum::of(&bytes);
    assert_eq!(EncodedBatch::check(bytes, checksum), Err(BatchError::Empty));
}

#[test]
fn ballast_before_the_archive_is_refused() {
    let batch = encode(&[Record::new("x")]);
    let mut bytes = vec![0; 4096];
    bytes.extend_from_slice(batch.bytes());
    let bytes = Bytes::from(bytes);
    let checksum = Checksum::of(&bytes);
    assert_eq!(
        EncodedBatch::check(bytes, checksum),
        Err(BatchError::Ballast)
    );
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(bodies in prop::collection::vec(
        (prop::collection::vec(any::<u8>(), 0..200), prop::option::of(0u64..1 << 60)), 1..20))
    {
        let records: Vec<Record> = bodies.iter().map(|(body, time)| {
            let record = Record::new(body.clone()).with_header("len", body.len().to_string());
            match time { Some(t) => record.with_timestamp(Timestamp(*t)), None => record }
        }).collect();
        let batch = encode(&records);
        let again = EncodedBatch::check(batch.bytes().clone(), batch.checksum()).expect("valid");
        prop_assert_eq!(&again, &batch);
        prop_assert_eq!(again.to_records(), records);
    }

    #[test]
    fn any_flipped_bit_is_found(
        body in prop::collection::vec(any::<u8>(), 1..300),
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let batch = encode(&[Record::new(body)]);
        let mut bytes = batch.bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let damaged = EncodedBatch::check(Bytes::from(bytes), batch.checksum());
        let is_checksum = matches!(damaged, Err(BatchError::Checksum { .. }));
        prop_assert!(is_checksum);
    }

    #[test]
    fn noise_with_a_right_checksum_never_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let bytes = Bytes::from(bytes);
        let checksum = Checksum::of(&bytes);
        if let Ok(batch) = EncodedBatch::check(bytes, checksum) {
            prop_assert!(batch.records() >= 1);
            let seen = batch.to_records().len();
            prop_assert_eq!(seen, batch.records() as usize);
        }
    }
}
