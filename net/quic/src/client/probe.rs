//! Asking a peer that has fallen silent whether it still knows the connection.
//!
//! ```text
//!   packet ---x      the peer restarts
//!   packet ---x      QUIC repeats itself: it has heard nothing since the packet before
//!   probe  ---x
//!   probe  ------>   the peer is back and knows no such connection -- stateless reset --> over
//! ```
//! QUIC doubles the time before it repeats itself once more, so a peer that was away for two
//! seconds would be asked again up to two seconds after it is back. A probe is the beginning of the
//! packet that was sent last. A peer that has the connection drops it unanswered, since it can't be
//! authenticated; one that has not answers it as any packet of a connection that is unknown to it
//! (RFC 9000, section 10.3). No window holds a probe back, however much is unanswered.
//!
//! # Invariants
//! - A peer that owes no answer is not probed.
//! - At most one probe in [`PACE`].
//!
//! # Not here
//! - Peers that have not answered at all: the handshake.

use std::time::{Duration, Instant};

use quinn_proto::Transmit;

/// Bytes of a packet that are sent again: more than its header, and than the shortest that a peer
/// answers (RFC 9000, section 10.3.3).
const PROBE_BYTES: usize = 64;
/// Between two probes at first: a peer that is back is found out this soon.
const PACE: Duration = Duration::from_millis(100);
/// Probes at that pace; beyond, the time between two doubles.
const PROBES_QUICK: u32 = 40;
/// The longest time between two probes.
const PACE_MAX: Duration = Duration::from_secs(2);
/// The bit of a first byte that tells the packets of a handshake from others.
const LONG_HEADER: u8 = 0x80;

/// What is known of the silence of a peer.
#[derive(Debug, Default)]
pub(super) struct Probes {
    /// The beginning of the last packet behind the handshake.
    packet: Vec<u8>,
    /// Where it was sent, and from.
    route: Option<Transmit>,
    /// Something was sent since the peer was heard.
    is_unanswered: bool,
    /// When the next probe is due.
    due: Option<Instant>,
    sent: u32,
}

impl Probes {
    /// Datagrams leave, for the reason that a deadline of QUIC was over if they are `late`.
    pub(super) fn note_sent(
        &mut self,
        now: Instant,
        transmit: &Transmit,
        bytes: &[u8],
        late: bool,
    ) {
        if bytes.first().is_none_or(|first| first & LONG_HEADER != 0) {
            return;
        }
        let datagram = transmit.segment_size.unwrap_or(transmit.size);
        let size = datagram.min(PROBE_BYTES);
        self.packet.clear();
        self.packet.extend_from_slice(&bytes[..size]);
        self.route = Some(Transmit {
            size,
            segment_size: None,
            ..*transmit
        });
        // An acknowledgement leaves late, too, but behind something that was heard.
        if late && self.is_unanswered && self.due.is_none() {
            self.due = Some(now + PACE);
        }
        self.is_unanswered = true;
    }

    /// The peer was heard, or the connection is over.
    pub(super) fn stop(&mut self) {
        self.is_unanswered = false;
        self.due = None;
        self.sent = 0;
    }

    /// When the next probe is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The probe that is due by now.
    pub(super) fn next(&mut self, now: Instant) -> Option<(&Transmit, &[u8])> {
        self.due.filter(|&due| due <= now)?;
        self.sent = self.sent.saturating_add(1);
        let slow = self.sent.saturating_sub(PROBES_QUICK).min(16);
        self.due = Some(now + (PACE * (1 << slow)).min(PACE_MAX));
        self.route.as_ref().map(|route| (route, &self.packet[..]))
    }
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
