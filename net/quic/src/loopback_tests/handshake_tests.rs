//! Who may connect, and what the other learns if not.

use super::*;

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
    assert_eq!(server.stop_gracefully().0.handshakes_failed, 1);
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
    server.stop_gracefully();
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
    server.stop_gracefully();
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
fn an_endpoint_outside_its_executor_is_refused() {
    let certificates = Certificates::new();
    let outcome = ClientEndpoint::new(&certificates.client, ClientParams::default());
    assert!(matches!(outcome, Err(BindError::NoExecutor { .. })));
}
