//! The server's end: one endpoint per core, driven by the core's own glommio executor.
//!
//! ```text
//! Endpoint::bind -> accept() -> Incoming -> handshake() -> Connection -> accept_stream()
//!                     | at a limit: refused           | window: its share of the core's budget
//!                     | many handshakes: prove your address first
//! ```
//!
//! # Invariants
//! - Nothing here is `Send`: an endpoint and all that comes from it stay on the core's thread.
//! - Connections, handshakes and their windows are bounded by [`ServerParams`].
//! - A peer's change of address is not followed: with one port per core nothing is gained by it.
//!
//! # Not here
//! - What streams carry: `net/proto`. When to accept and when to stop: the core loop.

mod bind;
mod cid;
mod connection;
mod driver;
mod link;
mod spin;
mod stream;
mod udp;
mod window;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    future::poll_fn,
    net::SocketAddr,
    rc::{Rc, Weak},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use glommio::{TaskQueueHandle, timer::Timer};
use quinn_proto::{EndpointConfig, ServerConfig, VarInt};

use self::{
    cid::CoreIds,
    connection::Live,
    driver::{Driver, State},
    link::Link,
    udp::CoreSocket,
};
pub use self::{
    connection::{Connection, Incoming},
    spin::Spin,
    stream::{RecvStream, SendStream},
};
use crate::{
    error::BindError, params::ServerParams, socket::raise_buffers, stats::EndpointStats,
    tls::ServerTls,
};

/// Least time between two answers to packets of unknown connections. quinn's 20 ms would tell
/// only 50 clients a second that the server has restarted.
const RESET_INTERVAL_MIN: Duration = Duration::from_millis(1);

/// The QUIC endpoint of one core. Clones are handles on the same one.
///
/// An executor that is to end before its process does needs [`close`](Self::close) and
/// [`wait_idle`](Self::wait_idle) first: tasks it leaves behind wait for each other, are never
/// dropped, and keep the port until the process ends.
pub struct Endpoint {
    shared: Rc<Shared>,
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        let endpoints = &self.shared.endpoints;
        endpoints.set(endpoints.get() + 1);
        Self {
            shared: Rc::clone(&self.shared),
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let endpoints = &self.shared.endpoints;
        endpoints.set(endpoints.get() - 1);
        self.shared.wake_driver();
    }
}

/// What an endpoint and its connections share.
struct Shared {
    state: RefCell<State>,
    /// Links that may have something to send.
    queue: RefCell<VecDeque<Rc<Link>>>,
    driver: RefCell<Option<Waker>>,
    /// Handles on the endpoint.
    endpoints: Cell<usize>,
    address: SocketAddr,
    params: ServerParams,
    connections_max: u64,
    config: RefCell<ServerConfig>,
    counts: Counts,
    live: RefCell<BTreeMap<u64, Weak<Live>>>,
    /// The step of the window budget that all live connections are on.
    step: Cell<u64>,
}

#[derive(Default)]
struct Counts {
    next_connection: Cell<u64>,
    handshakes_open: Cell<u64>,
    handshakes_done: Cell<u64>,
    handshakes_failed: Cell<u64>,
    refused: Cell<u64>,
    challenged: Cell<u64>,
}

fn add(count: &Cell<u64>, by: u64) {
    count.set(count.get() + by);
}

impl Endpoint {
    /// Takes the UDP port at `address` for core number `core`. To be called inside the core's
    /// executor; what drives the connections runs in `task_queue`, and waits as `spin` says. A core
    /// that spins has all its tasks in that queue: others would wait for the end of the spin.
    pub async fn bind(
        address: SocketAddr,
        core: u8,
        tls: &ServerTls,
        params: ServerParams,
        task_queue: TaskQueueHandle,
        spin: Rc<Spin>,
    ) -> Result<Self, BindError> {
        params.check()?;
        // The first timer of an executor costs 30 to 90 ms: here and not under a connection.
        Timer::new(Duration::from_nanos(1)).await;
        let socket = bind::bind(address, params.bind_patience).await?;
        raise_buffers(&socket, params.transport.socket_buffer_bytes);
        let failed = |source| BindError::Socket { address, source };
        let socket = CoreSocket::new(socket, params.transport.mtu_max, spin).map_err(failed)?;
        let bound = socket.local_address().map_err(failed)?;
        let config = server_config(tls, &params);
        let quic = quinn_proto::Endpoint::new(
            Arc::new(endpoint_config(core, tls, &params)),
            Some(Arc::new(config.clone())),
            socket.keeps_datagrams_whole(),
            None,
        );
        let shared = Rc::new(Shared {
            state: RefCell::new(State::new(quic, socket)),
            queue: RefCell::default(),
            driver: RefCell::default(),
            endpoints: Cell::new(1),
            address: bound,
            connections_max: window::connections_max(&params),
            params,
            config: RefCell::new(config),
            counts: Counts::default(),
            live: RefCell::default(),
            step: Cell::new(window::STEP_FIRST),
        });
        glommio::spawn_local_into(Driver(Rc::clone(&shared)), task_queue)
            .map_err(|_| BindError::NoExecutor { address })?
            .detach();
        Ok(Self { shared })
    }

    /// The address taken; with the port the system chose if 0 was asked for.
    pub fn local_address(&self) -> SocketAddr {
        self.shared.address
    }

    /// The next attempt to connect that is within the limits; `None` once the endpoint is closed.
    pub async fn accept(&self) -> Option<Incoming> {
        loop {
            let incoming = poll_fn(|context| self.shared.poll_incoming(context)).await?;
            if let Some(admitted) = self.shared.admit(incoming) {
                return Some(Incoming::new(Rc::clone(&self.shared), admitted));
            }
            // A flood of refused attempts must not hold the core.
            glommio::yield_if_needed().await;
        }
    }

    /// Shows another certificate from the next handshake on. Connections go on undisturbed.
    ///
    /// The reset key stays that of the start.
    pub fn set_tls(&self, tls: &ServerTls) {
        let mut config = self.shared.config.borrow_mut();
        config.crypto = tls.crypto();
        let quic = &mut self.shared.state.borrow_mut().quic;
        quic.set_server_config(Some(Arc::new(config.clone())));
    }

    /// Closes all connections with `code`, and accepts no more.
    pub fn close(&self, code: u32, reason: &str) {
        let code = VarInt::from_u32(code);
        let reason = Bytes::copy_from_slice(reason.as_bytes());
        let links = {
            let state = &mut *self.shared.state.borrow_mut();
            state.closed_with = Some((code, reason.clone()));
            state.wake_waiting();
            state.links()
        };
        for link in links {
            link.close(&self.shared, code, reason.clone());
        }
    }

    /// Waits until no connection is left, so that peers have been told of the close.
    pub async fn wait_idle(&self) {
        poll_fn(|context| {
            let state = &mut *self.shared.state.borrow_mut();
            if state.open() == 0 {
                return Poll::Ready(());
            }
            state.wait(context);
            Poll::Pending
        })
        .await;
    }

    /// What the endpoint has seen so far.
    pub fn stats(&self) -> EndpointStats {
        let counts = &self.shared.counts;
        EndpointStats {
            connections_open: self.shared.open_connections(),
            handshakes_open: counts.handshakes_open.get(),
            handshakes_done: counts.handshakes_done.get(),
            handshakes_failed: counts.handshakes_failed.get(),
            refused: counts.refused.get(),
            challenged: counts.challenged.get(),
            window_bytes: self.shared.window(),
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("Endpoint")
            .field(&self.shared.address)
            .finish()
    }
}

impl Shared {
    fn wake_driver(&self) {
        if let Some(driver) = &*self.driver.borrow() {
            driver.wake_by_ref();
        }
    }

    fn open_connections(&self) -> u64 {
        self.state.borrow().open() as u64
    }

    /// The next attempt to connect; none once the endpoint is closed.
    fn poll_incoming(&self, context: &mut Context<'_>) -> Poll<Option<quinn_proto::Incoming>> {
        let state = &mut *self.state.borrow_mut();
        if let Some(incoming) = state.incoming.pop_front() {
            return Poll::Ready(Some(incoming));
        }
        if state.closed_with.is_some() {
            return Poll::Ready(None);
        }
        state.wait(context);
        Poll::Pending
    }

    /// Decides about an attempt: in, or refused, or told to prove its address.
    fn admit(&self, incoming: quinn_proto::Incoming) -> Option<quinn_proto::Incoming> {
        let handshakes = self.counts.handshakes_open.get();
        let state = &mut *self.state.borrow_mut();
        if handshakes >= u64::from(self.params.handshakes_max)
            || state.open() as u64 >= self.connections_max
        {
            add(&self.counts.refused, 1);
            state.refuse(incoming);
            return None;
        }
        let many = handshakes >= u64::from(self.params.handshakes_unproven_max);
        if many && !incoming.remote_address_validated() {
            add(&self.counts.challenged, 1);
            let mut answer = Vec::new();
            return match state.quic.retry(incoming, &mut answer) {
                Ok(transmit) => {
                    state.respond(&transmit, &answer);
                    None
                }
                // Not possible for an unproven address; if it is, the attempt is let in.
                Err(error) => Some(error.into_incoming()),
            };
        }
        Some(incoming)
    }

    fn window(&self) -> u32 {
        window::share(&self.params, self.step.get())
    }

    /// Brings the windows of all connections to the share of their number, if the number has
    /// crossed a step.
    fn share_windows(&self) {
        let step = window::next_step(self.step.get(), self.live.borrow().len() as u64);
        if step == self.step.replace(step) {
            return;
        }
        for live in self.live.borrow().values().filter_map(Weak::upgrade) {
            live.set_window(self.window());
        }
    }
}

fn endpoint_config(core: u8, tls: &ServerTls, params: &ServerParams) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(tls.reset_key()));
    config.cid_generator(move || Box::new(CoreIds::new(core)));
    config.min_reset_interval(RESET_INTERVAL_MIN);
    config
        .max_udp_payload_size(params.transport.mtu_max)
        .expect("checked: the datagram size is within QUIC's bounds");
    config
}

fn server_config(tls: &ServerTls, params: &ServerParams) -> ServerConfig {
    let mut config = ServerConfig::with_crypto(tls.crypto());
    config.transport_config(Arc::new(params.transport_config()));
    config.max_incoming(params.handshakes_max as usize);
    config.incoming_buffer_size_total(params.handshake_buffer_bytes);
    config.incoming_buffer_size(
        (params.handshake_buffer_bytes / u64::from(params.handshakes_max)).max(8 * 1024),
    );
    config
}
