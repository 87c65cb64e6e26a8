//! Bounded mailboxes between the threads of a star: core to core, and the main thread to cores.
//!
//! # Invariants
//! - Mail from one core to another arrives in order.
//! - A full mailbox makes its sender's task wait, never its core.

use nova_core::PeerMessage;
use nova_model::CoreId;

/// Mail that may lie in one mailbox. Cores only write about buckets and stops, a few at a time.
pub(crate) const MAILBOX_ITEMS_MAX: usize = 1024;

/// One piece of mail.
#[derive(Debug, Clone)]
pub(crate) enum Mail {
    /// From another core's shard to this one's.
    Peer(CoreId, PeerMessage),
    /// Answer what was admitted, close the connections, end.
    Stop,
}

/// The way into a core.
pub(crate) type Sender = flume::Sender<Mail>;

/// Makes a mailbox.
pub(crate) fn mailbox() -> (Sender, flume::Receiver<Mail>) {
    flume::bounded(MAILBOX_ITEMS_MAX)
}
