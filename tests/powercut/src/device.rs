//! A disk with a volatile write cache: what it answers, and what is left of it after a power cut.
//!
//! ```text
//!   write --> cache, answered         what a read gives is the medium with the cache over it
//!   flush --> all that was answered before the flush was asked for is on the medium
//!   cut   --> of the rest each write survives whole, in some of its sectors, or not at all; of two
//!             to the same place the older one may land last
//! ```
//! The contents that a read gives are kept; the cache remembers, for each write, what was there
//! before. So a flush forgets the oldest writes of the cache, and a cut takes all of them back,
//! newest first, and lays those that survive over what is left.
//!
//! # Invariants
//! - What is not in the cache survives.
//! - Who has the disk open from before a cut is refused for ever: what a file system of that life
//!   still wants to write does not reach the next one.
//!
//! # Not here
//! - Waiting, threads and the kernel: [`crate::served`].

use nova_e2e::chance::Chance;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

/// The first sector, however large the others are. A file system has its superblock there, under a
/// checksum, and does not mend it by its journal when it is torn.
const FIRST_SECTOR_BYTES: usize = 4096;

/// Bytes of the cache; above them the oldest writes reach the medium by themselves.
const CACHE_BYTES_MAX: usize = 64 << 20;

/// A request that can fail or be slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A flush.
    Flush,
}

/// Why a request was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// There is no power, or there was none since the disk was opened.
    NoPower,
    /// It was told to fail.
    Failed,
    /// The disk has no such place.
    OutOfRange,
}

/// Which writes of the cache survive a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survivors {
    /// As chance has it, in whole or in part.
    Some,
    /// None.
    None,
}

/// A cut that is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// With the last of so many writes and flushes; 0: now.
    pub operations: u64,
    /// What decides about the cache.
    pub seed: u64,
    /// What survives of it.
    pub survivors: Survivors,
}

/// What a cut did to the cache, in writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// In the cache.
    pub unflushed: u64,
    /// On the medium as they were.
    pub whole: u64,
    /// On the medium in some of their sectors.
    pub torn: u64,
}

/// What a disk did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Writes answered.
    pub writes: u64,
    /// Flushes answered.
    pub flushes: u64,
    /// Requests that were told to fail.
    pub failed: u64,
}

/// The time between two cuts, to which whoever opens the disk belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life(pub u64);

/// The writes that a flush is for: those answered when it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(u64);

#[derive(Debug)]
struct Cached {
    number: u64,
    offset: usize,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Cached {
    fn places(&self, within: Range<usize>) -> Range<usize> {
        self.offset + within.start..self.offset + within.end
    }
}

/// The parts of a write that land or do not, each by itself: places in it.
fn sectors(
    offset: usize,
    length: usize,
    sector_bytes: usize,
) -> impl Iterator<Item = Range<usize>> {
    let end_of = move |place: usize| match place {
        ..FIRST_SECTOR_BYTES => FIRST_SECTOR_BYTES,
        _ => place / sector_bytes * sector_bytes + sector_bytes,
    };
    let next = move |at: usize| length.min(end_of(offset + at) - offset);
    let begins = std::iter::successors(Some(0), move |at| Some(next(*at)));
    begins
        .take_while(move |at| *at < length)
        .map(move |at| at..next(at))
}

/// The disk.
#[derive(Debug)]
pub struct Device {
    contents: Vec<u8>,
    sector_bytes: usize,
    cache: VecDeque<Cached>,
    cached_bytes: usize,
    next_number: u64,
    life: Life,
    has_power: bool,
    is_lying: bool,
    cut: Option<Cut>,
    report: Option<Report>,
    failures: [u64; 3],
    /// Places that are not read any more.
    spoiled: Vec<Range<usize>>,
    chance: Chance,
    counts: Counts,
}

impl Device {
    /// A disk of so many zeros, which tears writes between sectors. The seed decides in which ones
    /// a write that fails has landed.
    pub fn new(bytes: usize, sector_bytes: usize, seed: u64) -> Device {
        Device {
            contents: vec![0; bytes],
            sector_bytes,
            cache: VecDeque::new(),
            cached_bytes: 0,
            next_number: 0,
            life: Life(0),
            has_power: true,
            is_lying: false,
            cut: None,
            report: None,
            failures: [0; 3],
            spoiled: Vec::new(),
            chance: Chance(seed),
            counts: Counts::default(),
        }
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.contents.len()
    }

    /// The life that who opens it now belongs to.
    pub fn life(&self) -> Life {
        self.life
    }

    /// Whether it answers at all.
    pub fn has_power(&self) -> bool {
        self.has_power
    }

    /// What it did.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The bytes at a place.
    pub fn read(&mut self, life: Life, offset: u64, length: usize) -> Result<&[u8], Refused> {
        self.admit(life, Kind::Read)?;
        let place = self.place(offset, length)?;
        let touches = |bad: &Range<usize>| bad.start < place.end && place.start < bad.end;
        if self.spoiled.iter().any(touches) {
            self.counts.failed += 1;
            return Err(Refused::Failed);
        }
        Ok(&self.contents[place])
    }

    /// Takes bytes into the cache.
    pub fn write(&mut self, life: Life, offset: u64, bytes: &[u8]) -> Result<(), Refused> {
        let place = self.place(offset, bytes.len())?;
        let admitted = self.admit(life, Kind::Write);
        if admitted == Err(Refused::Failed) {
            self.write_in_part(place.start, bytes);
        }
        admitted?;
        self.lay(place.start, bytes);
        if self.is_last_operation() {
            self.lose_power();
            return Err(Refused::NoPower);
        }
        self.counts.writes += 1;
        Ok(())
    }

    /// The writes that a flush brings to the medium if it is asked for at this moment.
    pub fn mark(&self) -> Mark {
        Mark(self.next_number)
    }

    /// Brings the marked writes to the medium.
    pub fn flush(&mut self, life: Life, mark: Mark) -> Result<(), Refused> {
        self.admit(life, Kind::Flush)?;
        let is_last = self.is_last_operation();
        let comes_too_late = is_last && self.chance.hits(1, 2);
        if !self.is_lying && !comes_too_late {
            while self
                .cache
                .front()
                .is_some_and(|write| write.number < mark.0)
            {
                self.bring_oldest_to_medium();
            }
        }
        if is_last {
            self.lose_power();
            return Err(Refused::NoPower);
        }
        self.counts.flushes += 1;
        Ok(())
    }

    /// The power goes with a request to come, or now.
    pub fn schedule(&mut self, cut: Cut) {
        self.cut = Some(cut);
        if cut.operations == 0 {
            self.lose_power();
        }
    }

    /// What the last cut did, once.
    pub fn take_report(&mut self) -> Option<Report> {
        self.report.take()
    }

    /// The power is back. Nothing fails any more, and the disk tells the truth.
    pub fn power_on(&mut self) {
        self.has_power = true;
        self.is_lying = false;
        self.failures = [0; 3];
    }

    /// The next requests of a kind fail.
    pub fn fail(&mut self, kind: Kind, times: u64) {
        self.failures[kind as usize] = times;
    }

    /// From now on a stretch is not read any more, also when the power was away.
    pub fn spoil(&mut self, offset: u64, length: usize) -> Result<(), Refused> {
        let place = self.place(offset, length)?;
        self.spoiled.push(place);
        Ok(())
    }

    /// From now on flushes are answered and do nothing.
    pub fn lie(&mut self) {
        self.is_lying = true;
    }

    fn admit(&mut self, life: Life, kind: Kind) -> Result<(), Refused> {
        if !self.has_power || life != self.life {
            return Err(Refused::NoPower);
        }
        let failures = &mut self.failures[kind as usize];
        if *failures > 0 {
            *failures -= 1;
            self.counts.failed += 1;
            return Err(Refused::Failed);
        }
        Ok(())
    }

    fn place(&self, offset: u64, length: usize) -> Result<Range<usize>, Refused> {
        let start = usize::try_from(offset).map_err(|_| Refused::OutOfRange)?;
        let end = start.checked_add(length).ok_or(Refused::OutOfRange)?;
        match end <= self.contents.len() {
            true => Ok(start..end),
            false => Err(Refused::OutOfRange),
        }
    }

    fn lay(&mut self, offset: usize, bytes: &[u8]) {
        let place = &mut self.contents[offset..offset + bytes.len()];
        let before = place.to_vec();
        place.copy_from_slice(bytes);
        self.cached_bytes += bytes.len();
        self.cache.push_back(Cached {
            number: self.next_number,
            offset,
            before,
            after: bytes.to_vec(),
        });
        self.next_number += 1;
        while self.cached_bytes > CACHE_BYTES_MAX {
            self.bring_oldest_to_medium();
        }
    }

    /// A write that fails has landed in any of its sectors.
    fn write_in_part(&mut self, offset: usize, bytes: &[u8]) {
        for sector in sectors(offset, bytes.len(), self.sector_bytes) {
            if self.chance.hits(1, 2) {
                self.lay(offset + sector.start, &bytes[sector]);
            }
        }
    }

    fn bring_oldest_to_medium(&mut self) {
        if let Some(write) = self.cache.pop_front() {
            self.cached_bytes -= write.after.len();
        }
    }

    fn is_last_operation(&mut self) -> bool {
        let Some(cut) = &mut self.cut else {
            return false;
        };
        cut.operations = cut.operations.saturating_sub(1);
        cut.operations == 0
    }

    fn lose_power(&mut self) {
        let Some(cut) = self.cut.take() else {
            return;
        };
        let mut writes: Vec<Cached> = self.cache.drain(..).collect();
        self.cached_bytes = 0;
        for write in writes.iter().rev() {
            let place = write.places(0..write.before.len());
            self.contents[place].copy_from_slice(&write.before);
        }
        let mut report = Report {
            unflushed: writes.len() as u64,
            ..Report::default()
        };
        if cut.survivors == Survivors::Some {
            self.keep_some(&mut writes, &mut Chance(cut.seed), &mut report);
        }
        self.report = Some(report);
        self.has_power = false;
        self.life.0 += 1;
    }

    /// Lays what survives over the medium. Some cuts lose nearly all of the cache, some nearly
    /// nothing: with all the same each cut would look like the others.
    fn keep_some(&mut self, writes: &mut [Cached], chance: &mut Chance, report: &mut Report) {
        for at in (1..writes.len()).rev() {
            writes.swap(at, chance.below(at as u64 + 1) as usize);
        }
        let (torn_of_8, whole_of_4) = (chance.below(5), chance.below(5));
        for write in &*writes {
            if chance.hits(torn_of_8, 8) {
                report.torn += 1;
                for sector in sectors(write.offset, write.after.len(), self.sector_bytes) {
                    if chance.hits(1, 2) {
                        let place = write.places(sector.clone());
                        self.contents[place].copy_from_slice(&write.after[sector]);
                    }
                }
            } else if chance.hits(whole_of_4, 4) {
                report.whole += 1;
                let place = write.places(0..write.after.len());
                self.contents[place].copy_from_slice(&write.after);
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            unflushed,
            whole,
            torn,
        } = self;
        write!(f, "{unflushed} unflushed, {whole} whole, {torn} torn")
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.writes, self.flushes, self.failed)
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
