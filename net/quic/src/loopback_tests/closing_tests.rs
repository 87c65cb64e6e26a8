//! Ends of streams, connections and servers, and what each end learns.

use super::*;

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
    server.stop_gracefully();
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
    server.stop_gracefully();
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
    server.stop_gracefully();
}

#[test]
fn a_stopped_server_is_replaced_on_its_port_at_once() {
    let certificates = Certificates::new();
    let address = Server::start(&certificates.server, serve_echo)
        .stop_gracefully()
        .1;
    for _ in 0..3 {
        let params = ServerParams::new(BUDGET_BYTES);
        let server = Server::start_at(address, &certificates.server, params, serve_echo).unwrap();
        on_tokio(async {
            let endpoint = endpoint(&certificates.client);
            let connection = endpoint.connect(address, "localhost").await.unwrap();
            ping_pong(&connection, 128, 10).await.unwrap();
            assert_eq!(server.stop_gracefully().1, address);
            let closed = QuicError::ClosedByPeer {
                code: 9,
                reason: "stopping".into(),
            };
            assert_eq!(connection.closed().await, closed);
        });
    }
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

/// Read, given up, stopped, and read again by the same task: nothing will come that could wake it.
#[test]
fn a_server_that_stops_a_stream_does_not_wait_for_it() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, |endpoint| async move {
        let connection = endpoint.accept().await.unwrap().handshake().await.unwrap();
        let (mut send, mut receive) = connection.accept_stream().await.unwrap().unwrap();
        assert_eq!(receive.read_chunk().await.unwrap().unwrap(), "hello");
        {
            let mut read = std::pin::pin!(receive.read_chunk());
            std::future::poll_fn(|context| {
                assert!(read.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
        }
        receive.stop(7).unwrap();
        assert_eq!(receive.read_chunk().await, Err(ReadError::Stopped));
        send.write_chunk(Bytes::from_static(b"done")).await.unwrap();
        connection.closed().await;
    });
    on_tokio(async {
        let endpoint = endpoint(&certificates.client);
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        let (mut send, mut receive) = connection.open_stream().await.unwrap();
        let hello = Bytes::from_static(b"hello");
        send.write_chunk(hello).await.unwrap();
        assert_eq!(receive.read_chunk().await.unwrap().unwrap(), "done");
        connection.close(0, "done");
        endpoint.wait_idle().await;
    });
    server.stop_gracefully();
}
