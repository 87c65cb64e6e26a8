//! One core of a star: a pinned thread with its executor, endpoint, sessions, shard and disk.
//!
//! ```text
//!   main thread                         core k
//!   spawn ----------------------------> bind the port
//!         <------------- Bound -------- address
//!   raise the incarnation, recover
//!   CoreStart ------------------------> disk driver, shard, first segment durable
//!         <------------- Ready -------- accept connections, run turns
//!   Mail::Stop -----------------------> answer what was admitted, close, end
//! ```
//! The port is taken before anything in the data directory changes, so a port in use costs nothing.
//!
//! # Invariants
//! - No connection is accepted before the shard is ready.
//! - A core that fails ends the star: its streams have no other place.

mod clock;
pub(crate) mod desk;
mod lane;
pub(crate) mod mailbox;
mod signal;
mod turn;

use crate::metrics::figures::CoreFigures;
use desk::Ask;
use glommio::timer::Timer;
use mailbox::{Mail, Sender};
use nova_core::disk::DiskError;
use nova_core::{Shard, ShardConfig, ShardStart};
use nova_disk::{Completions, Driver, DriverConfig};
use nova_model::CoreId;
use nova_quic::error::BindError;
use nova_quic::params::ServerParams;
use nova_quic::server::{Connection, Endpoint, Incoming, Spin};
use nova_quic::tls::ServerTls;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use turn::{Core, TurnEnd};

/// Close code of a star that stops; PROTOCOL.md lists all.
const CLOSE_CODE_STOPPING: u32 = 0x20;

/// How long a stopping core waits until the peers of sessions and readers have their last words.
const LAST_WORDS_PATIENCE: Duration = Duration::from_millis(500);

/// How long a stopping core waits until its peers have heard of it.
const GOODBYE_PATIENCE: Duration = Duration::from_secs(1);

/// What a core's thread is started with.
pub(crate) struct CoreSeed {
    pub(crate) core: CoreId,
    pub(crate) listen: SocketAddr,
    pub(crate) tls: ServerTls,
    pub(crate) windows_bytes: u64,
    /// How long the core spins after it has received or sent something.
    pub(crate) spin: Duration,
    /// To the main thread.
    pub(crate) notices: flume::Sender<(CoreId, Notice)>,
    /// From the main thread.
    pub(crate) start: flume::Receiver<CoreStart>,
    pub(crate) mail: flume::Receiver<Mail>,
    pub(crate) peers: Vec<Sender>,
    /// From the gateway.
    pub(crate) asks: flume::Receiver<Ask>,
    /// Noted by the core, read by the gateway.
    pub(crate) figures: Arc<CoreFigures>,
}

/// What a core needs once recovery is through.
pub(crate) struct CoreStart {
    pub(crate) shard: ShardConfig,
    pub(crate) found: ShardStart,
    pub(crate) disk: DriverConfig,
}

/// What a core tells the main thread.
pub(crate) enum Notice {
    /// Its port is taken.
    Bound(SocketAddr),
    /// Connections are accepted.
    Ready,
    /// It stopped as it was told to.
    Stopped,
    /// It could not start or go on.
    Failed(CoreError),
}

/// Why a core could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// Its port.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Its disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// The life of a core, inside its executor.
pub(crate) async fn live(seed: CoreSeed) {
    let (core, notices) = (seed.core, seed.notices.clone());
    let last = match start_and_serve(seed).await {
        Ok(()) => Notice::Stopped,
        Err(error) => Notice::Failed(error),
    };
    // Without a main thread there is nobody to tell.
    let _gone = notices.send_async((core, last)).await;
}

async fn start_and_serve(seed: CoreSeed) -> Result<(), CoreError> {
    let queue = glommio::executor().current_task_queue();
    let params = ServerParams::new(seed.windows_bytes);
    let number = u8::try_from(seed.core.0).expect("a star has at most 256 cores");
    let spin = Spin::new(seed.spin);
    let bound = Endpoint::bind(
        seed.listen,
        number,
        &seed.tls,
        params,
        queue,
        Rc::clone(&spin),
    );
    let endpoint = bound.await?;
    notify(&seed, Notice::Bound(endpoint.local_address())).await;
    let Ok(start) = seed.start.recv_async().await else {
        // The star does not start after all.
        close(&endpoint).await;
        return Ok(());
    };
    let completions = Completions::new();
    let queue = completions.clone();
    let spent = Rc::clone(&spin);
    let spent = move || spent.spent();
    let driver = Driver::new(start.disk, spent, move |token, result| {
        queue.push(token, result)
    });
    let driver = driver.await?;
    let shard = Shard::new(start.shard, start.found);
    let core = Rc::new(Core::new(
        seed.core,
        shard,
        driver,
        completions,
        spin,
        seed.peers.clone(),
        Arc::clone(&seed.figures),
    ));
    receive_mail(&core, &seed);
    receive_asks(&core, &seed);
    let end = futures_lite::future::or(core.run(), async {
        core.ready.wait().await;
        notify(&seed, Notice::Ready).await;
        accept_connections(&core, &endpoint).await
    })
    .await;
    if let TurnEnd::Fatal(error) = end {
        return Err(error.into());
    }
    let patience = async {
        Timer::new(LAST_WORDS_PATIENCE).await;
    };
    futures_lite::future::or(core.last_words(), patience).await;
    close(&endpoint).await;
    if let Ok(core) = Rc::try_unwrap(core) {
        core.into_driver().close().await;
    }
    Ok(())
}

async fn notify(seed: &CoreSeed, notice: Notice) {
    // Without a main thread there is nobody to tell.
    let _gone = seed.notices.send_async((seed.core, notice)).await;
}

/// Puts mail where the turn finds it, from a task of its own.
fn receive_mail(core: &Rc<Core>, seed: &CoreSeed) {
    let (core, mail) = (Rc::downgrade(core), seed.mail.clone());
    glommio::spawn_local(async move {
        while let Ok(piece) = mail.recv_async().await {
            let Some(core) = core.upgrade() else { return };
            core.deliver(piece);
        }
    })
    .detach();
}

/// Hands what the gateway wants to the shard, from a task of its own.
fn receive_asks(core: &Rc<Core>, seed: &CoreSeed) {
    let (core, asks) = (Rc::downgrade(core), seed.asks.clone());
    glommio::spawn_local(async move {
        while let Ok(ask) = asks.recv_async().await {
            let Some(core) = core.upgrade() else { return };
            core.take_ask(ask);
        }
    })
    .detach();
}

/// Accepts for ever; the turn's end ends it.
async fn accept_connections(core: &Rc<Core>, endpoint: &Endpoint) -> TurnEnd {
    while let Some(incoming) = endpoint.accept().await {
        if core.is_stopping() {
            incoming.refuse();
            continue;
        }
        glommio::spawn_local(serve_connection(Rc::clone(core), incoming)).detach();
    }
    std::future::pending().await
}

async fn serve_connection(core: Rc<Core>, incoming: Incoming) {
    let peer = incoming.remote_address();
    let connection = match incoming.handshake().await {
        Ok(connection) => connection,
        Err(error) => return tracing::debug!(%peer, %error, "a handshake failed"),
    };
    tracing::debug!(%peer, "connected");
    let error = serve_lanes(&core, &connection).await;
    tracing::debug!(%peer, error = error.map(tracing::field::display), "disconnected");
}

async fn serve_lanes(
    core: &Rc<Core>,
    connection: &Connection,
) -> Option<nova_quic::error::QuicError> {
    loop {
        match connection.accept_stream().await {
            None => return None,
            Some(Err(error)) => return Some(error),
            Some(Ok((send, recv))) => {
                let lane = lane::run(Rc::clone(core), connection.clone(), send, recv);
                glommio::spawn_local(lane).detach();
            }
        }
    }
}

async fn close(endpoint: &Endpoint) {
    endpoint.close(CLOSE_CODE_STOPPING, "the star is stopping");
    let patience = async {
        Timer::new(GOODBYE_PATIENCE).await;
    };
    futures_lite::future::or(endpoint.wait_idle(), patience).await;
}
