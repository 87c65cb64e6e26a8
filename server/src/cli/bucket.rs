//! `nova bucket`: create, list, describe, reconfigure and delete buckets.

use crate::cli::entry::Entry;
use crate::cli::failure::{Exit, Failure, Subject};
use crate::cli::output::say;
use crate::cli::settings::{SettingsFlags, show_said};
use crate::cli::shapes;
use crate::cli::time_text::show_time;
use clap::{Args, Subcommand};
use nova_client::{
    BucketChange, BucketInfo, BucketName, BucketSettings, Client, ClientError, Page,
};
use nova_model::limits::LIST_LIMIT_MAX;
use nova_model::settings::Retention;

/// Create, list, describe, reconfigure and delete buckets
#[derive(Debug, Args)]
pub(crate) struct BucketArgs {
    #[command(subcommand)]
    command: BucketCommand,
}

#[derive(Debug, Subcommand)]
enum BucketCommand {
    /// Make a bucket
    Create {
        #[command(flatten)]
        one: OneBucket,
        #[command(flatten)]
        flags: BucketFlags,
        /// Take the bucket as it is if it is there
        #[arg(long)]
        ensure: bool,
    },
    /// List buckets
    List {
        #[command(flatten)]
        page: PageArgs,
        #[command(flatten)]
        entry: Entry,
    },
    /// Tell a bucket's settings
    Describe {
        #[command(flatten)]
        one: OneBucket,
    },
    /// Change the settings that are said; the others stay
    Reconfigure {
        #[command(flatten)]
        one: OneBucket,
        #[command(flatten)]
        flags: BucketFlags,
    },
    /// Delete a bucket that holds no stream
    Delete {
        #[command(flatten)]
        one: OneBucket,
    },
}

#[derive(Debug, Args)]
struct OneBucket {
    /// The bucket: 1 to 64 of a-z, 0-9 and -
    #[arg(value_name = "BUCKET", value_parser = parse_bucket)]
    bucket: BucketName,
    #[command(flatten)]
    entry: Entry,
}

/// Settings of a bucket: the defaults of its streams, and how streams come to be.
#[derive(Debug, Args)]
struct BucketFlags {
    #[command(flatten)]
    defaults: SettingsFlags,
    /// An append to a stream that is not there creates it
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(value_name = "true|false", help_heading = "Settings")]
    create_stream_on_append: Option<bool>,
    /// A read of a stream that is not there creates it
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(value_name = "true|false", help_heading = "Settings")]
    create_stream_on_read: Option<bool>,
}

/// Which part of a list.
#[derive(Debug, Clone, Args)]
pub(crate) struct PageArgs {
    /// Only names that begin with this
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) prefix: String,
    /// Only names after this one
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) start_after: String,
    /// At most this many [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
}

impl PageArgs {
    /// The next page after `given` items of which `last` was the last; `None` once there are
    /// enough.
    pub(crate) fn next(&self, given: u64, last: Option<&str>) -> Option<Page> {
        let most = LIST_LIMIT_MAX as u64;
        let left = self.limit.map_or(most, |limit| limit.saturating_sub(given));
        (left > 0).then(|| Page {
            prefix: self.prefix.clone(),
            start_after: last.unwrap_or(&self.start_after).to_owned(),
            limit: left.min(most) as u32,
        })
    }
}

impl BucketFlags {
    /// What is said; the part of a default retention that is not said is that of `before`.
    fn change(&self, before: Retention) -> BucketChange {
        BucketChange {
            defaults: self.defaults.settings(before),
            create_stream_on_append: self.create_stream_on_append,
            create_stream_on_read: self.create_stream_on_read,
        }
    }
}

impl BucketArgs {
    /// The star that it is for.
    pub(crate) fn entry(&self) -> &Entry {
        match &self.command {
            BucketCommand::List { entry, .. } => entry,
            BucketCommand::Create { one, .. }
            | BucketCommand::Describe { one }
            | BucketCommand::Reconfigure { one, .. }
            | BucketCommand::Delete { one } => &one.entry,
        }
    }
}

/// Runs it.
pub(crate) async fn run(args: BucketArgs) -> Result<Exit, Failure> {
    let is_json = args.entry().json;
    let client = args.entry().connect().await?;
    let done = match args.command {
        BucketCommand::Create { one, flags, ensure } => {
            create(&client, one.bucket, &flags, ensure, is_json).await
        }
        BucketCommand::List { page, .. } => list(&client, &page, is_json).await,
        BucketCommand::Describe { one } => {
            let info = client.describe_bucket(one.bucket.clone()).await;
            let info = info.map_err(failed("can't be described", &one.bucket))?;
            say(&show(&info, "", is_json))
        }
        BucketCommand::Reconfigure { one, flags } => {
            let changed = reconfigure(&client, one.bucket.clone(), &flags).await;
            let info = changed.map_err(unchanged("changed", &one.bucket))?;
            say(&show(&info, "changed ", is_json))
        }
        BucketCommand::Delete { one } => {
            let deleted = client.delete_bucket(one.bucket.clone()).await;
            deleted.map_err(unchanged("deleted", &one.bucket))?;
            say(&deleted_text("bucket", one.bucket.as_str(), is_json))
        }
    };
    done?;
    client.close().await;
    Ok(Exit::Done)
}

async fn create(
    client: &Client,
    name: BucketName,
    flags: &BucketFlags,
    ensure: bool,
    is_json: bool,
) -> Result<(), Failure> {
    let change = flags.change(Retention::default());
    let settings = BucketSettings::default().changed_by(&change);
    let made = if ensure {
        client.ensure_bucket(name.clone(), settings).await
    } else {
        let made = client.create_bucket(name.clone(), settings).await;
        made.map(|info| (info, true))
    };
    let (info, created) = made.map_err(unchanged("created", &name))?;
    let what = if created { "created " } else { "found " };
    say(&show(&info, what, is_json))
}

async fn reconfigure(
    client: &Client,
    name: BucketName,
    flags: &BucketFlags,
) -> Result<BucketInfo, ClientError> {
    let mut before = Retention::default();
    if flags.defaults.is_half_retention() {
        let info = client.describe_bucket(name.clone()).await?;
        before = info.settings.defaults.retention.unwrap_or_default();
    }
    client.reconfigure_bucket(name, flags.change(before)).await
}

async fn list(client: &Client, args: &PageArgs, is_json: bool) -> Result<(), Failure> {
    let (mut given, mut last) = (0, None);
    while let Some(page) = args.next(given, last.as_deref()) {
        let listed = client.list_buckets(page).await.map_err(|error| {
            Failure::client("the buckets can't be listed", &error, Subject::Star)
        })?;
        let lines = listed.items.iter().map(|info| match is_json {
            true => format!("{}\n", shapes::bucket(info)),
            false => format!("{}\n", info.name),
        });
        say(&lines.collect::<String>())?;
        given += listed.items.len() as u64;
        last = listed.items.last().map(|info| info.name.to_string());
        if !listed.has_more || last.is_none() {
            break;
        }
    }
    Ok(())
}

fn show(info: &BucketInfo, what: &str, is_json: bool) -> String {
    if is_json {
        return format!("{}\n", shapes::bucket(info));
    }
    let mut text = format!("{what}bucket {}\n", info.name);
    text += &format!("  {:<20} {}\n", "created", show_time(info.created));
    text += &show_said(&info.settings.defaults);
    for (name, is_set) in [
        ("create on append", info.settings.create_stream_on_append),
        ("create on read", info.settings.create_stream_on_read),
    ] {
        text += &format!("  {name:<20} {is_set}\n");
    }
    text
}

/// What is said about something that was deleted.
pub(crate) fn deleted_text(kind: &str, name: &str, is_json: bool) -> String {
    if is_json {
        return format!("{}\n", serde_json::json!({ kind: name, "deleted": true }));
    }
    format!("deleted {kind} {name}\n")
}

fn failed<'a>(what: &'a str, name: &'a BucketName) -> impl Fn(ClientError) -> Failure + 'a {
    move |error| {
        let what = format!("the bucket {name} {what}");
        Failure::client(what, &error, Subject::Bucket(name))
    }
}

fn unchanged<'a>(done: &'a str, name: &'a BucketName) -> impl Fn(ClientError) -> Failure + 'a {
    move |error| {
        let what = format!("the bucket {name}");
        Failure::change(&what, done, &error, Subject::Bucket(name))
    }
}

/// Parses the name of a bucket.
pub(crate) fn parse_bucket(text: &str) -> Result<BucketName, String> {
    BucketName::parse(text).map_err(|refusal| refusal.message)
}

#[cfg(test)]
#[path = "bucket_tests.rs"]
mod tests;
