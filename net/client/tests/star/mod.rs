//! A star in memory, for the driver's tests: the real lanes over real QUIC, and behind them the
//! few rules of the contract that a client can see.
//!
//! Two cores on one thread. Faults are switched on and off by the tests through [`Knobs`].
//!
//! # Not here
//! - Durability, segments, retention: the real star has end-to-end tests of its own.

mod requests;
mod serve;
mod streams;

use nova_client::ClientConfig;
use nova_model::StarId;
use nova_quic::certificates;
use nova_quic::params::{SPIN_DEFAULT, ServerParams};
use nova_quic::server::{Endpoint, Spin};
use nova_quic::tls::ServerTls;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use streams::Streams;

/// Cores of the star.
pub const CORES: usize = 2;
/// How long the end of the star waits for its connections.
const GOODBYE: Duration = Duration::from_secs(1);

/// What tests may set while the star runs.
#[derive(Debug, Default)]
pub struct Knobs {
    /// Break the connection without an answer after each this many batches.
    pub break_every: Option<u32>,
    /// Move all streams to the next core after each this many batches, and tell sessions so in
    /// place of an answer to the batch that comes next.
    pub move_every: Option<u32>,
    /// Core that leads all streams; `None` for the first.
    pub leader: Option<usize>,
    /// Address that is named as the holder of all streams, instead of a core's.
    pub holder: Option<String>,
    /// Refuse the next appends like this, one after another.
    pub refuse: Vec<nova_model::Refusal>,
    /// Break the connection of the next requests, after they were done and in place of an answer.
    pub break_requests: u32,
    /// Lose the next fences, changes of settings and deletions with their connections, one after
    /// another: whether each is done before that.
    pub lose: std::collections::VecDeque<bool>,
    /// Somebody fences every stream like this right after the next of these losses.
    pub fence_after_loss: Option<nova_model::FencingToken>,
    /// Fences, changes of settings and deletions that were done.
    pub changes: u32,
    /// Answer no request at all.
    pub answers_no_request: bool,
    /// Requests taken.
    pub requests: u32,
    /// Answer no append at all.
    pub is_silent: bool,
    /// Break a reader after each this many batches.
    pub break_reads_every: Option<u32>,
    /// The record from which on streams are damaged.
    pub corrupt_from: Option<u64>,
    /// Answer no opening of a read.
    pub opens_no_read: bool,
    /// Delete all streams after the next loss, and make them anew.
    pub remakes_after_loss: bool,
    /// Cores that are drained, as told.
    pub drained: Vec<nova_model::CoreId>,
    /// Reads that were asked for.
    pub reads: u32,
    /// Batches taken, and connections made.
    pub batches: u32,
    /// Connections made.
    pub connections: u32,
}

/// A running star.
pub struct TestStar {
    knobs: Arc<Mutex<Knobs>>,
    addresses: Vec<SocketAddr>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<glommio::ExecutorJoinHandle<()>>,
    directory: tempfile::TempDir,
}

/// What all tasks of the star share.
pub struct Shared {
    pub id: StarId,
    pub addresses: Vec<String>,
    pub knobs: Arc<Mutex<Knobs>>,
    pub streams: std::cell::RefCell<Streams>,
    /// Counts the changes of the streams.
    pub changed: tokio::sync::watch::Sender<u64>,
}

impl TestStar {
    /// Starts a star on free ports.
    pub fn start() -> TestStar {
        let directory = tempfile::tempdir().expect("a directory");
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let tls = certificates::prepare(directory.path(), &names).expect("certificates");
        let knobs: Arc<Mutex<Knobs>> = Arc::default();
        let (ready, started) = std::sync::mpsc::sync_channel(1);
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let shared_knobs = Arc::clone(&knobs);
        let thread = glommio::LocalExecutorBuilder::new(glommio::Placement::Unbound)
            .name("star")
            .spawn(move || run(tls, shared_knobs, ready, stopped))
            .expect("an executor");
        let addresses = started.recv().expect("the star runs");
        TestStar {
            knobs,
            addresses,
            stop: Some(stop),
            thread: Some(thread),
            directory,
        }
    }

    /// A configuration for clients that enter at the first core.
    pub fn config(&self) -> ClientConfig {
        let authorities = self.directory.path().join("ca.pem");
        ClientConfig::new(self.address(0), authorities)
    }

    /// The address of a core.
    pub fn address(&self, core: usize) -> String {
        self.addresses[core].to_string()
    }

    pub fn knobs(&self) -> MutexGuard<'_, Knobs> {
        self.knobs.lock().expect("no test panicked with it")
    }
}

impl Drop for TestStar {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn run(
    tls: ServerTls,
    knobs: Arc<Mutex<Knobs>>,
    ready: std::sync::mpsc::SyncSender<Vec<SocketAddr>>,
    stopped: tokio::sync::oneshot::Receiver<()>,
) {
    let queue = glommio::executor().create_task_queue(
        glommio::Shares::default(),
        glommio::Latency::NotImportant,
        "quic",
    );
    let mut endpoints = Vec::new();
    for core in 0..CORES {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let params = ServerParams::new(256 * 1024 * 1024);
        let spin = Spin::new(SPIN_DEFAULT);
        let endpoint = Endpoint::bind(address, core as u8, &tls, params, queue, spin).await;
        endpoints.push(endpoint.expect("a port"));
    }
    let addresses: Vec<_> = endpoints.iter().map(Endpoint::local_address).collect();
    let shared = std::rc::Rc::new(Shared {
        id: StarId(7),
        addresses: addresses.iter().map(SocketAddr::to_string).collect(),
        knobs,
        streams: std::cell::RefCell::default(),
        changed: tokio::sync::watch::channel(0).0,
    });
    ready.send(addresses).expect("the test waits");
    for (core, endpoint) in endpoints.iter().enumerate() {
        let accepting = serve::accept(std::rc::Rc::clone(&shared), core, endpoint.clone());
        glommio::spawn_local(accepting).detach();
    }
    let _ = stopped.await;
    for endpoint in endpoints {
        endpoint.close(0, "over");
        // A handshake that its client gave up stays until the idle timeout.
        tokio::select! {
            () = endpoint.wait_idle() => {}
            _ = glommio::timer::Timer::new(GOODBYE) => {}
        }
    }
}
