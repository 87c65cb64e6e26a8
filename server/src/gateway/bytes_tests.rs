//! Tests of peers that take nothing.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

#[tokio::test]
async fn a_peer_that_takes_nothing_loses_its_connection() {
    let (ours, mut theirs) = duplex(16);
    let mut ours = Patient::with_patience(ours, Duration::from_millis(50));
    let error = ours.write_all(&[7; 64]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    let mut seen = [0; 16];
    theirs.read_exact(&mut seen).await.unwrap();
}

/// The patience is for each step, not for all.
#[tokio::test]
async fn a_peer_that_takes_slowly_keeps_it() {
    let (ours, mut theirs) = duplex(4);
    let step = Duration::from_millis(20);
    let mut ours = Patient::with_patience(ours, 10 * step);
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
