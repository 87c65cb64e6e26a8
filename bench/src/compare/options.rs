//! The command line of `nova bench compare`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// A system that nova is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Other {
    /// Redis Streams, `appendfsync always`.
    Redis,
    /// NATS JetStream, `sync_interval: always`.
    Nats,
    /// A table of PostgreSQL.
    Postgres,
    /// A topic of Apache Iggy, `durability` persisted.
    Iggy,
    /// s2-lite on a directory.
    #[value(name = "s2-lite")]
    Lite,
}

impl Other {
    /// All of them.
    pub const ALL: [Other; 5] = [
        Other::Redis,
        Other::Nats,
        Other::Postgres,
        Other::Iggy,
        Other::Lite,
    ];
}

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct CompareOptions {
    /// Systems to compare with [default: all that are installed]
    #[arg(value_enum)]
    pub others: Vec<Other>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Directory for the data of all, on the file system to be measured; emptied again afterwards.
    #[arg(long, value_name = "DIR", default_value = "target/nova-bench")]
    pub data: PathBuf,
    /// What nova's star keeps in memory of the newest batches [default: that of a star]
    #[arg(long, value_name = "SIZE")]
    pub recent_bytes: Option<String>,
    /// Fewer rounds of less work: to see that everything runs.
    #[arg(long)]
    pub quick: bool,
    /// How often the systems take turns [default: 7, quick: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
}

impl CompareOptions {
    /// How often the systems take turns.
    pub fn rounds(&self) -> usize {
        let default = if self.quick { 3 } else { 7 };
        self.rounds.map_or(default, |rounds| rounds as usize)
    }

    /// Further words for the command line of nova's star.
    pub fn star_words(&self) -> Vec<&str> {
        let recent = self.recent_bytes.as_deref();
        recent.map_or(Vec::new(), |size| vec!["--recent-bytes", size])
    }

    /// The amount of the form that was asked for.
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Whom nova is compared with.
    pub fn others(&self) -> Vec<Other> {
        match self.others.is_empty() {
            true => Other::ALL.to_vec(),
            false => self.others.clone(),
        }
    }
}
