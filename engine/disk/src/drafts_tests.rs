//! Drafts of new generations on real files: whole when they have their name, gone when given up.

use super::*;
use crate::trial_tests::*;
use bytes::Bytes;
use nova_model::Generation;

const MIB: u64 = 1024 * 1024;

fn draft(offset: u64, bytes: Vec<u8>) -> DiskOp {
    let length = bytes.len().next_multiple_of(BLOCK);
    DiskOp::WriteDraft {
        file: segment(1),
        generation: Generation(1),
        offset,
        parts: vec![Bytes::from(bytes)],
        length,
    }
}

#[test]
fn a_generation_has_its_name_when_it_is_whole_and_the_one_before_stays_readable() {
    let trial = Trial::new();
    on_core(async {
        let core = Core::new(&trial).await;
        created(core.create(1, MIB).await);
        assert_written(core.write(1, 0, pattern(BLOCK, 1)).await);
        assert_finished(core.finish(1, MIB).await);
        assert_eq!(bytes(core.read(1, 0, BLOCK).await), pattern(BLOCK, 1));
        let large = pattern(300 * 1024, 3);
        assert_written(core.act(draft(BLOCK as u64, large.clone())).await);
        assert_written(core.act(draft(0, pattern(100, 2))).await);
        let (old, new) = ("00000000000000000001.seg", "00000000000000000001-00001.seg");
        assert_eq!(trial.names(), [&format!("{new}.draft"), old]);
        let length = (BLOCK + large.len()) as u64;
        let place = DiskOp::PlaceDraft {
            file: segment(1),
            generation: Generation(1),
            length,
            index: Bytes::from_static(b"index"),
        };
        match core.act(place).await {
            DiskResult::Mapped(index) => assert_eq!(&index[..], b"index"),
            other => panic!("{}", failed(other)),
        }
        let index = "00000000000000000001-00001.idx";
        assert_eq!(trial.names(), [index, new, old]);
        assert_eq!(bytes(core.read(1, 0, BLOCK).await), pattern(BLOCK, 1));
        let read = DiskOp::Read {
            file: segment(1),
            generation: Generation(1),
            offset: BLOCK as u64,
            length: large.len(),
        };
        assert_eq!(bytes(core.act(read).await), large);
        assert_finished(core.act(recycle(1, 0)).await);
        assert_eq!(trial.names(), [index, new, "spare-000.seg"]);
        assert_finished(core.act(recycle(1, 1)).await);
        assert_eq!(trial.names(), ["spare-000.seg"]);
        core.driver.close().await;
    });
}

#[test]
fn a_draft_that_is_given_up_leaves_nothing() {
    let trial = Trial::new();
    on_core(async {
        let core = Core::new(&trial).await;
        created(core.create(1, MIB).await);
        assert_written(core.act(draft(0, pattern(BLOCK, 2))).await);
        let (file, generation) = (segment(1), Generation(1));
        for _ in 0..2 {
            let drop = DiskOp::DropDraft { file, generation };
            assert_finished(core.act(drop).await);
            assert_eq!(trial.names(), ["00000000000000000001.seg"]);
        }
        core.driver.close().await;
    });
}
