//! Instructions of pieces, and whether they are more than what is written down.
//!
//! ```text
//!   callgrind: piece run  5 times: a instructions     (b - a) / 10 is what one run takes: making
//!   callgrind: piece run 15 times: b instructions     the samples and the start cancel out
//! ```
//! Instructions are the same on a busy machine and on a quiet one, which seconds are not. They do
//! not see caches or waiting; a change that trades instructions for those is measured by Criterion
//! and its numbers written down anew.
//!
//! # Invariants
//! - A piece without a written number fails, and so does a number without a piece.

use crate::pieces::NAMES;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Runs of the shorter count.
pub const FEW: u64 = 5;
/// Runs of the longer one.
pub const MORE: u64 = 15;
/// Hundredths by which a piece may become dearer: what another release of the compiler, or a CPU
/// with another copy routine, makes of the same code.
pub const DEARER_PERCENT_MAX: f64 = 15.0;

/// Instructions by name.
pub type Counts = BTreeMap<String, u64>;

/// The count in what callgrind says on stderr.
pub fn parse_callgrind(said: &str) -> Option<u64> {
    let (_, behind) = said.rsplit_once("Collected :")?;
    behind.split_whitespace().next()?.parse().ok()
}

/// The written numbers: `count name` a line.
pub fn parse_written(text: &str) -> Option<Counts> {
    let line = |line: &str| {
        let (count, name) = line.trim().split_once(' ')?;
        Some((name.trim().to_owned(), count.parse().ok()?))
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(line).collect()
}

/// The numbers as they are written down, with how they came to be.
pub fn write_down(counts: &Counts, compiler: &str) -> String {
    let mut text = format!(
        "# Instructions of one run of each piece, by callgrind, release profile, {compiler}.\n\
         # Written by: cargo run --release -p nova-pieces -- write\n"
    );
    for (name, count) in counts {
        writeln!(text, "{count:>10} {name}").expect("a string takes it");
    }
    text
}

/// What is wrong: pieces that became dearer, or that are not written down.
pub fn judge(found: &Counts, written: &Counts) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in NAMES {
        match (found.get(name), written.get(name)) {
            (Some(&found), Some(&written)) => {
                let percent = dearer_percent(found, written);
                if percent > DEARER_PERCENT_MAX {
                    wrong.push(format!(
                        "{name}: {found} instructions, {percent:.0} % more than {written}"
                    ));
                }
            }
            (None, _) => wrong.push(format!("{name}: was not counted")),
            (_, None) => wrong.push(format!("{name}: has no written number")),
        }
    }
    for name in written
        .keys()
        .filter(|name| !NAMES.contains(&name.as_str()))
    {
        wrong.push(format!("{name}: a written number without a piece"));
    }
    wrong
}

/// By how many hundredths a count is above a written one.
pub fn dearer_percent(found: u64, written: u64) -> f64 {
    100.0 * (found as f64 / written.max(1) as f64 - 1.0)
}

#[cfg(test)]
#[path = "counted_tests.rs"]
mod tests;
