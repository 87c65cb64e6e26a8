//! Who works when, and what: rounds of turns, all columns in each.
//!
//! ```text
//!   round 0 (not counted):  A B C     round 1:  B C A     round 2:  C A B     ...
//! ```
//! A turn begins with what the reader reads at its end, so that what lies between is larger than
//! what the star keeps in memory. In the last round each system is asked for everything that it
//! has acked in it.
//!
//! # Invariants
//! - Of two systems that stay to the end, both have a value of each round.
//! - A system that fails, or does not end its turn in time, takes no further part; nova must.

use super::drive::{Job, RECORD_BYTES, System, Until};
use super::options::CompareOptions;
use super::report::{Column, Row, Skipped};
use crate::error::BenchError;
use crate::series::megabytes_per_second;
use std::time::Duration;

/// Producers of the columns with many.
const MANY: usize = 16;
/// Records that are sent together where batches are.
const BATCH: usize = 64;
/// Batches of a single pipelined producer that are unanswered.
const WINDOW: usize = 64;
/// Batches of one of many producers that are unanswered.
const WINDOW_OF_MANY: usize = 4;
/// How long producers append for a column.
const LASTS: Duration = Duration::from_secs(1);
/// The same in the quick form.
const LASTS_QUICK: Duration = Duration::from_millis(200);
/// Longest turn.
const TURN_MAX: Duration = Duration::from_secs(300);

/// One that takes turns.
pub struct Seat<'s> {
    pub system: Box<dyn System + 's>,
    pub row: Row,
    /// What makes it take part, if it could not.
    pub install: &'static str,
}

/// All rounds. The first seat is nova's; who failed is told apart from the rows of the others.
pub async fn take_turns(
    options: &CompareOptions,
    seats: Vec<Seat<'_>>,
) -> Result<(Vec<Row>, Vec<Skipped>), BenchError> {
    let count = seats.len();
    let mut seats: Vec<Option<Seat>> = seats.into_iter().map(Some).collect();
    let mut failed = Vec::new();
    for round in 0..=options.rounds() {
        for turn in 0..count {
            let at = turn_of(round, turn, count);
            let Some(seat) = &mut seats[at] else {
                continue;
            };
            eprintln!("nova bench: round {round}, {}", seat.row.system);
            match take_turn(options, seat, round).await {
                Ok(()) => {}
                Err(error) if at == 0 => return Err(error),
                Err(error) => {
                    failed.push(Skipped {
                        system: seat.row.system,
                        why: format!("it failed in round {round}: {error}"),
                        install: seat.install,
                    });
                    seats[at] = None;
                }
            }
        }
    }
    let rows = seats.into_iter().flatten().map(|seat| seat.row);
    Ok((rows.collect(), failed))
}

/// Whose turn it is: who goes first changes from round to round.
fn turn_of(round: usize, turn: usize, count: usize) -> usize {
    (round + turn) % count
}

async fn take_turn(
    options: &CompareOptions,
    seat: &mut Seat<'_>,
    round: usize,
) -> Result<(), BenchError> {
    // What the one before left in the kernel's memory is not written at this one's cost.
    rustix::fs::sync();
    let system = seat.system.as_ref();
    let work = async {
        let (values, written) = columns(options, system, round).await?;
        if round == options.rounds() {
            for (stream, records) in &written {
                system.read(stream, *records).await?;
            }
        }
        Ok::<_, BenchError>(values)
    };
    let ended = tokio::time::timeout(TURN_MAX, work).await;
    let seconds = TURN_MAX.as_secs();
    let why = || format!("its turn took more than {seconds} s");
    let values = ended.map_err(|_| BenchError::system(seat.row.system, why()))??;
    // The first round is for caches, files and tables that are new.
    if round > 0 {
        let columns = seat.row.columns.iter_mut().zip(values);
        columns.for_each(|(series, value)| series.push(value));
    }
    Ok(())
}

/// All columns of one system, once; and the streams that it has now, with their records.
async fn columns(
    options: &CompareOptions,
    system: &dyn System,
    round: usize,
) -> Result<([f64; 5], Vec<(String, usize)>), BenchError> {
    let mut values = [0.0; 5];
    let mut written = Vec::new();
    let stream = |column| format!("s{round}c{}", column as usize);
    let kept = stream(Column::Read);
    system.make(&kept).await?;
    let read_later = system.append(&kept, job(options, Column::Read)).await?;
    for (column, value) in Column::ALL.into_iter().zip(&mut values) {
        let (records, time) = match column {
            Column::Read => {
                let records = read_later.records;
                (records, system.read(&kept, records).await?)
            }
            _ => {
                let name = stream(column);
                system.make(&name).await?;
                let appended = system.append(&name, job(options, column)).await?;
                written.push((name, appended.records));
                if column == Column::OnePerAck {
                    *value = appended.acks.quantile_us(0.5);
                    continue;
                }
                (appended.records, appended.time)
            }
        };
        *value = megabytes_per_second((records * RECORD_BYTES) as u64, time);
    }
    Ok((values, written))
}

/// What is appended for a column; for the reader, before all of them.
fn job(options: &CompareOptions, column: Column) -> Job {
    let until = Until::Elapsed(options.pick(LASTS, LASTS_QUICK));
    match column {
        Column::OnePerAck => Job {
            producers: 1,
            batch: 1,
            window: 1,
            until,
        },
        Column::Pipelined => Job {
            producers: 1,
            batch: BATCH,
            window: WINDOW,
            until,
        },
        Column::ManyOnePerAck => Job {
            producers: MANY,
            batch: 1,
            window: 1,
            until,
        },
        Column::ManyBatched => Job {
            producers: MANY,
            batch: BATCH,
            window: WINDOW_OF_MANY,
            until,
        },
        Column::Read => Job {
            producers: 1,
            batch: BATCH,
            window: WINDOW,
            until: Until::Batches(options.pick(1_024, 128)),
        },
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
