//! nova-client.
