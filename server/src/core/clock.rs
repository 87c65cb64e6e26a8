//! The only clock of a core: both readings of a moment, for the shard.

use nova_model::{Instant, Now, Timestamp};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Readings count from when it was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: std::time::Instant,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        Clock {
            start: std::time::Instant::now(),
        }
    }

    /// The monotonic reading, in microseconds. It starts at 1 so that 0 is always past.
    pub(crate) fn instant(&self) -> Instant {
        Instant(1 + micros(self.start.elapsed()))
    }

    /// Both readings. A wall clock before 1970 reads as 0.
    pub(crate) fn now(&self) -> Now {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Now {
            instant: self.instant(),
            wall: Timestamp(micros(wall)),
        }
    }

    /// How long it is until `deadline`.
    pub(crate) fn until(&self, deadline: Instant) -> Duration {
        Duration::from_micros(deadline.since_us(self.instant()))
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
