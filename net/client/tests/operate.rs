//! Requests of those who operate a star.

mod star;

use nova_client::*;
use star::TestStar;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cores_are_drained_and_used_again() {
    let star = TestStar::start();
    let client = Client::connect(star.config()).expect("a client");
    let one = CoreSet::One(CoreId(1));
    let drained = client.drain(one).await.expect("drained").drained;
    assert_eq!(drained, [CoreId(1)]);
    assert_eq!(star.knobs().drained, [CoreId(1)]);
    let status = client.status().await.expect("a status");
    let is_drained: Vec<bool> = status.cores.iter().map(|core| core.is_drained).collect();
    assert_eq!(is_drained, [false, true]);
    assert_eq!(status.cores[1].address, star.address(1));
    let drained = client.drain(CoreSet::All).await.expect("drained").drained;
    assert_eq!(drained, [CoreId(0), CoreId(1)]);
    let placement = client.undrain(CoreSet::All).await.expect("used again");
    assert_eq!(
        placement,
        Placement {
            drained: Vec::new(),
            moved: 0
        }
    );
    let rebalanced = client.rebalance().await.expect("rebalanced");
    assert_eq!(
        rebalanced,
        Rebalanced {
            moves: Vec::new(),
            has_more: false
        }
    );
    client.close().await;
}
