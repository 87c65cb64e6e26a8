//! `nova admin`: where streams are led in a star, and how its cores are.
//!
//! # Not here
//! - How results look: [`text`] and [`shapes`]. Drains while they last: [`drain`].

mod drain;
mod text;

use crate::cli::append::parse_stream;
use crate::cli::entry::Entry;
use crate::cli::failure::{Exit, Failure, Subject};
use crate::cli::output::say;
use crate::cli::shapes;
use drain::DrainArgs;
use nova_client::{Client, ClientError, CoreId, Leader, StreamName};
use serde_json::{Value, json};

/// See and change where streams are led in a star
#[derive(Debug, clap::Args)]
pub(crate) struct AdminArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Tell the load and the state of every core
    ///
    /// Rates are means of the last seconds. `loaded` counts streams in memory, whether led or only
    /// read; `pending` what was admitted and is not durable yet.
    Status {
        #[command(flatten)]
        entry: Entry,
    },
    /// Hand all that a core leads to the other cores, and place nothing there
    ///
    /// Comes back when the other cores lead it. Nothing acked is lost and nothing applied twice:
    /// producers and readers follow by themselves. A drain lasts until `nova admin undrain` or the
    /// star's next start, whichever is first. Interrupted with Ctrl-C, it goes on in the star.
    ///
    /// With --all the star is closed: it leads nothing and refuses its streams as DRAINING, and
    /// clients try again for as long as their retry budget lasts.
    Drain(DrainArgs),
    /// Place streams on a drained core again
    ///
    /// Streams whose own core it is come back to it as they are used; `nova admin rebalance` moves
    /// others there at once.
    Undrain(DrainArgs),
    /// Spread the streams that are led over the cores by measured load
    ///
    /// Moves the streams whose move evens the load out most; a second one may find more to do.
    Rebalance {
        #[command(flatten)]
        entry: Entry,
    },
    /// Let another core lead a stream; nothing is copied, producers and readers follow
    ///
    /// The stream goes back to its own core when it has been idle for a while, and when the star
    /// starts again.
    Handoff {
        /// The stream
        #[arg(value_name = "BUCKET/KEY", value_parser = parse_stream)]
        name: StreamName,
        /// The number of the core that is to lead it; `nova admin status` lists them
        #[arg(long, value_name = "CORE")]
        to: u16,
        #[command(flatten)]
        entry: Entry,
    },
}

impl AdminArgs {
    pub(crate) fn entry(&self) -> &Entry {
        match &self.action {
            Action::Status { entry }
            | Action::Rebalance { entry }
            | Action::Handoff { entry, .. } => entry,
            Action::Drain(args) | Action::Undrain(args) => &args.entry,
        }
    }
}

/// Runs it.
pub(crate) async fn run(args: AdminArgs) -> Result<Exit, Failure> {
    let entry = args.entry().clone();
    let client = entry.connect().await?;
    let (text, value) = match args.action {
        Action::Status { .. } => status(&client).await,
        Action::Drain(args) => drain::drain(&client, args.cores()).await,
        Action::Undrain(args) => drain::undrain(&client, args.cores()).await,
        Action::Rebalance { .. } => rebalance(&client).await,
        Action::Handoff { name, to, .. } => hand_off(&client, name, CoreId(to)).await,
    }?;
    client.close().await;
    say(&match entry.json {
        true => format!("{value}\n"),
        false => text,
    })?;
    Ok(Exit::Done)
}

/// A result for people and for programs.
type Told = Result<(String, Value), Failure>;

async fn status(client: &Client) -> Told {
    let failed = |error: ClientError| {
        Failure::client("the star does not tell its status", &error, Subject::Star)
    };
    let status = client.status().await.map_err(failed)?;
    Ok((text::status(&status), shapes::status(&status)))
}

async fn rebalance(client: &Client) -> Told {
    let failed =
        |error: ClientError| Failure::client("the load was not spread", &error, Subject::Star);
    let done = client.rebalance().await.map_err(failed)?;
    Ok((text::rebalanced(&done), shapes::rebalanced(&done)))
}

async fn hand_off(client: &Client, name: StreamName, to: CoreId) -> Told {
    let handed = client.hand_off(name.clone(), to).await;
    let Leader {
        core,
        address,
        epoch,
    } = handed.map_err(|error| {
        let what = format!("the stream {name} was not handed to {to}");
        Failure::client(what, &error, Subject::Stream(&name))
    })?;
    let text = format!("{name} is led by {core} at {address}, epoch {}\n", epoch.0);
    let value = json!({
        "stream": name.to_string(), "core": core.0, "address": address, "epoch": epoch.0,
    });
    Ok((text, value))
}
