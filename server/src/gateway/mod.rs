//! HTTP: a thread of its own that speaks it and passes what is asked to the cores.
//!
//! ```text
//!   curl, browsers, scrapers
//!        | HTTP/1.1, one TCP port
//!        v
//!   listen -> route -> a handler -> form, body -> Cores --- Ask (flume) ---> core::desk -> shard
//!                                                 Read  <-- items, replies -- core::desk
//! ```
//! A request goes to the core that is its stream's home and follows the stream from there, so that
//! any path takes any stream. A batch is encoded here, as any producer encodes it.
//!
//! # Invariants
//! - Every wait has its time, every queue and all memory for bodies and pages a bound of
//!   `limits.rs`.
//! - Nothing that a peer sends ends the star: a mistake of ours in a handler ends its connection.
//!
//! # Not here
//! - Any rule about streams: the shard. Figures: `metrics`.

mod admin;
mod append;
mod body;
mod buckets;
mod bytes;
mod connections;
mod cores;
mod document;
mod durable;
mod events;
mod form;
mod health;
mod listen;
mod object;
mod origins;
mod page;
mod read;
mod records;
mod records_in;
mod records_out;
mod refuse;
mod route;
mod shapes;
mod star_shapes;
mod state;
mod streams;
mod target;
mod tls;
mod whole;

use crate::core::desk::AskSender;
use crate::metrics::Metrics;
use cores::Cores;
use state::Gateway;
use std::io;
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
pub use tls::HttpTlsError;
pub(crate) use tls::acceptor;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// The thread's name. A panic in it ends a connection, not the star.
pub(crate) const THREAD: &str = "gateway";

/// What the gateway is started with.
pub(crate) struct GatewaySeed {
    pub(crate) listener: TcpListener,
    /// None: in plain.
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) asks: Vec<AskSender>,
    pub(crate) metrics: Arc<Metrics>,
    /// Origins whose pages may ask; `*` is all of them.
    pub(crate) allow_origins: Vec<String>,
}

/// The running gateway.
pub(crate) struct GatewayThread {
    cores: Arc<Cores>,
    stop: watch::Sender<bool>,
    ended: flume::Receiver<()>,
    thread: JoinHandle<()>,
}

impl GatewayThread {
    /// Starts it. Until [`GatewayThread::serve`] it says that the star is starting.
    pub(crate) fn start(seed: GatewaySeed) -> io::Result<GatewayThread> {
        let cores = Arc::new(Cores::new(seed.asks));
        let (stop, stopping) = watch::channel(false);
        let gateway = Gateway::new(
            Arc::clone(&cores),
            seed.metrics,
            seed.allow_origins,
            stopping,
        );
        let (ended_in, ended) = flume::bounded(1);
        let (listener, tls) = (seed.listener, seed.tls);
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = std::thread::Builder::new().name(THREAD.to_owned());
        let thread = thread.spawn(move || {
            let live = || {
                runtime.block_on(async {
                    let listener = tokio::net::TcpListener::from_std(listener)?;
                    let router = route::router(gateway.clone());
                    listen::listen(listener, tls, router, gateway).await;
                    io::Result::Ok(())
                })
            };
            match catch_unwind(AssertUnwindSafe(live)) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => crate::boot::warn(&format!("HTTP is not served: {error}")),
                // It accepts no more: better a star that starts again than one half there.
                Err(_panic) => crate::boot::end_after_panic(),
            }
            // Without a main thread there is nobody to tell.
            let _gone = ended_in.send(());
        })?;
        Ok(GatewayThread {
            cores,
            stop,
            ended,
            thread,
        })
    }

    /// The cores answer from now on, at these addresses.
    pub(crate) fn serve(&self, addresses: Vec<String>) {
        self.cores.serve(addresses);
    }

    /// No new connection; running requests finish.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&self) {
        // A thread that is gone has ended, too.
        let _ended = self.ended.recv_async().await;
    }

    /// Ends it and waits for its thread.
    pub(crate) fn end(self) {
        self.stop();
        if self.thread.join().is_err() {
            tracing::error!("the gateway's thread panicked");
        }
    }
}
