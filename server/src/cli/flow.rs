//! A stream of numbered lines through a producer, with what becomes of them.
//!
//! ```text
//!   append(line, record) --> Producer --ticket--> channel of flights --> collector: Tally
//!        waits for room to stage                  (bounded)              awaits each, in order
//! ```
//!
//! # Invariants
//! - Every ticket reaches the collector: its place in the channel is taken before the append.
//! - The collector sees the results in the order of the lines, so the lines before the first
//!   failure are durable.
//!
//! # Not here
//! - Where lines come from, and what is told about them: [`crate::cli::append`],
//!   [`crate::cli::trial`].

use crate::cli::latency::Latencies;
use nova_client::{Appended, ClientError, Producer, Record, SequenceNumber, Ticket};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

/// Appends under way whose latency is measured: about 13 MB of memory at most.
const FLIGHTS_MAX: usize = 131_072;
/// Flights that the collector takes at once.
const TAKEN_MAX: usize = 256;

/// The first append that failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FailedLine {
    /// Which line.
    pub(crate) number: u64,
    /// Why.
    pub(crate) error: ClientError,
}

/// What became of the lines.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    /// Records that are durable.
    pub(crate) records: u64,
    /// Bytes of their bodies.
    pub(crate) bytes: u64,
    /// The first of them.
    pub(crate) first: Option<SequenceNumber>,
    /// One past the last of them.
    pub(crate) end: Option<SequenceNumber>,
    /// From the append of a line until its ack.
    pub(crate) latencies: Latencies,
    /// The last line before the first failure, if all up to it are durable.
    pub(crate) durable_up_to: u64,
    /// The first append that failed.
    pub(crate) failed: Option<FailedLine>,
}

struct Flight {
    line: u64,
    bytes: usize,
    begun: Instant,
    ticket: Ticket,
}

/// The flow can take no more: an append failed. [`Flow::finish`] tells which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped;

/// Called with the number of durable records when it has grown.
pub(crate) type OnDurable = Box<dyn FnMut(u64) + Send>;

/// A producer and its collector.
pub(crate) struct Flow {
    producer: Producer,
    flights: mpsc::Sender<Flight>,
    collector: JoinHandle<Tally>,
    failing: Arc<Notify>,
    refused: Option<FailedLine>,
}

impl Flow {
    /// Begins with nothing under way.
    pub(crate) fn begin(producer: Producer, on_durable: OnDurable) -> Flow {
        let (flights, taken) = mpsc::channel(FLIGHTS_MAX);
        let failing = Arc::new(Notify::new());
        let collector = collect(taken, Arc::clone(&failing), on_durable);
        Flow {
            producer,
            flights,
            collector: tokio::spawn(collector),
            failing,
            refused: None,
        }
    }

    /// Appends a line, waiting only until there is room to stage it. Dropped on the way, the line
    /// is not appended.
    pub(crate) async fn append(&mut self, line: u64, record: Record) -> Result<(), Stopped> {
        let place = self.flights.reserve().await.map_err(|_| Stopped)?;
        let (begun, bytes) = (Instant::now(), record.body.len());
        match self.producer.append_async(record).await {
            Ok(ticket) => {
                place.send(Flight {
                    line,
                    bytes,
                    begun,
                    ticket,
                });
                Ok(())
            }
            Err(error) => {
                self.refused = Some(FailedLine {
                    number: line,
                    error,
                });
                Err(Stopped)
            }
        }
    }

    /// Resolves once an append has failed.
    pub(crate) fn failing(&self) -> Arc<Notify> {
        Arc::clone(&self.failing)
    }

    /// Waits until everything that was appended has its result, and ends the session.
    pub(crate) async fn finish(self) -> Tally {
        drop(self.flights);
        // Its error is that of the first ticket that failed.
        let _told_by_ticket = self.producer.close().await;
        let mut tally = self.collector.await.unwrap_or_else(|_| Tally::new());
        if tally.failed.is_none() {
            tally.failed = self.refused;
        }
        tally
    }
}

impl Tally {
    fn new() -> Tally {
        Tally {
            records: 0,
            bytes: 0,
            first: None,
            end: None,
            latencies: Latencies::new(),
            durable_up_to: 0,
            failed: None,
        }
    }

    fn note(&mut self, flight: &Flight, appended: &Appended) {
        self.records += 1;
        self.bytes += flight.bytes as u64;
        self.first.get_or_insert(appended.start.sequence);
        self.end = self.end.max(Some(appended.end.sequence));
        self.latencies.note(flight.begun.elapsed());
        if self.failed.is_none() {
            self.durable_up_to = flight.line;
        }
    }
}

async fn collect(
    mut flights: mpsc::Receiver<Flight>,
    failing: Arc<Notify>,
    mut on_durable: OnDurable,
) -> Tally {
    let mut tally = Tally::new();
    let mut taken = Vec::with_capacity(TAKEN_MAX);
    while flights.recv_many(&mut taken, TAKEN_MAX).await > 0 {
        for mut flight in taken.drain(..) {
            match (&mut flight.ticket).await {
                Ok(appended) => tally.note(&flight, &appended),
                Err(error) => {
                    let number = flight.line;
                    tally.failed.get_or_insert(FailedLine { number, error });
                    failing.notify_one();
                }
            }
        }
        on_durable(tally.records);
    }
    tally
}
