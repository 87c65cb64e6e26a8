//! `nova serve`: runs a star until it is told to stop.
//!
//! # Not here
//! - The star: [`crate::boot`]. What the flags mean: [`crate::config`].

use crate::boot::{self, ServeError};
use crate::cli::failure::{Exit, Failure};
use crate::config::{ServeSettings, read_file, resolve};
use nova_disk::ProbeError;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  nova serve                                      In ./nova-data, for this machine only
  nova serve --data /var/lib/nova --cores 4
  nova serve --listen 0.0.0.0 --advertise star.example
  nova serve --config /etc/nova.toml              segment-bytes = \"512MiB\" ...

It writes DIR/address and DIR/tls/ca.pem: other commands on this machine find it by them; elsewhere
they take --star HOST:PORT and --ca with a copy of ca.pem. SIGTERM and Ctrl-C end it in order.";

/// Run a star: serve the streams of a data directory
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// TOML file with the same names as the flags, which win over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: ServeSettings,
}

/// Runs it.
pub(crate) fn run(args: ServeArgs) -> Result<Exit, Failure> {
    let wrong = |why: String| {
        let next = "correct it; nova serve --help tells all settings";
        Failure::new(Exit::Usage, "the star was not started", why, next)
    };
    let file = match &args.config {
        Some(path) => read_file(path).map_err(|error| wrong(error.to_string()))?,
        None => ServeSettings::default(),
    };
    let config = resolve(args.settings.or(file)).map_err(|error| wrong(error.to_string()))?;
    boot::serve(&config).map_err(|error| failure(&error))?;
    Ok(Exit::Done)
}

/// A start that failed, or an end that was not asked for. The sentences of the errors have what
/// happened in front of a semicolon and what to change behind it.
fn failure(error: &ServeError) -> Failure {
    let exit = exit_of(error);
    let what = match exit {
        Exit::Disk => "the star stopped, since its disk can't be trusted any more",
        Exit::Damaged => "the star was not started, since stored data is damaged",
        _ => "the star does not run",
    };
    let text = error.to_string();
    let advice = match error.is_full() {
        true => "free some space on the file system of its data and start it again",
        false => advice(exit),
    };
    let (why, next) = text.rsplit_once("; ").unwrap_or((&text, advice));
    Failure::new(exit, what, why, next)
}

fn exit_of(error: &ServeError) -> Exit {
    match error {
        _ if error.is_disk_failure() => Exit::Disk,
        _ if error.is_full() => Exit::Star,
        ServeError::Probe(ProbeError::NotWritable { .. } | ProbeError::MissingParent(_)) => {
            Exit::Directory
        }
        ServeError::Probe(_) => Exit::Machine,
        ServeError::Directory(_) | ServeError::Registry(_) => Exit::Directory,
        ServeError::Certificate(_) | ServeError::HttpTls(_) => Exit::Certificates,
        ServeError::Recovery(_) => Exit::Damaged,
        ServeError::Cores { .. } => Exit::Usage,
        ServeError::Ports { .. } => Exit::Usage,
        ServeError::PortInUse { .. } | ServeError::HttpPort { .. } => Exit::Port,
        ServeError::Core { .. } | ServeError::Thread { .. } | ServeError::Io { .. } => Exit::Star,
    }
}

fn advice(exit: Exit) -> &'static str {
    match exit {
        Exit::Disk => "look at the disk and the kernel's log; what was acked is safe to start from",
        Exit::Damaged => "restore it from a copy, or serve the rest with --allow-corrupt",
        Exit::Directory => "name another directory with --data",
        Exit::Certificates => "repair DIR/tls, or move it away to have new ones made",
        _ => "repair that and start it again",
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
