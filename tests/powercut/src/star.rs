//! The binary `nova` for the tests of this crate, which cargo tells them the place of.

use std::process::ExitCode;

fn main() -> ExitCode {
    nova_server::cli::main()
}
