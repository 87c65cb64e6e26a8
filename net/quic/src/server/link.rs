//! One connection as the core sees it: the state machine of QUIC and who waits for it.
//!
//! ```text
//!   streams, connection ---> Link ---> queue of the driver ---> datagrams
//!            ^--- wakers ----- |  <--- datagrams, deadlines ----- driver
//! ```
//!
//! # Invariants
//! - A link with something to send, or that may have, is in the driver's queue.
//! - Whoever waits is woken when what it waits for may be there, and by the end of the connection.
//!
//! # Not here
//! - Sockets and timers: `driver`.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Instant,
};

use bytes::Bytes;
use quinn_proto::{ConnectionError, ConnectionHandle, Dir, Event, StreamEvent, StreamId, VarInt};
use rustc_hash::FxBuildHasher;

use super::Shared;

/// A connection.
pub(super) struct Link {
    pub(super) handle: ConnectionHandle,
    pub(super) state: RefCell<LinkState>,
    /// Whether it is in the driver's queue.
    is_queued: Cell<bool>,
    /// The deadline that the driver watches for it, not later than its own.
    pub(super) watched: Cell<Option<Instant>>,
}

/// What the streams and the driver share.
pub(super) struct LinkState {
    pub(super) quic: quinn_proto::Connection,
    is_connected: bool,
    /// Why it has ended.
    pub(super) error: Option<ConnectionError>,
    pub(super) readers: Wakers,
    pub(super) writers: Wakers,
    /// Who wants to know the end of a sending half.
    enders: HashMap<StreamId, Vec<Waker>, FxBuildHasher>,
    /// Who waits for the handshake, a stream, or the end of the connection.
    others: Vec<Waker>,
}

/// Who waits for a stream; one for each.
pub(super) type Wakers = HashMap<StreamId, Waker, FxBuildHasher>;

impl Link {
    pub(super) fn new(handle: ConnectionHandle, quic: quinn_proto::Connection) -> Rc<Link> {
        Rc::new(Link {
            handle,
            state: RefCell::new(LinkState {
                quic,
                is_connected: false,
                error: None,
                readers: Wakers::default(),
                writers: Wakers::default(),
                enders: HashMap::default(),
                others: Vec::new(),
            }),
            is_queued: Cell::new(false),
            watched: Cell::new(None),
        })
    }

    /// There is, or may be, something to send.
    pub(super) fn is_due(self: &Rc<Link>, shared: &Shared) {
        self.enqueue(shared);
        shared.wake_driver();
    }

    /// The same within a round of the driver, which looks at the queue by itself.
    pub(super) fn enqueue(self: &Rc<Link>, shared: &Shared) {
        if !self.is_queued.replace(true) {
            shared.queue.borrow_mut().push_back(Rc::clone(self));
        }
    }

    /// It has left the queue.
    pub(super) fn dequeued(&self) {
        self.is_queued.set(false);
    }

    /// Closes the connection on purpose, if it is open.
    pub(super) fn close(self: &Rc<Link>, shared: &Shared, code: VarInt, reason: Bytes) {
        let mut state = self.state.borrow_mut();
        if state.error.is_some() {
            return;
        }
        state.quic.close(Instant::now(), code, reason);
        state.end(ConnectionError::LocallyClosed);
        drop(state);
        self.is_due(shared);
    }

    /// Waits for the handshake. One that is through counts although the connection may have ended
    /// since, which is told to whoever uses it.
    pub(super) fn poll_connected(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), ConnectionError>> {
        let mut state = self.state.borrow_mut();
        match &state.error {
            _ if state.is_connected => Poll::Ready(Ok(())),
            Some(error) => Poll::Ready(Err(error.clone())),
            None => state.wait(context),
        }
    }

    /// Waits for a stream that the peer opens.
    pub(super) fn poll_accept(
        self: &Rc<Link>,
        shared: &Shared,
        context: &mut Context<'_>,
    ) -> Poll<Result<StreamId, ConnectionError>> {
        let mut state = self.state.borrow_mut();
        if let Some(id) = state.quic.streams().accept(Dir::Bi) {
            drop(state);
            // The peer may be due to hear that it may open another.
            self.is_due(shared);
            return Poll::Ready(Ok(id));
        }
        match &state.error {
            Some(error) => Poll::Ready(Err(error.clone())),
            None => state.wait(context),
        }
    }

    /// Waits for the end of the connection.
    pub(super) fn poll_closed(&self, context: &mut Context<'_>) -> Poll<ConnectionError> {
        let mut state = self.state.borrow_mut();
        match &state.error {
            Some(error) => Poll::Ready(error.clone()),
            None => state.wait(context),
        }
    }
}

impl LinkState {
    fn wait<T>(&mut self, context: &Context<'_>) -> Poll<T> {
        join(&mut self.others, context);
        Poll::Pending
    }

    /// Waits for the end of a sending half.
    pub(super) fn wait_for_end<T>(&mut self, id: StreamId, context: &Context<'_>) -> Poll<T> {
        join(self.enders.entry(id).or_default(), context);
        Poll::Pending
    }

    /// Tells those that wait what has happened.
    pub(super) fn tell(&mut self) {
        while let Some(event) = self.quic.poll() {
            match event {
                Event::Stream(StreamEvent::Readable { id }) => wake(&mut self.readers, id),
                Event::Stream(StreamEvent::Writable { id }) => wake(&mut self.writers, id),
                Event::Stream(StreamEvent::Finished { id }) => self.wake_enders(id),
                Event::Stream(StreamEvent::Stopped { id, .. }) => {
                    self.wake_enders(id);
                    wake(&mut self.writers, id);
                }
                Event::Stream(StreamEvent::Opened { .. }) => self.wake_others(),
                Event::Connected => {
                    self.is_connected = true;
                    self.wake_others();
                }
                Event::ConnectionLost { reason } => self.end(reason),
                // Datagrams are off, and streams are opened by clients only.
                Event::HandshakeDataReady
                | Event::Stream(StreamEvent::Available { .. })
                | Event::DatagramReceived
                | Event::DatagramsUnblocked => {}
            }
        }
    }

    fn end(&mut self, error: ConnectionError) {
        self.error.get_or_insert(error);
        let streams = self.readers.drain().chain(self.writers.drain());
        streams.for_each(|(_, waker)| waker.wake());
        let enders = self.enders.drain();
        enders.for_each(|(_, wakers)| wakers.into_iter().for_each(Waker::wake));
        self.wake_others();
    }

    fn wake_enders(&mut self, id: StreamId) {
        let wakers = self.enders.remove(&id).unwrap_or_default();
        wakers.into_iter().for_each(Waker::wake);
    }

    fn wake_others(&mut self) {
        self.others.drain(..).for_each(Waker::wake);
    }
}

/// Adds a waiter, who may ask any number of times.
pub(super) fn join(waiting: &mut Vec<Waker>, context: &Context<'_>) {
    if !waiting.iter().any(|w| w.will_wake(context.waker())) {
        waiting.push(context.waker().clone());
    }
}

fn wake(wakers: &mut Wakers, id: StreamId) {
    if let Some(waker) = wakers.remove(&id) {
        waker.wake();
    }
}
