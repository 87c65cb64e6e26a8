//! When there is no file for the next segment: for want of space, or of a descriptor.
//!
//! Groups go on in the segment that there is, as far as it reaches; what was admitted waits, and
//! the file is asked for again each second.
//!
//! # Not here
//! - What is refused meanwhile, and why: `crate::shard`.

use super::{CREATE_RETRY_US, FIRST_SEGMENT_BYTES_SMALL, LogEvent, LogWriter};
use crate::disk::{DiskError, DiskFailure};
use nova_model::Instant;
use nova_model::limits::GROUP_BYTES_MAX;

impl LogWriter {
    /// Whether no file could be made for the next segment.
    pub(crate) fn has_no_space(&self) -> bool {
        self.no_space
    }

    fn lacks_file(&self) -> bool {
        self.no_space || self.no_descriptor
    }

    /// Whether a further append might not find space: no file could be made for the next segment
    /// and the rest of this one is reserved for what was admitted.
    pub(crate) fn is_full(&self) -> bool {
        let reserve = (self.pending_bytes + 2 * GROUP_BYTES_MAX) as u64;
        self.lacks_file()
            && self
                .active
                .as_ref()
                .filter(|_| !self.roll_wanted)
                .is_none_or(|slot| !slot.has_room(reserve))
    }

    /// Whether what was pushed waits for a file that could not be made, and for nothing else.
    pub(crate) fn is_stuck(&self) -> bool {
        self.lacks_file()
            && (self.roll_wanted || self.active.is_none())
            && self.next.is_none()
            && self.in_flight.is_none()
    }

    /// Whether the last file for a segment could not be made for want of a descriptor.
    pub(crate) fn lacks_descriptors(&self) -> bool {
        self.no_descriptor
    }

    /// No file could be made for the next segment: it is tried again, a start's first one smaller.
    pub(super) fn create_failed(&mut self, now: Instant, error: DiskError) -> Option<LogEvent> {
        let slot = self.next.take().expect("it was being made");
        self.next_number = slot.file.number;
        match error.failure {
            DiskFailure::NoDescriptor => {
                self.no_descriptor = true;
                self.create_retry = Some(now.plus_us(CREATE_RETRY_US));
                None
            }
            DiskFailure::NoSpace => {
                self.no_descriptor = false;
                self.no_space = true;
                let smaller = FIRST_SEGMENT_BYTES_SMALL
                    .into_iter()
                    .find(|bytes| *bytes < self.create_bytes);
                match smaller {
                    Some(bytes) if self.active.is_none() => self.create_bytes = bytes,
                    _ => {
                        self.create_bytes = self.segment_bytes;
                        self.create_retry = Some(now.plus_us(CREATE_RETRY_US));
                    }
                }
                None
            }
            DiskFailure::NotFound | DiskFailure::Short | DiskFailure::Locked | DiskFailure::Io => {
                self.poisoned = true;
                Some(LogEvent::Fatal(error))
            }
        }
    }
}
