//! Who leads which stream, as far as redirects told, until that address fails.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Streams and buckets remembered; beyond, all is forgotten and learnt again by redirects.
const HOLDERS_MAX: usize = 16_384;

/// What redirects told, by the name of the stream or bucket.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    known: Mutex<BTreeMap<String, String>>,
    redirects: AtomicU64,
}

impl Holders {
    /// Counts an answer that named another address.
    pub(crate) fn note_redirect(&self) {
        self.redirects.fetch_add(1, Ordering::Relaxed);
    }

    /// How many answers named another address.
    pub(crate) fn redirects(&self) -> u64 {
        self.redirects.load(Ordering::Relaxed)
    }

    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name).cloned()
    }

    pub(crate) fn remember(&self, name: &str, address: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(name).is_some_and(|old| old == address) {
            return;
        }
        if known.len() >= HOLDERS_MAX {
            known.clear();
        }
        known.insert(name.to_owned(), address.to_owned());
    }

    /// Forgets an address that failed, for all that it held: who is there no more leads nothing,
    /// and each stream would wait for its own attempt to connect otherwise.
    pub(crate) fn forget(&self, address: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, holder| holder != address);
    }

    /// Tries to reach an address.
    pub(crate) fn reach<'a>(&'a self, address: &'a str) -> Reach<'a> {
        let address = Some(address);
        Reach {
            holders: self,
            address,
        }
    }
}

/// An address that is being connected to. Dropped before that is over, the address is forgotten:
/// a caller that waits less long than an attempt to connect takes would come back to it for ever.
#[derive(Debug)]
pub(crate) struct Reach<'a> {
    holders: &'a Holders,
    address: Option<&'a str>,
}

impl Reach<'_> {
    /// The attempt is over, well or badly.
    pub(crate) fn is_over(mut self) {
        self.address = None;
    }
}

impl Drop for Reach<'_> {
    fn drop(&mut self) {
        if let Some(address) = self.address {
            self.holders.forget(address);
        }
    }
}

#[cfg(test)]
#[path = "holders_tests.rs"]
mod tests;
