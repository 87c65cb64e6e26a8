//! An index that is mapped, and what of it the device gives.
//!
//! A look at a mapped byte that the device does not give ends the process with SIGBUS, before it
//! could say why. The same byte fetched by `MADV_POPULATE_READ` (Linux 5.14) is an error instead,
//! which becomes damage of the index.
//!
//! # Not here
//! - Mapping: [`crate::segments`]. When bytes are fetched: `nova-core`, before the first look.

use memmap2::{Advice, Mmap};
use nova_core::disk::{IndexBytes, Unreadable};
use rustix::io::Errno;
use std::ops::{Deref, Range};

/// The bytes of an index's file.
#[derive(Debug)]
pub(crate) struct IndexMap(pub(crate) Mmap);

impl Deref for IndexMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl IndexBytes for IndexMap {
    fn fetch(&self, range: Range<usize>) -> Result<(), Unreadable> {
        let fetched = self
            .0
            .advise_range(Advice::PopulateRead, range.start, range.len());
        let error = fetched.err().and_then(|error| error.raw_os_error());
        match error.map(Errno::from_raw_os_error) {
            Some(Errno::FAULT | Errno::HWPOISON) => Err(Unreadable),
            // A kernel that does not know this, or has no memory to spare: nothing was learned.
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "index_map_tests.rs"]
mod tests;
