//! nova-client.
#![forbid(unsafe_code)]

pub mod core;
