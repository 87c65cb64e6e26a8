//! Handles for reading segments that are not written any more: a bounded cache.
//!
//! A log has many segments and readers go back to few of them, so the handle that was used longest
//! ago is closed first. One in use is never closed; there are at most as many of those as reads in
//! flight.
//!
//! # Invariants
//! - At most `handles_max` handles stay open when no read is in flight.
//!
//! # Not here
//! - The segment that is being written, which is read through its own descriptor:
//!   [`crate::writable`].

use glommio::GlommioError;
use glommio::io::DmaFile;
use nova_core::disk::SegmentFile;
use nova_model::Generation;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

/// A generation of a segment: each is a file of its own.
type Key = (SegmentFile, Generation);

/// Open handles by segment and generation, each with the time of its last use.
#[derive(Debug)]
pub(crate) struct Handles {
    open: RefCell<BTreeMap<Key, Handle>>,
    handles_max: usize,
    uses: Cell<u64>,
}

#[derive(Debug)]
struct Handle {
    file: Rc<DmaFile>,
    last_use: u64,
}

impl Handles {
    pub(crate) fn new(handles_max: usize) -> Handles {
        assert!(handles_max > 0);
        Handles {
            open: RefCell::default(),
            handles_max,
            uses: Cell::new(0),
        }
    }

    /// The handle of a segment, which lies at `path`.
    pub(crate) async fn get(
        &self,
        segment: Key,
        path: &Path,
    ) -> Result<Rc<DmaFile>, GlommioError<()>> {
        if let Some(file) = self.known(segment) {
            return Ok(file);
        }
        let opened = DmaFile::open(path).await?;
        // Another read may have opened the same segment meanwhile; then this handle is closed.
        if let Some(file) = self.known(segment) {
            opened.close().await?;
            return Ok(file);
        }
        let file = Rc::new(opened);
        let handle = Handle {
            file: Rc::clone(&file),
            last_use: self.next_use(),
        };
        self.open.borrow_mut().insert(segment, handle);
        self.close_surplus().await?;
        Ok(file)
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.open.borrow().len()
    }

    /// Closes the handle of a segment; if it is in use, when that is over.
    pub(crate) async fn close(&self, segment: Key) -> Result<(), GlommioError<()>> {
        let known = self.open.borrow_mut().remove(&segment);
        if let Some(handle) = known {
            handle.file.close_rc().await?;
        }
        Ok(())
    }

    /// Closes all that are not in use. Returns how many that were.
    pub(crate) async fn close_idle(&self) -> Result<usize, GlommioError<()>> {
        let mut closed = 0;
        while let Some(file) = self.take_oldest_idle() {
            file.close_rc().await?;
            closed += 1;
        }
        Ok(closed)
    }

    fn known(&self, segment: Key) -> Option<Rc<DmaFile>> {
        let last_use = self.next_use();
        let mut open = self.open.borrow_mut();
        let handle = open.get_mut(&segment)?;
        handle.last_use = last_use;
        Some(Rc::clone(&handle.file))
    }

    async fn close_surplus(&self) -> Result<(), GlommioError<()>> {
        while self.count() > self.handles_max {
            match self.take_oldest_idle() {
                Some(file) => file.close_rc().await?,
                None => break,
            };
        }
        Ok(())
    }

    fn take_oldest_idle(&self) -> Option<Rc<DmaFile>> {
        let mut open = self.open.borrow_mut();
        let (_, segment) = open
            .iter()
            .filter(|(_, handle)| Rc::strong_count(&handle.file) == 1)
            .map(|(segment, handle)| (handle.last_use, *segment))
            .min()?;
        open.remove(&segment).map(|handle| handle.file)
    }

    fn next_use(&self) -> u64 {
        let next = self.uses.get() + 1;
        self.uses.set(next);
        next
    }
}
