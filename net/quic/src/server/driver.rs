//! Drives the connections of a core: one task that moves datagrams between the socket and the state
//! machines of QUIC.
//!
//! ```text
//!   a round:  deadlines -> links
//!             the queue of links: what each has to send -> datagrams
//!             datagrams -> links, who waits is woken
//! ```
//! A round gives way to all other tasks of the core, so that what they answer goes out in the next
//! one, and with it the acknowledgements of what they answer to.
//!
//! # Invariants
//! - A round is bounded: one call to receive, and for each link that is due so many datagrams.
//! - Datagrams of a connection leave in the order in which they were made.
//! - The task ends once no endpoint and no connection is left.
//!
//! # Not here
//! - The socket: `udp`. Streams and who waits for them: `link`, `stream`.

use std::{
    collections::{BTreeSet, VecDeque},
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Instant,
};

use bytes::{Bytes, BytesMut};
use glommio::timer::Timer;
use quinn_proto::{ConnectionHandle, DatagramEvent, EcnCodepoint, VarInt};
use quinn_udp::RecvMeta;

use super::{
    Shared,
    link::{Link, join},
    udp::{CoreSocket, Full},
};
use crate::socket::datagrams;

/// Datagrams that one link sends in a round at most: others wait for theirs, and acknowledgements
/// that came meanwhile are looked at.
const DATAGRAMS_A_ROUND: usize = 20;

/// What the endpoint and its connections are made of.
pub(super) struct State {
    pub(super) quic: quinn_proto::Endpoint,
    socket: CoreSocket,
    /// By their handles.
    links: Vec<Option<Rc<Link>>>,
    open: usize,
    /// Attempts to connect that nobody has looked at.
    pub(super) incoming: VecDeque<quinn_proto::Incoming>,
    /// What connections are closed with, once the endpoint is.
    pub(super) closed_with: Option<(VarInt, Bytes)>,
    /// Who waits for an attempt to connect, or for the end of the last connection.
    waiting: Vec<Waker>,
    /// When links want a turn, not later than they do.
    deadlines: BTreeSet<(Instant, usize)>,
    alarm: Option<(Instant, Timer)>,
    /// Where datagrams to be sent are made.
    scratch: Vec<u8>,
    /// Datagrams that the kernel had no room for: they go first.
    held: Option<(quinn_proto::Transmit, Vec<u8>)>,
}

impl State {
    pub(super) fn new(quic: quinn_proto::Endpoint, socket: CoreSocket) -> State {
        State {
            quic,
            socket,
            links: Vec::new(),
            open: 0,
            incoming: VecDeque::new(),
            closed_with: None,
            waiting: Vec::new(),
            deadlines: BTreeSet::new(),
            alarm: None,
            scratch: Vec::new(),
            held: None,
        }
    }

    /// Connections, closing ones included.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// All connections.
    pub(super) fn links(&self) -> Vec<Rc<Link>> {
        self.links.iter().flatten().cloned().collect()
    }

    pub(super) fn wait(&mut self, context: &Context<'_>) {
        join(&mut self.waiting, context);
    }

    pub(super) fn wake_waiting(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }

    /// Takes a connection up.
    pub(super) fn add(
        &mut self,
        handle: ConnectionHandle,
        quic: quinn_proto::Connection,
    ) -> Rc<Link> {
        let link = Link::new(handle, quic);
        if self.links.len() <= handle.0 {
            self.links.resize(handle.0 + 1, None);
        }
        self.links[handle.0] = Some(Rc::clone(&link));
        self.open += 1;
        link
    }

    fn remove(&mut self, link: &Link) {
        self.links[link.handle.0] = None;
        self.open -= 1;
        if let Some(at) = link.watched.take() {
            self.deadlines.remove(&(at, link.handle.0));
        }
        if self.open == 0 {
            self.wake_waiting();
        }
    }

    /// Sends an answer that belongs to no connection. Without room it is lost: the peer asks again.
    pub(super) fn respond(&mut self, transmit: &quinn_proto::Transmit, bytes: &[u8]) {
        let _lost = self.socket.send(&datagrams(transmit, bytes));
    }

    /// Refuses an attempt to connect.
    pub(super) fn refuse(&mut self, incoming: quinn_proto::Incoming) {
        let mut bytes = Vec::new();
        let transmit = self.quic.refuse(incoming, &mut bytes);
        self.respond(&transmit, &bytes);
    }

    /// Takes what has come to the links.
    fn receive(&mut self, shared: &Shared, now: Instant, messages: usize) {
        let mut touched: Vec<Rc<Link>> = Vec::new();
        for at in 0..messages {
            let (meta, bytes) = self.socket.message(at);
            let meta = *meta;
            let mut rest = BytesMut::from(bytes);
            while !rest.is_empty() {
                let datagram = rest.split_to(meta.stride.min(rest.len()));
                if let Some(link) = self.take(shared, now, &meta, datagram)
                    && !touched.last().is_some_and(|last| Rc::ptr_eq(last, &link))
                {
                    touched.push(link);
                }
            }
        }
        for link in touched {
            link.state.borrow_mut().tell();
        }
    }

    /// Takes one datagram; gives the link that it was for.
    fn take(
        &mut self,
        shared: &Shared,
        now: Instant,
        meta: &RecvMeta,
        datagram: BytesMut,
    ) -> Option<Rc<Link>> {
        let mut answer = Vec::new();
        let ecn = meta
            .ecn
            .map(|ecn| ecn as u8)
            .and_then(EcnCodepoint::from_bits);
        let event = self
            .quic
            .handle(now, meta.addr, meta.dst_ip, ecn, datagram, &mut answer);
        match event? {
            DatagramEvent::ConnectionEvent(handle, event) => {
                let link = Rc::clone(self.links.get(handle.0)?.as_ref()?);
                link.state.borrow_mut().quic.handle_event(event);
                link.enqueue(shared);
                return Some(link);
            }
            DatagramEvent::NewConnection(incoming) if self.closed_with.is_some() => {
                self.refuse(incoming);
            }
            DatagramEvent::NewConnection(incoming) => {
                self.incoming.push_back(incoming);
                self.wake_waiting();
            }
            DatagramEvent::Response(transmit) => self.respond(&transmit, &answer),
        }
        None
    }

    /// Puts the links whose time has come in the queue.
    fn expire(&mut self, shared: &Shared, now: Instant) {
        while let Some(&(at, index)) = self.deadlines.first()
            && at <= now
        {
            self.deadlines.pop_first();
            if let Some(link) = &self.links[index] {
                link.watched.set(None);
                link.enqueue(shared);
            }
        }
    }

    /// Gives a link its turn. Whether it wants another one in the next round.
    fn serve(&mut self, link: &Rc<Link>, now: Instant) -> Result<bool, Full> {
        let mut state = link.state.borrow_mut();
        let mut wants_more = false;
        if state.quic.poll_timeout().is_some_and(|at| at <= now) {
            state.quic.handle_timeout(now);
            wants_more = true;
        }
        let sent = self.transmit(&mut state.quic, now);
        while let Some(event) = state.quic.poll_endpoint_events() {
            let is_last = event.is_drained();
            if let Some(event) = self.quic.handle_event(link.handle, event) {
                state.quic.handle_event(event);
                wants_more = true;
            }
            if is_last {
                self.remove(link);
            }
        }
        state.tell();
        if !state.quic.is_drained()
            && let Some(deadline) = state.quic.poll_timeout()
        {
            self.watch(link, deadline);
        }
        Ok(sent? || wants_more)
    }

    /// Sends what a connection has to send. Whether there may be more.
    fn transmit(&mut self, quic: &mut quinn_proto::Connection, now: Instant) -> Result<bool, Full> {
        let mut datagrams_sent = 0;
        while datagrams_sent < DATAGRAMS_A_ROUND {
            self.scratch.clear();
            let most = self.socket.segments_max();
            let Some(transmit) = quic.poll_transmit(now, most, &mut self.scratch) else {
                return Ok(false);
            };
            let bytes = &self.scratch[..transmit.size];
            datagrams_sent += transmit
                .segment_size
                .map_or(1, |segment| transmit.size.div_ceil(segment));
            if let Err(full) = self.socket.send(&datagrams(&transmit, bytes)) {
                self.held = Some((transmit, std::mem::take(&mut self.scratch)));
                return Err(full);
            }
        }
        Ok(true)
    }

    /// Sends what was held back, once the kernel may have room. Whether it has.
    fn has_room(&mut self, context: &mut Context<'_>) -> bool {
        while let Some((transmit, bytes)) = self.held.take() {
            let is_over = self.socket.poll_room(context).is_ready();
            let bytes_sent = &bytes[..transmit.size];
            if is_over && self.socket.send(&datagrams(&transmit, bytes_sent)).is_ok() {
                return true;
            }
            self.held = Some((transmit, bytes));
            if !is_over {
                return false;
            }
        }
        true
    }

    /// Watches a deadline. One that moves later is noticed when the earlier one is over: QUIC moves
    /// it with almost every datagram.
    fn watch(&mut self, link: &Link, deadline: Instant) {
        let index = link.handle.0;
        match link.watched.get() {
            Some(at) if at <= deadline => return,
            Some(at) => {
                self.deadlines.remove(&(at, index));
            }
            None => {}
        }
        link.watched.set(Some(deadline));
        self.deadlines.insert((deadline, index));
    }

    /// Waits for the first deadline. Ready if it is over.
    fn poll_alarm(&mut self, context: &mut Context<'_>, now: Instant) -> Poll<()> {
        let Some(&(first, _)) = self.deadlines.first() else {
            return Poll::Pending;
        };
        let is_armed = |(at, _): &(Instant, Timer)| *at > now && *at <= first;
        if self.alarm.as_ref().is_some_and(is_armed) {
            // It wakes this task, which is all that it is for.
            return Poll::Pending;
        }
        let mut timer = Timer::new(first.saturating_duration_since(now));
        let fired = Pin::new(&mut timer).poll(context);
        self.alarm = fired.is_pending().then_some((first, timer));
        fired.map(drop)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        for incoming in self.incoming.drain(..) {
            self.quic.ignore(incoming);
        }
    }
}

/// The task of an endpoint.
pub(super) struct Driver(pub(super) Rc<Shared>);

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let shared = &*self.0;
        let mut driver = shared.driver.borrow_mut();
        if !driver
            .as_ref()
            .is_some_and(|d| d.will_wake(context.waker()))
        {
            *driver = Some(context.waker().clone());
        }
        drop(driver);
        let state = &mut *shared.state.borrow_mut();
        let now = Instant::now();
        state.expire(shared, now);
        // Answers first: whoever asked waits for them, and what has come can wait a little.
        let is_served = round(shared, state, context, now);
        let received = state.socket.poll_receive(context, now);
        if let Poll::Ready(messages) = received {
            state.receive(shared, now, messages);
        }
        let is_over = shared.endpoints.get() == 0 && state.open() == 0;
        if is_over {
            return Poll::Ready(());
        }
        let goes_on = received.is_ready()
            || (is_served && !shared.queue.borrow().is_empty())
            || state.poll_alarm(context, now).is_ready();
        if goes_on {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

/// Gives each link in the queue its turn. Not if the kernel has no room: then it is waited for.
fn round(shared: &Shared, state: &mut State, context: &mut Context<'_>, now: Instant) -> bool {
    if !state.has_room(context) {
        return false;
    }
    let links = shared.queue.borrow().len();
    for _ in 0..links {
        let link = shared.queue.borrow_mut().pop_front();
        let link = link.expect("as many links as before");
        link.dequeued();
        match state.serve(&link, now) {
            Ok(false) => {}
            Ok(true) => link.enqueue(shared),
            Err(Full) => {
                link.enqueue(shared);
                return state.has_room(context);
            }
        }
    }
    true
}
