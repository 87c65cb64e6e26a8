//! `nova read`: the records of a stream to stdout, and those to come with `--follow`.
//!
//! # Invariants
//! - What is durable and asked for is on its way to stdout before the next wait: nothing stays in a
//!   buffer while a follower waits.
//! - Records come in order, each once, also across breaks of the connection.
//!
//! # Not here
//! - Reconnecting: `nova-client`'s reader, which goes on without an end.

use crate::cli::append::parse_stream;
use crate::cli::entry::Entry;
use crate::cli::failure::{Exit, Failure, Subject};
use crate::cli::interrupt::Interrupt;
use crate::cli::output::{Gone, Output};
use crate::cli::record_text::{self, Form};
use crate::cli::time_text::wall;
use crate::config::units::parse_duration;
use nova_client::{
    ClientError, ReadItem, ReadLimits, ReadOpen, ReadStart, Reader, SequenceNumber, StreamName,
    Timestamp,
};
use std::time::Duration;

/// How long what was read may take to reach stdout after Ctrl-C.
const LAST_WORDS: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  nova read logs/some                       All that is there
  nova read logs/some --tail 10 --follow    The last ten, and what comes
  nova read logs/some --since 15m --json    With sequence numbers, times and headers
  nova read logs/some --from 1000 --count 1";

/// Write the records of a stream to stdout, one body a line
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReadArgs {
    /// The stream
    #[arg(value_name = "BUCKET/KEY", value_parser = parse_stream)]
    stream: StreamName,
    #[command(flatten)]
    start: StartArgs,
    /// Stop after this many records
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Go on with new records as they become durable, and try for ever when the star is away
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    pub(crate) entry: Entry,
}

/// Where to start; at the first record that is left if nothing is said.
#[derive(Debug, Clone, clap::Args)]
#[group(multiple = false)]
struct StartArgs {
    /// Start at this sequence number [default: the first that is left]
    #[arg(long, value_name = "SEQ")]
    from: Option<u64>,
    /// Start this many records before the tail
    #[arg(long, value_name = "N")]
    tail: Option<u64>,
    /// Start at the first record that is no older than this, such as 15m or 2d
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    since: Option<Duration>,
}

fn parse_age(text: &str) -> Result<Duration, String> {
    parse_duration(text, "s")
}

impl StartArgs {
    fn start(&self, now: Timestamp) -> ReadStart {
        match (self.from, self.tail, self.since) {
            (Some(from), _, _) => ReadStart::Sequence(SequenceNumber(from)),
            (_, Some(tail), _) => ReadStart::TailOffset(tail),
            (_, _, Some(age)) => {
                let age_us = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
                ReadStart::Timestamp(Timestamp(now.0.saturating_sub(age_us)))
            }
            // As far before the tail as there are records.
            (None, None, None) => ReadStart::TailOffset(u64::MAX),
        }
    }
}

/// Runs it.
pub(crate) async fn run(args: ReadArgs) -> Result<Exit, Failure> {
    let mut interrupt = Interrupt::listen()?;
    let mut output = Output::stdout()?;
    let form = if args.entry.json {
        Form::Json
    } else {
        Form::Body
    };
    let end = tokio::select! {
        biased;
        () = interrupt.told() => Ok(Exit::Interrupted),
        read = read(&args, form, &mut output) => read,
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

async fn read(args: &ReadArgs, form: Form, output: &mut Output) -> Result<Exit, Failure> {
    let client = args.entry.connect().await?;
    let open = ReadOpen {
        stream: args.stream.clone(),
        stream_id: None,
        start: args.start.start(wall()),
        limits: ReadLimits {
            count: args.count,
            ..ReadLimits::default()
        },
        follow: args.follow,
        clamp: false,
    };
    let failed = |error: ClientError| {
        let what = format!("{} can't be read", args.stream);
        Failure::client(what, &error, Subject::Stream(&args.stream))
    };
    let mut reader = client.read(open).await.map_err(failed)?;
    let patience = (!args.follow).then_some(args.entry.retry_for);
    let copied = copy(&mut reader, patience, form, output).await;
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

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
