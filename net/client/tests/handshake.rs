//! Handshakes that can't succeed, or only later: told at once, or tried again at a close pace.

mod star;

use nova_client::*;
use star::TestStar;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// Far less than the retry budget, and more than any busy machine needs.
const AT_ONCE: Duration = Duration::from_secs(10);

fn name() -> StreamName {
    StreamName::parse("bucket/trust").expect("a legal name")
}

fn failure(error: ClientError) -> HandshakeFailure {
    assert!(!error.is_retryable() && error.is_clean(), "{error:?}");
    match error {
        ClientError::Handshake(failure) => *failure,
        other => panic!("{other:?}"),
    }
}

/// All ways to a star fail alike, and none of them tries for long.
async fn every_way_fails(client: &Client) -> HandshakeFailure {
    let begun = Instant::now();
    let config = ProducerConfig::default();
    let producer = client.producer(name(), config).expect("a producer");
    let first = failure(
        producer
            .append(Record::new("a"))
            .await
            .expect_err("pending"),
    );
    let later = failure(producer.append(Record::new("b")).await.expect_err("later"));
    assert_eq!(later, first);
    let asked = failure(client.check_tail(name()).await.expect_err("a request"));
    assert_eq!(asked, first);
    let read = client.read(read_from(name(), 0)).await;
    assert_eq!(failure(read.expect_err("a reader")), first);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    first
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_star_of_another_authority_is_told_at_once_with_the_file() {
    let (star, other) = (TestStar::start(), TestStar::start());
    let config = ClientConfig {
        star: star.address(0),
        ..other.config()
    };
    let Authorities::File(file) = config.authorities.clone() else {
        panic!("the test star gives a file");
    };
    let client = Client::connect(config).expect("a client");
    let failure = every_way_fails(&client).await;
    assert_eq!(failure.problem, HandshakeProblem::UnknownAuthority);
    assert_eq!(failure.address, star.address(0));
    assert_eq!(failure.authorities.as_ref(), Some(&file));
    let text = ClientError::Handshake(Box::new(failure)).to_string();
    assert!(text.contains(&file.display().to_string()), "{text}");
    assert!(text.contains("copy tls/ca.pem of that star"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_the_certificate_does_not_hold_for_is_told_at_once() {
    let star = TestStar::start();
    let wrong = |name: &str| ClientConfig {
        server_name: Some(name.to_owned()),
        ..star.config()
    };
    let client = Client::connect(wrong("elsewhere.example")).expect("a client");
    let failure = every_way_fails(&client).await;
    assert_eq!(failure.problem, HandshakeProblem::WrongName);
    assert_eq!(failure.server_name, "elsewhere.example");
    let client = Client::connect(wrong("no name")).expect("a client");
    let failure = every_way_fails(&client).await;
    assert_eq!(failure.problem, HandshakeProblem::InvalidName);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_of_another_authority_is_told_at_once() {
    let (star, other) = (TestStar::start(), TestStar::start());
    let client = Client::connect(star.config()).expect("a client");
    star.knobs().holder = Some(other.address(1));
    let failure = every_way_fails(&client).await;
    assert_eq!(failure.problem, HandshakeProblem::UnknownAuthority);
    assert_eq!(failure.address, other.address(1));
}

/// Hands datagrams between clients and a star, except for the first `swallowed` of the clients.
async fn relay(socket: UdpSocket, star: SocketAddr, mut swallowed: u32) -> std::io::Result<()> {
    let socket = Arc::new(socket);
    let mut beyond = BTreeMap::new();
    let mut ways_back = JoinSet::new();
    let mut bytes = vec![0; 65_536];
    loop {
        let (count, client) = socket.recv_from(&mut bytes).await?;
        if swallowed > 0 {
            swallowed -= 1;
            continue;
        }
        if let Entry::Vacant(vacant) = beyond.entry(client) {
            let own = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?);
            own.connect(star).await?;
            vacant.insert(Arc::clone(&own));
            let socket = Arc::clone(&socket);
            ways_back.spawn(async move {
                let mut bytes = vec![0; 65_536];
                while let Ok(count) = own.recv(&mut bytes).await {
                    let _ = socket.send_to(&bytes[..count], client).await;
                }
            });
        }
        beyond[&client].send(&bytes[..count]).await?;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_star_that_is_silent_at_first_is_reached_soon_after() {
    let star = TestStar::start();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let address = socket.local_addr().expect("bound");
    let beyond = star.address(0).parse().expect("an address");
    let relayed = tokio::spawn(relay(socket, beyond, 12));
    let config = ClientConfig {
        star: address.to_string(),
        ..star.config()
    };
    let client = Client::connect(config).expect("a client");
    let begun = Instant::now();
    client.describe_star().await.expect("the star answers");
    // A handshake alone sends four packets in its five seconds: twelve that are lost take three.
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}");
    client.close().await;
    relayed.abort();
}
