//! nova-tidy.
