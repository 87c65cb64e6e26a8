//! The clock and the random numbers of a client.

use crate::core::Moment;
use crate::error::ConfigError;
use nova_model::{Instant, WriterId};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the state machines of one client get time and randomness from.
#[derive(Debug)]
pub(crate) struct Source {
    start: tokio::time::Instant,
    seed: u128,
    drawn: AtomicU64,
}

impl Source {
    pub(crate) fn new() -> Result<Source, ConfigError> {
        let mut seed = [0; 16];
        getrandom::fill(&mut seed).map_err(|_| ConfigError::Randomness)?;
        let seed = u128::from_le_bytes(seed);
        Ok(Source {
            start: tokio::time::Instant::now(),
            seed,
            drawn: AtomicU64::new(0),
        })
    }

    pub(crate) fn now(&self) -> Instant {
        Instant(self.start.elapsed().as_micros() as u64)
    }

    pub(crate) fn moment(&self) -> Moment {
        self.moment_at(self.now())
    }

    /// A moment whose time was read before.
    pub(crate) fn moment_at(&self, now: Instant) -> Moment {
        Moment {
            now,
            random: mix(self.draw() ^ self.seed as u64),
        }
    }

    /// The time at which `instant` of the state machines is reached.
    pub(crate) fn time_of(&self, instant: Instant) -> tokio::time::Instant {
        self.start + std::time::Duration::from_micros(instant.0)
    }

    /// An id that no other client has but by chance, and no other writer of this one.
    pub(crate) fn writer_id(&self) -> WriterId {
        WriterId(self.seed.wrapping_add(u128::from(self.draw())))
    }

    fn draw(&self) -> u64 {
        self.drawn.fetch_add(1, Ordering::Relaxed)
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
