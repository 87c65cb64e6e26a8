//! Which core a stream that nobody leads belongs to: rendezvous hashing of its name.
//!
//! Each core gets a weight from (name, core); the highest wins. When the set of cores changes,
//! only the streams of the cores that left or joined move. Both ends may compute it, but only the
//! star's answer counts: a client that guesses wrong is told `NOT_OWNER` with the address.

use crate::ids::CoreId;
use crate::names::{BucketName, StreamName};
use crate::star::CoreSet;

/// The core among `0..cores` that a stream belongs to.
///
/// # Panics
/// If `cores` is 0.
pub fn stream_home(name: &StreamName, cores: u16) -> CoreId {
    rendezvous(hash_of(name), 0..cores)
}

/// The cores of a star and which of them are drained: no stream belongs to a drained core.
///
/// With every core drained the star is closed: nothing is led, and what rests is spread over all
/// cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    are_drained: Vec<bool>,
}

impl Placement {
    /// The placement of a start: no core is drained.
    pub fn new(cores: u16) -> Placement {
        Placement {
            are_drained: vec![false; usize::from(cores)],
        }
    }

    /// The same with these cores drained, or not drained any more; none if the star has no such
    /// core.
    pub fn with(&self, cores: CoreSet, is_drained: bool) -> Option<Placement> {
        let mut next = self.clone();
        match cores {
            CoreSet::All => next.are_drained.fill(is_drained),
            CoreSet::One(core) => {
                *next.are_drained.get_mut(usize::from(core.0))? = is_drained;
            }
        }
        Some(next)
    }

    /// Whether a core is drained.
    pub fn is_drained(&self, core: CoreId) -> bool {
        self.are_drained[usize::from(core.0)]
    }

    /// Whether all cores are drained: nothing may be led.
    pub fn is_closed(&self) -> bool {
        self.are_drained.iter().all(|is_drained| *is_drained)
    }

    /// The cores that are drained, ascending.
    pub fn drained(&self) -> Vec<CoreId> {
        self.cores().filter(|core| self.is_drained(*core)).collect()
    }

    /// The core that a stream belongs to.
    pub fn home(&self, name: &StreamName) -> CoreId {
        let is_closed = self.is_closed();
        let open = self.cores();
        let open = open.filter(|core| is_closed || !self.is_drained(*core));
        rendezvous(hash_of(name), open.map(|core| core.0))
    }

    fn cores(&self) -> impl Iterator<Item = CoreId> {
        (0..self.are_drained.len() as u16).map(CoreId)
    }
}

/// The core that keeps a bucket's definition: the first, whose log every start has.
pub fn bucket_home(_name: &BucketName) -> CoreId {
    CoreId(0)
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a (Fowler, Noll, Vo), continued from `hash`.
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |h, &b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn hash_of(name: &StreamName) -> u64 {
    let mut hash = FNV_OFFSET;
    hash = fnv(hash, name.bucket.as_str().as_bytes());
    hash = fnv(hash, b"/");
    fnv(hash, name.key.as_str().as_bytes())
}

fn rendezvous(hash: u64, cores: impl Iterator<Item = u16>) -> CoreId {
    let weight = |core: u16| mix(hash ^ mix(u64::from(core) + 1));
    let best = cores.max_by_key(|&core| (weight(core), core));
    CoreId(best.expect("a star has at least one core"))
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
