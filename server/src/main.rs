//! The binary `nova`.

use std::process::ExitCode;

fn main() -> ExitCode {
    nova_server::cli::main()
}
