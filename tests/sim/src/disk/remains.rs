//! What a crash leaves of the operations that were on their way.

use super::flight::Act;
use super::{Flight, Inode, Late, SECTOR_BYTES, SimDisk};
use crate::rng::Rng;

/// The longest that a write of a killed process takes to land.
const LATE_US_MAX: u64 = 400_000;

impl SimDisk {
    /// The power is gone: each write on its way is there whole, not at all, or in part.
    pub fn cut_power(&mut self, flights: Vec<Flight>, rng: &mut Rng) {
        for late in std::mem::take(&mut self.late) {
            if self.can_land(&late) {
                self.land_in_part(late.inode, late.offset, &late.bytes, rng);
            }
        }
        for flight in flights {
            match flight.act {
                Act::Write {
                    inode,
                    offset,
                    bytes,
                    ..
                } => self.land_in_part(inode, offset, &bytes, rng),
                _ => self.end_name_act(flight, rng),
            }
        }
    }

    /// The process is gone: its writes land yet, some time before `now` and much later.
    pub fn kill(&mut self, flights: Vec<Flight>, now: u64, rng: &mut Rng) {
        for flight in flights {
            let file = flight.file;
            match flight.act {
                Act::Write {
                    inode,
                    offset,
                    bytes,
                    generation,
                    ..
                } => {
                    let file = (file, generation);
                    let due = now + rng.below(LATE_US_MAX);
                    self.late.push(Late {
                        due,
                        file,
                        inode,
                        offset,
                        bytes,
                    });
                }
                _ => self.end_name_act(flight, rng),
            }
        }
    }

    /// Lands the writes of killed processes that are due.
    pub fn land_late(&mut self, now: u64) -> usize {
        let late = std::mem::take(&mut self.late);
        let (due, later): (Vec<_>, Vec<_>) = late.into_iter().partition(|late| late.due <= now);
        self.late = later;
        let count = due.len();
        due.into_iter().for_each(|late| self.land(late));
        count
    }

    /// When the next write of a killed process lands.
    pub fn next_late(&self) -> Option<u64> {
        self.late.iter().map(|late| late.due).min()
    }

    /// Whoever takes a file's lock has waited for all writes of the one who held it.
    pub(super) fn land_all_of(&mut self, inode: Inode) {
        let late = std::mem::take(&mut self.late);
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            late.into_iter().partition(|late| late.inode == inode);
        self.late = elsewhere;
        here.into_iter().for_each(|late| self.land(late));
    }

    /// A file that became a spare one was locked before; where locks do not work nothing but the
    /// seal protects, and a seal protects a segment, not the later user of its file. So a late
    /// write only lands where its file still has its name.
    fn can_land(&self, late: &Late) -> bool {
        self.segments.get(&late.file) == Some(&late.inode)
    }

    fn land(&mut self, late: Late) {
        if self.can_land(&late) {
            self.put(late.inode, late.offset, &late.bytes);
        }
    }

    fn land_in_part(&mut self, inode: Inode, offset: u64, bytes: &[u8], rng: &mut Rng) {
        let sectors = bytes.len() / SECTOR_BYTES;
        let kind = rng.below(5);
        let cut = rng.below(sectors as u64 + 1) as usize;
        for sector in 0..sectors {
            let lands = match kind {
                0 => true,
                1 => false,
                2 => sector < cut,
                // The worst for who does not look at all of it: one piece is missing.
                3 => sector != cut,
                _ => rng.chance(50),
            };
            if lands {
                let at = sector * SECTOR_BYTES;
                let part = &bytes[at..at + SECTOR_BYTES];
                self.put(inode, offset + at as u64, part);
            }
        }
    }

    /// An act on names is there or not. A segment that is recycled may have lost its index alone,
    /// one that was rewritten may have got it alone.
    fn end_name_act(&mut self, flight: Flight, rng: &mut Rng) {
        if let Act::Recycle { generation } = flight.act
            && rng.chance(50)
        {
            self.indexes.remove(&(flight.file, generation));
            return;
        }
        if let Act::Place {
            generation, index, ..
        } = &flight.act
            && rng.chance(30)
        {
            self.indexes
                .insert((flight.file, *generation), index.clone());
            return;
        }
        if rng.chance(50) && !matches!(flight.act, Act::Read { .. }) {
            self.complete(flight);
        }
    }
}
