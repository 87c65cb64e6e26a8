//! Bytes arrive, all of them and in order.

use super::*;

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
    let stats = server.stop_gracefully().0;
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
    server.stop_gracefully();
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
    server.stop_gracefully();
}
