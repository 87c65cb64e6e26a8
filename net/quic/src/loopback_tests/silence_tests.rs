//! A server that does not answer for a while, and what the client sends meanwhile.

use super::*;
use std::ops::ControlFlow;
use tokio::net::UdpSocket;

/// QUIC itself never sends the same bytes again: one would do.
const PROBES: usize = 10;

/// Stands between a client and a server.
struct Relay {
    near: UdpSocket,
    far: UdpSocket,
    client: Option<SocketAddr>,
    /// What the client has sent.
    sent: Vec<Vec<u8>>,
}

impl Relay {
    async fn to(server: SocketAddr) -> Relay {
        let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        far.connect(server).await.unwrap();
        Relay {
            near,
            far,
            client: None,
            sent: Vec::new(),
        }
    }

    /// Carries datagrams both ways.
    async fn carry(&mut self) {
        let (mut from_client, mut from_server) = ([0; 65_536], [0; 65_536]);
        loop {
            tokio::select! {
                received = self.near.recv_from(&mut from_client) => {
                    let (count, client) = received.unwrap();
                    self.client = Some(client);
                    self.sent.push(from_client[..count].to_vec());
                    self.far.send(&from_client[..count]).await.unwrap();
                }
                received = self.far.recv(&mut from_server) => {
                    let client = self.client.expect("clients speak first");
                    self.near.send_to(&from_server[..received.unwrap()], client).await.unwrap();
                }
            }
        }
    }

    /// Swallows what the client sends until `look` has seen enough.
    async fn swallow(&mut self, mut look: impl FnMut(&[Vec<u8>], &[u8]) -> ControlFlow<()>) {
        let mut bytes = [0; 65_536];
        loop {
            let (count, _) = self.near.recv_from(&mut bytes).await.unwrap();
            let flow = look(&self.sent, &bytes[..count]);
            self.sent.push(bytes[..count].to_vec());
            if flow.is_break() {
                return;
            }
        }
    }
}

#[test]
fn a_silent_server_is_probed_and_the_connection_goes_on_when_it_answers() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates.server, serve_copy);
    on_tokio(async {
        let mut relay = Relay::to(server.address).await;
        let address = relay.near.local_addr().unwrap();
        let endpoint = endpoint(&certificates.client);
        let exchange = async {
            let connection = endpoint.connect(address, "localhost").await.unwrap();
            let streams = connection.open_stream().await.unwrap();
            let (mut send, mut receive) = streams;
            send.write_chunk(noise(5_000)).await.unwrap();
            let mut count = 0;
            while count < 5_000 {
                count += receive.read_chunk().await.unwrap().unwrap().len();
            }
            (connection, send, receive)
        };
        let (connection, mut send, mut receive) = tokio::select! {
            open = exchange => open,
            () = relay.carry() => unreachable!("it goes on"),
        };

        send.write_chunk(noise(1_000)).await.unwrap();
        send.finish().unwrap();
        let mut probes = 0;
        let swallowed = relay.swallow(|sent, datagram| {
            probes += usize::from(sent.iter().any(|whole| whole.starts_with(datagram)));
            match probes {
                PROBES => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        let swallowed = tokio::time::timeout(Duration::from_secs(60), swallowed).await;
        assert!(swallowed.is_ok(), "{probes} probes came");
        assert_eq!(connection.close_reason(), None);

        // The server is back: it has seen none of that, and takes a probe for nothing.
        let probe = relay.sent.last().unwrap();
        relay.far.send(probe).await.unwrap();
        let rest = async {
            let mut rest = Vec::new();
            while let Some(chunk) = receive.read_chunk().await.unwrap() {
                rest.extend_from_slice(&chunk);
            }
            rest
        };
        let rest = tokio::select! {
            rest = rest => rest,
            () = relay.carry() => unreachable!("it goes on"),
        };
        assert!(rest == noise(1_000), "what was sent comes back");
        assert_eq!(connection.close_reason(), None);
    });
}
