//! Pages of several cores become one.

use super::*;
use nova_model::settings::EffectiveSettings;
use nova_model::{Epoch, StreamId, Timestamp};

fn info(key: &str, epoch: u64) -> StreamInfo {
    let plain = StreamSettings::default();
    StreamInfo {
        name: StreamName::parse(&format!("bucket/{key}")).expect("a legal name"),
        id: StreamId(1),
        settings: EffectiveSettings::resolve(&plain, &plain),
        fence: FencingToken::default(),
        first: SequenceNumber(0),
        tail: Position::default(),
        epoch: Epoch(epoch),
        created: Timestamp(0),
    }
}

fn page(keys: &[&str], has_more: bool) -> Listed<StreamInfo> {
    Listed {
        items: keys.iter().map(|key| info(key, 1)).collect(),
        has_more,
    }
}

fn keys(listed: &Listed<StreamInfo>) -> Vec<&str> {
    listed
        .items
        .iter()
        .map(|info| info.name.key.as_str())
        .collect()
}

#[test]
fn pages_are_merged_in_key_order_and_cut_to_the_limit() {
    let merged = merge(vec![page(&["b", "d"], false), page(&["a", "c"], false)], 10);
    assert_eq!(keys(&merged), ["a", "b", "c", "d"]);
    assert!(!merged.has_more);
    let merged = merge(vec![page(&["b", "d"], true), page(&["a", "c"], false)], 2);
    assert_eq!(keys(&merged), ["a", "b"]);
    assert!(merged.has_more);
    let merged = merge(vec![page(&["b"], false), page(&["a"], false)], 1);
    assert_eq!(keys(&merged), ["a"]);
    assert!(merged.has_more, "what was cut off is more");
    assert_eq!(keys(&merge(vec![], 5)), Vec::<&str>::new());
}

#[test]
fn a_stream_on_its_way_is_told_once_as_its_newest_leader_tells_it() {
    let old = Listed {
        items: vec![info("a", 3)],
        has_more: false,
    };
    let new = Listed {
        items: vec![info("a", 4)],
        has_more: false,
    };
    let merged = merge(vec![old, new], 10);
    assert_eq!(merged.items, [info("a", 4)]);
}
