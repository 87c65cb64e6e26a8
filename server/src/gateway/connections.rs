//! The connections of the gateway, and which of them goes when there are too many.
//!
//! ```text
//!   waiting for a request -> receiving its body -> busy: handled, answered -> waiting ...
//! ```
//! When a connection comes and there is no room, the one that has let the star wait for its bytes
//! longest is closed. Whoever opens connections to say nothing, or one byte now and then, so closes
//! their own; a request that arrives at once is never the oldest.
//!
//! # Invariants
//! - There are never more than `HTTP_CONNECTIONS_MAX`, nor than a quarter of the descriptors that
//!   the process may have: the cores need theirs for segments.
//! - A request that has arrived is never closed for another.

use nova_model::limits::HTTP_CONNECTIONS_MAX;
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// What a slot holds while nobody waits for its peer.
const BUSY: u64 = 0;

/// All open connections.
pub(crate) struct Connections {
    begun: Instant,
    most: usize,
    open: Mutex<BTreeMap<u64, Arc<Slot>>>,
    last: AtomicU64,
}

/// One connection.
pub(crate) struct Slot {
    number: u64,
    begun: Instant,
    /// Since when its peer's bytes are awaited, in microseconds; [`BUSY`] if they are not.
    waiting_since: AtomicU64,
    close: Notify,
}

/// What became of a connection that came.
pub(crate) enum Admitted {
    /// There was room.
    Yes(Arc<Slot>),
    /// Another one was told to go.
    Instead(Arc<Slot>),
    /// All are at work.
    No,
}

impl Connections {
    pub(crate) fn new() -> Connections {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let share = usize::try_from(descriptors / 4).unwrap_or(usize::MAX);
        Connections::with_most(HTTP_CONNECTIONS_MAX.min(share))
    }

    fn with_most(most: usize) -> Connections {
        Connections {
            begun: Instant::now(),
            most,
            open: Mutex::default(),
            last: AtomicU64::new(0),
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.open().len()
    }

    /// A connection has come.
    pub(crate) fn admit(&self) -> Admitted {
        let mut open = self.open();
        let mut is_instead = false;
        if open.len() >= self.most {
            let waiting = open.values().filter(|slot| !slot.is_busy());
            let oldest = waiting.min_by_key(|slot| slot.waiting_since.load(Ordering::Relaxed));
            let Some(number) = oldest.map(|slot| slot.number) else {
                return Admitted::No;
            };
            if let Some(oldest) = open.remove(&number) {
                oldest.close.notify_one();
            }
            is_instead = true;
        }
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let slot = Arc::new(Slot {
            number,
            begun: self.begun,
            waiting_since: AtomicU64::new(BUSY),
            close: Notify::new(),
        });
        slot.wait();
        open.insert(number, Arc::clone(&slot));
        if is_instead {
            Admitted::Instead(slot)
        } else {
            Admitted::Yes(slot)
        }
    }

    /// A connection is over.
    pub(crate) fn remove(&self, slot: &Slot) {
        self.open().remove(&slot.number);
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Slot>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// The star waits for bytes of the peer from now on.
    pub(crate) fn wait(&self) {
        let us = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.waiting_since
            .store(us.max(BUSY + 1), Ordering::Relaxed);
    }

    /// A whole request is there.
    pub(crate) fn work(&self) {
        self.waiting_since.store(BUSY, Ordering::Relaxed);
    }

    /// Waits until it must go.
    pub(crate) async fn told_to_go(&self) {
        self.close.notified().await;
    }

    fn is_busy(&self) -> bool {
        self.waiting_since.load(Ordering::Relaxed) == BUSY
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
