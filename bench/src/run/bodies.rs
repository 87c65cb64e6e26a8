//! What is sent, and the digest by which what is read back is held to what was acked.
//!
//! ```text
//!   ack:   record at sequence 17 has body 5   -> add mix(17, hash of body 5)
//!   read:  record at sequence 17, its bytes   -> add mix(17, hash of the bytes)
//! ```
//! Sums do not depend on an order, so the acks of many producers of a stream can be summed up
//! apart, in constant memory. They are equal if each acked record is in its place with its bytes
//! and nothing else is there; another body, place or number of records makes them differ but for a
//! chance of 2^-32 for each record.
//!
//! # Invariants
//! - Bodies are random bytes of a seed: a disk or a transport gains nothing by compressing them.

use bytes::Bytes;

/// Different bodies of a run at most.
const BODIES_MAX: usize = 256;
/// Bytes of all bodies together at most, and one body at least.
const BODIES_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The bodies of a run.
#[derive(Debug)]
pub struct Bodies {
    bodies: Vec<(Bytes, u64)>,
}

impl Bodies {
    /// Makes bodies of a length.
    pub fn new(bytes: usize, seed: u64) -> Bodies {
        let count = (BODIES_BYTES_MAX / bytes.max(1)).clamp(1, BODIES_MAX);
        let mut state = seed;
        let bodies = (0..count)
            .map(|_| {
                let mut body = Vec::with_capacity(bytes + 8);
                while body.len() < bytes {
                    state = state.wrapping_add(1);
                    body.extend_from_slice(&scramble(state).to_le_bytes());
                }
                body.truncate(bytes);
                let hash = hash(&body);
                (Bytes::from(body), hash)
            })
            .collect();
        Bodies { bodies }
    }

    /// The body of a session's record, and its hash.
    pub fn get(&self, number: u64) -> (Bytes, u64) {
        let place = (number % self.bodies.len() as u64) as usize;
        let (body, hash) = &self.bodies[place];
        (body.clone(), *hash)
    }
}

/// Checksum and length of a body.
pub fn hash(body: &[u8]) -> u64 {
    u64::from(crc32fast::hash(body)) << 32 | (body.len() as u64 & 0xffff_ffff)
}

/// The digest of records of one stream, in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Digest {
    sum: u128,
    /// How many there are.
    pub records: u64,
    /// One past the last of them.
    pub end: u64,
}

impl Digest {
    /// Adds a record.
    pub fn add(&mut self, sequence: u64, hash: u64) {
        let low = scramble(sequence ^ scramble(hash));
        let high = scramble(low ^ hash);
        self.sum = self
            .sum
            .wrapping_add(u128::from(high) << 64 | u128::from(low));
        self.records += 1;
        self.end = self.end.max(sequence + 1);
    }

    /// Adds what another part of the records came to.
    pub fn merge(&mut self, other: &Digest) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.records += other.records;
        self.end = self.end.max(other.end);
    }
}

/// The output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, 2014).
fn scramble(state: u64) -> u64 {
    let mut z = state.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
#[path = "bodies_tests.rs"]
mod tests;
