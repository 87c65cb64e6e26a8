//! What a shard holds at the moment, as numbers for metrics.

use super::Shard;

impl Shard {
    /// Open append sessions.
    pub fn sessions_open(&self) -> usize {
        self.sessions.len()
    }

    /// Open readers.
    pub fn readers_open(&self) -> usize {
        self.readers.len()
    }

    /// Streams that the shard leads. It looks at each one in memory.
    pub fn streams_led(&self) -> usize {
        self.streams.all().filter(|stream| stream.is_led).count()
    }

    /// Whether appends are refused for want of space on the disk.
    pub fn is_disk_full(&self) -> bool {
        self.shortage().is_some()
    }
}
