//! Memory in huge pages, for what the device reads and writes.
//!
//! A device is told where bytes lie piece by piece. 1 MiB in pages of 4 KiB is up to 256 pieces,
//! more than one request of virtio takes, and each has a cost of its own. Measured on virtio with
//! direct I/O, one transfer at a time: reads of 1 MiB 1.1 to 1.3 GB/s into small pages and 2.1 to
//! 2.6 into huge ones, durable writes of 1 MiB 1.6 to 1.9 and 2.1 to 2.4 GB/s.
//!
//! ```text
//!   glommio, once for each core --> DEVICE_MEMORY_BYTES --> HugePages, all buffers of the core
//!   all else                    ------------------------> the allocator below, small pages
//! ```
//! glommio takes the buffers of a core out of one piece of memory, which it asks the program's
//! allocator for. So [`DeviceMemory`] is an allocator that knows that piece, by its size, and has
//! the rest done by another. That one should not have huge pages: a huge page counts as a whole
//! from its first byte on, and small objects are all over the place.
//!
//! # Invariants
//! - Whether a piece of memory is the device's follows from its layout alone, which is the same
//!   when it is given back.
//!
//! # Not here
//! - Which buffer is lent to whom: glommio, and `read_buffer`.

use nova_model::limits::BLOCK_BYTES;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::alloc::{GlobalAlloc, Layout};
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;

/// Memory of one core for its buffers, to be given to glommio as `io_memory`. Reads that bring more
/// than there is room for, as of many readers at once, use small pages. glommio hands it out in
/// powers of two: of the usual large groups, two batches of 1 MiB, it holds seven.
pub const DEVICE_MEMORY_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of a huge page, on the systems that nova runs on.
const HUGE_PAGE_BYTES: usize = 2 * 1024 * 1024;

const _: () = assert!(DEVICE_MEMORY_BYTES.is_multiple_of(HUGE_PAGE_BYTES));

/// Zeroed memory in huge pages, as far as the system has them.
#[derive(Debug)]
pub struct HugePages {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: it is memory that nobody else knows, with the rules of a `Box<[u8]>`.
unsafe impl Send for HugePages {}
// SAFETY: as above.
unsafe impl Sync for HugePages {}

impl HugePages {
    /// Memory of at least `length` bytes, rounded up to huge pages.
    pub fn map(length: usize) -> io::Result<HugePages> {
        assert!(length > 0, "memory has a size");
        let length = length.next_multiple_of(HUGE_PAGE_BYTES);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // One page more than needed has a beginning that is aligned to one.
        let mapped = length + HUGE_PAGE_BYTES;
        // SAFETY: a new mapping at a place that the system chooses.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), mapped, access, MapFlags::PRIVATE) }?;
        let start = start.cast::<u8>();
        let ahead = start.align_offset(HUGE_PAGE_BYTES);
        // SAFETY: all of it lies in the mapping above, and what is given back is not used again.
        unsafe {
            let aligned = start.add(ahead);
            unmap(start, ahead);
            unmap(aligned.add(length), HUGE_PAGE_BYTES - ahead);
            // A system without huge pages has small ones, which do as well, only slower.
            let _ = madvise(aligned.cast(), length, Advice::LinuxHugepage);
            Ok(HugePages {
                start: NonNull::new_unchecked(aligned),
                length,
            })
        }
    }
}

impl Deref for HugePages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: so much is mapped, zeroed in the beginning, until it is dropped.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for HugePages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and it is borrowed by nobody else.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        // SAFETY: the mapping is its own, and gone from here on.
        unsafe { unmap(self.start.as_ptr(), self.length) };
    }
}

/// # Safety
/// The stretch lies in a mapping, on borders of pages, and nobody uses it afterwards.
unsafe fn unmap(start: *mut u8, length: usize) {
    if length > 0 {
        // SAFETY: the caller's word.
        let unmapped = unsafe { munmap(start.cast(), length) };
        debug_assert!(unmapped.is_ok(), "a mapping of our own: {unmapped:?}");
    }
}

/// An allocator that has the device's memory in huge pages and the rest by another.
#[derive(Debug)]
pub struct DeviceMemory<A>(pub A);

fn is_of_device(layout: Layout) -> bool {
    layout.size() == DEVICE_MEMORY_BYTES && layout.align() == BLOCK_BYTES
}

// SAFETY: a layout goes to the mapping or to the other allocator, and back to the same; both give
// memory of that size and alignment.
unsafe impl<A: GlobalAlloc> GlobalAlloc for DeviceMemory<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_of_device(layout) {
            // SAFETY: the caller's word.
            return unsafe { self.0.alloc(layout) };
        }
        match HugePages::map(layout.size()) {
            Ok(pages) => {
                let start = pages.start.as_ptr();
                std::mem::forget(pages);
                start
            }
            Err(_) => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        match is_of_device(layout) {
            // SAFETY: the caller's word; a layout of the device has been mapped.
            true => unsafe { unmap(start, layout.size()) },
            // SAFETY: the caller's word.
            false => unsafe { self.0.dealloc(start, layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match is_of_device(layout) {
            // SAFETY: the caller's word; a new mapping has zeros.
            true => unsafe { self.alloc(layout) },
            // SAFETY: the caller's word.
            false => unsafe { self.0.alloc_zeroed(layout) },
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's word: `size` is no overflow for the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if !is_of_device(layout) && !is_of_device(wanted) {
            // SAFETY: the caller's word.
            return unsafe { self.0.realloc(start, layout, size) };
        }
        // SAFETY: the old memory is given up only where there is new, which does not overlap it.
        unsafe {
            let moved = self.alloc(wanted);
            if !moved.is_null() {
                ptr::copy_nonoverlapping(start, moved, layout.size().min(size));
                self.dealloc(start, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
#[path = "device_memory_tests.rs"]
mod tests;
