//! The load generator's command line: `cargo run --release -p nova-bench -- --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match nova_bench::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nova-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
