//! The server's end: one endpoint per core, driven by the core's own glommio executor.
//!
//! ```text
//! Endpoint::bind -> accept() -> Incoming -> handshake() -> Connection -> accept_stream()
//!                     | at a limit: refused           | window: its share of the core's budget
//!                     | many handshakes: prove your address first
//! ```
//!
//! # Invariants
//! - Nothing here is `Send`. Streams are, since clients share their type; their drivers stay on
//!   the core's thread all the same.
//! - Connections, handshakes and their windows are bounded by [`ServerParams`].
//! - A peer's change of address is not followed: with one port per core nothing is gained by it.
//!
//! # Not here
//! - What streams carry: `net/proto`. When to accept and when to stop: the core loop.

mod bind;
mod cid;
mod connection;
mod local;
mod runtime;
mod spin;
mod udp;
mod window;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    net::SocketAddr,
    rc::{Rc, Weak},
    sync::Arc,
    time::Duration,
};

use glommio::{TaskQueueHandle, timer::Timer};
use quinn::{EndpointConfig, ServerConfig, VarInt};

use self::{cid::CoreIds, connection::Live, runtime::CoreRuntime};
pub use self::{
    connection::{Connection, Incoming},
    spin::Spin,
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
#[derive(Clone)]
pub struct Endpoint {
    shared: Rc<Shared>,
}

/// What an endpoint and its connections share.
pub(crate) struct Shared {
    endpoint: quinn::Endpoint,
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
        // Proves that tasks can be started in the queue, which later is taken for granted.
        glommio::spawn_local_into(async {}, task_queue)
            .map_err(|_| BindError::NoExecutor { address })?
            .await;

        let socket = bind::bind(address, params.bind_patience).await?;
        raise_buffers(&socket, params.transport.socket_buffer_bytes);
        let config = server_config(tls, &params);
        let runtime = CoreRuntime::new(task_queue, params.transport.mtu_max, spin);
        let endpoint = quinn::Endpoint::new(
            endpoint_config(core, tls, &params),
            Some(config.clone()),
            socket,
            Arc::new(runtime),
        )
        .map_err(|source| BindError::Socket { address, source })?;
        let address = endpoint
            .local_addr()
            .map_err(|source| BindError::Socket { address, source })?;
        Ok(Self {
            shared: Rc::new(Shared {
                endpoint,
                address,
                connections_max: window::connections_max(&params),
                params,
                config: RefCell::new(config),
                counts: Counts::default(),
                live: RefCell::default(),
                step: Cell::new(window::STEP_FIRST),
            }),
        })
    }

    /// The address taken; with the port the system chose if 0 was asked for.
    pub fn local_address(&self) -> SocketAddr {
        self.shared.address
    }

    /// The next attempt to connect that is within the limits; `None` once the endpoint is closed.
    pub async fn accept(&self) -> Option<Incoming> {
        loop {
            let incoming = self.shared.endpoint.accept().await?;
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
        self.shared.endpoint.set_server_config(Some(config.clone()));
    }

    /// Closes all connections with `code`, and accepts no more.
    pub fn close(&self, code: u32, reason: &str) {
        self.shared
            .endpoint
            .close(VarInt::from_u32(code), reason.as_bytes());
    }

    /// Waits until no connection is left, so that peers have been told of the close.
    pub async fn wait_idle(&self) {
        self.shared.endpoint.wait_idle().await;
    }

    /// What the endpoint has seen so far.
    pub fn stats(&self) -> EndpointStats {
        let counts = &self.shared.counts;
        EndpointStats {
            connections_open: self.shared.endpoint.open_connections() as u64,
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
    /// Decides about an attempt: in, or refused, or told to prove its address.
    fn admit(&self, incoming: quinn::Incoming) -> Option<quinn::Incoming> {
        let handshakes = self.counts.handshakes_open.get();
        let connections = self.endpoint.open_connections() as u64;
        if handshakes >= u64::from(self.params.handshakes_max)
            || connections >= self.connections_max
        {
            add(&self.counts.refused, 1);
            incoming.refuse();
            return None;
        }
        let many = handshakes >= u64::from(self.params.handshakes_unproven_max);
        if many && !incoming.remote_address_validated() {
            add(&self.counts.challenged, 1);
            return match incoming.retry() {
                Ok(()) => None,
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
    config.migration(false);
    config.max_incoming(params.handshakes_max as usize);
    config.incoming_buffer_size_total(params.handshake_buffer_bytes);
    config.incoming_buffer_size(
        (params.handshake_buffer_bytes / u64::from(params.handshakes_max)).max(8 * 1024),
    );
    config
}
