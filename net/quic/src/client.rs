//! The client's end: quinn on tokio.
//!
//! ```text
//! ClientEndpoint::new -> connect(address, name) -> Connection -> open_stream()
//! ```
//! One endpoint, one UDP socket, any number of connections: also those to the several cores of one
//! server.
//!
//! # Invariants
//! - The client keeps to the same bound of a send as the server: its socket does.
//! - Connecting ends after the set time, whether anything answers or not.
//!
//! # Not here
//! - Finding servers, connecting again: `net/client`.

mod socket;
mod stream;

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::Arc,
};

use quinn::{ClientConfig, EndpointConfig, TokioRuntime, VarInt};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use crate::{
    error::{BindError, ConnectError, QuicError},
    params::ClientParams,
    socket::raise_buffers,
    stats::ConnectionStats,
    tls::ClientTls,
};
use socket::ClientSocket;
pub use stream::{RecvStream, SendStream};

/// The client's socket and what it trusts. Clones are handles on the same one.
#[derive(Debug, Clone)]
pub struct ClientEndpoint {
    endpoint: quinn::Endpoint,
    params: Arc<ClientParams>,
}

impl ClientEndpoint {
    /// Opens a UDP socket for IPv6 and IPv4, or IPv4 alone on hosts without IPv6. To be called
    /// inside a tokio runtime with IO and time switched on.
    pub fn new(tls: &ClientTls, params: ClientParams) -> Result<Self, BindError> {
        params.check()?;
        let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(BindError::NoExecutor { address });
        }
        let socket = open().map_err(|source| BindError::Socket { address, source })?;
        raise_buffers(&socket, params.transport.socket_buffer_bytes);
        let endpoint = endpoint(socket, tls, &params)
            .map_err(|source| BindError::Socket { address, source })?;
        Ok(Self {
            endpoint,
            params: Arc::new(params),
        })
    }

    /// Connects to a server whose certificate must hold for `server_name`, a host name or the text
    /// of an IP address.
    pub async fn connect(
        &self,
        address: SocketAddr,
        server_name: &str,
    ) -> Result<Connection, ConnectError> {
        let connecting = self
            .endpoint
            .connect(address, server_name)
            .map_err(|e| refusal(e, address))?;
        let waited = self.params.connect_timeout;
        let connection = match tokio::time::timeout(waited, connecting).await {
            Ok(Ok(connection)) => connection,
            // The idle timeout struck first: nothing was heard either.
            Ok(Err(quinn::ConnectionError::TimedOut)) => {
                let waited = waited.min(self.params.transport.idle_timeout);
                return Err(ConnectError::NoAnswer { address, waited });
            }
            Ok(Err(error)) => return Err(QuicError::from(error).into()),
            Err(_) => return Err(ConnectError::NoAnswer { address, waited }),
        };
        Ok(Connection { connection })
    }

    /// Closes all connections with `code`; none can be opened any more.
    pub fn close(&self, code: u32, reason: &str) {
        self.endpoint
            .close(VarInt::from_u32(code), reason.as_bytes());
    }

    /// Waits until no connection is left, so that peers have been told of the close.
    pub async fn wait_idle(&self) {
        self.endpoint.wait_idle().await;
    }
}

fn refusal(error: quinn::ConnectError, address: SocketAddr) -> ConnectError {
    match error {
        quinn::ConnectError::EndpointStopping => ConnectError::EndpointClosed,
        quinn::ConnectError::CidsExhausted => ConnectError::Failed(QuicError::Refused),
        quinn::ConnectError::InvalidServerName(name) => ConnectError::InvalidName { name },
        quinn::ConnectError::InvalidRemoteAddress(_) => ConnectError::InvalidAddress { address },
        quinn::ConnectError::NoDefaultClientConfig => {
            unreachable!("an endpoint is made with its configuration")
        }
        quinn::ConnectError::UnsupportedVersion => ConnectError::Failed(QuicError::Incompatible),
    }
}

/// An open connection. Clones are handles on the same one; when the last is dropped, and its
/// streams are, the connection closes with code 0.
#[derive(Debug, Clone)]
pub struct Connection {
    connection: quinn::Connection,
}

impl Connection {
    /// Opens a stream. Waits while as many are open as the server allows. The server learns of it
    /// with its first bytes.
    pub async fn open_stream(&self) -> Result<(SendStream, RecvStream), QuicError> {
        let (send, receive) = self.connection.open_bi().await?;
        Ok((SendStream::new(send), RecvStream::new(receive)))
    }

    /// Where the server is.
    pub fn remote_address(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    /// Closes the connection with all its streams. Bytes not yet delivered may be lost.
    pub fn close(&self, code: u32, reason: &str) {
        self.connection
            .close(VarInt::from_u32(code), reason.as_bytes());
    }

    /// Waits until the connection is gone, and says why.
    pub async fn closed(&self) -> QuicError {
        self.connection.closed().await.into()
    }

    /// Why the connection is gone, if it is.
    pub fn close_reason(&self) -> Option<QuicError> {
        self.connection.close_reason().map(QuicError::from)
    }

    /// What the connection has seen so far.
    pub fn stats(&self) -> ConnectionStats {
        self.connection.stats().into()
    }
}

fn endpoint(
    socket: UdpSocket,
    tls: &ClientTls,
    params: &ClientParams,
) -> io::Result<quinn::Endpoint> {
    let mtu_max = params.transport.mtu_max;
    let mut config = EndpointConfig::default();
    config
        .max_udp_payload_size(mtu_max)
        .expect("checked: the datagram size is within QUIC's bounds");
    let socket = Arc::new(ClientSocket::new(socket, mtu_max)?);
    let runtime = Arc::new(TokioRuntime);
    let mut endpoint = quinn::Endpoint::new_with_abstract_socket(config, None, socket, runtime)?;
    let mut client = ClientConfig::new(tls.crypto());
    client.transport_config(Arc::new(params.transport_config()));
    endpoint.set_default_client_config(client);
    Ok(endpoint)
}

fn open() -> io::Result<UdpSocket> {
    let six = socket_with(
        AddressFamily::INET6,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    );
    match six {
        Ok(socket) => {
            sockopt::set_ipv6_v6only(&socket, false)?;
            bind(&socket, &SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))?;
            Ok(UdpSocket::from(socket))
        }
        Err(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
    }
}
