//! `nova read`: the records of a stream to stdout, and those to come with `--follow`.
//!
//! # Invariants
//! - What is durable and asked for is on its way to stdout before the next wait: nothing stays in a
//!   buffer while a follower waits.
//! - Records come in order, each once, also across breaks of the connection.
//!
//! # Not here
//! - Reconnecting: `nova-client`'s reader, which goes on without an end.
//! - From where to where: [`range`].

mod progress;
mod range;

use crate::cli::append::parse_stream;
use crate::cli::entry::Entry;
use crate::cli::failure::{Exit, Failure, Subject};
use crate::cli::interrupt::Interrupt;
use crate::cli::output::{Gone, Output};
use crate::cli::record_text::{self, Form};
use crate::cli::time_text::wall;
use nova_client::{ClientError, ReadItem, ReadOpen, Reader, StreamName};
use progress::Progress;
use range::{EndArgs, StartArgs};
use std::time::Duration;

/// How long what was read may take to reach stdout after Ctrl-C.
const LAST_WORDS: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  nova read logs/some                       All that is there
  nova read logs/some --tail 10 --follow    The last ten, and what comes
  nova read logs/some --since 15m --json    With sequence numbers, times and headers
  nova read logs/some --from 1000 --count 1
  nova read logs/some --since 2026-11-29T15:00Z --until-time 2026-11-29T16:00Z
  nova read media/film --format raw > film  The bytes as they were appended";

/// Write the records of a stream to stdout, one body a line
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReadArgs {
    /// The stream
    #[arg(value_name = "BUCKET/KEY", value_parser = parse_stream)]
    stream: StreamName,
    /// Go on with new records as they become durable, and try for ever when the star is away
    #[arg(long, short)]
    follow: bool,
    /// How records are written [default: text, or json with --json]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    /// Show no progress on stderr
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    start: StartArgs,
    #[command(flatten)]
    end: EndArgs,
    #[command(flatten)]
    pub(crate) entry: Entry,
}

impl ReadArgs {
    fn form(&self) -> Form {
        let by_default = match self.entry.json {
            true => Form::Json,
            false => Form::Text,
        };
        self.format.unwrap_or(by_default)
    }
}

/// Runs it.
pub(crate) async fn run(args: ReadArgs) -> Result<Exit, Failure> {
    let mut interrupt = Interrupt::listen()?;
    let mut output = Output::stdout()?;
    let end = tokio::select! {
        biased;
        () = interrupt.told() => Ok(Exit::Interrupted),
        read = read(&args, &mut output) => read,
    };
    let finish = output.finish();
    if end == Ok(Exit::Interrupted) {
        // Who interrupts does not wait for a pipe that nobody empties.
        let _in_time = tokio::time::timeout(LAST_WORDS, finish).await;
        return end;
    }
    finish.await?;
    end
}

async fn read(args: &ReadArgs, output: &mut Output) -> Result<Exit, Failure> {
    let client = args.entry.connect().await?;
    let now = wall();
    let open = ReadOpen {
        stream: args.stream.clone(),
        stream_id: None,
        start: args.start.start(now),
        limits: args.end.limits(now),
        follow: args.follow,
        clamp: args.start.clamp,
    };
    let limits = open.limits;
    let failed = |error: ClientError| {
        let what = format!("{} can't be read", args.stream);
        Failure::client(what, &error, Subject::Stream(&args.stream))
    };
    let mut reader = client.read(open).await.map_err(failed)?;
    let mut progress = match args.quiet || args.follow {
        true => Progress::hidden(),
        false => Progress::begin(&reader, &limits),
    };
    let patience = (!args.follow).then_some(args.entry.retry_for);
    let copied = copy(&mut reader, patience, args.form(), output, &mut progress).await;
    progress.end();
    drop(reader);
    client.close().await;
    copied.map_err(|error| {
        let what = format!("{} can't be read on", args.stream);
        Failure::client(what, &error, Subject::Stream(&args.stream))
    })?;
    Ok(Exit::Done)
}

/// The next item of a reader; `Unavailable` if there is none within this time. A reader by itself
/// tries for ever.
pub(crate) async fn next_within(
    reader: &mut Reader,
    patience: Option<Duration>,
) -> Result<Option<ReadItem>, ClientError> {
    let Some(patience) = patience else {
        return reader.next_batch().await;
    };
    let next = tokio::time::timeout(patience, reader.next_batch()).await;
    next.unwrap_or(Err(ClientError::Unavailable {
        sent: None,
        last: None,
    }))
}

/// Copies until the read is done or nobody takes the output any more.
async fn copy(
    reader: &mut Reader,
    patience: Option<Duration>,
    form: Form,
    output: &mut Output,
    progress: &mut Progress,
) -> Result<(), ClientError> {
    loop {
        let item = tokio::select! {
            biased;
            item = next_within(reader, patience) => item?,
            // Nothing is there at the moment: what was gathered is handed on meanwhile.
            flushed = flush_pending(output) => {
                if flushed == Err(Gone) {
                    return Ok(());
                }
                next_within(reader, patience).await?
            }
        };
        let flushed = match item {
            None => return Ok(()),
            Some(ReadItem::CaughtUp(_)) => output.flush().await,
            Some(ReadItem::Batch(batch)) => {
                let buffer = output.buffer();
                batch.for_each(|position, record| {
                    record_text::write(form, buffer, position, record);
                });
                progress.note(batch.records());
                output.flush_if_full().await
            }
        };
        if flushed == Err(Gone) {
            return Ok(());
        }
    }
}

/// Hands on what was gathered; waits for ever if there is nothing.
async fn flush_pending(output: &mut Output) -> Result<(), Gone> {
    if output.buffer().is_empty() {
        std::future::pending::<()>().await;
    }
    output.flush().await
}
