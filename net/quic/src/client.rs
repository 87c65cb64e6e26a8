//! The client's end: quinn-proto driven by a tokio task for each connection.
//!
//! ```text
//! ClientEndpoint::new -> connect(address, name) -> Connection -> open_stream()
//!        |                  |
//!     register <-------- Driver: a socket, a task
//! ```
//! Each connection has a socket and a task of its own: those to the several cores of a server share
//! no lock, and a runtime of many threads drives them side by side.
//!
//! # Invariants
//! - The client keeps to the same bound of a send as the server: its socket does.
//! - Connecting ends after the set time, whether anything answers or not.
//! - A connection is in the endpoint's register until its task is over.
//!
//! # Not here
//! - Finding servers, connecting again: `net/client`.

mod connection;
mod driver;
mod link;
mod probe;
mod slots;
mod socket;
mod stream;

use std::{
    collections::BTreeMap,
    io,
    net::{Ipv6Addr, SocketAddr, SocketAddrV6},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use bytes::Bytes;
use quinn_proto::{ClientConfig, ConnectionError, EndpointConfig, VarInt};
use tokio::{runtime::Handle, sync::Notify};

pub use self::{
    connection::Connection,
    stream::{RecvStream, SendStream},
};
use self::{connection::Live, driver::Driver, link::Link, socket::ClientSocket};
use crate::{
    error::{BindError, ConnectError, QuicError},
    params::ClientParams,
    tls::ClientTls,
};

/// What a client trusts, and its open connections. Clones are handles on the same one.
#[derive(Clone)]
pub struct ClientEndpoint {
    shared: Arc<Shared>,
}

struct Shared {
    params: ClientParams,
    endpoint_config: Arc<EndpointConfig>,
    client_config: ClientConfig,
    /// Where connections are driven.
    runtime: Handle,
    register: Arc<Register>,
}

impl ClientEndpoint {
    /// To be called inside a tokio runtime with IO and time switched on, which drives all
    /// connections. Each opens a UDP socket for IPv6 and IPv4, or IPv4 alone on hosts without
    /// IPv6; whether that is possible is tried at once.
    pub fn new(tls: &ClientTls, params: ClientParams) -> Result<Self, BindError> {
        params.check()?;
        let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        let Ok(runtime) = Handle::try_current() else {
            return Err(BindError::NoExecutor { address });
        };
        ClientSocket::open(&params.transport)
            .map_err(|source| BindError::Socket { address, source })?;
        let mut endpoint_config = EndpointConfig::default();
        endpoint_config
            .max_udp_payload_size(params.transport.mtu_max)
            .expect("checked: the datagram size is within QUIC's bounds");
        let mut client_config = ClientConfig::new(tls.crypto());
        client_config.transport_config(Arc::new(params.transport_config()));
        Ok(Self {
            shared: Arc::new(Shared {
                params,
                endpoint_config: Arc::new(endpoint_config),
                client_config,
                runtime,
                register: Arc::default(),
            }),
        })
    }

    /// Connects to a server whose certificate must hold for `server_name`, a host name or the text
    /// of an IP address.
    pub async fn connect(
        &self,
        address: SocketAddr,
        server_name: &str,
    ) -> Result<Connection, ConnectError> {
        let live = self.shared.begin(address, server_name)?;
        let params = &self.shared.params;
        let waited = params.connect_timeout;
        match tokio::time::timeout(waited, live.link.connected()).await {
            Ok(Ok(())) => Ok(Connection::new(live)),
            // The idle timeout struck first: nothing was heard either.
            Ok(Err(ConnectionError::TimedOut)) => {
                let waited = waited.min(params.transport.idle_timeout);
                Err(ConnectError::NoAnswer { address, waited })
            }
            Ok(Err(error)) => Err(QuicError::from(error).into()),
            Err(_) => Err(ConnectError::NoAnswer { address, waited }),
        }
    }

    /// Closes all connections with `code`; none can be opened any more.
    pub fn close(&self, code: u32, reason: &str) {
        let reason = Bytes::copy_from_slice(reason.as_bytes());
        for link in self.shared.register.close() {
            link.close(VarInt::from_u32(code), reason.clone());
        }
    }

    /// Waits until no connection is left, so that peers have been told of the close.
    pub async fn wait_idle(&self) {
        self.shared.register.idle().await;
    }
}

impl std::fmt::Debug for ClientEndpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ClientEndpoint")
            .field("connections", &self.shared.register.lock().links.len())
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Begins a handshake, with a task that drives it.
    fn begin(&self, address: SocketAddr, server_name: &str) -> Result<Arc<Live>, ConnectError> {
        let no_socket = |error: io::Error| ConnectError::NoSocket {
            reason: error.to_string(),
        };
        let _inside = self.runtime.enter();
        let socket = ClientSocket::open(&self.params.transport).map_err(no_socket)?;
        let is_six = socket.local_address().map_err(no_socket)?.is_ipv6();
        let remote = match address {
            SocketAddr::V6(_) if !is_six => return Err(ConnectError::InvalidAddress { address }),
            SocketAddr::V4(four) if is_six => {
                SocketAddrV6::new(four.ip().to_ipv6_mapped(), four.port(), 0, 0).into()
            }
            fitting => fitting,
        };
        let mut quic = quinn_proto::Endpoint::new(
            Arc::clone(&self.endpoint_config),
            None,
            socket.keeps_datagrams_whole(),
            None,
        );
        let config = self.client_config.clone();
        let begun = quic.connect(Instant::now(), config, remote, server_name);
        let (handle, connection) = begun.map_err(|error| refusal(error, address))?;
        let link = Arc::new(Link::new(connection));
        let number = self.register.add(&link)?;
        let place = Place {
            register: Arc::clone(&self.register),
            number,
        };
        let driver = Driver::new(Arc::clone(&link), quic, handle, socket, place);
        self.runtime.spawn(driver);
        Ok(Arc::new(Live { link }))
    }
}

fn refusal(error: quinn_proto::ConnectError, address: SocketAddr) -> ConnectError {
    use quinn_proto::ConnectError as Error;
    match error {
        Error::EndpointStopping => ConnectError::EndpointClosed,
        Error::CidsExhausted => ConnectError::Failed(QuicError::Refused),
        Error::InvalidServerName(name) => ConnectError::InvalidName { name },
        Error::InvalidRemoteAddress(_) => ConnectError::InvalidAddress { address },
        Error::NoDefaultClientConfig => unreachable!("each connection brings its configuration"),
        Error::UnsupportedVersion => ConnectError::Failed(QuicError::Incompatible),
    }
}

/// The connections whose tasks are not over.
#[derive(Default)]
struct Register {
    open: Mutex<Open>,
    /// The last connection is gone.
    idle: Notify,
}

#[derive(Default)]
struct Open {
    links: BTreeMap<u64, Arc<Link>>,
    next_number: u64,
    is_closed: bool,
}

impl Register {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, link: &Arc<Link>) -> Result<u64, ConnectError> {
        let mut open = self.lock();
        if open.is_closed {
            return Err(ConnectError::EndpointClosed);
        }
        let number = open.next_number;
        open.next_number += 1;
        open.links.insert(number, Arc::clone(link));
        Ok(number)
    }

    fn remove(&self, number: u64) {
        let mut open = self.lock();
        let removed = open.links.remove(&number);
        let is_idle = open.links.is_empty();
        drop(open);
        drop(removed);
        if is_idle {
            self.idle.notify_waiters();
        }
    }

    /// Lets no more in, and gives those that are there.
    fn close(&self) -> Vec<Arc<Link>> {
        let mut open = self.lock();
        open.is_closed = true;
        open.links.values().cloned().collect()
    }

    async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.lock().links.is_empty() {
                return;
            }
            idle.await;
        }
    }
}

/// The place of a connection in the register. It is left by dropping this.
struct Place {
    register: Arc<Register>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.register.remove(self.number);
    }
}
