//! Drives one connection of a client: a task that moves datagrams between its socket and the state
//! machine of QUIC.
//!
//! ```text
//!   a round:  deadlines -> link
//!             what the link has to send, a probe if the peer is silent -> datagrams
//!             datagrams -> link, who waits is woken
//!             what follows from them -> datagrams
//!             nothing more: sleep until a datagram, a deadline or a handle has something
//! ```
//! The socket and its memory belong to the task alone. System calls are made without the lock of
//! the link, and it is given back after each message, so that whoever reads can begin.
//!
//! # Invariants
//! - A round is bounded: one call to receive, and so many datagrams to send before and behind it.
//! - Datagrams leave in the order in which they were made.
//! - The task ends once the connection is over for both ends, or with its runtime; whoever waits
//!   for it then is told.
//!
//! # Not here
//! - The socket: `socket`. Who waits: `link`. When to probe: `probe`. Whose connection it is:
//!   [`super`].

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::BytesMut;
use quinn_proto::{
    ConnectionError, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, Transmit,
};
use quinn_udp::RecvMeta;

use super::{
    Place,
    link::{Link, State},
    probe::Probes,
    slots::Slots,
    socket::ClientSocket,
};
use crate::socket::datagrams;

/// Datagrams that are sent before others of the runtime have a turn.
const DATAGRAMS_A_ROUND: usize = 20;

/// The task of a connection.
pub(super) struct Driver {
    link: Arc<Link>,
    /// Tells datagrams of the connection from others, and is nobody else's.
    quic: Endpoint,
    handle: ConnectionHandle,
    socket: ClientSocket,
    slots: Slots,
    /// Where datagrams to be sent are made.
    scratch: Vec<u8>,
    /// Datagrams in `scratch` that have not left.
    held: Option<Transmit>,
    probes: Probes,
    alarm: Alarm,
    _place: Place,
}

impl Driver {
    pub(super) fn new(
        link: Arc<Link>,
        quic: Endpoint,
        handle: ConnectionHandle,
        socket: ClientSocket,
        place: Place,
    ) -> Driver {
        Driver {
            link,
            quic,
            handle,
            socket,
            slots: Slots::new(),
            scratch: Vec::new(),
            held: None,
            probes: Probes::default(),
            alarm: Alarm::default(),
            _place: place,
        }
    }

    /// Sends what the connection has to send, `late` if a deadline was over. Whether there may be
    /// more; if the kernel has no room it is waited for.
    fn transmit(&mut self, context: &mut Context<'_>, now: Instant, late: bool) -> bool {
        let mut sent = 0;
        while self.poll_held(context).is_ready() {
            if sent >= DATAGRAMS_A_ROUND {
                return true;
            }
            self.scratch.clear();
            let most = self.socket.segments_max();
            let next = self
                .link
                .with(|state| state.next(now, most, &mut self.scratch));
            let Some(transmit) = next else {
                return false;
            };
            sent += transmit
                .segment_size
                .map_or(1, |segment| transmit.size.div_ceil(segment));
            self.probes.note_sent(now, &transmit, &self.scratch, late);
            self.held = Some(transmit);
        }
        false
    }

    /// Sends what is held, as soon as the kernel has room.
    fn poll_held(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Some(transmit) = &self.held {
            ready!(self.socket.poll_room(context));
            let datagrams = datagrams(transmit, &self.scratch[..transmit.size]);
            if self.socket.send(&datagrams).is_ok() {
                self.held = None;
            }
        }
        Poll::Ready(())
    }

    /// Sends a probe if one is due. Without room it is lost: the next one follows.
    fn probe(&mut self, now: Instant) {
        if let Some((transmit, bytes)) = self.probes.next(now) {
            let _lost = self.socket.send(&datagrams(transmit, bytes));
        }
    }

    /// Receives a batch and takes it to the link. Whether there was one.
    fn receive(&mut self, context: &mut Context<'_>) -> bool {
        // The longer the slots are left alone, the more of their memory has come back.
        if self.socket.poll_readable(context).is_pending() {
            return false;
        }
        let (mut rooms, metas) = self.slots.rooms();
        let received = self.socket.poll_receive(context, &mut rooms, metas);
        let Poll::Ready(messages) = received else {
            return false;
        };
        let now = Instant::now();
        for at in 0..messages {
            let (meta, message) = self.slots.take(at);
            self.take(now, &meta, message);
        }
        true
    }

    /// Takes a message, of one datagram or several of the same size, to the link.
    fn take(&mut self, now: Instant, meta: &RecvMeta, mut message: BytesMut) {
        let ecn = meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
        let mut answer = Vec::new();
        let (quic, socket, probes) = (&mut self.quic, &mut self.socket, &mut self.probes);
        self.link.with(|state| {
            while !message.is_empty() {
                let datagram = match message.len() > meta.stride {
                    true => message.split_to(meta.stride),
                    false => std::mem::take(&mut message),
                };
                answer.clear();
                match quic.handle(now, meta.addr, meta.dst_ip, ecn, datagram, &mut answer) {
                    Some(DatagramEvent::ConnectionEvent(_, event)) => {
                        probes.stop();
                        state.quic.handle_event(event);
                        state.due();
                    }
                    // It belongs to no connection. Without room it is lost: the peer asks again.
                    Some(DatagramEvent::Response(transmit)) => {
                        let _lost = socket.send(&datagrams(&transmit, &answer[..transmit.size]));
                    }
                    // Nobody connects to a client.
                    Some(DatagramEvent::NewConnection(incoming)) => quic.ignore(incoming),
                    None => {}
                }
            }
            state.tell();
        });
    }

    /// The end of a round: whether the task is over, goes on, or sleeps.
    fn rest(&mut self, context: &mut Context<'_>, now: Instant, goes_on: bool) -> Poll<()> {
        let may_send = self.held.is_none();
        let (quic, handle, probes) = (&mut self.quic, self.handle, &mut self.probes);
        let (is_over, sleep) = self.link.with(|state| {
            let is_over = exchange(quic, handle, state);
            state.tell();
            if state.error.is_some() {
                probes.stop();
            }
            let sleep = match goes_on {
                true => None,
                false => state.fall_asleep(context, may_send),
            };
            (is_over, sleep)
        });
        if is_over {
            return Poll::Ready(());
        }
        let goes_on = match sleep {
            Some(sleep) => match earlier(sleep.deadline, self.probes.due()) {
                Some(deadline) => self.alarm.poll(context, now, deadline).is_ready(),
                None => false,
            },
            None => true,
        };
        if goes_on {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// Carries what the connection has for its endpoint, and what that says to it. Whether the
/// connection is over.
fn exchange(quic: &mut Endpoint, handle: ConnectionHandle, state: &mut State) -> bool {
    let mut is_over = false;
    while let Some(event) = state.quic.poll_endpoint_events() {
        is_over |= event.is_drained();
        if let Some(event) = quic.handle_event(handle, event) {
            state.quic.handle_event(event);
            state.due();
        }
    }
    is_over
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let now = Instant::now();
        let late = this.link.with(|state| state.wake_up(now));
        // What was written first: whoever wrote it waits for the answer.
        let mut goes_on = this.transmit(context, now, late);
        this.probe(now);
        if this.receive(context) {
            goes_on |= this.transmit(context, Instant::now(), false);
            goes_on |= this.socket.poll_readable(context).is_ready();
        }
        this.rest(context, now, goes_on)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // If the runtime ends before the connection, nobody drives it any more.
        self.link
            .with(|state| state.end(ConnectionError::LocallyClosed));
    }
}

/// Wakes the task for a deadline.
#[derive(Default)]
struct Alarm {
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
    armed: Option<Instant>,
}

impl Alarm {
    /// Waits for a deadline. One that moved later is noticed when the earlier one is over: QUIC
    /// moves it with almost every datagram.
    fn poll(&mut self, context: &mut Context<'_>, now: Instant, deadline: Instant) -> Poll<()> {
        if self.armed.is_some_and(|at| at > now && at <= deadline) {
            // It wakes this task, which is all that it is for.
            return Poll::Pending;
        }
        let at = tokio::time::Instant::from_std(deadline);
        let sleep = match &mut self.sleep {
            Some(sleep) => {
                sleep.as_mut().reset(at);
                sleep
            }
            none => none.insert(Box::pin(tokio::time::sleep_until(at))),
        };
        let fired = sleep.as_mut().poll(context);
        self.armed = fired.is_pending().then_some(deadline);
        fired
    }
}
