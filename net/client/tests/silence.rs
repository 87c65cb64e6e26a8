//! Stars that fall silent: behind a cable that is cut, or alive and without an answer.

mod star;

use nova_client::*;
use star::TestStar;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::Notify;

const SILENCE: Duration = Duration::from_millis(1_500);
/// A test that waits for longer has failed: QUIC's own timeout would take 15 s.
const PATIENCE: Duration = Duration::from_secs(12);
const LONG_HEADER: u8 = 0x80;

/// A cable between clients and one port of a star.
struct Cable {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    /// A connection was begun at the near end while the cable was cut.
    dialled: Arc<Notify>,
}

impl Cable {
    async fn to(star: String) -> Cable {
        let near = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let near = Arc::new(near);
        let cable = Cable {
            address: near.local_addr().expect("it is bound"),
            is_cut: Arc::default(),
            dialled: Arc::default(),
        };
        tokio::spawn(carry(
            near,
            star,
            Arc::clone(&cable.is_cut),
            Arc::clone(&cable.dialled),
        ));
        cable
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }

    fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

async fn carry(near: Arc<UdpSocket>, star: String, is_cut: Arc<AtomicBool>, dialled: Arc<Notify>) {
    let mut ports: BTreeMap<SocketAddr, Arc<UdpSocket>> = BTreeMap::new();
    let mut bytes = vec![0; 65_536];
    loop {
        let (count, from) = near.recv_from(&mut bytes).await.expect("the near end");
        if is_cut.load(Ordering::SeqCst) {
            if bytes[0] & LONG_HEADER != 0 {
                dialled.notify_one();
            }
            continue;
        }
        if let Some(port) = ports.get(&from) {
            let _ = port.send(&bytes[..count]).await;
            continue;
        }
        let port = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        port.connect(&star).await.expect("the star's address");
        let _ = port.send(&bytes[..count]).await;
        let port = Arc::new(port);
        ports.insert(from, Arc::clone(&port));
        tokio::spawn(carry_back(
            port,
            from,
            Arc::clone(&near),
            Arc::clone(&is_cut),
        ));
    }
}

async fn carry_back(
    port: Arc<UdpSocket>,
    to: SocketAddr,
    near: Arc<UdpSocket>,
    is_cut: Arc<AtomicBool>,
) {
    let mut bytes = vec![0; 65_536];
    while let Ok(count) = port.recv(&mut bytes).await {
        if !is_cut.load(Ordering::SeqCst) {
            let _ = near.send_to(&bytes[..count], to).await;
        }
    }
}

/// A client behind a cable, and one beside it.
async fn behind_a_cable(star: &TestStar, key: &str) -> (Cable, Client, Client, StreamName) {
    let cable = Cable::to(star.address(0)).await;
    let mut config = star.config();
    config.silence_max = SILENCE;
    config.transport.transport.mtu_max = 1_200;
    let beside = Client::connect(config.clone()).expect("a client");
    config.star = cable.address.to_string();
    let behind = Client::connect(config).expect("a client");
    let name = StreamName::parse(&format!("bucket/{key}")).expect("a legal name");
    let made = beside.ensure_stream(name.clone(), StreamSettings::default());
    made.await.expect("a stream");
    (cable, behind, beside, name)
}

async fn in_time<T>(what: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, what).await;
    done.expect("it takes too long")
}

fn following(name: &StreamName) -> ReadOpen {
    let mut open = read_from(name.clone(), 0);
    open.follow = true;
    open
}

/// The sequence numbers of the next batch.
async fn next_batch(reader: &mut Reader) -> std::ops::Range<u64> {
    loop {
        let item = in_time(reader.next_batch()).await.expect("no error");
        if let Some(ReadItem::Batch(batch)) = item {
            return batch.first().0..batch.end().0;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_with_nothing_to_do_notices_that_its_star_is_gone() {
    let star = TestStar::start();
    let (cable, behind, beside, name) = behind_a_cable(&star, "reader").await;
    let append = async |body: &'static str| {
        let with = AppendOnce::default();
        let placed = beside
            .append_once(name.clone(), &[Record::new(body)], with)
            .await;
        placed.expect("appended");
    };
    append("before").await;
    let mut reader = in_time(behind.read(following(&name)))
        .await
        .expect("a reader");
    assert_eq!(next_batch(&mut reader).await, 0..1);
    cable.cut();
    let reading = tokio::spawn(async move { next_batch(&mut reader).await });
    let begun = std::time::Instant::now();
    in_time(cable.dialled.notified()).await;
    assert!(begun.elapsed() >= SILENCE / 3, "not before it was silent");
    append("meanwhile").await;
    cable.mend();
    assert_eq!(
        in_time(reading).await.expect("no panic"),
        1..2,
        "it follows on by itself"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_producer_with_something_under_way_goes_on_when_its_star_is_back() {
    let star = TestStar::start();
    let (cable, behind, _, name) = behind_a_cable(&star, "producer").await;
    let producer = behind
        .producer(name, ProducerConfig::default())
        .expect("a producer");
    in_time(producer.append(Record::new("before")))
        .await
        .expect("appended");
    cable.cut();
    let waiting = producer
        .append_async(Record::new("meanwhile"))
        .await
        .expect("staged");
    in_time(cable.dialled.notified()).await;
    cable.mend();
    let placed = in_time(waiting).await.expect("appended");
    assert_eq!(placed.start.sequence.0, 1);
    let placed = in_time(producer.append(Record::new("after")))
        .await
        .expect("appended");
    assert_eq!(placed.start.sequence.0, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_star_that_lives_and_does_not_answer_is_asked_anew() {
    let star = TestStar::start();
    let (_, _, client, name) = behind_a_cable(&star, "hung").await;
    let producer = client
        .producer(name.clone(), ProducerConfig::default())
        .expect("a producer");
    in_time(producer.append(Record::new("before")))
        .await
        .expect("appended");
    star.knobs().is_silent = true;
    let waiting = producer
        .append_async(Record::new("once"))
        .await
        .expect("staged");
    let asked_again = async {
        while star.knobs().batches < 3 {
            tokio::task::yield_now().await;
        }
    };
    in_time(asked_again).await;
    star.knobs().is_silent = false;
    let placed = in_time(waiting).await.expect("appended");
    assert!(placed.duplicate, "it was there already");
    assert_eq!(placed.end.sequence.0, 2);

    star.knobs().opens_no_read = true;
    let reads = star.knobs().reads;
    let reading = tokio::spawn({
        let (client, open) = (client.clone(), following(&name));
        async move {
            let mut reader = client.read(open).await.expect("a reader");
            next_batch(&mut reader).await
        }
    });
    let asked_again = async {
        while star.knobs().reads < reads + 2 {
            tokio::task::yield_now().await;
        }
    };
    in_time(asked_again).await;
    star.knobs().opens_no_read = false;
    assert_eq!(in_time(reading).await.expect("no panic"), 0..1);
}

/// Seen before: callers made their attempts to connect one after another, so that the last of
/// twenty ended twenty times as late as the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_a_star_that_is_gone_share_each_attempt_to_connect() {
    const CALLERS: usize = 20;
    const ATTEMPT: Duration = Duration::from_millis(500);
    let star = TestStar::start();
    let deaf = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let mut config = star.config();
    config.star = deaf.local_addr().expect("it is bound").to_string();
    config.retry_budget = ATTEMPT / 2;
    config.transport.connect_timeout = ATTEMPT;
    let client = Client::connect(config).expect("a client");
    let name = StreamName::parse("bucket/gone").expect("a legal name");
    let begun = std::time::Instant::now();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let (client, name) = (client.clone(), name.clone());
        calls.spawn(async move { client.check_tail(name).await });
    }
    while let Some(called) = in_time(calls.join_next()).await {
        let error = called.expect("no panic").expect_err("nobody is there");
        assert!(
            matches!(error, ClientError::Unavailable { .. }),
            "{error:?}"
        );
    }
    assert!(begun.elapsed() < ATTEMPT * (CALLERS as u32) / 2);
}

/// An entity writer used to try for 30 s whatever its client was told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entity_writer_tries_for_as_long_as_its_client() {
    let star = TestStar::start();
    let deaf = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let mut config = star.config();
    config.star = deaf.local_addr().expect("it is bound").to_string();
    config.retry_budget = Duration::from_millis(250);
    let client = Client::connect(config).expect("a client");
    let writer = client.entity_writer(EntityWriterConfig::default());
    let name = StreamName::parse("bucket/gone").expect("a legal name");
    let update = Update::new("id", Record::new("body")).expect("a legal update");
    let written = in_time(writer.expect("a writer").write(name, update)).await;
    let error = written.expect_err("nobody is there");
    assert!(
        matches!(error, UpdateError::Unavailable { is_clean: true, .. }),
        "{error:?}"
    );
}
