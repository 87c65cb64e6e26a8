//! `nova bench`: measures a star, which is this program in another process.
//!
//! # Not here
//! - All that is measured and how: `nova-bench`.

use crate::boot::{ADDRESS_FILE, TLS_DIRECTORY};
use crate::cli::failure::{Exit, Failure, Subject};
use nova_bench::{BenchArgs, BenchError, Outcome, StarProgram};

/// Runs it.
pub(crate) fn run(args: BenchArgs) -> Result<Exit, Failure> {
    let path = std::env::current_exe()
        .map_err(|error| Failure::local("the benchmark could not start", &error))?;
    let program = StarProgram {
        path,
        command: "serve",
        address_file: ADDRESS_FILE,
        tls_directory: TLS_DIRECTORY,
    };
    match nova_bench::run(args, program) {
        Ok(Outcome::Measured) => Ok(Exit::Done),
        Ok(Outcome::Different) => Err(Failure::new(
            Exit::Different,
            "what was read back is not what was acked",
            "the results name the streams",
            "keep them and report this",
        )),
        Ok(Outcome::Missed(verdicts)) => Err(Failure::new(
            Exit::Missed,
            match verdicts.len() {
                1 => "a bound is not kept".to_owned(),
                count => format!("{count} bounds are not kept"),
            },
            verdicts.join("; "),
            "measure again on a machine that does nothing else; if it stays, look at what changed",
        )),
        Err(error) => Err(failure(&error)),
    }
}

fn failure(error: &BenchError) -> Failure {
    let what = "the benchmark has no result";
    match error {
        BenchError::Client { source, .. } => {
            let mut failure = Failure::client(what, source, Subject::Star);
            failure.why = error.to_string();
            failure
        }
        _ => {
            let (exit, next) = match error {
                BenchError::Usage(_) => (Exit::Usage, "nova bench --help tells what there is"),
                BenchError::Space { .. } => (Exit::Directory, "name another directory with --data"),
                BenchError::Star { .. } => (Exit::Star, "repair what its words say"),
                _ => (Exit::Local, "repair that and measure again"),
            };
            Failure::new(exit, what, error.to_string(), next)
        }
    }
}
