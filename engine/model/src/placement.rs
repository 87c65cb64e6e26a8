//! Which core a stream that nobody leads belongs to: rendezvous hashing of its name.
//!
//! Each core gets a weight from (name, core); the highest wins. When the set of cores changes,
//! only the streams of the cores that left or joined move. Both ends may compute it, but only the
//! star's answer counts: a client that guesses wrong is told `NOT_OWNER` with the address.

use crate::ids::CoreId;
use crate::names::{BucketName, StreamName};

/// The core among `0..cores` that a stream belongs to.
///
/// # Panics
/// If `cores` is 0.
pub fn stream_home(name: &StreamName, cores: u16) -> CoreId {
    let mut hash = FNV_OFFSET;
    hash = fnv(hash, name.bucket.as_str().as_bytes());
    hash = fnv(hash, b"/");
    hash = fnv(hash, name.key.as_str().as_bytes());
    rendezvous(hash, cores)
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

fn rendezvous(hash: u64, cores: u16) -> CoreId {
    assert!(cores > 0, "a star has at least one core");
    let weight = |core: u16| mix(hash ^ mix(u64::from(core) + 1));
    let best = (0..cores)
        .max_by_key(|&core| (weight(core), core))
        .unwrap_or(0);
    CoreId(best)
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
