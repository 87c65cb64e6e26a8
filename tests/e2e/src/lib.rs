//! nova-e2e.
