//! What survives: everything that was flushed, and of the rest what a disk may leave.

use super::*;

const SECTOR_BYTES: usize = 512;
const BYTES: usize = 64 * SECTOR_BYTES;

fn device() -> Device {
    Device::new(BYTES, SECTOR_BYTES, 1)
}

fn write(device: &mut Device, sector: usize, fill: u8, sectors: usize) {
    let bytes = vec![fill; sectors * SECTOR_BYTES];
    let written = device.write(device.life(), (sector * SECTOR_BYTES) as u64, &bytes);
    assert_eq!(written, Ok(()));
}

fn flush(device: &mut Device) {
    let mark = device.mark();
    assert_eq!(device.flush(device.life(), mark), Ok(()));
}

fn cut(device: &mut Device, seed: u64, survivors: Survivors) -> Report {
    device.schedule(Cut {
        operations: 0,
        seed,
        survivors,
    });
    let report = device.take_report().expect("the power has gone");
    device.power_on();
    report
}

/// The first byte of each sector, all of whose bytes must be the same.
fn sectors(device: &mut Device) -> Vec<u8> {
    let life = device.life();
    let bytes = device.read(life, 0, BYTES).expect("it has power");
    let sectors = bytes.chunks(SECTOR_BYTES);
    sectors
        .map(|sector| {
            assert!(
                sector.iter().all(|byte| *byte == sector[0]),
                "half a sector"
            );
            sector[0]
        })
        .collect()
}

#[test]
fn a_read_gives_what_was_written_last() {
    let mut device = device();
    write(&mut device, 0, 1, 8);
    write(&mut device, 4, 2, 2);
    flush(&mut device);
    write(&mut device, 5, 3, 1);
    assert_eq!(sectors(&mut device)[..9], [1, 1, 1, 1, 2, 3, 1, 1, 0]);
}

#[test]
fn what_was_flushed_survives_every_cut() {
    for seed in 0..200 {
        for survivors in [Survivors::Some, Survivors::None] {
            let mut device = device();
            write(&mut device, 0, 1, 16);
            flush(&mut device);
            write(&mut device, 16, 2, 16);
            cut(&mut device, seed, survivors);
            assert_eq!(sectors(&mut device)[..16], [1; 16]);
        }
    }
}

#[test]
fn without_survivors_the_disk_is_as_it_was_flushed() {
    let mut device = device();
    write(&mut device, 0, 1, 8);
    flush(&mut device);
    let flushed = sectors(&mut device);
    for round in 0..9 {
        write(&mut device, round, 2 + round as u8, 5);
    }
    let report = cut(&mut device, 7, Survivors::None);
    assert_eq!((report.unflushed, report.whole, report.torn), (9, 0, 0));
    assert_eq!(sectors(&mut device), flushed);
}

/// Everything that a disk may do to two writes that overlap is done by some seed: each sector is
/// old, of the first or of the second write, whatever its neighbours are.
#[test]
fn what_was_not_flushed_survives_in_any_part_and_order() {
    let mut seen = [[false; 3]; 4];
    let (mut all, mut none, mut mixed) = (false, false, false);
    for seed in 0..500 {
        let mut device = device();
        write(&mut device, 8, 1, 4);
        write(&mut device, 8, 2, 4);
        let report = cut(&mut device, seed, Survivors::Some);
        assert_eq!(report.unflushed, 2);
        let left = &sectors(&mut device)[8..12];
        for (seen, sector) in seen.iter_mut().zip(left) {
            seen[usize::from(*sector)] = true;
        }
        mixed |= (0..3).all(|fill| left.contains(&fill));
        all |= report.whole == 2;
        none |= report.whole + report.torn == 0;
    }
    assert_eq!(seen, [[true; 3]; 4]);
    assert!(all && none && mixed);
}

/// A sector is old or new, also of a write that does not begin with one. The first one is large.
#[test]
fn a_sector_is_not_torn() {
    let mut torn = false;
    for (seed, large) in (0..200).zip([8 * SECTOR_BYTES, SECTOR_BYTES].into_iter().cycle()) {
        let mut device = Device::new(BYTES, large, seed);
        write(&mut device, 3, 1, 20);
        cut(&mut device, seed, Survivors::Some);
        let sectors = sectors(&mut device);
        let parts = [&sectors[3..8], &sectors[8..16], &sectors[16..23]];
        let count = if large == SECTOR_BYTES { 1 } else { 3 };
        for part in &parts[..count] {
            assert!(part.iter().all(|fill| *fill == part[0]));
        }
        torn |= parts.iter().any(|part| part[0] != sectors[3]);
    }
    assert!(torn);
}

#[test]
fn a_cut_follows_from_its_seed() {
    let left = |seed| {
        let mut device = device();
        for round in 0..60 {
            write(&mut device, round, round as u8, 4);
        }
        let report = cut(&mut device, seed, Survivors::Some);
        (report, sectors(&mut device))
    };
    for seed in 0..20 {
        assert_eq!(left(seed), left(seed));
    }
}

/// A write that is answered while a flush is on its way is not of that flush.
#[test]
fn a_flush_is_for_what_was_answered_when_it_was_asked_for() {
    let mut device = device();
    write(&mut device, 0, 1, 1);
    let mark = device.mark();
    write(&mut device, 1, 2, 1);
    assert_eq!(device.flush(device.life(), mark), Ok(()));
    let report = cut(&mut device, 7, Survivors::None);
    assert_eq!(report.unflushed, 1);
    assert_eq!(sectors(&mut device)[..2], [1, 0]);
}

#[test]
fn a_cut_comes_with_the_request_it_was_set_for() {
    for (operations, expected) in [(1, 1), (2, 2), (3, 3)] {
        let mut device = device();
        let life = device.life();
        device.schedule(Cut {
            operations,
            seed: 1,
            survivors: Survivors::None,
        });
        let mut answered = 0;
        while device.write(life, 0, &[1; SECTOR_BYTES]) == Ok(()) {
            answered += 1;
        }
        // The last one is not answered, and may survive like the others.
        assert_eq!(answered + 1, operations);
        let report = device.take_report().expect("the power has gone");
        assert_eq!(report.unflushed, expected);
        assert_eq!(device.take_report(), None);
    }
}

/// The flush that a cut comes with is not answered; its writes may be durable all the same.
#[test]
fn a_cut_with_a_flush_comes_before_it_or_behind_it() {
    let mut seen = [false; 2];
    for seed in 0..50 {
        let mut device = Device::new(BYTES, SECTOR_BYTES, seed);
        write(&mut device, 0, 1, 1);
        device.schedule(Cut {
            operations: 1,
            seed,
            survivors: Survivors::None,
        });
        let (life, mark) = (device.life(), device.mark());
        assert_eq!(device.flush(life, mark), Err(Refused::NoPower));
        device.power_on();
        seen[usize::from(sectors(&mut device)[0])] = true;
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn who_holds_on_to_the_disk_from_before_a_cut_is_refused() {
    let mut device = device();
    let before = device.life();
    cut(&mut device, 7, Survivors::Some);
    let mark = device.mark();
    assert_eq!(device.write(before, 0, &[1]), Err(Refused::NoPower));
    assert_eq!(device.read(before, 0, 1), Err(Refused::NoPower));
    assert_eq!(device.flush(before, mark), Err(Refused::NoPower));
    write(&mut device, 0, 1, 1);
}

#[test]
fn without_power_nothing_is_answered() {
    let mut device = device();
    device.schedule(Cut {
        operations: 0,
        seed: 1,
        survivors: Survivors::Some,
    });
    let life = device.life();
    assert_eq!(device.read(life, 0, 1), Err(Refused::NoPower));
    assert_eq!(device.write(life, 0, &[1]), Err(Refused::NoPower));
}

/// The canary of the power cuts rests on this.
#[test]
fn a_disk_that_lies_loses_what_it_says_is_flushed() {
    let mut device = device();
    write(&mut device, 0, 1, 1);
    flush(&mut device);
    device.lie();
    write(&mut device, 0, 2, 2);
    flush(&mut device);
    let report = cut(&mut device, 7, Survivors::None);
    assert_eq!(report.unflushed, 1);
    assert_eq!(sectors(&mut device)[..2], [1, 0]);
    write(&mut device, 0, 3, 1);
    flush(&mut device);
    cut(&mut device, 7, Survivors::None);
    assert_eq!(sectors(&mut device)[0], 3, "the truth after a cut");
}

#[test]
fn requests_fail_as_often_as_they_were_told_to() {
    let mut device = device();
    device.fail(Kind::Write, 2);
    device.fail(Kind::Flush, 1);
    device.fail(Kind::Read, 1);
    let (life, mark) = (device.life(), device.mark());
    assert_eq!(device.write(life, 0, &[1]), Err(Refused::Failed));
    assert_eq!(device.write(life, 0, &[1]), Err(Refused::Failed));
    assert_eq!(device.write(life, 0, &[1]), Ok(()));
    assert_eq!(device.flush(life, mark), Err(Refused::Failed));
    assert_eq!(device.flush(life, mark), Ok(()));
    assert_eq!(device.read(life, 0, 1), Err(Refused::Failed));
    assert!(device.read(life, 0, 1).is_ok());
    let counts = Counts {
        writes: 1,
        flushes: 1,
        failed: 4,
    };
    assert_eq!(device.counts(), counts);
}

#[test]
fn what_is_spoiled_is_not_read_and_all_else_is() {
    let mut device = device();
    let at = 4 * SECTOR_BYTES as u64;
    assert_eq!(device.spoil(at, SECTOR_BYTES), Ok(()));
    assert_eq!(device.spoil(BYTES as u64, 1), Err(Refused::OutOfRange));
    cut(&mut device, 7, Survivors::None);
    let life = device.life();
    assert!(device.read(life, 0, at as usize).is_ok());
    assert_eq!(device.read(life, 0, at as usize + 1), Err(Refused::Failed));
    let behind = at + SECTOR_BYTES as u64;
    assert_eq!(device.read(life, behind - 1, 2), Err(Refused::Failed));
    assert!(device.read(life, behind, 1).is_ok());
}

/// A flush that failed has made nothing durable; a write that failed landed in part.
#[test]
fn what_failed_is_not_on_the_medium() {
    let mut in_part = false;
    for seed in 0..20 {
        let mut device = Device::new(BYTES, SECTOR_BYTES, seed);
        write(&mut device, 0, 1, 1);
        device.fail(Kind::Flush, 1);
        device.fail(Kind::Write, 1);
        let (life, mark) = (device.life(), device.mark());
        assert_eq!(device.flush(life, mark), Err(Refused::Failed));
        let failed = device.write(life, 8 * SECTOR_BYTES as u64, &[2; 8 * SECTOR_BYTES]);
        assert_eq!(failed, Err(Refused::Failed));
        let landed = sectors(&mut device)[8..16]
            .iter()
            .filter(|&&fill| fill == 2)
            .count();
        in_part |= (1..8).contains(&landed);
        cut(&mut device, 7, Survivors::None);
        assert_eq!(sectors(&mut device)[..16], [0; 16]);
    }
    assert!(in_part);
}

#[test]
fn no_place_beyond_the_end_is_read_or_written() {
    let mut device = device();
    let life = device.life();
    for (offset, length) in [(BYTES as u64, 1), (0, BYTES + 1), (u64::MAX, 1)] {
        assert_eq!(device.read(life, offset, length), Err(Refused::OutOfRange));
        let written = device.write(life, offset, &vec![1; length]);
        assert_eq!(written, Err(Refused::OutOfRange));
    }
}

/// A cache has a size: what is oldest in it reaches the medium without a flush.
#[test]
fn a_full_cache_writes_its_oldest() {
    let mut device = Device::new(CACHE_BYTES_MAX, SECTOR_BYTES, 1);
    let life = device.life();
    let half = vec![1; CACHE_BYTES_MAX / 2];
    for offset in [0, half.len() as u64, 0] {
        assert_eq!(device.write(life, offset, &half), Ok(()));
    }
    let report = cut(&mut device, 7, Survivors::None);
    assert_eq!(report.unflushed, 2);
    let life = device.life();
    assert_eq!(device.read(life, 0, 1), Ok(&[1][..]));
    assert_eq!(device.read(life, half.len() as u64, 1), Ok(&[0][..]));
}
