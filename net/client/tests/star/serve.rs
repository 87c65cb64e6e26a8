//! The lanes of the test star.

use super::{CORES, Shared};
use bytes::Bytes;
use nova_model::request::{
    AppendOpen, AppendOpened, OneShotAppend, ReadOpen, ReadOpened, ReadStart, Request,
    SessionAppend,
};
use nova_model::{
    Code, Conditions, EncodedBatch, Epoch, Facts, Refusal, SequenceNumber, StreamName, WriterStamp,
};
use nova_proto::RequestId;
use nova_proto::server::{Input, Lane};
use nova_quic::server::{Connection, Endpoint, RecvStream, SendStream};
use std::rc::Rc;

const WINDOW: u32 = 16;
/// Batches handed to a reader before its bytes are written.
const BATCHES_AT_ONCE: usize = 4;
/// Turns that the endpoint gets before a connection is broken.
const YIELDS: usize = 64;

pub async fn accept(shared: Rc<Shared>, core: usize, endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        let shared = Rc::clone(&shared);
        glommio::spawn_local(async move {
            if let Ok(connection) = incoming.handshake().await {
                shared.knobs.lock().expect("knobs").connections += 1;
                serve(shared, core, Rc::new(connection)).await;
            }
        })
        .detach();
    }
}

async fn serve(shared: Rc<Shared>, core: usize, connection: Rc<Connection>) {
    while let Some(Ok((send, recv))) = connection.accept_stream().await {
        let served = Served {
            shared: Rc::clone(&shared),
            core,
            connection: Rc::clone(&connection),
            lane: Lane::new(),
            role: Role::Control,
            is_doomed: false,
        };
        glommio::spawn_local(served.run(send, recv)).detach();
    }
}

enum Role {
    Control,
    Append {
        open: AppendOpen,
        is_stopped: bool,
    },
    Read {
        open: ReadOpen,
        next: SequenceNumber,
        is_caught_up: bool,
        given: u32,
    },
}

pub(super) struct Served {
    pub(super) shared: Rc<Shared>,
    pub(super) core: usize,
    connection: Rc<Connection>,
    lane: Lane,
    role: Role,
    /// The connection breaks once what is written has left.
    is_doomed: bool,
}

impl Served {
    async fn run(mut self, mut send: SendStream, mut recv: RecvStream) {
        let mut changed = self.shared.changed.subscribe();
        let mut chunks = [const { Bytes::new() }; 32];
        let mut is_ended = false;
        loop {
            if self.is_doomed {
                self.break_connection().await;
                return;
            }
            let has_more = self.feed_reader();
            let mut output: Vec<Bytes> = std::iter::from_fn(|| self.lane.poll_output()).collect();
            if send.write_chunks(&mut output).await.is_err() {
                return;
            }
            if self.lane.is_finished() {
                let _ = send.finish();
                let _ = recv.stop(0);
                return;
            }
            if has_more {
                glommio::yield_if_needed().await;
                continue;
            }
            tokio::select! {
                read = recv.read_chunks(&mut chunks), if !is_ended => match read {
                    Ok(Some(count)) => {
                        for chunk in &mut chunks[..count] {
                            self.lane.handle_bytes(std::mem::take(chunk)).expect("a good client");
                        }
                    }
                    Ok(None) => {
                        is_ended = true;
                        self.lane.handle_end().expect("a good client");
                    }
                    Err(_) => return,
                },
                _ = changed.changed() => {}
            }
            while let Some(input) = self.lane.poll_input() {
                if !self.take(input) {
                    self.break_connection().await;
                    return;
                }
            }
        }
    }

    /// Breaks the connection, after what was written before has had its chance to leave.
    async fn break_connection(&self) {
        for _ in 0..YIELDS {
            glommio::executor().yield_task_queue_now().await;
        }
        self.connection.close(1, "a fault of the test");
    }

    /// Acts on an input; `false` breaks the connection.
    fn take(&mut self, input: Input) -> bool {
        match input {
            Input::OpenAppend(open) => self.open_append(open),
            Input::Append(append, batch) => return self.append(append, batch),
            Input::Resume => {
                if let Role::Append { is_stopped, .. } = &mut self.role {
                    *is_stopped = false;
                }
            }
            Input::EndAppend | Input::EndRead => {}
            Input::Request(id, request) => return self.request(id, request),
            Input::AppendOnce(id, append, batch) => return self.append_once(id, append, batch),
            Input::OpenRead(open) => self.open_read(open),
        }
        true
    }

    fn request(&mut self, id: RequestId, request: Request) -> bool {
        let is_change = matches!(
            request,
            Request::Fence { .. }
                | Request::Trim { .. }
                | Request::ReconfigureStream { .. }
                | Request::ReconfigureBucket { .. }
                | Request::DeleteStream { .. }
                | Request::DeleteBucket { .. }
        );
        let mut knobs = self.shared.knobs.lock().expect("knobs");
        knobs.requests += 1;
        let is_silent = knobs.answers_no_request;
        let loss = is_change.then(|| knobs.lose.pop_front()).flatten();
        drop(knobs);
        if loss == Some(false) {
            self.interfere_after_loss();
            return false;
        }
        let answer = self.answer(request);
        let changes = u32::from(is_change && answer.is_ok());
        self.shared.knobs.lock().expect("knobs").changes += changes;
        if loss.is_some() {
            self.interfere_after_loss();
            return false;
        }
        let mut knobs = self.shared.knobs.lock().expect("knobs");
        if knobs.break_requests > 0 {
            knobs.break_requests -= 1;
            return false;
        }
        drop(knobs);
        if !is_silent {
            self.lane.answered(id, &answer);
        }
        true
    }

    /// Others come in between.
    fn interfere_after_loss(&self) {
        let mut knobs = self.shared.knobs.lock().expect("knobs");
        let token = knobs.fence_after_loss.take();
        let remakes = std::mem::take(&mut knobs.remakes_after_loss);
        let mut streams = self.shared.streams.borrow_mut();
        if remakes {
            for (name, old) in std::mem::take(&mut streams.streams) {
                streams.ensure(&name, old.settings);
            }
        }
        if let Some(token) = token {
            for stream in streams.streams.values_mut() {
                stream.fence = token.clone();
            }
        }
    }

    fn append_once(&mut self, id: RequestId, append: OneShotAppend, batch: EncodedBatch) -> bool {
        let (refused, breaks, is_silent) = {
            let mut knobs = self.shared.knobs.lock().expect("knobs");
            knobs.batches += 1;
            let batches = knobs.batches;
            let breaks = knobs.break_every;
            let breaks = breaks.is_some_and(|every| batches.is_multiple_of(every));
            (knobs.refuse.pop(), breaks, knobs.is_silent)
        };
        let redirected = self.redirect(&append.stream);
        let result = redirected.and(refused.map_or(Ok(()), Err)).and_then(|()| {
            let mut streams = self.shared.streams.borrow_mut();
            let stream = streams.get(&append.stream)?;
            stream.append(batch, &append.conditions, append.writer)
        });
        self.shared.changed.send_modify(|count| *count += 1);
        if !breaks && !is_silent {
            self.lane.appended_once(id, &result);
        }
        !breaks
    }

    pub(super) fn redirect(&self, _: &StreamName) -> Result<(), Refusal> {
        redirect(&self.shared, self.core)
    }

    fn open_append(&mut self, open: AppendOpen) {
        let opened = self.redirect(&open.stream).and_then(|()| {
            let mut streams = self.shared.streams.borrow_mut();
            let stream = streams.get(&open.stream)?;
            Ok(AppendOpened {
                stream_id: stream.id,
                epoch: Epoch(1),
                tail: stream.tail,
                window_batches: WINDOW,
                idle_timeout_us: 0,
            })
        });
        match opened {
            Ok(opened) => {
                self.role = Role::Append {
                    open,
                    is_stopped: false,
                };
                self.lane.opened(opened);
            }
            Err(refusal) => self.lane.open_refused(&refusal),
        }
    }

    fn append(&mut self, append: SessionAppend, batch: EncodedBatch) -> bool {
        let Role::Append { open, is_stopped } = &mut self.role else {
            panic!("an append outside of a session");
        };
        let mut knobs = self.shared.knobs.lock().expect("knobs");
        let refused = knobs.refuse.pop();
        if *is_stopped {
            let behind = Refusal::new(Code::BehindRejected, "behind a rejected one");
            self.lane.rejected(&behind);
            return true;
        }
        knobs.batches += 1;
        if knobs
            .move_every
            .is_some_and(|every| knobs.batches.is_multiple_of(every))
        {
            knobs.leader = Some((self.core + 1) % CORES);
            drop(knobs);
            let stream = open.stream.clone();
            let moved = self.redirect(&stream).expect_err("it is led elsewhere");
            self.lane.broken(&moved);
            return true;
        }
        let is_silent = knobs.is_silent;
        let breaks = knobs
            .break_every
            .is_some_and(|every| knobs.batches.is_multiple_of(every));
        drop(knobs);
        let result = refused.map_or(Ok(()), Err).and_then(|()| {
            let mut streams = self.shared.streams.borrow_mut();
            let stream = streams.get(&open.stream)?;
            let fence = open.fence.clone();
            let conditions = Conditions {
                fence,
                match_sequence: append.match_sequence,
            };
            let sequence = append.writer_sequence;
            let stamp = open.writer.zip(sequence);
            let stamp = stamp.map(|(writer, sequence)| WriterStamp { writer, sequence });
            stream.append(batch, &conditions, stamp)
        });
        self.shared.changed.send_modify(|count| *count += 1);
        if breaks {
            return false;
        }
        match result {
            _ if is_silent => {}
            Ok(ack) => self.lane.acked(&ack),
            Err(refusal) => {
                *is_stopped = true;
                self.lane.rejected(&refusal);
            }
        }
        true
    }

    fn open_read(&mut self, open: ReadOpen) {
        let opens_none = {
            let mut knobs = self.shared.knobs.lock().expect("knobs");
            knobs.reads += 1;
            knobs.opens_no_read
        };
        if opens_none {
            return;
        }
        let opened = self.redirect(&open.stream).and_then(|()| {
            let mut streams = self.shared.streams.borrow_mut();
            let stream = streams.get(&open.stream)?;
            if open.stream_id.is_some_and(|id| id != stream.id) {
                return Err(Refusal::new(Code::StreamNotFound, "it is another one now"));
            }
            let tail = stream.tail.sequence;
            let start = match open.start {
                ReadStart::Sequence(start) => start,
                ReadStart::TailOffset(offset) => SequenceNumber(tail.0.saturating_sub(offset)),
                ReadStart::Timestamp(time) => stream.first_at(time),
            };
            if start > tail && !open.clamp {
                let facts = Facts::Tail(stream.tail);
                return Err(Refusal::new(Code::PastTail, "past the tail").with(facts));
            }
            if start < stream.first {
                let facts = Facts::First(stream.first);
                return Err(Refusal::new(Code::Trimmed, "forgotten").with(facts));
            }
            let start = start.min(tail);
            Ok(ReadOpened {
                stream_id: stream.id,
                start,
                tail: stream.tail,
            })
        });
        match opened {
            Ok(opened) => {
                let next = opened.start;
                self.role = Role::Read {
                    open,
                    next,
                    is_caught_up: false,
                    given: 0,
                };
                self.lane.read_opened(opened);
            }
            Err(refusal) => self.lane.open_refused(&refusal),
        }
    }

    /// Gives a reader its next batches; whether there are more.
    fn feed_reader(&mut self) -> bool {
        let Role::Read {
            open,
            next,
            is_caught_up,
            given,
        } = &mut self.role
        else {
            return false;
        };
        if self.lane.is_finished() {
            return false;
        }
        if let Err(moved) = redirect(&self.shared, self.core) {
            self.lane.read_failed(&moved);
            return false;
        }
        let mut streams = self.shared.streams.borrow_mut();
        let stream = match streams.get(&open.stream) {
            Ok(stream) => stream,
            Err(gone) => {
                self.lane.read_failed(&gone);
                return false;
            }
        };
        let (every, corrupt_from) = {
            let knobs = self.shared.knobs.lock().expect("knobs");
            (knobs.break_reads_every, knobs.corrupt_from)
        };
        let from = stream.batches.partition_point(|batch| batch.end() <= *next);
        for stored in stream.batches[from..].iter().take(BATCHES_AT_ONCE) {
            if let Some(damaged) = corrupt_from.filter(|&at| at < stored.end().0) {
                let (from, to) = (SequenceNumber(damaged), stored.end());
                let facts = Facts::Range { from, to };
                let refusal = Refusal::new(Code::Corrupt, "damaged").with(facts);
                self.lane.read_failed(&refusal);
                return false;
            }
            self.lane.batch(stored);
            *next = stored.end();
            *given += 1;
            *is_caught_up = false;
            if every.is_some_and(|every| *given >= every) {
                self.is_doomed = true;
                return true;
            }
        }
        if *next < stream.tail.sequence {
            return true;
        }
        if !open.follow {
            self.lane.read_ended(*next, stream.tail);
        } else if !*is_caught_up {
            *is_caught_up = true;
            self.lane.caught_up(stream.tail);
        } else {
            // Woken for nothing: as good a moment as any.
            self.lane.heartbeat(stream.tail);
        }
        false
    }
}

fn redirect(shared: &Shared, core: usize) -> Result<(), Refusal> {
    let knobs = shared.knobs.lock().expect("knobs");
    let leader = knobs.leader.unwrap_or(0);
    if knobs.holder.is_none() && leader == core {
        return Ok(());
    }
    let address = knobs
        .holder
        .clone()
        .unwrap_or_else(|| shared.addresses[leader].clone());
    let facts = Facts::Holder {
        address: Some(address),
        epoch: Epoch(1),
    };
    Err(Refusal::new(Code::NotOwner, "led elsewhere").with(facts))
}
