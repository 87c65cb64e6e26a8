//! Groups: round trips, sharing, every flipped bit, and no bytes that panic.

use super::*;
use crate::segment::samples::{self, batch, context, joined, one_of_each, sealed, stream};
use proptest::prelude::*;

#[test]
fn one_of_each_kind_comes_back() {
    let entries = one_of_each();
    let group = sealed(&entries, &context(5));
    let back = decode_group(&joined(&group), &context(5).segment).expect("whole");
    assert_eq!(back.entries, entries);
    assert_eq!(back.length, group.length);
    assert_eq!(back.header.checksum, group.checksum);
    assert_eq!(back.header.number, GroupNumber(5));
    assert_eq!(back.header.durable_through, GroupNumber(4));
}

#[test]
fn large_payloads_are_shared_and_small_pieces_are_one_part() {
    let mut state = stream(1);
    let entries = [
        samples::led(&state),
        batch(&mut state, 10),
        batch(&mut state, 20),
        batch(&mut state, 100_000),
        batch(&mut state, 30),
    ];
    let group = sealed(&entries, &context(1));
    assert_eq!(group.parts.len(), 3);
    let Entry::Batch(large) = &entries[3] else {
        unreachable!("a batch was made");
    };
    assert_eq!(group.parts[1].as_ptr(), large.stored.batch.bytes().as_ptr());
    let bytes = joined(&group);
    assert_eq!(
        Checksum::of(&bytes[CHECKSUM_END..group.content]),
        group.checksum
    );
    let back = decode_group(&bytes, &context(1).segment).expect("whole");
    let Entry::Batch(read) = &back.entries[3] else {
        unreachable!("a batch was written");
    };
    let inside = bytes.as_ptr_range();
    assert!(
        inside.contains(&read.stored.batch.bytes().as_ptr()),
        "a slice, no copy"
    );
}

#[test]
fn every_flipped_bit_is_noticed() {
    let group = sealed(&one_of_each(), &context(5));
    let bytes = joined(&group);
    for bit in 0..group.content * 8 {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let decoded = decode_group(&Bytes::from(flipped), &context(5).segment);
        assert!(decoded.is_err(), "bit {bit}");
    }
}

#[test]
fn a_group_that_is_not_all_there_says_how_much_it_needs() {
    let mut state = stream(1);
    let entries = [samples::led(&state), batch(&mut state, 9000)];
    let group = sealed(&entries, &context(1));
    let bytes = joined(&group);
    for length in [0, 1, GROUP_HEADER_BYTES - 1] {
        let short = decode_group(&bytes.slice(..length), &context(1).segment);
        assert_eq!(short, Err(GroupDamage::Incomplete { needed: blocks(1) }));
    }
    for length in [GROUP_HEADER_BYTES, 4096, 8192, group.content - 1] {
        let short = decode_group(&bytes.slice(..length), &context(1).segment);
        assert_eq!(
            short,
            Err(GroupDamage::Incomplete {
                needed: group.length
            })
        );
    }
    assert!(decode_group(&bytes.slice(..group.content), &context(1).segment).is_ok());
}

#[test]
fn an_impossible_length_or_count_is_refused_before_it_is_used() {
    let group = sealed(&one_of_each(), &context(5));
    let field = |at: usize, value: u32| {
        let mut bytes = joined(&group).to_vec();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        decode_group(&Bytes::from(bytes), &context(5).segment).expect_err("refused")
    };
    assert_eq!(field(20, u32::MAX), GroupDamage::Field("length"));
    assert_eq!(
        field(20, GROUP_BYTES_MAX as u32 + 1),
        GroupDamage::Field("length")
    );
    assert_eq!(field(20, 128), GroupDamage::Field("length"));
    assert_eq!(field(24, 0), GroupDamage::Field("entry count"));
    let mut last_of_all = joined(&group).to_vec();
    last_of_all[72..80].fill(0xff);
    let damage = decode_group(&Bytes::from(last_of_all), &context(5).segment);
    assert_eq!(damage.err(), Some(GroupDamage::Field("group number")));
    assert_eq!(field(24, u32::MAX), GroupDamage::Field("entry count"));
    assert!(matches!(
        field(16, 2),
        GroupDamage::Version { features: 2, .. }
    ));
    assert!(matches!(
        field(12, 0x0080_0002),
        GroupDamage::Version { version: 2, .. }
    ));
}

#[test]
fn a_group_of_another_segment_is_none() {
    let group = sealed(&one_of_each(), &context(5));
    let other = samples::id(3, 7);
    let decoded = decode_group(&joined(&group), &other);
    assert_eq!(decoded, Err(GroupDamage::OtherSegment(context(5).segment)));
}

#[test]
#[should_panic(expected = "a group without entries")]
fn a_group_without_entries_is_a_mistake() {
    GroupBuilder::new().seal(&context(1));
}

/// An entry whose fixed bytes were changed, in a group whose checksum was made to fit.
fn with_entry_bytes(entry: &Entry, change: impl FnOnce(&mut Vec<u8>)) -> GroupDamage {
    let group = sealed(std::slice::from_ref(entry), &context(1));
    let mut bytes = joined(&group).to_vec();
    change(&mut bytes);
    let checksum = Checksum::of(&bytes[CHECKSUM_END..group.content]);
    bytes[8..CHECKSUM_END].copy_from_slice(&checksum.0.to_le_bytes());
    decode_group(&Bytes::from(bytes), &context(1).segment).expect_err("refused")
}

#[test]
fn an_entry_that_breaks_a_rule_is_damage_even_under_a_right_checksum() {
    let entries = one_of_each();
    let (led, batch, fence) = (&entries[1], &entries[2], &entries[3]);
    let at = |n: usize| GROUP_HEADER_BYTES + n;
    let damage = |damage| GroupDamage::Entry { index: 0, damage };
    let kind = with_entry_bytes(fence, |bytes| bytes[at(4)] = 99);
    assert_eq!(kind, damage(EntryDamage::Kind(99)));
    let flags = with_entry_bytes(fence, |bytes| bytes[at(5)] = 1);
    assert_eq!(flags, damage(EntryDamage::Flags(1)));
    let flags = with_entry_bytes(batch, |bytes| bytes[at(5)] = 3);
    assert_eq!(flags, damage(EntryDamage::Flags(3)));
    let length = with_entry_bytes(batch, |bytes| bytes[at(0)] = 95);
    assert_eq!(length, damage(EntryDamage::Length(95)));
    let records = with_entry_bytes(batch, |bytes| bytes[at(40)] = 3);
    assert_eq!(
        records,
        damage(EntryDamage::Records {
            declared: 3,
            found: 2
        })
    );
    let checksum = with_entry_bytes(batch, |bytes| bytes[at(44)] ^= 1);
    assert!(matches!(
        checksum,
        GroupDamage::Entry {
            damage: EntryDamage::Batch(_),
            ..
        }
    ));
    let sequence = with_entry_bytes(batch, |bytes| bytes[at(32)..at(40)].fill(0xff));
    assert_eq!(sequence, damage(EntryDamage::Rule("sequence number")));
    let other = with_entry_bytes(led, |bytes| bytes[at(8)] ^= 1);
    assert_eq!(other, damage(EntryDamage::Rule("stream or epoch")));
}

proptest! {
    #[test]
    fn what_is_written_is_read(groups in samples::any_groups(), wanted in 0..5usize) {
        for entries in groups {
            let group = sealed(&entries, &context(9));
            let bytes = joined(&group);
            prop_assert_eq!(Checksum::of(&bytes[CHECKSUM_END..group.content]), group.checksum);
            let back = decode_group(&bytes, &context(9).segment).expect("whole");
            prop_assert_eq!(&back.entries, &entries);
            let stream = entries[wanted % entries.len()].stream().expect("of a stream");
            let of_stream = decode_group_of(&bytes, &context(9).segment, stream).expect("whole");
            let expected: Vec<Entry> =
                entries.into_iter().filter(|entry| entry.stream() == Some(stream)).collect();
            prop_assert_eq!(of_stream.entries, expected);
        }
    }

    #[test]
    fn noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..9000)) {
        let segment = context(1).segment;
        let _ = decode_group(&Bytes::from(noise.clone()), &segment);
        let mut like_a_group = joined(&sealed(&one_of_each(), &context(1))).to_vec();
        for (at, byte) in noise.iter().enumerate().skip(96) {
            if let Some(target) = like_a_group.get_mut(at) {
                *target = *byte;
            }
        }
        let bytes = Bytes::from(like_a_group);
        let _ = decode_group(&bytes, &segment);
        let _ = decode_group_checked(&bytes, &segment, Checks::NoChecksums);
        let _ = entry_outlines(&bytes);
    }

    #[test]
    fn a_few_wrong_bytes_never_panic(
        wrong in proptest::collection::vec((0..2000usize, any::<u8>()), 1..6),
        length in 0..4097usize,
    ) {
        let mut bytes = joined(&sealed(&one_of_each(), &context(1))).to_vec();
        for (at, byte) in wrong {
            bytes[at % 1500] = byte;
        }
        bytes.truncate(length);
        let bytes = Bytes::from(bytes);
        let _ = decode_group(&bytes, &context(1).segment);
        let _ = decode_group_checked(&bytes, &context(1).segment, Checks::NoChecksums);
        let _ = entry_outlines(&bytes);
    }
}
