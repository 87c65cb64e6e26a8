//! `nova try`: a star on this machine, real lines in and out, and what that came to.
//!
//! ```text
//!   lines: FILE, stdin or made up --> producer ==QUIC==> star (child process) --> disk
//!      |                                                  |
//!      +--> Digest of what was sent  ==?==  Digest of what came back <-- reader
//! ```
//!
//! The first lines go one by one, which shows what a single durable append takes; the others all at
//! once, which shows what the session carries.
//!
//! # Invariants
//! - The star is stopped in order before the command ends, whatever happened.
//! - Every append was acked as durable before it is counted.
//!
//! # Not here
//! - Comparisons and open-loop measurements: `bench`. Client and star share this machine here.

mod digest;
mod made_up;
mod report;
mod source;
mod star_process;

use crate::cli::entry::Entry;
use crate::cli::failure::{Exit, Failure, Subject};
use crate::cli::flow::Flow;
use crate::cli::interrupt::Interrupt;
use crate::cli::latency::Latencies;
use crate::cli::output::say;
use crate::cli::read::next_within;
use crate::config::DATA_DEFAULT;
use digest::Digest;
use indicatif::{ProgressBar, ProgressStyle};
use nova_client::{
    BucketName, BucketSettings, Client, ClientError, Producer, ProducerConfig, ReadItem,
    ReadLimits, Record, SequenceNumber, StreamName, StreamSettings, read_from,
};
use report::{Report, Sent};
use source::Source;
use star_process::StarProcess;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Where the lines go.
const STREAM: &str = "try/lines";
/// Lines that go one by one.
const ONE_BY_ONE_MAX: u64 = 1_000;
/// How long lines go one by one.
const ONE_BY_ONE_PATIENCE: Duration = Duration::from_secs(2);

/// How long nothing may come back.
const READ_PATIENCE: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
  nova try                          100,000 made-up log lines, in ./nova-data
  nova try /var/log/syslog          The lines of a file
  zcat old.log.gz | nova try -      Lines from a pipe
  nova try --records 1000000 --data /mnt/nvme/nova-data

The star and its data stay what they are: nova serve --data DIR starts it again.";

/// See it work: start a star, send it lines durably, read them back, compare
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TrialArgs {
    /// File with lines to send; - is stdin [default: stdin if something is piped, else made up]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Data directory of the star; made if it is not there
    #[arg(long, value_name = "DIR", default_value = DATA_DEFAULT)]
    data: PathBuf,
    /// Lines to send at most [default: all that there are; 100000 made-up ones]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    records: Option<u64>,
    /// Cores of the star [default: one for each CPU that this process may use]
    #[arg(long, value_name = "N")]
    cores: Option<usize>,
    /// Print the results, or the error, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs it.
pub(crate) fn run(args: TrialArgs) -> Result<Exit, Failure> {
    super::block_on(async {
        let mut interrupt = Interrupt::listen()?;
        tokio::select! {
            done = trial(&args) => done,
            () = interrupt.told() => Ok(Exit::Interrupted),
        }
    })
}

async fn trial(args: &TrialArgs) -> Result<Exit, Failure> {
    let mut source = Source::open(args.file.as_deref(), args.records)?;
    let star = StarProcess::start(&args.data, args.cores).await?;
    let client = Entry::of_data(&args.data).connect().await?;
    let stream = StreamName::parse(STREAM).map_err(|refusal| failed(&refusal.into()))?;
    let addresses = prepare(&client, &stream)
        .await
        .map_err(|error| failed(&error))?;
    let mut sent = send(&client, &stream, &mut source).await?;
    let back = read_back(&client, &stream, &sent).await?;
    client.close().await;
    star.stop().await?;
    let is_same = sent.digest.is_same(&back.digest);
    let difference = sent.digest.first_difference(&back.digest);
    sent.origin = source.origin();
    let report = Report {
        stream: STREAM,
        data: std::fs::canonicalize(&args.data).unwrap_or_else(|_| args.data.clone()),
        named: args.data.clone(),
        addresses,
        probe: nova_disk::probe(&args.data).ok(),
        sent,
        back,
    };
    if !is_same {
        let why = format!(
            "{} records were sent and {} came back; they differ from record {difference} on",
            report.sent.digest.records(),
            report.back.digest.records()
        );
        let next = "keep the data directory and report this with it";
        let what = "what came back is not what was sent";
        return Err(Failure::new(Exit::Different, what, why, next));
    }
    let text = if args.json {
        format!("{}\n", report.to_json())
    } else {
        report.to_text()
    };
    say(&text)?;
    Ok(Exit::Done)
}

/// Makes bucket and stream, and tells where the star's cores are.
async fn prepare(client: &Client, stream: &StreamName) -> Result<Vec<String>, ClientError> {
    let bucket: BucketName = stream.bucket.clone();
    client
        .ensure_bucket(bucket, BucketSettings::default())
        .await?;
    client
        .ensure_stream(stream.clone(), StreamSettings::default())
        .await?;
    let star = client.describe_star().await?;
    Ok(star.cores.into_iter().map(|core| core.address).collect())
}

async fn send(client: &Client, stream: &StreamName, source: &mut Source) -> Result<Sent, Failure> {
    let producer = client.producer(stream.clone(), ProducerConfig::default());
    let producer = producer.map_err(|error| failed(&error))?;
    let bar = progress("sending", source.total());
    let mut sent = Sent::default();
    one_by_one(&producer, source, &mut sent).await?;
    bar.set_position(sent.digest.records());
    let (one_by_one, begun) = (sent.digest.records(), Instant::now());
    let shown = bar.clone();
    let on_durable = Box::new(move |records| shown.set_position(one_by_one + records));
    let mut flow = Flow::begin(producer, on_durable);
    while let Some(line) = source.next().await? {
        sent.digest.note(&line.body);
        if flow
            .append(line.number, Record::new(line.body))
            .await
            .is_err()
        {
            break;
        }
    }
    let tally = flow.finish().await;
    sent.at_once_took = begun.elapsed();
    bar.finish_and_clear();
    if let Some(line) = &tally.failed {
        return Err(failed(&line.error));
    }
    sent.first = sent.first.or(tally.first);
    sent.at_once = tally.records;
    sent.at_once_bytes = tally.bytes;
    sent.at_once_latencies = tally.latencies;
    if sent.first.is_none() {
        let next = "name a file that has some";
        return Err(Failure::new(
            Exit::Usage,
            "nothing was sent",
            "there are no lines",
            next,
        ));
    }
    Ok(sent)
}

async fn one_by_one(
    producer: &Producer,
    source: &mut Source,
    sent: &mut Sent,
) -> Result<(), Failure> {
    let (begun, mut latencies) = (Instant::now(), Latencies::new());
    while sent.one_by_one < ONE_BY_ONE_MAX && begun.elapsed() < ONE_BY_ONE_PATIENCE {
        let Some(line) = source.next().await? else {
            break;
        };
        sent.digest.note(&line.body);
        let handed_over = Instant::now();
        let appended = producer.append(Record::new(line.body)).await;
        let appended = appended.map_err(|error| failed(&error))?;
        latencies.note(handed_over.elapsed());
        sent.first.get_or_insert(appended.start.sequence);
        sent.one_by_one += 1;
    }
    sent.one_by_one_latencies = latencies;
    Ok(())
}

/// What was read back.
#[derive(Debug, Default)]
struct Back {
    digest: Digest,
    took: Duration,
}

async fn read_back(client: &Client, stream: &StreamName, sent: &Sent) -> Result<Back, Failure> {
    let records = sent.digest.records();
    let first = sent.first.unwrap_or(SequenceNumber(0));
    let mut open = read_from(stream.clone(), first.0);
    open.limits = ReadLimits {
        count: Some(records),
        ..ReadLimits::default()
    };
    let bar = progress("reading back", Some(records));
    let (begun, mut back) = (Instant::now(), Back::default());
    let mut reader = client.read(open).await.map_err(|error| failed(&error))?;
    loop {
        let item = next_within(&mut reader, Some(READ_PATIENCE)).await;
        let Some(item) = item.map_err(|error| failed(&error))? else {
            break;
        };
        if let ReadItem::Batch(batch) = item {
            batch.for_each(|_, record| back.digest.note(record.body()));
            bar.set_position(back.digest.records());
        }
    }
    back.took = begun.elapsed();
    bar.finish_and_clear();
    Ok(back)
}

/// A bar on stderr, if that is a terminal.
fn progress(what: &'static str, total: Option<u64>) -> ProgressBar {
    let (bar, shape) = match total {
        Some(total) => (
            ProgressBar::new(total),
            "{msg:13} {bar:40} {human_pos}/{human_len}",
        ),
        None => (ProgressBar::new_spinner(), "{msg:13} {spinner} {human_pos}"),
    };
    if let Ok(style) = ProgressStyle::with_template(&format!("{shape} lines, {{per_sec}}")) {
        bar.set_style(style);
    }
    bar.with_message(what)
}

fn failed(error: &ClientError) -> Failure {
    Failure::client("the trial did not come to its end", error, Subject::Star)
}
