//! `nova admin`: moves streams between the cores of a star.

use crate::cli::append::parse_stream;
use crate::cli::entry::Entry;
use crate::cli::failure::{Exit, Failure, Subject};
use crate::cli::output::say;
use nova_client::{CoreId, StreamName};
use serde_json::json;

/// Move streams between the cores of a star
#[derive(Debug, clap::Args)]
pub(crate) struct AdminArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Let another core lead a stream; nothing is copied, producers and readers follow
    ///
    /// The stream goes back to its own core when it has been idle for a while, and when the star
    /// starts again.
    Handoff {
        /// The stream
        #[arg(value_name = "BUCKET/KEY", value_parser = parse_stream)]
        name: StreamName,
        /// The number of the core that is to lead it; `nova star` lists them
        #[arg(long, value_name = "CORE")]
        to: u16,
        #[command(flatten)]
        entry: Entry,
    },
}

impl AdminArgs {
    pub(crate) fn entry(&self) -> &Entry {
        let Action::Handoff { entry, .. } = &self.action;
        entry
    }
}

/// Runs it.
pub(crate) async fn run(args: AdminArgs) -> Result<Exit, Failure> {
    let Action::Handoff { name, to, entry } = args.action;
    let client = entry.connect().await?;
    let handed = client.hand_off(name.clone(), CoreId(to)).await;
    let leader = handed.map_err(|error| {
        let what = format!("the stream {name} was not handed to core {to}");
        Failure::client(what, &error, Subject::Stream(&name))
    })?;
    client.close().await;
    let (core, epoch) = (leader.core, leader.epoch.0);
    let address = leader.address;
    say(&match entry.json {
        true => {
            let stream = name.to_string();
            let json = json!({
                "stream": stream, "core": core.0, "address": address, "epoch": epoch,
            });
            format!("{json}\n")
        }
        false => format!("{name} is led by {core} at {address}, epoch {epoch}\n"),
    })?;
    Ok(Exit::Done)
}
