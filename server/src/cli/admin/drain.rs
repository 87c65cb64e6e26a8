//! Drains, their ends, and what is shown while one lasts.

use super::{Told, text};
use crate::cli::entry::Entry;
use crate::cli::failure::{Failure, Subject};
use crate::cli::shapes;
use indicatif::{ProgressBar, ProgressStyle};
use nova_client::{Client, ClientError, CoreId, CoreSet, StarStatus};
use std::time::Duration;

/// How often the star is asked how far a drain has come, while a person may be looking.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Which cores.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("cores").required(true))]
pub(super) struct DrainArgs {
    /// The number of the core; `nova admin status` lists them
    #[arg(value_name = "CORE", group = "cores")]
    core: Option<u16>,
    /// Every core of the star
    #[arg(long, group = "cores")]
    all: bool,
    #[command(flatten)]
    pub(super) entry: Entry,
}

impl DrainArgs {
    pub(super) fn cores(&self) -> CoreSet {
        self.core
            .map_or(CoreSet::All, |core| CoreSet::One(CoreId(core)))
    }
}

/// Drains.
pub(super) async fn drain(client: &Client, cores: CoreSet) -> Told {
    let failed =
        |error: ClientError| Failure::change(&text::cores(cores), "drained", &error, Subject::Star);
    let draining = client.drain(cores);
    let done = tokio::select! {
        done = draining => done,
        never = watch(client, cores) => match never {},
    };
    let done = done.map_err(failed)?;
    Ok((text::drained(cores, &done), shapes::placement(&done)))
}

/// Ends a drain.
pub(super) async fn undrain(client: &Client, cores: CoreSet) -> Told {
    let failed = |error: ClientError| {
        let what = format!("the drain of {} was not ended", text::cores(cores));
        Failure::client(what, &error, Subject::Star)
    };
    let done = client.undrain(cores).await.map_err(failed)?;
    Ok((text::undrained(cores, &done), shapes::placement(&done)))
}

/// Shows on stderr, if it is a terminal, how many streams are still to go.
async fn watch(client: &Client, cores: CoreSet) -> std::convert::Infallible {
    let spinner = Spinner::new();
    if spinner.0.is_hidden() {
        std::future::pending::<()>().await;
    }
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        // The drain itself tells what is wrong with the star, if something is.
        if let Ok(status) = client.status().await {
            let left = text::count(left(&status, cores), "stream");
            let message = format!("draining {}: {left} to go", text::cores(cores));
            spinner.0.set_message(message);
        }
        spinner.0.tick();
    }
}

/// A spinner that is wiped away when the drain is over.
struct Spinner(ProgressBar);

impl Spinner {
    fn new() -> Spinner {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        Spinner(bar)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn left(status: &StarStatus, cores: CoreSet) -> u64 {
    let is_meant = |core: CoreId| cores == CoreSet::All || cores == CoreSet::One(core);
    let meant = status.cores.iter().filter(|core| is_meant(core.core));
    meant.map(|core| core.streams_led).sum()
}

#[cfg(test)]
#[path = "drain_tests.rs"]
mod tests;
