//! Attempts to connect, and connections, of a server's endpoint.
//!
//! # Invariants
//! - A handshake is counted from its admission until it has succeeded, failed, or was dropped.
//! - A connection in the register has the window of the current step.

use std::{
    net::SocketAddr,
    rc::{Rc, Weak},
};

use quinn::VarInt;

use super::{Shared, add};
use crate::{
    error::QuicError,
    stats::ConnectionStats,
    stream::{RecvStream, SendStream},
};

/// An attempt to connect that was let in. Dropped, it is refused.
pub struct Incoming {
    incoming: quinn::Incoming,
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
    pub(super) fn new(shared: Rc<Shared>, incoming: quinn::Incoming) -> Self {
        add(&shared.counts.handshakes_open, 1);
        Self {
            incoming,
            handshake: Handshake {
                shared,
                done: false,
            },
        }
    }

    /// Where the attempt comes from. Not proven until the handshake is through.
    pub fn remote_address(&self) -> SocketAddr {
        self.incoming.remote_address()
    }

    /// Completes the handshake. It takes a round trip: run it in a task of its own.
    pub async fn handshake(self) -> Result<Connection, QuicError> {
        let Self {
            incoming,
            mut handshake,
        } = self;
        let connection = incoming.accept()?.await?;
        handshake.done = true;
        Ok(Connection {
            live: Live::register(&handshake.shared, connection),
        })
    }

    /// Tells the peer to go elsewhere, or to come later.
    pub fn refuse(self) {
        add(&self.handshake.shared.counts.refused, 1);
        self.incoming.refuse();
    }
}

/// A connection in the endpoint's register of windows.
pub(crate) struct Live {
    connection: quinn::Connection,
    number: u64,
    shared: Rc<Shared>,
}

impl Live {
    fn register(shared: &Rc<Shared>, connection: quinn::Connection) -> Rc<Self> {
        let number = shared.counts.next_connection.get();
        add(&shared.counts.next_connection, 1);
        let live = Rc::new(Self {
            connection,
            number,
            shared: Rc::clone(shared),
        });
        shared
            .live
            .borrow_mut()
            .insert(number, Rc::downgrade(&live));
        shared.share_windows();
        live.set_window(shared.window());
        live
    }

    pub(super) fn set_window(&self, bytes: u32) {
        self.connection.set_receive_window(VarInt::from_u32(bytes));
        self.connection.set_send_window(u64::from(bytes));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let removed: Option<Weak<Self>> = self.shared.live.borrow_mut().remove(&self.number);
        debug_assert!(removed.is_some(), "a live connection is in the register");
        self.shared.share_windows();
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
        match self.live.connection.accept_bi().await {
            Ok((send, receive)) => Some(Ok((SendStream::new(send), RecvStream::new(receive)))),
            Err(error) => match QuicError::from(error) {
                QuicError::ClosedByPeer { .. } | QuicError::ClosedHere => None,
                lost => Some(Err(lost)),
            },
        }
    }

    /// Where the peer is.
    pub fn remote_address(&self) -> SocketAddr {
        self.live.connection.remote_address()
    }

    /// A number that no other connection of this endpoint has had.
    pub fn number(&self) -> u64 {
        self.live.number
    }

    /// Closes the connection with all its streams. Bytes not yet delivered may be lost.
    pub fn close(&self, code: u32, reason: &str) {
        self.live
            .connection
            .close(VarInt::from_u32(code), reason.as_bytes());
    }

    /// Waits until the connection is gone, and says why.
    pub async fn closed(&self) -> QuicError {
        self.live.connection.closed().await.into()
    }

    /// Why the connection is gone, if it is.
    pub fn close_reason(&self) -> Option<QuicError> {
        self.live.connection.close_reason().map(QuicError::from)
    }

    /// What the connection has seen so far.
    pub fn stats(&self) -> ConnectionStats {
        self.live.connection.stats().into()
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
