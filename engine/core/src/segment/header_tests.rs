//! Segment headers: round trip, every flipped bit, and what is none.

use super::*;
use crate::segment::samples::id;

fn header(closed: bool, predecessor: Option<Predecessor>) -> SegmentHeader {
    SegmentHeader {
        id: id(4, 12),
        file_length: 256 << 20,
        closed,
        predecessor,
        rewritten: None,
    }
}

/// The same of a segment that was rewritten.
fn rewritten() -> SegmentHeader {
    let mut header = header(false, Some(before()));
    header.rewritten = Some(Rewritten {
        stands_for: Predecessor {
            id: header.id,
            ..before()
        },
        length: 8192,
        last_group: GroupNumber(1),
        last_checksum: Checksum(77),
    });
    header.id.generation = Generation(2);
    header
}

#[test]
fn what_a_rewritten_segment_says_is_read() {
    let header = rewritten();
    let block = header.encode();
    assert_eq!(SegmentHeader::decode(&block), Ok(Some(header)));
    let now = header.rewritten.expect("it was rewritten");
    assert!(header.is_sealed_by(&now.stands_for));
    assert_eq!(header.own_seal().map(|seal| seal.length), Some(8192));
}

#[test]
fn generation_and_what_goes_with_it_come_together() {
    let mut without = rewritten();
    without.rewritten = None;
    let mut original = rewritten();
    original.id.generation = Generation(0);
    for header in [without, original] {
        let damage = HeaderDamage::Field("generation");
        assert_eq!(SegmentHeader::decode(&header.encode()), Err(damage));
    }
}

fn before() -> Predecessor {
    Predecessor {
        id: id(3, 10),
        length: 40_960,
        last_group: GroupNumber(981),
        last_checksum: Checksum(0xdead_beef),
    }
}

/// There is no number behind the last one: a start that counted on from it would overflow.
#[test]
fn the_last_number_of_all_is_refused() {
    for number in [0, u64::MAX] {
        let mut own = header(false, None);
        own.id.number = SegmentNumber(number);
        let damage = HeaderDamage::Field("number");
        assert_eq!(SegmentHeader::decode(&own.encode()), Err(damage));
        let mut earlier = before();
        earlier.id.number = SegmentNumber(number);
        let mut group = before();
        group.last_group = GroupNumber(number);
        for predecessor in [earlier, group] {
            let block = header(false, Some(predecessor)).encode();
            let damage = HeaderDamage::Field("predecessor");
            assert_eq!(SegmentHeader::decode(&block), Err(damage));
        }
    }
}

#[test]
fn what_is_written_is_read() {
    for closed in [false, true] {
        for predecessor in [None, Some(before())] {
            let header = header(closed, predecessor);
            let block = header.encode();
            assert_eq!(block.len(), SEGMENT_HEADER_BYTES);
            assert_eq!(SegmentHeader::decode(&block), Ok(Some(header)));
            let end = header.end_before();
            assert_eq!(end.predecessor(), predecessor);
            assert_eq!(
                end.segment.map(|id| id.number),
                predecessor.map(|_| SegmentNumber(10))
            );
        }
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let block = header(true, Some(before())).encode();
    for bit in 0..block.len() * 8 {
        let mut flipped = block.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(SegmentHeader::decode(&flipped).is_err(), "bit {bit}");
    }
}

#[test]
fn nothing_and_zeros_are_no_header_and_no_damage() {
    assert_eq!(SegmentHeader::decode(&[]), Ok(None));
    assert_eq!(SegmentHeader::decode(&[0; 100]), Ok(None));
    assert_eq!(SegmentHeader::decode(&[0; 8192]), Ok(None));
}

#[test]
fn other_bytes_are_damage() {
    let block = header(false, None).encode();
    assert_eq!(
        SegmentHeader::decode(&block[..511]),
        Err(HeaderDamage::Short(511))
    );
    assert_eq!(SegmentHeader::decode(&[7; 4096]), Err(HeaderDamage::Magic));
}

fn resealed(change: impl FnOnce(&mut Vec<u8>)) -> Result<Option<SegmentHeader>, HeaderDamage> {
    let mut block = header(false, Some(before())).encode().to_vec();
    change(&mut block);
    let checksum = Checksum::of(&block[CHECKSUM_END..]);
    block[8..CHECKSUM_END].copy_from_slice(&checksum.0.to_le_bytes());
    SegmentHeader::decode(&block)
}

#[test]
fn fields_out_of_bounds_and_other_versions_are_refused() {
    let version = resealed(|block| block[12] = 2);
    assert_eq!(
        version,
        Err(HeaderDamage::Version {
            version: 2,
            features: 0
        })
    );
    let features = resealed(|block| block[16] = 4);
    assert_eq!(
        features,
        Err(HeaderDamage::Version {
            version: 1,
            features: 4
        })
    );
    assert_eq!(
        resealed(|block| block[14] = 8),
        Err(HeaderDamage::Field("flags"))
    );
    assert_eq!(
        resealed(|block| block[21] = 0),
        Err(HeaderDamage::Field("block"))
    );
    let long = resealed(|block| block[24..32].fill(0xff));
    assert_eq!(long, Err(HeaderDamage::Field("file length")));
    let odd = resealed(|block| block[112] = 1);
    assert_eq!(odd, Err(HeaderDamage::Field("predecessor")));
}
