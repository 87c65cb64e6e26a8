//! What a client's driver does: bytes of all sizes, no room, many threads, and its end.

use super::*;
use crate::client::{RecvStream, SendStream};
use crate::socket::FULL_EVERY;
use rustix::time::{ClockId, clock_gettime};

/// Runs the client's side on more than one thread.
fn on_threads<T>(client: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(3)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(client)
}

/// Writes `sent` in chunks of such sizes, and compares what comes back meanwhile.
async fn there_and_back(
    (mut send, mut receive): (SendStream, RecvStream),
    sent: Bytes,
    sizes: &'static [usize],
) {
    let mut rest = sent.clone();
    let sender = tokio::spawn(async move {
        for &size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let chunk = rest.split_to(size.min(rest.len()));
            send.write_chunk(chunk).await.unwrap();
            tokio::task::yield_now().await;
        }
        send.finish().unwrap();
        assert_eq!(send.stopped().await.unwrap(), None);
    });
    let mut received = BytesMut::with_capacity(sent.len());
    let mut chunks = [const { Bytes::new() }; 7];
    while let Some(count) = receive.read_chunks(&mut chunks).await.unwrap() {
        chunks[..count]
            .iter()
            .for_each(|chunk| received.extend_from_slice(chunk));
    }
    sender.await.unwrap();
    assert!(received == sent, "the same bytes come back");
}

#[test]
fn many_threads_write_on_streams_of_two_connections() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_copy);
    on_threads(async {
        let endpoint = endpoint(&certificates.client);
        let (other, address) = (endpoint.clone(), server.address);
        let one = tokio::spawn(async move { other.connect(address, "localhost").await });
        let two = endpoint.connect(address, "localhost").await.unwrap();
        let mut tasks = Vec::new();
        for connection in [one.await.unwrap().unwrap(), two] {
            for sizes in [
                &[70_000usize, 1, 300][..],
                &[9_000, 17_000],
                &[13],
                &[1_000_000],
            ] {
                let bytes = sizes[0].max(500) * 40;
                let connection = connection.clone();
                tasks.push(tokio::spawn(async move {
                    let streams = connection.open_stream().await.unwrap();
                    there_and_back(streams, noise(bytes), sizes).await;
                }));
            }
        }
        for task in tasks {
            task.await.unwrap();
        }
        endpoint.close(0, "done");
        endpoint.wait_idle().await;
    });
    assert_eq!(server.stop_gracefully().0.handshakes_done, 2);
}

/// Whoever reads slowly keeps the memory of what has come; what comes then goes elsewhere.
#[test]
fn what_is_kept_does_not_change() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_copy);
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        let (mut send, mut receive) = connection.open_stream().await.unwrap();
        let sent = noise(20 * 1024 * 1024);
        let whole = sent.clone();
        let sender = tokio::spawn(async move {
            send.write_chunk(whole).await.unwrap();
            send.finish().unwrap();
        });
        let (mut kept, mut at) = (Vec::new(), 0);
        while let Some(chunk) = receive.read_chunk().await.unwrap() {
            let length = chunk.len();
            kept.push((at, chunk));
            at += length;
        }
        sender.await.unwrap();
        assert_eq!(at, sent.len());
        for (at, chunk) in kept {
            assert!(chunk == sent[at..at + chunk.len()], "from byte {at} on");
        }
    });
    server.stop_gracefully();
}

/// Were it dropped instead, QUIC would send it again: the bytes would be right, and packets lost.
#[test]
fn what_the_kernel_has_no_room_for_is_sent_later() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_copy);
    on_tokio(async {
        FULL_EVERY.set(3);
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        let streams = connection.open_stream().await.unwrap();
        there_and_back(streams, noise(4 * 1024 * 1024), &[65_536]).await;
        assert_eq!(connection.stats().lost_packets, 0);
        connection.close(0, "done");
        endpoint.wait_idle().await;
    });
    server.stop_gracefully();
}

#[test]
fn a_connection_closes_with_its_last_stream() {
    let certificates = Certificates::new();
    let (seen, seen_here) = mpsc::channel();
    let server = Server::start(&certificates.server, move |endpoint| async move {
        let connection = endpoint.accept().await.unwrap().handshake().await.unwrap();
        let (mut send, mut receive) = connection.accept_stream().await.unwrap().unwrap();
        while let Ok(Some(chunk)) = receive.read_chunk().await {
            send.write_chunk(chunk).await.unwrap();
        }
        seen.send(connection.closed().await).unwrap();
    });
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        let (mut send, mut receive) = connection.open_stream().await.unwrap();
        drop(connection.clone());
        drop(connection);
        send.write_chunk(Bytes::from_static(b"hello"))
            .await
            .unwrap();
        assert_eq!(receive.read_chunk().await.unwrap().unwrap(), "hello");
        drop(receive);
        let end = send.stopped();
        drop(send);
        // The future is a handle, too; what was written is delivered.
        assert_eq!(end.await.unwrap(), None);
        endpoint.wait_idle().await;
    });
    let closed = QuicError::ClosedByPeer {
        code: 0,
        reason: String::new(),
    };
    assert_eq!(seen_here.recv().unwrap(), closed);
    server.stop_gracefully();
}

#[test]
fn the_end_of_an_endpoint_is_told_to_all_that_wait() {
    let certificates = Certificates::new();
    // Nothing is read, so that the writer waits as well.
    let server = Server::start(&certificates.server, |endpoint| async move {
        let connection = endpoint.accept().await.unwrap().handshake().await.unwrap();
        let (mut send, _receive) = connection.accept_stream().await.unwrap().unwrap();
        send.write_chunk(Bytes::from_static(b"hello"))
            .await
            .unwrap();
        connection.closed().await;
    });
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nobody = silent.local_addr().unwrap();
    on_threads(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        let (mut send, mut receive) = connection.open_stream().await.unwrap();
        send.write_chunk(Bytes::from_static(b"hello"))
            .await
            .unwrap();
        assert_eq!(receive.read_chunk().await.unwrap().unwrap(), "hello");
        let end = tokio::spawn(send.stopped());
        let writer = tokio::spawn(async move {
            let chunk = noise(100_000);
            loop {
                if let Err(error) = send.write_chunk(chunk.clone()).await {
                    return error;
                }
            }
        });
        let reader = tokio::spawn(async move {
            loop {
                if let Err(error) = receive.read_chunk().await {
                    return error;
                }
            }
        });
        let other = endpoint.clone();
        let dialer = tokio::spawn(async move { other.connect(nobody, "localhost").await });
        silent.recv_from(&mut [0; 2_000]).unwrap();
        endpoint.close(3, "enough");
        endpoint.wait_idle().await;
        let here = QuicError::ClosedHere;
        assert_eq!(end.await.unwrap(), Err(here.clone()));
        assert_eq!(writer.await.unwrap(), WriteError::Lost(here.clone()));
        assert_eq!(reader.await.unwrap(), ReadError::Lost(here.clone()));
        let refused = dialer.await.unwrap().unwrap_err();
        assert_eq!(refused, ConnectError::Failed(here.clone()));
        assert_eq!(connection.open_stream().await.unwrap_err(), here);
        let refused = endpoint.connect(server.address, "localhost").await;
        assert_eq!(refused.unwrap_err(), ConnectError::EndpointClosed);
    });
    server.stop_gracefully();
}

#[test]
fn a_connection_ends_with_the_runtime_that_drives_it() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_echo);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (endpoint, connection) = runtime.block_on(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        (endpoint, connection)
    });
    drop(runtime);
    on_tokio(async {
        assert_eq!(connection.closed().await, QuicError::ClosedHere);
        endpoint.wait_idle().await;
        endpoint
            .connect(server.address, "localhost")
            .await
            .unwrap_err();
    });
    server.stop(Stop::AtOnce);
}

#[test]
fn a_stream_is_waited_for_at_the_limit() {
    let certificates = Certificates::new();
    let mut params = ServerParams::new(BUDGET_BYTES);
    params.streams_max = 2;
    let address = ([127, 0, 0, 1], 0).into();
    let server = Server::start_at(address, &certificates.server, params, serve_copy).unwrap();
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        let mut kept = Vec::new();
        for _ in 0..2 {
            kept.push(connection.open_stream().await.unwrap());
        }
        for _ in 0..20 {
            let waiting = connection.clone();
            let opened = tokio::spawn(async move { waiting.open_stream().await.unwrap() });
            tokio::task::yield_now().await;
            assert!(!opened.is_finished());
            let first = kept.remove(0);
            there_and_back(first, noise(3_000), &[1_000]).await;
            kept.push(opened.await.unwrap());
        }
    });
    server.stop_gracefully();
}

/// Neither a socket that is readable no more nor a deadline that has moved keeps it awake.
#[test]
fn a_connection_with_nothing_to_do_rests() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_copy);
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        let streams = connection.open_stream().await.unwrap();
        there_and_back(streams, noise(1_000_000), &[65_536]).await;
        let used = || clock_gettime(ClockId::ThreadCPUTime);
        let before = used();
        let waited = Duration::from_millis(500);
        tokio::time::timeout(waited, connection.closed())
            .await
            .unwrap_err();
        let (before, after) = (before, used());
        let nanoseconds =
            (after.tv_sec - before.tv_sec) * 1_000_000_000 + after.tv_nsec - before.tv_nsec;
        assert!(nanoseconds < 100_000_000, "{nanoseconds} ns of 500 ms");
    });
    server.stop_gracefully();
}
