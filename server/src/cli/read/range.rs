//! From where to where a read goes, as flags.

use crate::cli::time_text::When;
use crate::config::units::parse_bytes;
use nova_client::{ReadLimits, ReadStart, SequenceNumber, Timestamp};

/// Where to start; at the first record that is left if nothing is said.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "From")]
pub(super) struct StartArgs {
    /// Start at this sequence number [default: the first that is left]
    #[arg(long, value_name = "SEQ", group = "start")]
    from: Option<u64>,
    /// Start this many records before the tail
    #[arg(long, value_name = "N", group = "start")]
    tail: Option<u64>,
    /// Start at the first record that is no older: an age such as 15m or 2d, a time such as
    /// 2026-11-29T15:44Z, or @MICROSECONDS since 1970
    #[arg(long, value_name = "AGE|TIME", group = "start", value_parser = When::parse)]
    since: Option<When>,
    /// Take a start behind the tail for the tail
    #[arg(long)]
    pub(super) clamp: bool,
}

/// Where to end; at the tail if nothing is said.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "To")]
pub(super) struct EndArgs {
    /// Stop after this many records
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Stop before the record that exceeds this size, such as 10MiB; one comes in any case
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    bytes: Option<u64>,
    /// Stop before this sequence number
    #[arg(long, value_name = "SEQ")]
    until: Option<u64>,
    /// Stop before the first record of this time or later: an age, a time or @MICROSECONDS
    #[arg(long, value_name = "AGE|TIME", value_parser = When::parse)]
    until_time: Option<When>,
}

impl StartArgs {
    pub(super) fn start(&self, now: Timestamp) -> ReadStart {
        match (self.from, self.tail, self.since) {
            (Some(from), _, _) => ReadStart::Sequence(SequenceNumber(from)),
            (_, Some(tail), _) => ReadStart::TailOffset(tail),
            (_, _, Some(since)) => ReadStart::Timestamp(since.time(now)),
            // As far before the tail as there are records.
            (None, None, None) => ReadStart::TailOffset(u64::MAX),
        }
    }
}

impl EndArgs {
    pub(super) fn limits(&self, now: Timestamp) -> ReadLimits {
        ReadLimits {
            count: self.count,
            bytes: self.bytes,
            until_sequence: self.until.map(SequenceNumber),
            until_timestamp: self.until_time.map(|until| until.time(now)),
        }
    }
}

#[cfg(test)]
#[path = "range_tests.rs"]
mod tests;
