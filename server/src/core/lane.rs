//! One lane of a connection: moves its bytes between QUIC and its state machine.
//!
//! ```text
//!   read side:  chunks -> Lane -> inputs -> shard        write side:  Lane output -> chunks
//! ```
//! Both sides are one task. The lane ends when all is said, when the peer breaks the protocol (that
//! lane alone is reset, or the connection if it speaks another version), or with its connection.
//!
//! # Invariants
//! - Nothing is read while the lane's output or the core's ingress is over its bound: flow control
//!   carries that to the client.
//! - A reader gets its next credit when its output has been written.

use super::signal::Signal;
use super::turn::Core;
use bytes::Bytes;
use nova_core::{ReaderKey, SessionKey};
use nova_model::limits::READER_CREDIT_BYTES;
use nova_proto::server::{Input, Lane};
use nova_proto::{Closes, ProtocolError};
use nova_quic::server::{Connection, RecvStream, SendStream};
use std::cell::{Cell, RefCell};
use std::future::pending;
use std::rc::Rc;

/// Chunks moved by one call.
const CHUNKS_MAX: usize = 64;

/// What the shard knows the lane as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nothing that lasts.
    None,
    /// An append session.
    Session,
    /// A reader, not open yet.
    OpeningReader,
    /// An open reader.
    Reader,
}

/// A lane and what its task waits for.
pub(crate) struct LaneCell {
    pub(crate) number: u64,
    pub(crate) lane: RefCell<Lane>,
    pub(crate) role: Cell<Role>,
    /// Bytes of a frame that has come in part, as the core counts them.
    pub(crate) arriving: Cell<usize>,
    /// Whether the shard owes the reader batches for a credit.
    pub(crate) has_credit: Cell<bool>,
    /// Set when there may be output.
    pub(crate) output: Signal,
    /// Set when input may be wanted again.
    input: Signal,
}

impl LaneCell {
    pub(crate) fn new(number: u64) -> LaneCell {
        LaneCell {
            number,
            lane: RefCell::new(Lane::new()),
            role: Cell::new(Role::None),
            arriving: Cell::new(0),
            has_credit: Cell::new(false),
            output: Signal::default(),
            input: Signal::default(),
        }
    }

    pub(crate) fn session(&self) -> SessionKey {
        SessionKey(self.number)
    }

    pub(crate) fn reader(&self) -> ReaderKey {
        ReaderKey(self.number)
    }
}

/// Runs a lane to its end.
pub(crate) async fn run(
    core: Rc<Core>,
    connection: Connection,
    mut send: SendStream,
    mut recv: RecvStream,
) {
    let cell = core.add_lane();
    let violation = {
        let read = async {
            match read_side(&core, &cell, &mut recv).await {
                Ok(ReadEnd::Finished) => pending().await,
                Ok(ReadEnd::Lost) => None,
                Err(violation) => Some(violation),
            }
        };
        let write = async {
            write_side(&core, &cell, &mut send).await;
            None
        };
        futures_lite::future::or(read, write).await
    };
    core.remove_lane(&cell);
    if let Some(violation) = violation {
        refuse(&connection, &mut send, &mut recv, &violation);
    }
}

/// The peer broke the protocol: its lane ends, or its connection.
fn refuse(
    connection: &Connection,
    send: &mut SendStream,
    recv: &mut RecvStream,
    violation: &ProtocolError,
) {
    let peer = connection.remote_address();
    tracing::warn!(%peer, %violation, "a peer broke the protocol");
    let code = violation.close_code();
    match violation.closes() {
        Closes::Connection => connection.close(code, &violation.to_string()),
        Closes::Lane => {
            // Either fails only if the stream is gone already.
            let _gone = send.reset(code);
            let _gone = recv.stop(code);
        }
    }
}

enum ReadEnd {
    /// The peer has said all.
    Finished,
    /// The stream or the connection is gone.
    Lost,
}

async fn read_side(
    core: &Rc<Core>,
    cell: &LaneCell,
    recv: &mut RecvStream,
) -> Result<ReadEnd, ProtocolError> {
    let mut chunks = vec![Bytes::new(); CHUNKS_MAX];
    loop {
        while !cell.lane.borrow().wants_input() {
            cell.input.wait().await;
        }
        if cell.role.get() != Role::Reader {
            core.ingress_room().await;
        }
        let count = match recv.read_chunks(&mut chunks).await {
            Ok(Some(count)) => count,
            Ok(None) => {
                cell.lane.borrow_mut().handle_end()?;
                feed(core, cell);
                return Ok(ReadEnd::Finished);
            }
            Err(_) => return Ok(ReadEnd::Lost),
        };
        for chunk in &mut chunks[..count] {
            cell.lane.borrow_mut().handle_bytes(std::mem::take(chunk))?;
            feed(core, cell);
        }
        let arriving = cell.lane.borrow().input_bytes();
        core.note_arriving(cell, arriving);
    }
}

/// Hands what the peer wants to the shard.
fn feed(core: &Rc<Core>, cell: &LaneCell) {
    loop {
        let input = cell.lane.borrow_mut().poll_input();
        let Some(input) = input else { break };
        core.take_input(cell, input);
    }
    let lane = cell.lane.borrow();
    if lane.output_bytes() > 0 || lane.is_finished() {
        cell.output.set();
    }
}

async fn write_side(core: &Rc<Core>, cell: &LaneCell, send: &mut SendStream) {
    let mut chunks: Vec<Bytes> = Vec::with_capacity(CHUNKS_MAX);
    loop {
        let is_finished = {
            let mut lane = cell.lane.borrow_mut();
            while chunks.len() < CHUNKS_MAX {
                let Some(chunk) = lane.poll_output() else {
                    break;
                };
                chunks.push(chunk);
            }
            lane.is_finished()
        };
        if !chunks.is_empty() {
            if send.write_chunks(&mut chunks).await.is_err() {
                return;
            }
            chunks.clear();
            cell.input.set();
        } else if is_finished {
            // It fails only if the peer wants nothing more.
            let _gone = send.finish();
            if core.is_stopping() {
                // Soon the connection is closed, and what the peer has not got by then is lost.
                let _gone = send.stopped().await;
            }
            return;
        } else {
            cell.output.wait().await;
        }
        core.give_credit(cell);
    }
}

impl LaneCell {
    /// Whether the peer has not been told all that it will be.
    pub(crate) fn owes_words(&self) -> bool {
        let lane = self.lane.borrow();
        self.role.get() != Role::None || lane.output_bytes() > 0 || lane.is_finished()
    }

    /// Whether a reader has room for what one credit brings.
    pub(crate) fn wants_credit(&self) -> bool {
        self.role.get() == Role::Reader
            && !self.has_credit.get()
            && self.lane.borrow().output_bytes() < READER_CREDIT_BYTES
    }
}

impl Core {
    /// One thing that a lane's peer wants.
    fn take_input(&self, cell: &LaneCell, input: Input) {
        let now = self.clock.now();
        let mut shard = self.shard.borrow_mut();
        match input {
            Input::OpenAppend(open) => {
                cell.role.set(Role::Session);
                shard.open_session(now, cell.session(), open, self.fresh_id());
            }
            Input::Append(append, batch) => {
                self.figures.note_batch(&batch);
                shard.append(now, cell.session(), append, batch);
            }
            Input::Resume => shard.resume_session(cell.session()),
            // The session closes with its lane, once its answers are written.
            Input::EndAppend | Input::EndRead => {}
            Input::Request(id, request) => {
                let caller = self.add_caller(cell.number, id);
                shard.request(now, caller, request, self.fresh_id());
            }
            Input::AppendOnce(id, append, batch) => {
                self.figures.note_batch(&batch);
                let caller = self.add_caller(cell.number, id);
                shard.append_once(now, caller, append, batch, self.fresh_id());
            }
            Input::OpenRead(open) => {
                cell.role.set(Role::OpeningReader);
                shard.open_reader(now, cell.reader(), open, self.fresh_id());
            }
        }
        self.wake.set();
    }

    fn give_credit(&self, cell: &LaneCell) {
        if cell.wants_credit() {
            cell.has_credit.set(true);
            self.shard.borrow_mut().credit_reader(cell.reader());
            self.wake.set();
        }
    }
}
