//! Both ends against each other: real sockets on loopback, the server on a glommio executor of a
//! thread of its own, the client on tokio.

use std::{
    future::Future,
    net::{SocketAddr, UdpSocket},
    path::Path,
    sync::mpsc,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use glommio::{ExecutorJoinHandle, Latency, LocalExecutorBuilder, Placement, Shares};
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
    directory: TempDir,
    server: ServerTls,
    client: ClientTls,
}

impl Certificates {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let server = certificates::prepare(directory.path(), &[]).unwrap();
        let client = certificates::load_client(&ca(directory.path())).unwrap();
        Self {
            directory,
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
        Self::start_at(
            ([127, 0, 0, 1], 0).into(),
            tls,
            ServerParams::new(BUDGET_BYTES),
            serve,
        )
        .unwrap()
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
        let tls = tls.clone();
        let (ready, started) = mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel();
        let thread = LocalExecutorBuilder::new(Placement::Unbound)
            .spawn(move || async move {
                let queue = glommio::executor().create_task_queue(
                    Shares::default(),
                    Latency::NotImportant,
                    "quic",
                );
                let endpoint = match Endpoint::bind(address, 7, &tls, params, queue).await {
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

#[test]
fn many_mib_in_both_directions_arrive_equal() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_copy);
    let sent = noise(48 * 1024 * 1024 + 13);
    let received = on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        let (mut send, mut receive) = connection.open_stream().await.unwrap();
        let mut chunks: Vec<Bytes> = Vec::new();
        for at in (0..sent.len()).step_by(65_537) {
            chunks.push(sent.slice(at..sent.len().min(at + 65_537)));
        }
        let sender = tokio::spawn(async move {
            send.write_chunks(&mut chunks).await.unwrap();
            assert!(chunks.iter().all(Bytes::is_empty), "all chunks are taken");
            send.finish().unwrap();
            assert_eq!(send.stopped().await.unwrap(), None);
        });
        let mut received = BytesMut::with_capacity(sent.len());
        while let Some(chunk) = receive.read_chunk().await.unwrap() {
            received.extend_from_slice(&chunk);
        }
        sender.await.unwrap();
        let stats = connection.stats();
        assert!(
            stats.mtu > 1_500,
            "loopback carries more than an Ethernet: {stats:?}"
        );
        assert!(
            stats.sent_batches < stats.sent_datagrams,
            "sends are batched: {stats:?}"
        );
        assert_eq!(
            stats.black_holes, 0,
            "no batch exceeded a UDP payload: {stats:?}"
        );
        endpoint.close(0, "done");
        endpoint.wait_idle().await;
        received.freeze()
    });
    assert!(received == sent, "the echo differs");
    let stats = server.stop(Stop::Gracefully);
    assert_eq!((stats.handshakes_done, stats.handshakes_failed), (1, 0));
}

#[test]
fn large_frames_are_pipelined_on_several_streams() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_echo);
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "127.0.0.1").await.unwrap();
        let streams: Vec<_> = (0..4)
            .map(|_| {
                let connection = connection.clone();
                tokio::spawn(async move { pump(&connection, 65_536, 65_536, 16, 200).await })
            })
            .collect();
        for stream in streams {
            stream.await.unwrap().unwrap();
        }
        pump(&connection, 10, 100_000, 3, 20).await.unwrap();
        pump(&connection, 100_000, 0, 3, 20).await.unwrap();
    });
    server.stop(Stop::Gracefully);
}

#[test]
fn a_length_over_the_bound_ends_the_stream() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_echo);
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        let (mut send, mut receive) = connection.open_stream().await.unwrap();
        let mut header = (baseline::PAYLOAD_BYTES_MAX + 1).to_le_bytes().to_vec();
        header.extend_from_slice(&[0; 4]);
        send.write_chunk(header.into()).await.unwrap();
        assert_eq!(receive.read_chunk().await.unwrap(), None);
        assert_eq!(send.stopped().await.unwrap(), Some(0));
    });
    server.stop(Stop::Gracefully);
}

#[test]
fn many_connections_share_the_window_budget() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_echo);
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let mut connections = Vec::new();
        for _ in 0..60 {
            connections.push(endpoint.connect(server.address, "localhost").await.unwrap());
        }
        let tasks: Vec<_> = connections
            .iter()
            .cloned()
            .map(|connection| {
                tokio::spawn(async move {
                    ping_pong(&connection, 128, 20).await.unwrap();
                    pump(&connection, 65_536, 65_536, 4, 20).await.unwrap();
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let stats = server.stop(Stop::Gracefully);
        assert_eq!(stats.handshakes_done, 60);
        assert_eq!(stats.connections_open, 60);
        assert_eq!(u64::from(stats.window_bytes), BUDGET_BYTES / 2 / 64);
    });
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let (seen, seen_here) = mpsc::channel();
    let server = Server::start(&certificates.server, move |endpoint| async move {
        let incoming = endpoint.accept().await.unwrap();
        seen.send(incoming.handshake().await.map(|_| ())).unwrap();
    });
    let error = on_tokio(async {
        let endpoint = endpoint(&others.client);
        let refused = endpoint
            .connect(server.address, "localhost")
            .await
            .unwrap_err();
        endpoint.wait_idle().await;
        refused
    });
    let expected = QuicError::Certificate(CertificateProblem::UnknownAuthority);
    assert_eq!(error, ConnectError::Failed(expected.clone()));
    assert_eq!(
        seen_here.recv().unwrap(),
        Err(expected),
        "the server knows why, too"
    );
    assert_eq!(server.stop(Stop::Gracefully).handshakes_failed, 1);
}

#[test]
fn a_name_that_is_not_in_the_certificate_is_refused() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_echo);
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let error = endpoint
            .connect(server.address, "nova.example")
            .await
            .unwrap_err();
        let unfit = QuicError::Certificate(CertificateProblem::Unfit);
        assert_eq!(error, ConnectError::Failed(unfit));
        let error = endpoint
            .connect(server.address, "no name")
            .await
            .unwrap_err();
        assert!(matches!(error, ConnectError::InvalidName { .. }), "{error}");
        let nowhere = ([127, 0, 0, 1], 0).into();
        let error = endpoint.connect(nowhere, "localhost").await.unwrap_err();
        assert!(
            matches!(error, ConnectError::InvalidAddress { .. }),
            "{error}"
        );
        endpoint.close(0, "");
        let error = endpoint
            .connect(server.address, "localhost")
            .await
            .unwrap_err();
        assert_eq!(error, ConnectError::EndpointClosed);
    });
    server.stop(Stop::Gracefully);
}

#[test]
fn a_new_certificate_is_shown_without_a_restart() {
    let (old, new) = (Certificates::new(), Certificates::new());
    let new_tls = new.server.clone();
    let server = Server::start(&old.server, move |endpoint| async move {
        let first = endpoint.accept().await.unwrap().handshake().await.unwrap();
        endpoint.set_tls(&new_tls);
        first.close(1, "the certificate is changed");
        serve_echo(endpoint).await;
    });
    on_tokio(async {
        let trusting_old = endpoint(&old.client);
        let first = trusting_old
            .connect(server.address, "localhost")
            .await
            .unwrap();
        assert!(matches!(
            first.closed().await,
            QuicError::ClosedByPeer { code: 1, .. }
        ));
        // Another endpoint: the first one still has a ticket of the old server.
        let error = endpoint(&old.client)
            .connect(server.address, "localhost")
            .await
            .unwrap_err();
        let unknown = QuicError::Certificate(CertificateProblem::UnknownAuthority);
        assert_eq!(error, ConnectError::Failed(unknown));
        endpoint(&new.client)
            .connect(server.address, "localhost")
            .await
            .unwrap();
    });
    server.stop(Stop::Gracefully);
}

#[test]
fn a_close_carries_code_and_reason_to_the_client() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, |endpoint| async move {
        let connection = endpoint.accept().await.unwrap().handshake().await.unwrap();
        let (_send, mut receive) = connection.accept_stream().await.unwrap().unwrap();
        receive.read_chunk().await.unwrap();
        connection.close(42, "moved\nelsewhere");
        assert_eq!(connection.closed().await, QuicError::ClosedHere);
        assert!(connection.accept_stream().await.is_none());
    });
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        let (mut send, mut receive) = connection.open_stream().await.unwrap();
        send.write_chunk(Bytes::from_static(b"hello"))
            .await
            .unwrap();
        let closed = QuicError::ClosedByPeer {
            code: 42,
            reason: "moved elsewhere".into(),
        };
        assert_eq!(connection.closed().await, closed);
        assert_eq!(connection.close_reason(), Some(closed.clone()));
        assert_eq!(
            receive.read_chunk().await.unwrap_err(),
            ReadError::Lost(closed.clone())
        );
        let error = send
            .write_chunk(Bytes::from_static(b"more"))
            .await
            .unwrap_err();
        assert_eq!(error, WriteError::Lost(closed.clone()));
        assert_eq!(connection.open_stream().await.unwrap_err(), closed);
    });
    server.stop(Stop::Gracefully);
}

#[test]
fn a_close_carries_code_and_reason_to_the_server() {
    let certificates = Certificates::new();
    let (seen, seen_here) = mpsc::channel();
    let server = Server::start(&certificates.server, move |endpoint| async move {
        let connection = endpoint.accept().await.unwrap().handshake().await.unwrap();
        assert!(connection.accept_stream().await.is_none());
        seen.send(connection.closed().await).unwrap();
    });
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        connection.close(43, "enough");
        endpoint.wait_idle().await;
    });
    let closed = QuicError::ClosedByPeer {
        code: 43,
        reason: "enough".into(),
    };
    assert_eq!(seen_here.recv().unwrap(), closed);
    server.stop(Stop::Gracefully);
}

#[test]
fn streams_end_with_the_code_of_either_end() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, |endpoint| async move {
        let connection = endpoint.accept().await.unwrap().handshake().await.unwrap();
        let (mut send, mut receive) = connection.accept_stream().await.unwrap().unwrap();
        receive.read_chunk().await.unwrap();
        receive.stop(5).unwrap();
        assert_eq!(receive.stop(5), Err(ReadError::Stopped));
        send.reset(6).unwrap();
        let (_send, mut receive) = connection.accept_stream().await.unwrap().unwrap();
        loop {
            match receive.read_chunk().await {
                Ok(chunk) => assert!(chunk.is_some()),
                Err(error) => break assert_eq!(error, ReadError::Reset { code: 8 }),
            }
        }
        connection.close(1, "done");
    });
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        let (mut send, mut receive) = connection.open_stream().await.unwrap();
        send.write_chunk(Bytes::from_static(b"hello"))
            .await
            .unwrap();
        assert_eq!(send.stopped().await.unwrap(), Some(5));
        let error = send
            .write_chunk(Bytes::from_static(b"more"))
            .await
            .unwrap_err();
        assert_eq!(error, WriteError::Stopped { code: 5 });
        assert_eq!(
            receive.read_chunk().await.unwrap_err(),
            ReadError::Reset { code: 6 }
        );
        let (mut send, _receive) = connection.open_stream().await.unwrap();
        send.write_chunk(Bytes::from_static(b"hello"))
            .await
            .unwrap();
        send.reset(8).unwrap();
        assert_eq!(send.finish(), Err(WriteError::Finished));
        assert!(matches!(
            connection.closed().await,
            QuicError::ClosedByPeer { code: 1, .. }
        ));
    });
    server.stop(Stop::Gracefully);
}

#[test]
fn a_port_in_use_is_named() {
    let certificates = Certificates::new();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let mut params = ServerParams::new(BUDGET_BYTES);
    params.bind_patience = Duration::from_millis(30);
    let begin = Instant::now();
    let outcome = Server::start_at(address, &certificates.server, params.clone(), serve_echo);
    let error = outcome.err().unwrap();
    assert!(matches!(error, BindError::InUse { .. }));
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert!(begin.elapsed() >= params.bind_patience);

    let elsewhere = ([192, 0, 2, 1], 4_000).into();
    let outcome = Server::start_at(elsewhere, &certificates.server, params.clone(), serve_echo);
    assert!(matches!(outcome.err().unwrap(), BindError::Socket { .. }));

    params.windows_budget_bytes = 1;
    let outcome = Server::start_at(address, &certificates.server, params, serve_echo);
    assert!(matches!(outcome.err().unwrap(), BindError::Params(_)));
}

/// A client whose server crashed and came back used to wait for its idle timeout, 15 s, because
/// the reset key was another after each start.
#[test]
fn after_a_crash_the_port_is_taken_again_and_clients_are_told() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_echo);
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        ping_pong(&connection, 128, 10).await.unwrap();
        let address = server.address;
        server.stop(Stop::AtOnce);

        let begin = Instant::now();
        let again = certificates::prepare(certificates.directory.path(), &[]).unwrap();
        let params = ServerParams::new(BUDGET_BYTES);
        let server = Server::start_at(address, &again, params, serve_echo).unwrap();
        let error = ping_pong(&connection, 128, 1).await.unwrap_err();
        assert!(
            matches!(connection.closed().await, QuicError::PeerRestarted),
            "the peer is known to have restarted: {error}"
        );
        let connection = endpoint.connect(address, "localhost").await.unwrap();
        ping_pong(&connection, 128, 10).await.unwrap();
        assert!(begin.elapsed() < ClientParams::default().transport.idle_timeout);
        server.stop(Stop::Gracefully);
        let closed = QuicError::ClosedByPeer {
            code: 9,
            reason: "stopping".into(),
        };
        assert_eq!(connection.closed().await, closed);
    });
}

#[test]
fn connections_over_the_limit_are_refused() {
    let certificates = Certificates::new();
    let mut params = ServerParams::new(BUDGET_BYTES);
    params.connections_max = 2;
    let address = ([127, 0, 0, 1], 0).into();
    let server = Server::start_at(address, &certificates.server, params, serve_echo).unwrap();
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connect = || endpoint.connect(server.address, "localhost");
        let kept: Vec<Connection> = vec![connect().await.unwrap(), connect().await.unwrap()];
        let error = connect().await.unwrap_err();
        assert_eq!(error, ConnectError::Failed(QuicError::Refused));
        ping_pong(&kept[1], 128, 1).await.unwrap();
    });
    assert_eq!(server.stop(Stop::Gracefully).refused, 1);
}

#[test]
fn under_load_an_address_must_be_proven() {
    let certificates = Certificates::new();
    let mut params = ServerParams::new(BUDGET_BYTES);
    params.handshakes_unproven_max = 0;
    let address = ([127, 0, 0, 1], 0).into();
    let server = Server::start_at(address, &certificates.server, params, serve_echo).unwrap();
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        ping_pong(&connection, 128, 1).await.unwrap();
    });
    let stats = server.stop(Stop::Gracefully);
    assert_eq!((stats.challenged, stats.handshakes_done), (1, 1));
}

#[test]
fn silence_is_told_from_a_refusal() {
    let certificates = Certificates::new();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let waited = Duration::from_millis(50);
    on_tokio(async {
        let params = ClientParams {
            connect_timeout: waited,
            ..ClientParams::default()
        };
        let endpoint = ClientEndpoint::new(&certificates.client, params).unwrap();
        let error = endpoint.connect(address, "localhost").await.unwrap_err();
        assert_eq!(error, ConnectError::NoAnswer { address, waited });
    });
}

#[test]
fn a_silent_peer_times_out() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_echo);
    let mut params = ClientParams::default();
    params.transport.idle_timeout = Duration::from_millis(300);
    params.keep_alive = Duration::from_millis(100);
    on_tokio(async {
        let endpoint = ClientEndpoint::new(&certificates.client, params).unwrap();
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        ping_pong(&connection, 128, 1).await.unwrap();
        server.stop(Stop::AtOnce);
        assert_eq!(connection.closed().await, QuicError::TimedOut);
    });
}

#[test]
fn an_endpoint_outside_its_executor_is_refused() {
    let certificates = Certificates::new();
    let outcome = ClientEndpoint::new(&certificates.client, ClientParams::default());
    assert!(matches!(outcome, Err(BindError::NoExecutor { .. })));
}

/// The streams are `Send` for the client's sake: on the server, one that is dropped elsewhere must
/// not hurt the core.
#[test]
fn a_stream_dropped_on_another_thread_does_no_harm() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, |endpoint: Endpoint| async move {
        let connection: server::Connection =
            endpoint.accept().await.unwrap().handshake().await.unwrap();
        let streams = connection.accept_stream().await.unwrap().unwrap();
        std::thread::spawn(move || drop(streams)).join().unwrap();
        serve_copy(endpoint).await;
    });
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        let (mut send, mut receive) = connection.open_stream().await.unwrap();
        send.write_chunk(Bytes::from_static(b"hello"))
            .await
            .unwrap();
        // Dropped with bytes unread, the stream is stopped; its other half is finished.
        assert_eq!(receive.read_chunk().await, Ok(None));
        assert_eq!(send.stopped().await, Ok(Some(0)));
    });
    server.stop(Stop::Gracefully);
}
