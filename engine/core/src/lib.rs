//! nova-core.
