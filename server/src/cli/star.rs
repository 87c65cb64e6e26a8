//! `nova star`: who the star is and where its cores are.

use crate::cli::entry::Entry;
use crate::cli::failure::{Exit, Failure, Subject};
use crate::cli::output::say;
use crate::cli::shapes;
use std::fmt::Write;

/// Tell who the star is and where its cores are
#[derive(Debug, clap::Args)]
pub(crate) struct StarArgs {
    #[command(flatten)]
    pub(crate) entry: Entry,
}

/// Runs it.
pub(crate) async fn run(args: StarArgs) -> Result<Exit, Failure> {
    let client = args.entry.connect().await?;
    let info = client.describe_star().await;
    let failed = |error| Failure::client("the star does not tell", &error, Subject::Star);
    let info = info.map_err(failed)?;
    client.close().await;
    if args.entry.json {
        say(&format!("{}\n", shapes::star(&info)))?;
        return Ok(Exit::Done);
    }
    let mut text = format!("star {}, start {}\n", info.star, info.incarnation.0);
    for core in &info.cores {
        writeln!(text, "  {} at {}", core.core, core.address)
            .expect("writing to memory does not fail");
    }
    say(&text)?;
    Ok(Exit::Done)
}
