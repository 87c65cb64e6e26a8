//! Where messages are received, and how they are handed over without a copy.
//!
//! ```text
//!   slot   [ message ............ | rest ]      64 KiB, all of it written once
//!            large: split off ----> datagrams -> chunks of a stream -> whoever reads
//!            small: copied to a buffer of its size
//!   before the next message: nobody has a part of it any more -> the same memory again
//!                            somebody has -> lent, other memory for the slot
//! ```
//! What is read fast gives its memory back before it is needed: no allocation, no copy.
//!
//! # Invariants
//! - A part that is kept keeps at most a message of 64 KiB alive, and a part of a small message not
//!   more than that message.
//! - A connection holds at most [`SLOTS`] + [`LENT_MAX`] buffers; those whose parts outlive them
//!   here belong to whoever keeps the parts.
//!
//! # Not here
//! - Receiving: `socket`. What the messages mean: `driver`.

use std::io::IoSliceMut;

use bytes::BytesMut;
use quinn_udp::RecvMeta;

/// Messages that one call may receive.
pub(super) const SLOTS: usize = 8;

/// Room for one message: as much as the kernel makes of several datagrams at most (GRO).
const MESSAGE_BYTES: usize = 64 * 1024;

/// A message from this size on is handed over; to copy less costs less than to do without its
/// buffer until the last part of it is dropped.
const HANDED_OVER_MIN: usize = 16 * 1024;

/// Buffers that are remembered while parts of them are held elsewhere.
const LENT_MAX: usize = 24;

/// Room for messages.
pub(super) struct Slots {
    slots: [Slot; SLOTS],
    metas: [RecvMeta; SLOTS],
    /// Parts of these are, or were, held elsewhere.
    lent: Vec<Slot>,
}

impl Slots {
    pub(super) fn new() -> Slots {
        Slots {
            slots: std::array::from_fn(|_| Slot::new()),
            metas: [RecvMeta::default(); SLOTS],
            lent: Vec::new(),
        }
    }

    /// Whole room in each slot, and where what is known of each message belongs.
    pub(super) fn rooms(&mut self) -> ([IoSliceMut<'_>; SLOTS], &mut [RecvMeta; SLOTS]) {
        for slot in &mut self.slots {
            if slot.restore() {
                continue;
            }
            let whole = match self.lent.iter_mut().position(Slot::restore) {
                Some(at) => self.lent.swap_remove(at),
                None => Slot::new(),
            };
            let lent = std::mem::replace(slot, whole);
            if self.lent.len() < LENT_MAX {
                self.lent.push(lent);
            }
        }
        let rooms = self.slots.each_mut();
        let rooms = rooms.map(|slot| IoSliceMut::new(&mut slot.buffer));
        (rooms, &mut self.metas)
    }

    /// Takes a message out that was received into the rooms.
    pub(super) fn take(&mut self, at: usize) -> (RecvMeta, BytesMut) {
        let meta = self.metas[at];
        (meta, self.slots[at].take(meta.len))
    }
}

/// Room for one message.
struct Slot {
    buffer: BytesMut,
    /// The address at which its memory begins. The [`MESSAGE_BYTES`] from there on are initialised.
    begin: usize,
}

impl Slot {
    fn new() -> Slot {
        let buffer = BytesMut::zeroed(MESSAGE_BYTES);
        let begin = buffer.as_ptr().addr();
        Slot { buffer, begin }
    }

    fn take(&mut self, length: usize) -> BytesMut {
        if length < HANDED_OVER_MIN {
            return BytesMut::from(&self.buffer[..length]);
        }
        self.buffer.split_to(length)
    }

    /// Makes the buffer whole again, unless a part of it is held elsewhere. Whether it is whole.
    #[allow(
        unsafe_code,
        reason = "zeroing 64 KiB for each message costs half of the copy that is spared"
    )]
    fn restore(&mut self) -> bool {
        if self.buffer.len() == MESSAGE_BYTES {
            return true;
        }
        self.buffer.clear();
        if !self.buffer.try_reclaim(MESSAGE_BYTES) || self.buffer.as_ptr().addr() != self.begin {
            return false;
        }
        // SAFETY: the buffer has the capacity, just reclaimed. It is the memory it was made of, as
        // it never takes other (`try_reclaim` does not allocate), and begins where that begins:
        // these bytes were zeroed when it was made, and have only been written to since.
        unsafe { self.buffer.set_len(MESSAGE_BYTES) };
        true
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
