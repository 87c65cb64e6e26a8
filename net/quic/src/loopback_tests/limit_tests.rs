//! Limits of an endpoint, each at its border.

use super::*;

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
        let stats = server.stop_gracefully().0;
        assert_eq!(stats.handshakes_done, 60);
        assert_eq!(stats.connections_open, 60);
        assert_eq!(u64::from(stats.window_bytes), BUDGET_BYTES / 2 / 64);
    });
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
    assert_eq!(server.stop_gracefully().0.refused, 1);
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
    let stats = server.stop_gracefully().0;
    assert_eq!((stats.challenged, stats.handshakes_done), (1, 1));
}
