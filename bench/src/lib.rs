//! nova-bench.
