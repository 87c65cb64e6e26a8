//! What can go wrong on a connection, named after what the caller can do about it.
//!
//! The end of a connection is mapped here once, without a wildcard arm, so that a new kind in
//! quinn-proto is a compile error and not a silent "other". What streams say is mapped by each end.
//!
//! # Invariants
//! - No variant asks its reader to look into a string: reasons are for people's eyes only.
//!
//! # Not here
//! - Error codes of the protocol inside a connection: they travel as `code` and belong to
//!   `net/proto`.

use std::{io, net::SocketAddr, time::Duration};

use quinn_proto::{ConnectionError, TransportErrorCode};
use thiserror::Error;

/// Why a connection is not there any more, or never came to be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuicError {
    /// The server is at one of its limits. Try again later, or another core.
    #[error("the server refused the connection because it is at its limit; try again later")]
    Refused,
    /// Nothing was heard from the peer for the idle timeout. Connect again.
    #[error("the peer has not been heard of for the idle timeout")]
    TimedOut,
    /// The peer closed the connection on purpose. What to do depends on `code`.
    #[error("the peer closed the connection with code {code}: {reason}")]
    ClosedByPeer {
        /// The code the peer gave; its meaning belongs to the protocol above.
        code: u64,
        /// The peer's words, made printable.
        reason: String,
    },
    /// This end closed the connection. Nothing is wrong.
    #[error("the connection was closed by this end")]
    ClosedHere,
    /// The peer does not know the connection: it has restarted. Connect again at once.
    #[error("the peer has restarted and does not know the connection any more")]
    PeerRestarted,
    /// One end does not accept the other's certificate. Correct the configuration.
    #[error(transparent)]
    Certificate(#[from] CertificateProblem),
    /// The ends share no version of QUIC or of nova's protocol. Update the older one.
    #[error("the ends have no protocol version in common; update the older one")]
    Incompatible,
    /// An end broke the rules of QUIC: a defect, or an attack. Connect again, and report it.
    #[error("QUIC was violated, as seen by the {seen_by}: transport error {code:#x}")]
    Violation {
        /// Transport error code of RFC 9000, section 20.1.
        code: u64,
        /// Which end found fault with the other.
        seen_by: SeenBy,
    },
}

/// Which end noticed a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenBy {
    /// This process.
    ThisEnd,
    /// The process at the other end.
    Peer,
}

impl std::fmt::Display for SeenBy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            SeenBy::ThisEnd => "local end",
            SeenBy::Peer => "peer",
        })
    }
}

/// Why a certificate was not accepted. Both ends learn it, from the TLS alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CertificateProblem {
    /// The server's certificate is signed by another authority than the client trusts.
    #[error(
        "the server's certificate is not signed by the authority the client trusts; \
         give the client the ca.pem of this server"
    )]
    UnknownAuthority,
    /// The certificate is past its end, or one end's clock is wrong.
    #[error("the server's certificate has expired, or the clock of one end is wrong")]
    Expired,
    /// The certificate does not hold for the name the client asked for, or is damaged.
    #[error(
        "the server's certificate does not hold for the name the client connects to; \
         add the name to the server's configured names"
    )]
    Unfit,
    /// Any other TLS alert during the handshake (RFC 8446, section 6).
    #[error("the TLS handshake failed with alert {alert}")]
    Handshake {
        /// Number of the alert.
        alert: u8,
    },
}

/// TLS alerts of RFC 8446, section 6, that tell certificate problems apart.
mod alert {
    pub(super) const BAD_CERTIFICATE: u8 = 42;
    pub(super) const CERTIFICATE_EXPIRED: u8 = 45;
    pub(super) const UNKNOWN_CA: u8 = 48;
    /// A signature does not fit: a certificate that only looks as if signed by the authority.
    pub(super) const DECRYPT_ERROR: u8 = 51;
    pub(super) const NO_APPLICATION_PROTOCOL: u8 = 120;
}

/// Transport error codes from here to `+ 0xff` carry a TLS alert (RFC 9001, section 4.8).
const CODE_CRYPTO_FIRST: u64 = 0x100;
const CODE_CRYPTO_LAST: u64 = 0x1ff;

impl QuicError {
    fn from_transport(code: TransportErrorCode, seen_by: SeenBy) -> Self {
        let number = u64::from(code);
        if code == TransportErrorCode::CONNECTION_REFUSED {
            return QuicError::Refused;
        }
        if !(CODE_CRYPTO_FIRST..=CODE_CRYPTO_LAST).contains(&number) {
            return QuicError::Violation {
                code: number,
                seen_by,
            };
        }
        let number = (number - CODE_CRYPTO_FIRST) as u8;
        match number {
            alert::NO_APPLICATION_PROTOCOL => QuicError::Incompatible,
            alert::UNKNOWN_CA | alert::DECRYPT_ERROR => CertificateProblem::UnknownAuthority.into(),
            alert::CERTIFICATE_EXPIRED => CertificateProblem::Expired.into(),
            alert::BAD_CERTIFICATE => CertificateProblem::Unfit.into(),
            other => CertificateProblem::Handshake { alert: other }.into(),
        }
    }
}

impl From<ConnectionError> for QuicError {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::VersionMismatch => QuicError::Incompatible,
            ConnectionError::TransportError(error) => {
                QuicError::from_transport(error.code, SeenBy::ThisEnd)
            }
            ConnectionError::ConnectionClosed(frame) => {
                QuicError::from_transport(frame.error_code, SeenBy::Peer)
            }
            ConnectionError::ApplicationClosed(frame) => QuicError::ClosedByPeer {
                code: frame.error_code.into_inner(),
                reason: printable(&frame.reason),
            },
            ConnectionError::Reset => QuicError::PeerRestarted,
            ConnectionError::TimedOut => QuicError::TimedOut,
            ConnectionError::LocallyClosed => QuicError::ClosedHere,
            // The server's endpoint has no free connection id: the same as any other limit.
            ConnectionError::CidsExhausted => QuicError::Refused,
        }
    }
}

/// Longest part of a peer's reason that is kept, in bytes: it lands in logs.
const REASON_BYTES_MAX: usize = 256;

fn printable(reason: &[u8]) -> String {
    let kept = &reason[..reason.len().min(REASON_BYTES_MAX)];
    let text = String::from_utf8_lossy(kept);
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Why a write did not happen.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The peer wants no more of this stream. The connection is fine.
    #[error("the peer stopped the stream with code {code}")]
    Stopped {
        /// The code the peer gave.
        code: u64,
    },
    /// This end has finished or reset the stream before.
    #[error("the stream was finished or reset by this end before")]
    Finished,
    /// The connection is gone, and its streams with it.
    #[error("the connection of the stream is lost: {0}")]
    Lost(#[from] QuicError),
}

/// Why a read did not happen.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The peer gave the stream up. The connection is fine.
    #[error("the peer reset the stream with code {code}")]
    Reset {
        /// The code the peer gave.
        code: u64,
    },
    /// This end has stopped the stream, or read it to its end, before.
    #[error("the stream was stopped by this end, or read to its end, before")]
    Stopped,
    /// The connection is gone, and its streams with it.
    #[error("the connection of the stream is lost: {0}")]
    Lost(#[from] QuicError),
}

/// Why a client has no connection.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// Nothing answered. Check the address and that the server runs; then try again.
    #[error("no answer from {address} within {waited:?}; does a server run there?")]
    NoAnswer {
        /// The address that was tried.
        address: SocketAddr,
        /// How long.
        waited: Duration,
    },
    /// The name is no host name and no IP address.
    #[error("'{name}' is neither a host name nor an IP address")]
    InvalidName {
        /// What was given.
        name: String,
    },
    /// The address can't be connected to: port 0, or IPv6 on a host without it.
    #[error("{address} is no address this host can connect to")]
    InvalidAddress {
        /// What was given.
        address: SocketAddr,
    },
    /// No socket could be opened: this process or host is at one of its limits.
    #[error("no UDP socket can be opened: {reason}")]
    NoSocket {
        /// The words of the operating system.
        reason: String,
    },
    /// This end's endpoint has been closed.
    #[error("the client's endpoint is closed")]
    EndpointClosed,
    /// The server answered, and the handshake failed.
    #[error(transparent)]
    Failed(#[from] QuicError),
}

/// Why an endpoint could not take its address.
#[derive(Debug, Error)]
pub enum BindError {
    /// Another process has the port, and kept it while the bind was retried.
    #[error("UDP address {address} is in use by another process; stop it or choose another port")]
    InUse {
        /// The address asked for.
        address: SocketAddr,
    },
    /// Any other refusal of the operating system.
    #[error("UDP address {address} can't be used: {source}")]
    Socket {
        /// The address asked for.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// The settings contradict each other.
    #[error(transparent)]
    Params(#[from] crate::params::ParamsError),
    /// The endpoint was made outside the executor that is to drive it.
    #[error("the endpoint for {address} was made outside an executor that can drive it")]
    NoExecutor {
        /// The address asked for.
        address: SocketAddr,
    },
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
