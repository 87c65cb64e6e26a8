//! x y z
fn main() {}
