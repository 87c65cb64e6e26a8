//! The handles on a connection of a client.
//!
//! # Invariants
//! - A connection is open for as long as a handle on it or on one of its streams is held, unless
//!   either end closes it or it is lost.
//!
//! # Not here
//! - What moves its datagrams: `driver`.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use quinn_proto::VarInt;

use super::{
    link::Link,
    stream::{RecvStream, SendStream},
};
use crate::{error::QuicError, stats::ConnectionStats};

/// A connection that somebody holds. When nobody does any more it closes.
pub(super) struct Live {
    pub(super) link: Arc<Link>,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.link.close(VarInt::from_u32(0), Bytes::new());
    }
}

/// An open connection. Clones are handles on the same one; when the last is dropped, and its
/// streams are, the connection closes with code 0.
#[derive(Clone)]
pub struct Connection {
    live: Arc<Live>,
}

impl Connection {
    pub(super) fn new(live: Arc<Live>) -> Self {
        Self { live }
    }

    /// Opens a stream. Waits while as many are open as the server allows. The server learns of it
    /// with its first bytes.
    pub async fn open_stream(&self) -> Result<(SendStream, RecvStream), QuicError> {
        let id = self.live.link.open().await?;
        Ok((
            SendStream::new(Arc::clone(&self.live), id),
            RecvStream::new(Arc::clone(&self.live), id),
        ))
    }

    /// Where the server is.
    pub fn remote_address(&self) -> SocketAddr {
        self.live.link.with(|state| state.quic.remote_address())
    }

    /// Closes the connection with all its streams. Bytes not yet delivered may be lost.
    pub fn close(&self, code: u32, reason: &str) {
        let reason = Bytes::copy_from_slice(reason.as_bytes());
        self.live.link.close(VarInt::from_u32(code), reason);
    }

    /// Waits until the connection is gone, and says why.
    pub async fn closed(&self) -> QuicError {
        self.live.link.closed().await.into()
    }

    /// Why the connection is gone, if it is.
    pub fn close_reason(&self) -> Option<QuicError> {
        let error = self.live.link.with(|state| state.error.clone());
        error.map(QuicError::from)
    }

    /// What the connection has seen so far.
    pub fn stats(&self) -> ConnectionStats {
        self.live.link.with(|state| state.quic.stats()).into()
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("remote_address", &self.remote_address())
            .finish_non_exhaustive()
    }
}
