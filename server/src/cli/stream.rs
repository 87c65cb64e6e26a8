//! `nova stream` and `nova tail`: create, list, describe, reconfigure, delete, fence and trim
//! streams, and tell where one ends.

use crate::cli::append::{parse_stream, parse_token};
use crate::cli::bucket::{PageArgs, deleted_text, parse_bucket};
use crate::cli::entry::Entry;
use crate::cli::failure::{Exit, Failure, Subject};
use crate::cli::output::say;
use crate::cli::settings::{SettingsFlags, show_in_force};
use crate::cli::shapes;
use crate::cli::time_text::show_time;
use clap::{Args, Subcommand};
use nova_client::{
    BucketName, Client, ClientError, Conditions, FencingToken, SequenceNumber, StreamInfo,
    StreamName,
};
use nova_model::settings::Retention;
use serde_json::json;

/// Create, list, describe, reconfigure, delete, fence and trim streams
#[derive(Debug, Args)]
pub(crate) struct StreamArgs {
    #[command(subcommand)]
    command: StreamCommand,
}

#[derive(Debug, Subcommand)]
enum StreamCommand {
    /// Make a stream
    Create {
        #[command(flatten)]
        one: OneStream,
        #[command(flatten)]
        flags: SettingsFlags,
        /// Take the stream as it is if it is there
        #[arg(long)]
        ensure: bool,
    },
    /// List the streams of a bucket
    List {
        /// The bucket
        #[arg(value_name = "BUCKET", value_parser = parse_bucket)]
        bucket: BucketName,
        #[command(flatten)]
        page: PageArgs,
        #[command(flatten)]
        entry: Entry,
    },
    /// Tell a stream's settings and state
    Describe {
        #[command(flatten)]
        one: OneStream,
    },
    /// Change the settings that are said; the others stay
    Reconfigure {
        #[command(flatten)]
        one: OneStream,
        #[command(flatten)]
        flags: SettingsFlags,
    },
    /// Delete a stream with all its records
    Delete {
        #[command(flatten)]
        one: OneStream,
    },
    /// Install a fencing token; producers that hold another one are shut out
    Fence {
        #[command(flatten)]
        one: OneStream,
        /// The new token, up to 36 bytes; '' removes the one installed
        #[arg(value_name = "TOKEN", value_parser = parse_token)]
        token: FencingToken,
        #[command(flatten)]
        conditions: ConditionFlags,
    },
    /// Forget the records before a sequence number
    Trim {
        #[command(flatten)]
        one: OneStream,
        /// The first record that stays
        #[arg(value_name = "SEQ")]
        first: u64,
        #[command(flatten)]
        conditions: ConditionFlags,
    },
}

#[derive(Debug, Args)]
struct OneStream {
    /// The stream
    #[arg(value_name = "BUCKET/KEY", value_parser = parse_stream)]
    stream: StreamName,
    #[command(flatten)]
    entry: Entry,
}

/// What must hold for a command to be applied.
#[derive(Debug, Args)]
struct ConditionFlags {
    /// Only if this fencing token is installed
    #[arg(long, value_name = "TOKEN", value_parser = parse_token)]
    if_fence: Option<FencingToken>,
    /// Only if this is the tail
    #[arg(long, value_name = "SEQ")]
    if_tail: Option<u64>,
}

impl ConditionFlags {
    fn conditions(self) -> Conditions {
        Conditions {
            fence: self.if_fence,
            match_sequence: self.if_tail.map(SequenceNumber),
        }
    }
}

/// Tell the sequence number that the next record of a stream gets
#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    /// The stream
    #[arg(value_name = "BUCKET/KEY", value_parser = parse_stream)]
    stream: StreamName,
    #[command(flatten)]
    pub(crate) entry: Entry,
}

impl StreamArgs {
    /// The star that it is for.
    pub(crate) fn entry(&self) -> &Entry {
        match &self.command {
            StreamCommand::List { entry, .. } => entry,
            StreamCommand::Create { one, .. }
            | StreamCommand::Describe { one }
            | StreamCommand::Reconfigure { one, .. }
            | StreamCommand::Delete { one }
            | StreamCommand::Fence { one, .. }
            | StreamCommand::Trim { one, .. } => &one.entry,
        }
    }
}

/// Runs `nova tail`.
pub(crate) async fn tail(args: TailArgs) -> Result<Exit, Failure> {
    let client = args.entry.connect().await?;
    let tail = client.check_tail(args.stream.clone()).await;
    let tail = tail.map_err(failed("does not tell its tail", &args.stream))?;
    client.close().await;
    say(&if args.entry.json {
        let name = args.stream.to_string();
        format!(
            "{}\n",
            json!({ "stream": name, "tail": shapes::position(tail) })
        )
    } else {
        format!("{}\n", tail.sequence)
    })?;
    Ok(Exit::Done)
}

/// Runs `nova stream`.
pub(crate) async fn run(args: StreamArgs) -> Result<Exit, Failure> {
    let is_json = args.entry().json;
    let client = args.entry().connect().await?;
    let text = match args.command {
        StreamCommand::List { bucket, page, .. } => {
            list(&client, &bucket, &page, is_json).await?;
            String::new()
        }
        StreamCommand::Create { one, flags, ensure } => {
            create(&client, &one.stream, &flags, ensure, is_json).await?
        }
        StreamCommand::Describe { one } => {
            let info = client.describe_stream(one.stream.clone()).await;
            let info = info.map_err(failed("can't be described", &one.stream))?;
            show(&info, "", is_json)
        }
        StreamCommand::Reconfigure { one, flags } => {
            let changed = reconfigure(&client, &one.stream, &flags).await;
            let info = changed.map_err(unchanged("changed", &one.stream))?;
            show(&info, "changed ", is_json)
        }
        StreamCommand::Delete { one } => {
            let deleted = client.delete_stream(one.stream.clone()).await;
            deleted.map_err(unchanged("deleted", &one.stream))?;
            deleted_text("stream", &one.stream.to_string(), is_json)
        }
        StreamCommand::Fence {
            one,
            token,
            conditions,
        } => fence(&client, &one.stream, token, conditions, is_json).await?,
        StreamCommand::Trim {
            one,
            first,
            conditions,
        } => trim(&client, &one.stream, first, conditions, is_json).await?,
    };
    say(&text)?;
    client.close().await;
    Ok(Exit::Done)
}

async fn create(
    client: &Client,
    name: &StreamName,
    flags: &SettingsFlags,
    ensure: bool,
    is_json: bool,
) -> Result<String, Failure> {
    let settings = flags.settings(Retention::default());
    let made = if ensure {
        client.ensure_stream(name.clone(), settings).await
    } else {
        let made = client.create_stream(name.clone(), settings).await;
        made.map(|info| (info, true))
    };
    let (info, created) = made.map_err(unchanged("created", name))?;
    let what = if created { "created " } else { "found " };
    Ok(show(&info, what, is_json))
}

async fn reconfigure(
    client: &Client,
    name: &StreamName,
    flags: &SettingsFlags,
) -> Result<StreamInfo, ClientError> {
    let mut before = Retention::default();
    if flags.is_half_retention() {
        let info = client.describe_stream(name.clone()).await?;
        before = info.settings.retention.value;
    }
    let change = flags.settings(before);
    client.reconfigure_stream(name.clone(), change).await
}

async fn fence(
    client: &Client,
    name: &StreamName,
    token: FencingToken,
    conditions: ConditionFlags,
    is_json: bool,
) -> Result<String, Failure> {
    let installed = client.fence(name.clone(), token.clone(), conditions.conditions());
    let tail = installed.await.map_err(unchanged("fenced", name))?;
    if is_json {
        let (stream, tail) = (name.to_string(), shapes::position(tail));
        let json = json!({ "stream": stream, "fence": token.as_str(), "tail": tail });
        return Ok(format!("{json}\n"));
    }
    Ok(match token.is_none() {
        true => format!("{name} has no fencing token from {} on\n", tail.sequence),
        false => format!(
            "{name} is fenced with '{token}' from {} on\n",
            tail.sequence
        ),
    })
}

async fn trim(
    client: &Client,
    name: &StreamName,
    first: u64,
    conditions: ConditionFlags,
    is_json: bool,
) -> Result<String, Failure> {
    let trimmed = client.trim(name.clone(), SequenceNumber(first), conditions.conditions());
    let (first, tail) = trimmed.await.map_err(unchanged("trimmed", name))?;
    if is_json {
        let (stream, tail) = (name.to_string(), shapes::position(tail));
        let json = json!({ "stream": stream, "first": first.0, "tail": tail });
        return Ok(format!("{json}\n"));
    }
    Ok(format!(
        "{name} begins at {first}, its tail is {}\n",
        tail.sequence
    ))
}

async fn list(
    client: &Client,
    bucket: &BucketName,
    args: &PageArgs,
    is_json: bool,
) -> Result<(), Failure> {
    let (mut given, mut last) = (0, None);
    while let Some(page) = args.next(given, last.as_deref()) {
        let listed = client.list_streams(bucket.clone(), page).await;
        let listed = listed.map_err(|error| {
            let what = format!("the streams of {bucket} can't be listed");
            Failure::client(what, &error, Subject::Bucket(bucket))
        })?;
        let lines = listed.items.iter().map(|info| match is_json {
            true => format!("{}\n", shapes::stream(info)),
            false => format!("{} {}..{}\n", info.name, info.first, info.tail.sequence),
        });
        say(&lines.collect::<String>())?;
        given += listed.items.len() as u64;
        last = listed.items.last().map(|info| info.name.key.to_string());
        if !listed.has_more || last.is_none() {
            break;
        }
    }
    Ok(())
}

fn show(info: &StreamInfo, what: &str, is_json: bool) -> String {
    if is_json {
        return format!("{}\n", shapes::stream(info));
    }
    let fence = match info.fence.is_none() {
        true => "none".to_owned(),
        false => format!("'{}'", info.fence),
    };
    let mut text = format!("{what}stream {}\n", info.name);
    for (name, value) in [
        ("id", info.id.to_string()),
        ("created", show_time(info.created)),
        ("first record", info.first.to_string()),
        ("tail", info.tail.sequence.to_string()),
        ("epoch", info.epoch.0.to_string()),
        ("fencing token", fence),
    ] {
        text += &format!("  {name:<20} {value}\n");
    }
    text + &show_in_force(&info.settings)
}

fn failed<'a>(what: &'a str, name: &'a StreamName) -> impl Fn(ClientError) -> Failure + 'a {
    move |error| {
        let what = format!("the stream {name} {what}");
        Failure::client(what, &error, Subject::Stream(name))
    }
}

fn unchanged<'a>(done: &'a str, name: &'a StreamName) -> impl Fn(ClientError) -> Failure + 'a {
    move |error| {
        let what = format!("the stream {name}");
        Failure::change(&what, done, &error, Subject::State(name))
    }
}
