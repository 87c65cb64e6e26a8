//! What a driver does when datagrams get lost, have no room, or come no more.

use super::*;
use crate::socket::FULL_EVERY;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use std::thread::{self, JoinHandle};

/// What travels there and back.
const BYTES: usize = 4 * 1024 * 1024;

/// A hop between a client and a server that loses datagrams both ways.
struct Lossy {
    address: SocketAddr,
    lost: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Every so many datagrams one is lost.
const LOST_EVERY: usize = 31;

impl Lossy {
    fn start(server: SocketAddr) -> Lossy {
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        back.connect(server).unwrap();
        for socket in [&front, &back] {
            socket.set_nonblocking(true).unwrap();
        }
        let address = front.local_addr().unwrap();
        let (lost, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (count, stop) = (Arc::clone(&lost), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            let mut client = None;
            let (mut buffer, mut seen) = (vec![0; 65_536], 0usize);
            let mut is_lost = || {
                seen += 1;
                let is_lost = seen.is_multiple_of(LOST_EVERY);
                count.fetch_add(usize::from(is_lost), Ordering::Relaxed);
                is_lost
            };
            while !stop.load(Ordering::Relaxed) {
                let mut is_idle = true;
                while let Ok((length, from)) = front.recv_from(&mut buffer) {
                    (client, is_idle) = (Some(from), false);
                    if !is_lost() {
                        // What does not fit either is lost, too.
                        let _full = back.send(&buffer[..length]);
                    }
                }
                while let Ok(length) = back.recv(&mut buffer) {
                    is_idle = false;
                    if let Some(client) = client.filter(|_| !is_lost()) {
                        let _full = front.send_to(&buffer[..length], client);
                    }
                }
                if is_idle {
                    thread::yield_now();
                }
            }
        });
        Lossy {
            address,
            lost,
            is_over,
            thread,
        }
    }

    /// Ends it, and gives how many datagrams it has lost.
    fn stop(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.lost.load(Ordering::Relaxed)
    }
}

/// Sends noise to a server that sends it back, and compares.
async fn there_and_back(tls: &ClientTls, address: SocketAddr) {
    let sent = noise(BYTES);
    let endpoint = endpoint(tls);
    let connection = endpoint.connect(address, "localhost").await.unwrap();
    let (mut send, mut receive) = connection.open_stream().await.unwrap();
    let whole = sent.clone();
    let sender = tokio::spawn(async move {
        send.write_chunk(whole).await.unwrap();
        send.finish().unwrap();
    });
    let mut received = BytesMut::with_capacity(sent.len());
    while let Some(chunk) = receive.read_chunk().await.unwrap() {
        received.extend_from_slice(&chunk);
    }
    sender.await.unwrap();
    assert!(received == sent, "the same bytes come back");
    connection.close(0, "done");
    endpoint.wait_idle().await;
}

#[test]
fn what_the_network_loses_is_sent_again() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_copy);
    let network = Lossy::start(server.address);
    on_tokio(there_and_back(&certificates.client, network.address));
    let lost = network.stop();
    assert!(lost > 20, "only {lost} datagrams were lost");
    server.stop_gracefully();
}

/// Were it dropped instead, QUIC would send it again: the bytes would be right, and packets lost.
#[test]
fn what_the_kernel_has_no_room_for_is_sent_later() {
    let certificates = Certificates::new();
    let (seen, seen_here) = mpsc::channel();
    let server = Server::start(&certificates.server, move |endpoint| async move {
        FULL_EVERY.set(3);
        let connection = endpoint.accept().await.unwrap().handshake().await.unwrap();
        let (mut send, mut receive) = connection.accept_stream().await.unwrap().unwrap();
        while let Some(chunk) = receive.read_chunk().await.unwrap() {
            send.write_chunk(chunk).await.unwrap();
        }
        send.finish().unwrap();
        connection.closed().await;
        seen.send(connection.stats().lost_packets).unwrap();
    });
    on_tokio(there_and_back(&certificates.client, server.address));
    assert_eq!(seen_here.recv().unwrap(), 0);
    server.stop_gracefully();
}

#[test]
fn a_server_notices_a_client_that_vanishes() {
    let certificates = Certificates::new();
    let (seen, seen_here) = mpsc::channel();
    let mut params = ServerParams::new(BUDGET_BYTES);
    params.transport.idle_timeout = Duration::from_millis(300);
    let address = ([127, 0, 0, 1], 0).into();
    let serve = move |endpoint: Endpoint| async move {
        let connection = endpoint.accept().await.unwrap().handshake().await.unwrap();
        let (_send, mut receive) = connection.accept_stream().await.unwrap().unwrap();
        assert!(receive.read_chunk().await.unwrap().is_some());
        let lost = receive.read_chunk().await.unwrap_err();
        assert_eq!(lost, ReadError::Lost(QuicError::TimedOut));
        seen.send(connection.closed().await).unwrap();
    };
    let server = Server::start_at(address, &certificates.server, params, serve).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let kept = runtime.block_on(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        let (mut send, receive) = connection.open_stream().await.unwrap();
        send.write_chunk(Bytes::from_static(b"hello"))
            .await
            .unwrap();
        ping_of(&connection).await;
        (endpoint, connection, send, receive)
    });
    // Nothing drives the client any more, and so it says nothing.
    assert_eq!(seen_here.recv().unwrap(), QuicError::TimedOut);
    drop((kept, runtime));
    server.stop_gracefully();
}

/// Waits until what was written has left.
async fn ping_of(connection: &Connection) {
    while connection.stats().sent_bytes == 0 {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
}

/// Connections of a wave, and waves: places of connections that are gone are taken again.
const WAVE: usize = 16;
const WAVES: usize = 12;

/// The server's end of each is over only when its last word is, so it stops only if none is left.
#[test]
fn connections_come_and_go_and_leave_nothing() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_echo);
    on_tokio(async {
        for _ in 0..WAVES {
            let endpoint = endpoint(&certificates.client);
            let mut connections = Vec::new();
            for _ in 0..WAVE {
                connections.push(endpoint.connect(server.address, "localhost").await.unwrap());
            }
            for (bytes, connection) in (64..).zip(&connections) {
                ping_pong(connection, bytes, 3).await.unwrap();
            }
            // Half of them close on purpose, the others are dropped.
            for connection in connections.drain(..).step_by(2) {
                connection.close(1, "enough");
            }
            endpoint.wait_idle().await;
        }
    });
    let stats = server.stop_gracefully().0;
    let all = (WAVES * WAVE) as u64;
    assert_eq!((stats.handshakes_done, stats.handshakes_failed), (all, 0));
}
