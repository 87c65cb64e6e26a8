//! The binary `nova` for the tests of this crate, which cargo tells them the place of.
//!
//! A test can name only the binaries of its own crate (`CARGO_BIN_EXE_*`), and only those are sure
//! to be fresh when it runs.

use std::process::ExitCode;

fn main() -> ExitCode {
    nova_server::cli::main()
}
