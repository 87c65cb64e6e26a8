//! Results of `nova admin` as people read them.
//!
//! ```text
//!   star 0000...2a, start 3
//!
//!   core  address         leads  loaded  moving  sessions  readers  ...  state
//!   0     localhost:7400     12      14       0         3        1  ...  ok
//!   1     localhost:7401      0       0       0         0        0  ...  drained
//! ```

use crate::config::units::{show_bytes, show_count};
use nova_client::{CoreId, CoreSet, CoreStatus, Placement, Rebalanced, StarStatus};
use std::fmt::Write;

/// Columns of text; the others are numbers and stand to the right.
const TEXT_COLUMNS: [usize; 3] = [0, 1, COLUMNS - 1];
const COLUMNS: usize = 13;
const HEADS: [&str; COLUMNS] = [
    "core",
    "address",
    "leads",
    "loaded",
    "moving",
    "sessions",
    "readers",
    "records/s",
    "appended/s",
    "read/s",
    "log",
    "pending",
    "state",
];

/// Every core, a line each.
pub(super) fn status(status: &StarStatus) -> String {
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(status.cores.iter().map(row));
    format!(
        "star {}, start {}\n\n{}",
        status.star,
        status.incarnation.0,
        table(&rows)
    )
}

fn row(core: &CoreStatus) -> [String; COLUMNS] {
    [
        core.core.0.to_string(),
        core.address.clone(),
        show_count(core.streams_led),
        show_count(core.streams_loaded),
        show_count(core.streams_moving),
        show_count(core.sessions),
        show_count(core.readers),
        show_count(core.appended_records_per_s),
        show_bytes(core.appended_bytes_per_s),
        show_bytes(core.read_bytes_per_s),
        show_bytes(core.log_bytes),
        show_bytes(core.pending_bytes),
        state(core).to_owned(),
    ]
}

fn state(core: &CoreStatus) -> &'static str {
    match (core.is_drained, core.is_disk_full) {
        (false, false) => "ok",
        (true, false) => "drained",
        (false, true) => "disk full",
        (true, true) => "drained, disk full",
    }
}

fn table(rows: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
            let written = match TEXT_COLUMNS.contains(&at) {
                true => write!(line, "{cell:<width$}  "),
                false => write!(line, "{cell:>width$}  "),
            };
            written.expect("writing to memory does not fail");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A drain that is done.
pub(super) fn drained(set: CoreSet, done: &Placement) -> String {
    let moved = count(done.moved, "stream");
    match set {
        CoreSet::One(core) => format!(
            "{core} is drained: {moved} went to other cores\n\
             It leads nothing until: nova admin undrain {}, or the star's next start\n",
            core.0
        ),
        CoreSet::All => format!(
            "every core is drained: {moved} moved, and the star is closed\n\
             It refuses its streams until: nova admin undrain --all, or the star's next start\n"
        ),
    }
}

/// The end of a drain.
pub(super) fn undrained(set: CoreSet, done: &Placement) -> String {
    let is_one = matches!(set, CoreSet::One(_));
    let takes = if is_one { "takes" } else { "take" };
    let mut text = format!("{} {takes} streams again", cores(set));
    if done.moved > 0 {
        let came = count(done.moved, "stream");
        write!(text, "; {came} moved").expect("writing to memory does not fail");
    }
    text.push('\n');
    if !done.drained.is_empty() {
        let left: Vec<String> = done.drained.iter().map(CoreId::to_string).collect();
        writeln!(text, "Still drained: {}", left.join(", "))
            .expect("writing to memory does not fail");
    }
    text
}

/// A rebalance that is done.
pub(super) fn rebalanced(done: &Rebalanced) -> String {
    let mut text = match done.moves.len() {
        0 => "nothing to move: the load is spread as evenly as streams allow\n".to_owned(),
        moves => format!("{} moved\n", count(moves as u64, "stream")),
    };
    for one in &done.moves {
        writeln!(text, "  {} from {} to {}", one.name, one.from, one.to)
            .expect("writing to memory does not fail");
    }
    if done.has_more {
        text.push_str("There is more to do: nova admin rebalance\n");
    }
    text
}

/// Which cores, in words.
pub(super) fn cores(cores: CoreSet) -> String {
    match cores {
        CoreSet::One(core) => core.to_string(),
        CoreSet::All => "all cores".to_owned(),
    }
}

/// `1 stream`, `2 streams`.
pub(super) fn count(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", show_count(count))
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
