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

    /// A call about a stream or bucket begins.
    pub(crate) fn asking<'a>(&'a self, name: &'a str) -> Asking<'a> {
        Asking {
            holders: self,
            name: Some(name),
        }
    }

    fn forget_name(&self, name: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(name);
    }
}

/// A call under way. Dropped before it is finished, what is known of its holder is forgotten: a
/// caller that waits less long than a dead connection takes to end would come back to it for ever.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    holders: &'a Holders,
    name: Option<&'a str>,
}

impl Asking<'_> {
    /// The call is over, well or badly.
    pub(crate) fn finish(mut self) {
        self.name = None;
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name {
            self.holders.forget_name(name);
        }
    }
}

#[cfg(test)]
#[path = "holders_tests.rs"]
mod tests;
