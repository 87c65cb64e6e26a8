//! nova-disk.
