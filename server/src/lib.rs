//! nova-server.
