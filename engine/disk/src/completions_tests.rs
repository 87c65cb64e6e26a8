//! The queue's order, and that waiting ends with the next completion.

use super::*;
use crate::trial_tests::on_core;
use std::task::Waker;

#[test]
fn completions_come_in_order_and_wake_who_waits() {
    let completions = Completions::new();
    let mut context = Context::from_waker(Waker::noop());
    assert!(completions.poll_ready(&mut context).is_pending());
    completions.push(OpToken(1), DiskResult::Written);
    completions.push(OpToken(2), DiskResult::Finished);
    assert!(completions.poll_ready(&mut context).is_ready());
    assert!(matches!(
        completions.pop(),
        Some((OpToken(1), DiskResult::Written))
    ));
    assert!(matches!(
        completions.pop(),
        Some((OpToken(2), DiskResult::Finished))
    ));
    assert!(completions.pop().is_none());

    let pushed = completions.clone();
    on_core(async move {
        let task = glommio::spawn_local(async move { completions.next().await.0 });
        glommio::executor().yield_task_queue_now().await;
        pushed.push(OpToken(3), DiskResult::Written);
        assert_eq!(task.await, OpToken(3));
    });
}
