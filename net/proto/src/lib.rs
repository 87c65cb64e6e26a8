//! nova-proto.
