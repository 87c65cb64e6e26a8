//! `nova append`: the lines of stdin into a stream, each a record, durable when it ends.
//!
//! ```text
//!   stdin --chunks--> LineSplitter --lines--> Flow --> the star
//!      end of input, Ctrl-C, or the first failure: what is staged is sent and waited for
//! ```
//!
//! # Invariants
//! - The number of durable records that is told at the end is the star's word: every one was acked.
//!
//! # Not here
//! - Batching, reconnecting, sending again: `nova-client`.

use crate::cli::entry::Entry;
use crate::cli::failure::{Exit, Failure, Subject};
use crate::cli::flow::{Flow, Stopped, Tally};
use crate::cli::input::{Chunks, stdin_chunks};
use crate::cli::interrupt::Interrupt;
use crate::cli::line_splitter::{Line, LineSplitter};
use crate::cli::output::say;
use crate::config::units::{parse_bytes, parse_duration, show_bytes, show_count};
use bytes::Bytes;
use nova_client::{
    Client, ClientError, FencingToken, ProducerConfig, Record, StreamName, StreamSettings,
};
use nova_model::limits::{
    BATCH_METERED_BYTES_MAX, HEADER_METERED_BYTES_MIN, RECORD_METERED_BYTES_MAX,
    RECORD_METERED_BYTES_MIN,
};
use nova_model::record::Header;
use serde_json::json;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  tail -f some.log | nova append logs/some
  nova append logs/big < big.log
  echo 'deployed' | nova append logs/events --header by=me --linger 0

At the end of the input it waits until every line is durable and sums up on stderr. Ctrl-C
sends what was read and says how many records are durable; a second one ends at once.";

/// Append the lines of stdin to a stream, one record each
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AppendArgs {
    /// The stream; made if it is not there, the bucket must be
    #[arg(value_name = "BUCKET/KEY", value_parser = parse_stream)]
    stream: StreamName,
    /// How long a batch waits for more lines; 0 sends each as soon as it can go
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = parse_linger)]
    linger: Duration,
    /// Bytes that a batch aims at, at most 1MiB
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = parse_batch)]
    batch_size: usize,
    /// Fencing token that every batch presents
    #[arg(long, value_name = "TOKEN", value_parser = parse_token)]
    fence: Option<FencingToken>,
    /// Header of every record; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_header)]
    header: Vec<Header>,
    /// Fail if the stream is not there
    #[arg(long)]
    no_create: bool,
    /// Say nothing on stderr when all went well
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    pub(crate) entry: Entry,
}

/// Why no more lines are read.
#[derive(Debug)]
enum End {
    /// There are no more.
    Input,
    /// A signal came.
    Interrupted,
    /// An append failed; the tally says which.
    Failed,
    /// This line or the input itself is bad.
    Bad(Failure),
}

/// Runs it.
pub(crate) async fn run(args: AppendArgs) -> Result<Exit, Failure> {
    let headers = args.header.iter();
    let header_bytes: usize = headers
        .map(|header| HEADER_METERED_BYTES_MIN + header.name.len() + header.value.len())
        .sum();
    let room = RECORD_METERED_BYTES_MAX - RECORD_METERED_BYTES_MIN;
    let line_bytes_max = room.checked_sub(header_bytes).ok_or_else(|| {
        let why = format!("they have {header_bytes} bytes, and a record has at most {room}");
        let next = "make them smaller";
        Failure::new(Exit::Usage, "the headers are too large", why, next)
    })?;
    let mut interrupt = Interrupt::listen()?;
    let client = tokio::select! {
        client = open(&args) => client?,
        () = interrupt.told() => return Ok(Exit::Interrupted),
    };
    let config = ProducerConfig {
        fence: args.fence.clone(),
        batch_size: args.batch_size,
        linger: args.linger,
        ..ProducerConfig::default()
    };
    let producer = client.producer(args.stream.clone(), config);
    let producer = producer.map_err(|error| refused(&args, &error))?;
    let durable = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&durable);
    let on_durable = Box::new(move |records| counter.store(records, Ordering::Relaxed));
    let mut flow = Flow::begin(producer, on_durable);
    let begun = Instant::now();
    let splitter = LineSplitter::new(line_bytes_max);
    let failing = flow.failing();
    let end = tokio::select! {
        biased;
        () = interrupt.told() => End::Interrupted,
        () = failing.notified() => End::Failed,
        end = feed(&mut flow, splitter, stdin_chunks()?, &args.header) => end,
    };
    let tally = tokio::select! {
        tally = flow.finish() => tally,
        () = interrupt.told() => {
            let durable = show_count(durable.load(Ordering::Relaxed));
            eprintln!("nova: ended at once; {durable} records are durable, more may be");
            return Ok(Exit::Interrupted);
        }
    };
    client.close().await;
    sum_up(&args, end, &tally, begun.elapsed())
}

async fn open(args: &AppendArgs) -> Result<Client, Failure> {
    let client = args.entry.connect().await?;
    let name = args.stream.clone();
    let opened = if args.no_create {
        client.describe_stream(name).await.map(drop)
    } else {
        let made = client.ensure_stream(name, StreamSettings::default()).await;
        made.map(drop)
    };
    opened.map_err(|error| refused(args, &error))?;
    Ok(client)
}

fn refused(args: &AppendArgs, error: &ClientError) -> Failure {
    let what = format!("nothing was appended to {}", args.stream);
    Failure::client(what, error, Subject::Stream(&args.stream))
}

async fn feed(
    flow: &mut Flow,
    mut splitter: LineSplitter,
    mut chunks: Chunks,
    headers: &[Header],
) -> End {
    loop {
        match chunks.recv().await {
            None => {
                let stopped = match splitter.finish() {
                    Some(line) => append(flow, line, headers).await,
                    None => Ok(()),
                };
                return stopped.map_or(End::Failed, |()| End::Input);
            }
            Some(Err(error)) => return bad_input(&error),
            Some(Ok(chunk)) => splitter.push(chunk),
        }
        loop {
            match splitter.next_line() {
                Ok(None) => break,
                Ok(Some(line)) => {
                    if append(flow, line, headers).await == Err(Stopped) {
                        return End::Failed;
                    }
                }
                Err(error) => {
                    let what = format!("line {} was not appended", error.number);
                    let next = format!(
                        "cut it, then go on with: tail -n +{} FILE | nova append ...",
                        error.number
                    );
                    return End::Bad(Failure::new(Exit::Refused, what, error.to_string(), next));
                }
            }
        }
    }
}

async fn append(flow: &mut Flow, line: Line, headers: &[Header]) -> Result<(), Stopped> {
    let mut record = Record::new(line.body);
    if !headers.is_empty() {
        record.headers = headers.to_vec();
    }
    flow.append(line.number, record).await
}

fn bad_input(error: &io::Error) -> End {
    End::Bad(Failure::local("stdin can't be read on", error))
}

fn sum_up(args: &AppendArgs, end: End, tally: &Tally, took: Duration) -> Result<Exit, Failure> {
    let durable = durable_text(tally);
    if let Some(failed) = &tally.failed {
        let what = format!("line {} was not appended", failed.number);
        let what = match failed.error.is_clean() {
            true => what,
            false => format!(
                "it is not known whether line {} was appended",
                failed.number
            ),
        };
        let mut failure = Failure::client(what, &failed.error, Subject::Stream(&args.stream));
        let up_to = match tally.durable_up_to {
            0 => String::new(),
            line => format!(", with every line up to {line}"),
        };
        failure.why = format!("{}\n{durable}{up_to}", failure.why);
        return Err(failure);
    }
    match end {
        End::Bad(mut failure) => {
            failure.why = format!("{}\n{durable}", failure.why);
            Err(failure)
        }
        End::Interrupted => {
            eprintln!("nova: interrupted; {durable}");
            Ok(Exit::Interrupted)
        }
        End::Input | End::Failed => {
            if !args.quiet {
                let acks = match tally.records {
                    0 => String::new(),
                    _ => format!(", {}", tally.latencies.to_text()),
                };
                eprintln!("nova: {durable} in {}{acks}", args.stream);
            }
            if args.entry.json {
                say(&format!("{}\n", to_json(args, tally, took)))?;
            }
            Ok(Exit::Done)
        }
    }
}

fn durable_text(tally: &Tally) -> String {
    let records = show_count(tally.records);
    let are = if tally.records == 1 {
        "record is"
    } else {
        "records are"
    };
    match (tally.first, tally.end) {
        (Some(first), Some(end)) => {
            let (bytes, last) = (show_bytes(tally.bytes), end.0 - 1);
            format!("{records} {are} durable ({bytes}, {first}..{last})")
        }
        _ => format!("{records} {are} durable"),
    }
}

fn to_json(args: &AppendArgs, tally: &Tally, took: Duration) -> serde_json::Value {
    json!({
        "stream": args.stream.to_string(),
        "records": tally.records,
        "bytes": tally.bytes,
        "first": tally.first.map(|first| first.0),
        "last": tally.end.map(|end| end.0 - 1),
        "ack_us": tally.latencies.to_json(),
        "seconds": took.as_secs_f64(),
    })
}

/// Parses `BUCKET/KEY`.
pub(crate) fn parse_stream(text: &str) -> Result<StreamName, String> {
    StreamName::parse(text).map_err(|refusal| refusal.message)
}

/// Parses a fencing token.
pub(crate) fn parse_token(text: &str) -> Result<FencingToken, String> {
    FencingToken::parse(text).map_err(|refusal| refusal.message)
}

fn parse_linger(text: &str) -> Result<Duration, String> {
    let linger = parse_duration(text, "ms")?;
    if linger > Duration::from_secs(1) {
        return Err("a batch lingers for at most 1s".to_owned());
    }
    Ok(linger)
}

fn parse_batch(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes(text)?;
    match usize::try_from(bytes) {
        Ok(bytes @ 1..=BATCH_METERED_BYTES_MAX) => Ok(bytes),
        _ => Err("a batch has 1 to 1048576 bytes".to_owned()),
    }
}

fn parse_header(text: &str) -> Result<Header, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("'{text}' is not NAME=VALUE"))?;
    Ok(Header {
        name: Bytes::copy_from_slice(name.as_bytes()),
        value: Bytes::copy_from_slice(value.as_bytes()),
    })
}

#[cfg(test)]
#[path = "append_tests.rs"]
mod tests;
