//! The congestion windows of a connection that only the peer's windows hold back.

use super::*;

/// What travels there and back: enough for a window that grows unchecked to show it.
const BYTES: usize = 256 * 1024 * 1024;
const CHUNK_BYTES: usize = 1024 * 1024;

/// Both ends send as fast as the other reads, so at most a stream's window is in flight. The
/// congestion window stays within twice that, and what headers and acknowledgements add. Without
/// that rule the server's is at 38 MB and more by then.
#[test]
fn a_window_grows_no_further_than_it_is_used() {
    let certificates = Certificates::new();
    let (seen, seen_here) = mpsc::channel();
    let server = Server::start(&certificates.server, move |endpoint| async move {
        let connection = endpoint.accept().await.unwrap().handshake().await.unwrap();
        let (mut send, mut receive) = connection.accept_stream().await.unwrap().unwrap();
        while let Some(chunk) = receive.read_chunk().await.unwrap() {
            send.write_chunk(chunk).await.unwrap();
        }
        send.finish().unwrap();
        connection.closed().await;
        seen.send(connection.stats()).unwrap();
    });
    let at_client = on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        let (mut send, mut receive) = connection.open_stream().await.unwrap();
        let sender = tokio::spawn(async move {
            let chunk = noise(CHUNK_BYTES);
            for _ in 0..BYTES / CHUNK_BYTES {
                send.write_chunk(chunk.clone()).await.unwrap();
            }
            send.finish().unwrap();
        });
        let mut received = 0;
        while let Some(chunk) = receive.read_chunk().await.unwrap() {
            received += chunk.len();
        }
        sender.await.unwrap();
        assert_eq!(received, BYTES);
        let stats = connection.stats();
        connection.close(0, "done");
        endpoint.wait_idle().await;
        stats
    });
    let (server_params, client_params) = (ServerParams::new(BUDGET_BYTES), ClientParams::default());
    let ends = [
        (at_client, server_params.transport),
        (seen_here.recv().unwrap(), client_params.transport),
    ];
    for (stats, receiver) in ends {
        let most = 3 * u64::from(receiver.stream_window_bytes);
        assert!(stats.congestion_window_bytes <= most, "{stats:?}");
        assert!(
            stats.congestion_window_bytes >= receiver.congestion_window_initial_bytes,
            "{stats:?}"
        );
    }
    server.stop_gracefully();
}
