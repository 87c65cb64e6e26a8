//! Both ends against each other: real sockets on loopback, the server on a glommio executor of a
//! thread of its own, the client on tokio.

mod client_tests;
mod closing_tests;
mod congestion_tests;
mod data_tests;
mod driver_tests;
mod handshake_tests;
mod limit_tests;
mod silence_tests;
mod spin_tests;

use std::{
    future::Future,
    net::{SocketAddr, UdpSocket},
    path::Path,
    sync::mpsc,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use glommio::{ExecutorJoinHandle, LocalExecutorBuilder, Placement};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::{
    baseline::{self, ping_pong, pump, serve_echo},
    certificates::{self, CA_CERTIFICATE_FILE},
    client::{ClientEndpoint, Connection},
    error::{BindError, CertificateProblem, ConnectError, QuicError, ReadError, WriteError},
    params::{ClientParams, ServerParams},
    server::{self, Endpoint},
    stats::EndpointStats,
    tls::{ClientTls, ServerTls},
};

const BUDGET_BYTES: u64 = 64 * 1024 * 1024;

/// Certificates of a server, in a directory that lasts as long as this.
struct Certificates {
    _directory: TempDir,
    server: ServerTls,
    client: ClientTls,
}

impl Certificates {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let server = certificates::prepare(directory.path(), &[]).unwrap();
        let client = ClientTls::from_ca_file(&ca(directory.path())).unwrap();
        Self {
            _directory: directory,
            server,
            client,
        }
    }
}

fn ca(directory: &Path) -> std::path::PathBuf {
    directory.join(CA_CERTIFICATE_FILE)
}

/// A server on a thread of its own.
struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<Stop>,
    thread: ExecutorJoinHandle<EndpointStats>,
}

enum Stop {
    /// Peers are told.
    Gracefully,
    /// Nobody is told: the executor ends, and everything in it is dropped.
    AtOnce,
}

impl Server {
    fn start<F>(tls: &ServerTls, serve: impl FnOnce(Endpoint) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        Self::start_spinning(tls, Duration::ZERO, serve)
    }

    fn start_spinning<F>(
        tls: &ServerTls,
        spin: Duration,
        serve: impl FnOnce(Endpoint) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        let address = ([127, 0, 0, 1], 0).into();
        Self::start_with(address, tls, ServerParams::new(BUDGET_BYTES), spin, serve).unwrap()
    }

    fn start_at<F>(
        address: SocketAddr,
        tls: &ServerTls,
        params: ServerParams,
        serve: impl FnOnce(Endpoint) -> F + Send + 'static,
    ) -> Result<Self, BindError>
    where
        F: Future<Output = ()> + 'static,
    {
        Self::start_with(address, tls, params, Duration::ZERO, serve)
    }

    fn start_with<F>(
        address: SocketAddr,
        tls: &ServerTls,
        params: ServerParams,
        spin: Duration,
        serve: impl FnOnce(Endpoint) -> F + Send + 'static,
    ) -> Result<Self, BindError>
    where
        F: Future<Output = ()> + 'static,
    {
        let tls = tls.clone();
        let (ready, started) = mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel();
        let thread = LocalExecutorBuilder::new(Placement::Unbound)
            .spawn(move || async move {
                let queue = glommio::executor().current_task_queue();
                let spin = server::Spin::new(spin);
                let bound = Endpoint::bind(address, 7, &tls, params, queue, spin);
                let endpoint = match bound.await {
                    Ok(endpoint) => endpoint,
                    Err(error) => {
                        ready.send(Err(error)).unwrap();
                        return EndpointStats::default();
                    }
                };
                ready.send(Ok(endpoint.local_address())).unwrap();
                let serving = glommio::spawn_local(serve(endpoint.clone())).detach();
                let stop = stopped.await.unwrap_or(Stop::AtOnce);
                let stats = endpoint.stats();
                if matches!(stop, Stop::Gracefully) {
                    endpoint.close(9, "stopping");
                    serving.await;
                    endpoint.wait_idle().await;
                }
                stats
            })
            .unwrap();
        let address = started.recv().unwrap()?;
        Ok(Self {
            address,
            stop,
            thread,
        })
    }

    /// Gives what the server has seen, and where it was.
    fn stop_gracefully(self) -> (EndpointStats, SocketAddr) {
        let address = self.address;
        (self.stop(Stop::Gracefully), address)
    }

    fn stop(self, how: Stop) -> EndpointStats {
        assert!(
            self.stop.send(how).is_ok(),
            "the server has ended by itself"
        );
        self.thread
            .join()
            .expect("nothing in the executor panicked")
    }
}

/// Runs the client's side.
fn on_tokio<T>(client: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(client)
}

fn endpoint(tls: &ClientTls) -> ClientEndpoint {
    ClientEndpoint::new(tls, ClientParams::default()).unwrap()
}

/// For each stream of each connection, sends back what comes until it ends.
async fn serve_copy(endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        let connection = incoming.handshake().await.unwrap();
        glommio::spawn_local(async move {
            while let Some(Ok((mut send, mut receive))) = connection.accept_stream().await {
                let mut chunks = [const { Bytes::new() }; 16];
                while let Some(count) = receive.read_chunks(&mut chunks).await.unwrap() {
                    send.write_chunks(&mut chunks[..count]).await.unwrap();
                    glommio::yield_if_needed().await;
                }
                send.finish().unwrap();
            }
        })
        .detach();
    }
}

/// Bytes in which every shift and swap shows, from a fixed seed.
fn noise(bytes: usize) -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut noise = BytesMut::with_capacity(bytes + 8);
    while noise.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend_from_slice(&state.to_le_bytes());
    }
    noise.truncate(bytes);
    noise.freeze()
}
