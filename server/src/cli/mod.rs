//! The command line: `nova` and its commands.
//!
//! ```text
//!   words --clap--> Command --> serve                        (the star itself)
//!                           --> append, read, tail, bucket, stream, star, admin
//!                                 Entry: address and authorities --> Client (tokio, one thread)
//!                           --> try, bench              (a star in a child process, both ways)
//! ```
//!
//! # Invariants
//! - Every failure is told in three short parts (what happened, why, what to do next) and has an
//!   exit code of its own kind ([`failure::Exit`]).
//! - A pipe that nobody reads any more ends a command quietly.
//!
//! # Not here
//! - What the words of `nova serve` mean: [`crate::config`]. What a star does: [`crate::boot`].

mod admin;
mod append;
mod bench;
mod bucket;
mod entry;
mod failure;
mod flow;
mod input;
mod interrupt;
mod latency;
mod line_splitter;
mod output;
mod read;
pub(crate) mod record_text;
mod serve;
mod settings;
pub(crate) mod shapes;
mod star;
mod stream;
pub(crate) mod time_text;
mod trial;

pub use failure::Exit;

use clap::{Parser, Subcommand};
use entry::Entry;
use failure::Failure;
use std::future::Future;
use std::process::ExitCode;

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    reading or writing on this side failed
  2    the command line or the configuration is wrong
  3    the star refused, and nothing was applied
  4    no star could be reached
  5    it is not known whether it was applied
  6    what came back is not what was sent (nova try, nova bench)
  7    what was measured does not keep a bound (nova bench goals)
  10   the data directory can't be used
  11   this machine can't run a star
  12   a UDP port can't be taken
  13   the certificates can't be used
  14   stored data is damaged
  15   the star stopped: its disk can't be trusted any more
  16   the star did not start, or stopped, for another reason
  130  interrupted

With --json, results are JSON on stdout and errors are one JSON object on stderr.
NOVA_LOG sets what is logged on stderr, for example NOVA_LOG=debug.";

const EXAMPLES: &str = "\
Examples:
  nova try                                  See it work: a star, 100,000 lines in and out
  nova serve                                Run a star in ./nova-data
  nova bucket create logs
  tail -f some.log | nova append logs/some
  nova read logs/some --follow";

/// Durable streams on this machine's disk.
#[derive(Debug, Parser)]
#[command(
    name = "nova",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeArgs),
    Try(trial::TrialArgs),
    Append(append::AppendArgs),
    Read(read::ReadArgs),
    Tail(stream::TailArgs),
    Bucket(bucket::BucketArgs),
    Stream(stream::StreamArgs),
    Star(star::StarArgs),
    Admin(admin::AdminArgs),
    Bench(nova_bench::BenchArgs),
}

/// Runs the command that this process was started with.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to stdout; that nobody reads it is no failure.
            let _unread = error.print();
            return ExitCode::from(if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            });
        }
    };
    let is_json = cli.command.is_json();
    let flags = cli.command.entry().map(Entry::flags).unwrap_or_default();
    start_log(&cli.command);
    match run(cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let failure = failure.with_flags(&flags);
            failure.print(is_json);
            failure.exit_code()
        }
    }
}

fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Serve(args) => serve::run(args),
        Command::Try(args) => trial::run(args),
        Command::Append(args) => block_on(append::run(args)),
        Command::Read(args) => block_on(read::run(args)),
        Command::Tail(args) => block_on(stream::tail(args)),
        Command::Bucket(args) => block_on(bucket::run(args)),
        Command::Stream(args) => block_on(stream::run(args)),
        Command::Star(args) => block_on(star::run(args)),
        Command::Admin(args) => block_on(admin::run(args)),
        Command::Bench(args) => bench::run(args),
    }
}

impl Command {
    fn is_json(&self) -> bool {
        match self {
            Command::Try(args) => args.json,
            Command::Bench(args) => args.is_json(),
            _ => self.entry().is_some_and(|entry| entry.json),
        }
    }

    /// The star that a client's command is for.
    fn entry(&self) -> Option<&Entry> {
        match self {
            Command::Serve(_) | Command::Try(_) | Command::Bench(_) => None,
            Command::Append(args) => Some(&args.entry),
            Command::Read(args) => Some(&args.entry),
            Command::Tail(args) => Some(&args.entry),
            Command::Bucket(args) => Some(args.entry()),
            Command::Stream(args) => Some(args.entry()),
            Command::Star(args) => Some(&args.entry),
            Command::Admin(args) => Some(args.entry()),
        }
    }
}

/// Runs a client's command on this thread alone.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::local("the command could not start", &error))?;
    let result = runtime.block_on(work);
    // A look-up of a name may still be under way; nobody waits for it.
    runtime.shutdown_background();
    result
}

/// Logs to stderr what NOVA_LOG asks for; by default the star's notices and nothing of a client.
fn start_log(command: &Command) {
    let default = match command {
        Command::Serve(_) => "info",
        _ => "off",
    };
    let said = std::env::var("NOVA_LOG").unwrap_or_else(|_| default.to_owned());
    let filter = tracing_subscriber::EnvFilter::try_new(&said).unwrap_or_else(|error| {
        eprintln!("nova: NOVA_LOG={said} is not understood ({error}); logging {default}");
        tracing_subscriber::EnvFilter::new(default)
    });
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // That stderr takes nothing more must not end a star; to say so would be said there.
        .log_internal_errors(false);
    // A second log in one process would be a mistake of a test; the first one stays.
    let _first_stays = log.try_init();
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
