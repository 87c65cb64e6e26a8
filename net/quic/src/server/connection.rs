//! Attempts to connect, and connections, of a server's endpoint.
//!
//! # Invariants
//! - A handshake is counted from its admission until it has succeeded, failed, or was dropped.
//! - A connection in the register has the window of the current step.

use std::{
    cell::Cell,
    future::poll_fn,
    net::SocketAddr,
    rc::{Rc, Weak},
    time::Instant,
};

use bytes::Bytes;
use quinn_proto::VarInt;

use super::{
    Shared, add,
    link::Link,
    stream::{RecvStream, SendStream},
};
use crate::{error::QuicError, stats::ConnectionStats};

/// An attempt to connect that was let in. Dropped, it is refused.
pub struct Incoming {
    incoming: Option<quinn_proto::Incoming>,
    handshake: Handshake,
}

/// Counts a handshake while it lasts.
struct Handshake {
    shared: Rc<Shared>,
    done: bool,
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let counts = &self.shared.counts;
        counts.handshakes_open.set(counts.handshakes_open.get() - 1);
        add(
            if self.done {
                &counts.handshakes_done
            } else {
                &counts.handshakes_failed
            },
            1,
        );
    }
}

impl Incoming {
    pub(super) fn new(shared: Rc<Shared>, incoming: quinn_proto::Incoming) -> Self {
        add(&shared.counts.handshakes_open, 1);
        Self {
            incoming: Some(incoming),
            handshake: Handshake {
                shared,
                done: false,
            },
        }
    }

    /// Where the attempt comes from. Not proven until the handshake is through.
    pub fn remote_address(&self) -> SocketAddr {
        let incoming = self.incoming.as_ref();
        incoming
            .expect("it is there until it is used")
            .remote_address()
    }

    /// Completes the handshake. It takes a round trip: run it in a task of its own.
    pub async fn handshake(mut self) -> Result<Connection, QuicError> {
        let incoming = self.incoming.take().expect("it is there until it is used");
        let live = Live::begin(&self.handshake.shared, incoming)?;
        poll_fn(|context| live.link.poll_connected(context)).await?;
        self.handshake.done = true;
        live.register();
        Ok(Connection { live })
    }

    /// Tells the peer to go elsewhere, or to come later.
    pub fn refuse(self) {
        add(&self.handshake.shared.counts.refused, 1);
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(incoming) = self.incoming.take() {
            self.handshake.shared.state.borrow_mut().refuse(incoming);
        }
    }
}

/// A connection that somebody holds, with its place in the endpoint's register of windows. When
/// nobody does any more it closes.
pub(crate) struct Live {
    pub(super) link: Rc<Link>,
    number: u64,
    is_registered: Cell<bool>,
    shared: Rc<Shared>,
}

impl Live {
    /// Begins a handshake.
    fn begin(shared: &Rc<Shared>, incoming: quinn_proto::Incoming) -> Result<Rc<Live>, QuicError> {
        let mut answer = Vec::new();
        let state = &mut *shared.state.borrow_mut();
        let accepted = state
            .quic
            .accept(incoming, Instant::now(), &mut answer, None);
        let (handle, quic) = accepted.map_err(|refused| {
            if let Some(transmit) = &refused.response {
                state.respond(transmit, &answer);
            }
            QuicError::from(refused.cause)
        })?;
        let link = state.add(handle, quic);
        let number = shared.counts.next_connection.get();
        add(&shared.counts.next_connection, 1);
        if let Some((code, reason)) = state.closed_with.clone() {
            link.close(shared, code, reason);
        }
        link.is_due(shared);
        Ok(Rc::new(Live {
            link,
            number,
            is_registered: Cell::new(false),
            shared: Rc::clone(shared),
        }))
    }

    fn register(self: &Rc<Self>) {
        self.is_registered.set(true);
        let weak = Rc::downgrade(self);
        self.shared.live.borrow_mut().insert(self.number, weak);
        self.shared.share_windows();
        self.set_window(self.shared.window());
    }

    pub(super) fn set_window(&self, bytes: u32) {
        let mut state = self.link.state.borrow_mut();
        state.quic.set_receive_window(VarInt::from_u32(bytes));
        state.quic.set_send_window(u64::from(bytes));
        drop(state);
        self.is_due();
    }

    /// There is, or may be, something to send.
    pub(super) fn is_due(&self) {
        self.link.is_due(&self.shared);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.is_registered.get() {
            let removed: Option<Weak<Self>> = self.shared.live.borrow_mut().remove(&self.number);
            debug_assert!(removed.is_some(), "a live connection is in the register");
            self.shared.share_windows();
        }
        self.link
            .close(&self.shared, VarInt::from_u32(0), Bytes::new());
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Live").field(&self.number).finish()
    }
}

/// An open connection. Clones are handles on the same one; when the last is dropped, and its
/// streams are, the connection closes with code 0.
#[derive(Clone)]
pub struct Connection {
    live: Rc<Live>,
}

impl Connection {
    /// The next stream the peer opens; `None` once the connection was closed on purpose, by either
    /// end; an error if it was lost.
    pub async fn accept_stream(&self) -> Option<Result<(SendStream, RecvStream), QuicError>> {
        let live = &self.live;
        match poll_fn(|context| live.link.poll_accept(&live.shared, context)).await {
            Ok(id) => Some(Ok((
                SendStream::new(Rc::clone(live), id),
                RecvStream::new(Rc::clone(live), id),
            ))),
            Err(error) => match QuicError::from(error) {
                QuicError::ClosedByPeer { .. } | QuicError::ClosedHere => None,
                lost => Some(Err(lost)),
            },
        }
    }

    /// Where the peer is.
    pub fn remote_address(&self) -> SocketAddr {
        self.live.link.state.borrow().quic.remote_address()
    }

    /// A number that no other connection of this endpoint has had.
    pub fn number(&self) -> u64 {
        self.live.number
    }

    /// Closes the connection with all its streams. Bytes not yet delivered may be lost.
    pub fn close(&self, code: u32, reason: &str) {
        let reason = Bytes::copy_from_slice(reason.as_bytes());
        let live = &self.live;
        live.link
            .close(&live.shared, VarInt::from_u32(code), reason);
    }

    /// Waits until the connection is gone, and says why.
    pub async fn closed(&self) -> QuicError {
        poll_fn(|context| self.live.link.poll_closed(context))
            .await
            .into()
    }

    /// Why the connection is gone, if it is.
    pub fn close_reason(&self) -> Option<QuicError> {
        let error = self.live.link.state.borrow().error.clone();
        error.map(QuicError::from)
    }

    /// What the connection has seen so far.
    pub fn stats(&self) -> ConnectionStats {
        self.live.link.state.borrow().quic.stats().into()
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("number", &self.live.number)
            .field("remote_address", &self.remote_address())
            .finish()
    }
}
