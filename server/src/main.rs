//! The binary `nova`.
fn main() {}
