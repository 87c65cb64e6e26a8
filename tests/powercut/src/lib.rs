//! Power cuts under a star: a real file system on a device that forgets what was not flushed.
//!
//! ```text
//!   nova serve            the real binary, in the holder's mounts
//!     ext4, XFS           mounted by the kernel, its journal replayed after each cut
//!       /dev/loopN        --direct-io=on: writes and flushes go down as they come
//!         a FUSE file     served by `power-disk`, a process of its own          [`served`]
//!           Device        what a disk's cache does, when the power goes too     [`device`]
//!   test  --- orders, a line each, through a pipe --> power-disk                [`order`]
//!         --- the processes, mounts and loop devices of all that                [`disk`]
//! ```
//!
//! # Invariants
//! - The device's process touches no file system that lies on it, and a test touches none but by
//!   children that can be killed and are waited for with a deadline.
//! - With the device's process dead, everything above it fails and nothing waits.
//!
//! # Not here
//! - The load and the judgement of what it was told: `nova-e2e`.
//! - The tests: `tests/power`.

pub mod device;
pub mod disk;
pub mod order;
pub mod served;
