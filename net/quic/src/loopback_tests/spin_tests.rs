//! A server that spins does not keep others of its core waiting.

use super::*;
use glommio::timer::Timer;
use std::{cell::Cell, rc::Rc};

/// Longer than the client takes for anything: the server never sleeps while it is asked.
const WINDOW: Duration = Duration::from_millis(5);

/// How long the server sleeps before its first answer, so that it waits for a datagram by then.
const ASLEEP: Duration = Duration::from_millis(20);

const PINGS: usize = 20_000;

/// Serves one stream, its first answer late, and counts the milliseconds that it notices.
async fn serve_late(endpoint: Endpoint, noticed: mpsc::SyncSender<u32>) {
    let incoming = endpoint.accept().await.expect("a client");
    let connection = incoming.handshake().await.unwrap();
    let (mut send, mut receive) = connection.accept_stream().await.unwrap().unwrap();
    let milliseconds = Rc::new(Cell::new(0));
    let counted = Rc::clone(&milliseconds);
    glommio::spawn_local(async move {
        loop {
            Timer::new(Duration::from_millis(1)).await;
            counted.set(counted.get() + 1);
        }
    })
    .detach();
    let mut is_first = true;
    while let Some(chunk) = receive.read_chunk().await.unwrap() {
        if std::mem::take(&mut is_first) {
            Timer::new(ASLEEP).await;
            milliseconds.set(0);
        }
        send.write_chunk(chunk).await.unwrap();
    }
    send.finish().unwrap();
    noticed.send(milliseconds.get()).unwrap();
    connection.closed().await;
}

#[test]
fn a_core_that_spins_for_long_lets_others_run() {
    let certificates = Certificates::new();
    let (noticed, heard) = mpsc::sync_channel(1);
    let server = Server::start_spinning(&certificates.server, WINDOW, |endpoint| {
        serve_late(endpoint, noticed)
    });
    let address = server.address;
    let took = on_tokio(async {
        let client = endpoint(&certificates.client);
        let connection = client.connect(address, "localhost").await.unwrap();
        let (mut send, mut receive) = connection.open_stream().await.unwrap();
        let mut begun = Instant::now();
        for n in 0..PINGS {
            send.write_chunk(Bytes::from_static(&[7; 16]))
                .await
                .unwrap();
            assert_eq!(receive.read_chunk().await.unwrap().unwrap().len(), 16);
            if n == 0 {
                begun = Instant::now();
            }
        }
        let took = begun.elapsed();
        send.finish().unwrap();
        assert_eq!(receive.read_chunk().await.unwrap(), None);
        client.close(0, "done");
        client.wait_idle().await;
        took
    });
    // Without a look at its timers the executor would notice every tenth of a second.
    let noticed = heard.recv().unwrap();
    let least = took.as_millis() / 20;
    assert!(u128::from(noticed) >= least, "{noticed} in {took:?}");
    server.stop_gracefully();
}
