//! Tests of peers that take nothing.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_nothing_loses_its_connection() {
    let (ours, mut theirs) = duplex(16);
    let mut ours = Patient::new(ours);
    let writing = async {
        ours.write_all(&[7; 8]).await?;
        ours.write_all(&[7; 64]).await
    };
    let error = writing.await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    let mut seen = [0; 16];
    theirs.read_exact(&mut seen).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_slowly_keeps_it() {
    let (ours, mut theirs) = duplex(4);
    let mut ours = Patient::new(ours);
    let step = Duration::from_micros(HTTP_STALL_US / 2);
    let mut every = tokio::time::interval(step);
    let taking = async {
        let mut seen = [0; 4];
        for _ in 0..16 {
            every.tick().await;
            theirs.read_exact(&mut seen).await.unwrap();
        }
    };
    let (written, ()) = tokio::join!(ours.write_all(&[7; 64]), taking);
    written.unwrap();
}
