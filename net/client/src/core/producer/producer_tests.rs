//! The producer's rules one by one, on virtual time.

use super::rig::*;
use super::*;
use crate::core::batcher::BatcherConfig;
use crate::core::handshake::{HandshakeFailure, HandshakeProblem};
use crate::core::outcome::Appended;
use crate::core::retry::BACKOFF_US_MAX;
use nova_model::limits::CLIENT_RETRY_BUDGET_US;
use nova_model::{Code, Facts};

#[test]
fn no_more_than_the_window_is_in_flight_and_a_freed_slot_takes_what_gathered() {
    let mut rig = Rig::open(Some(9), 2);
    for body in ["a", "b", "c"] {
        rig.append(body);
        rig.batcher.flush();
    }
    assert_eq!(rig.look(), ["b0#0", "b1#1"]);
    rig.batcher
        .push(rig.now, Record::new("d"))
        .expect("there is room");
    let pushed = rig
        .batcher
        .push(rig.now, Record::new("e"))
        .expect("there is room");
    rig.acked(0);
    assert_eq!(rig.look(), ["ok0", "b2#2"]);
    rig.acked(1);
    assert_eq!(rig.look(), ["ok1", "b3#3"], "d and e ride together");
    let at = rig.at();
    rig.acked(2);
    rig.producer.handle_acked(at, ack(3, 2));
    rig.look();
    assert!(rig.producer.is_quiet());
    let (_, result) = rig.results.pop().expect("resolved");
    let own: Appended = pushed.share.appended(&result.expect("acked"));
    assert_eq!((own.start, own.end), (position(4), position(5)));
}

#[test]
fn a_session_is_opened_only_for_something_to_send() {
    let mut rig = Rig::new(Some(9));
    assert!(rig.look().is_empty());
    rig.append("a");
    assert_eq!(rig.look(), ["connect"]);
    rig.producer.handle_opened(opened(0, 2));
    assert_eq!(rig.look(), ["b0#0"]);
    rig.acked(0);
    rig.lost();
    assert_eq!(rig.look(), ["ok0", "disconnect"]);
    rig.tick();
    assert!(
        rig.look().is_empty(),
        "nothing to send, nothing to connect for"
    );
    assert_eq!(rig.producer.next_deadline(&rig.batcher), None);
    rig.append("b");
    assert_eq!(rig.look(), ["connect"]);
}

#[test]
fn after_a_break_the_unacked_tail_is_sent_again_in_order_with_the_same_numbers() {
    let mut rig = Rig::open(Some(9), 4);
    for body in ["a", "b", "c"] {
        rig.append(body);
    }
    assert_eq!(rig.look(), ["b0#0", "b1#1", "b2#2"]);
    rig.acked(0);
    rig.lost();
    rig.append("d");
    assert_eq!(rig.look(), ["ok0", "disconnect"]);
    rig.tick();
    assert_eq!(rig.look(), ["connect"]);
    rig.producer.handle_opened(opened(3, 4));
    assert_eq!(rig.look(), ["b1#1", "b2#2", "b3#3"]);
}

#[test]
fn a_final_rejection_is_reported_and_plain_batches_behind_it_are_sent_again() {
    let mut rig = Rig::open(Some(9), 8);
    rig.append("a");
    rig.append("b");
    rig.append_if("c", 2);
    rig.append("d");
    assert_eq!(rig.look(), ["b0#0", "b1#1", "b2#2", "b3#3"]);
    rig.acked(0);
    rig.rejected(refusal(Code::Invalid));
    assert_eq!(
        rig.look(),
        ["ok0", "refused1"],
        "not resumed before all are answered"
    );
    rig.append("e");
    assert!(
        rig.look().is_empty(),
        "nothing is sent behind a rejected batch"
    );
    rig.rejected(refusal(Code::BehindRejected));
    assert_eq!(rig.look(), ["refused2"], "a conditional one is reported");
    rig.rejected(refusal(Code::BehindRejected));
    assert_eq!(rig.look(), ["resume", "b3#1", "b4#2"], "numbers stay dense");
}

#[test]
fn a_session_lost_behind_a_rejection_reports_conditional_batches_too() {
    let mut rig = Rig::open(Some(9), 8);
    rig.append("a");
    rig.append_if("b", 1);
    rig.append("c");
    rig.look();
    rig.rejected(refusal(Code::Invalid));
    rig.lost();
    assert_eq!(rig.look(), ["refused0", "refused1", "disconnect"]);
    rig.tick();
    rig.look();
    rig.producer.handle_opened(opened(0, 8));
    assert_eq!(
        rig.look(),
        ["b2#0"],
        "c was certainly not applied and is sent anew"
    );
}

#[test]
fn a_retryable_rejection_is_tried_again_after_a_backoff() {
    let retryable = [
        Code::DiskFull,
        Code::PolicyBusy,
        Code::RateLimited,
        Code::Draining,
    ];
    for code in retryable {
        let mut rig = Rig::open(Some(9), 8);
        rig.append("a");
        rig.append("b");
        rig.look();
        rig.rejected(refusal(code));
        rig.rejected(refusal(Code::BehindRejected));
        assert!(rig.look().is_empty(), "{code}: waits");
        rig.tick();
        assert!(rig.now > Instant(0));
        assert_eq!(rig.look(), ["resume", "b0#0", "b1#1"], "{code}");
        rig.acked(0);
        rig.acked(1);
        assert_eq!(rig.look(), ["ok0", "ok1"]);
    }
}

#[test]
fn the_star_may_say_how_long_to_wait() {
    let mut rig = Rig::open(Some(9), 8);
    rig.append("a");
    rig.look();
    rig.rejected(refusal(Code::RateLimited).with(Facts::After(7_000_000)));
    rig.tick();
    assert_eq!(rig.now, Instant(7_000_000));
    assert_eq!(rig.look(), ["resume", "b0#0"]);
}

#[test]
fn the_bit_on_the_wire_decides_not_the_code() {
    let mut rig = Rig::open(Some(9), 8);
    rig.append("a");
    rig.look();
    let mut never = refusal(Code::DiskFull);
    never.retry = false;
    rig.rejected(never);
    assert_eq!(rig.look(), ["refused0", "resume"]);
}

#[test]
fn an_uncertain_rejection_is_sent_again_under_its_number() {
    let mut rig = Rig::open(Some(9), 8);
    rig.append("a");
    rig.look();
    rig.rejected(refusal(Code::Unavailable));
    rig.tick();
    assert_eq!(rig.look(), ["resume", "b0#0"]);
    rig.rejected(refusal(Code::Invalid));
    assert_eq!(
        rig.look(),
        ["ambiguous0", "disconnect", "writer"],
        "the first try may have held"
    );
}

#[test]
fn a_redirect_is_followed_at_once_and_remembered_until_it_fails() {
    let mut rig = Rig::new(Some(9));
    rig.append("a");
    assert_eq!(rig.look(), ["connect"]);
    let at = rig.at();
    rig.producer.handle_open_refused(at, holder("two:1"));
    assert_eq!(rig.look(), ["disconnect", "connect two:1"]);
    rig.producer.handle_opened(opened(0, 4));
    assert_eq!(rig.look(), ["b0#0"]);
    rig.lost();
    rig.look();
    rig.tick();
    assert_eq!(rig.look(), ["connect two:1"]);
    rig.lost();
    rig.look();
    rig.tick();
    assert_eq!(rig.look(), ["connect"], "back to the star");
}

#[test]
fn a_leadership_that_moves_takes_the_unacked_tail_along() {
    let mut rig = Rig::open(Some(9), 4);
    rig.append("a");
    rig.append("b");
    rig.look();
    let at = rig.at();
    rig.producer.handle_broken(at, holder("three:1"));
    assert_eq!(rig.look(), ["disconnect", "connect three:1"]);
    rig.producer.handle_opened(opened(2, 4));
    assert_eq!(rig.look(), ["b0#0", "b1#1"]);
    rig.rejected(holder("four:1"));
    rig.rejected(refusal(Code::BehindRejected));
    assert_eq!(rig.look(), ["disconnect", "connect four:1"]);
}

#[test]
fn redirects_in_a_circle_end_in_a_backoff() {
    let mut rig = Rig::new(Some(9));
    rig.append("a");
    let mut connects = 0;
    while rig.look().iter().any(|word| word.starts_with("connect")) {
        connects += 1;
        assert!(connects < 100, "no end");
        let at = rig.at();
        rig.producer.handle_open_refused(at, holder("two:1"));
    }
    assert!(rig.producer.next_deadline(&rig.batcher).is_some());
}

#[test]
fn past_the_budget_every_append_is_unavailable_for_good() {
    let mut rig = Rig::open(Some(9), 4);
    rig.append("a");
    rig.look();
    rig.lost();
    rig.append("b");
    let mut words = Vec::new();
    while rig.producer.broken().is_none() {
        words.extend(rig.look());
        if words.last().is_some_and(|word| word == "connect") {
            rig.lost();
        } else {
            rig.tick();
        }
        assert!(rig.now.0 <= CLIENT_RETRY_BUDGET_US + BACKOFF_US_MAX);
    }
    assert!(
        rig.now.0 >= CLIENT_RETRY_BUDGET_US,
        "not before it is spent"
    );
    let end = rig.look();
    assert_eq!(end, ["unavailable0", "disconnect", "unavailable1"]);
    let sent = rig.results[0].1.clone().expect_err("unavailable");
    assert!(
        !sent.is_clean() && sent.ambiguity().is_some(),
        "a may have been applied"
    );
    assert!(
        rig.results[1]
            .1
            .clone()
            .expect_err("unavailable")
            .is_clean(),
        "b never left"
    );
    rig.append("c");
    assert_eq!(rig.look(), ["unavailable2"]);
    assert_eq!(rig.producer.next_deadline(&rig.batcher), None);
}

#[test]
fn what_no_retry_can_cure_surfaces_at_once_and_later_appends_try_anew() {
    let mut rig = Rig::new(None);
    rig.append("a");
    rig.look();
    let at = rig.at();
    rig.producer
        .handle_open_refused(at, refusal(Code::StreamNotFound));
    assert_eq!(rig.look(), ["disconnect", "refused0"]);
    rig.append("b");
    assert_eq!(rig.look(), ["connect"]);
    rig.producer.handle_opened(opened(0, 4));
    assert_eq!(rig.look(), ["b1"]);
    rig.producer.handle_broken(at, refusal(Code::Fenced));
    rig.append("c");
    assert_eq!(rig.look(), ["disconnect", "refused1", "refused2"]);
}

#[test]
fn an_address_that_does_not_resolve_fails_at_once() {
    let mut rig = Rig::new(None);
    rig.append("a");
    rig.look();
    rig.producer.handle_unresolvable("nowhere:1".to_owned());
    assert_eq!(rig.look(), ["unresolvable0"]);
}

#[test]
fn a_handshake_that_cannot_succeed_breaks_the_producer_at_once() {
    let mut rig = Rig::open(Some(9), 4);
    rig.append("a");
    rig.look();
    rig.lost();
    rig.append("b");
    rig.look();
    rig.tick();
    assert_eq!(rig.look(), ["connect"]);
    let failure = HandshakeFailure {
        address: "two:1".to_owned(),
        server_name: "two".to_owned(),
        authorities: None,
        problem: HandshakeProblem::UnknownAuthority,
    };
    rig.producer.handle_handshake_failed(Box::new(failure));
    assert_eq!(rig.look(), ["ambiguous0", "handshake1"]);
    rig.append("c");
    assert_eq!(rig.look(), ["handshake2"], "for good");
    assert_eq!(rig.producer.next_deadline(&rig.batcher), None);
}

#[test]
fn a_conditional_batch_is_judged_again_after_a_break() {
    let mut rig = Rig::open(Some(9), 4);
    rig.append_if("a", 0);
    rig.append_if("b", 1);
    rig.look();
    rig.lost();
    rig.look();
    rig.tick();
    rig.look();
    rig.producer.handle_opened(opened(0, 4));
    assert_eq!(rig.look(), ["b0#0", "b1#1"]);
    rig.rejected(mismatch_at(3));
    assert_eq!(
        rig.look(),
        ["refused0"],
        "judged after the search for duplicates: certain"
    );
    rig.rejected(refusal(Code::BehindRejected));
    assert_eq!(
        rig.look(),
        ["refused1", "resume"],
        "so the one behind it was not applied either"
    );
}

#[test]
fn a_mismatch_before_the_needed_tail_proves_nothing_after_a_break() {
    let mut rig = Rig::open(Some(9), 4);
    rig.append_if("a", 5);
    rig.look();
    rig.lost();
    rig.tick();
    rig.look();
    rig.producer.handle_opened(opened(3, 4));
    rig.look();
    rig.rejected(mismatch_at(3));
    let said = rig.look();
    assert_eq!(
        said[0], "ambiguous0",
        "an older copy may still fit when the tail is 5"
    );
}

#[test]
fn without_a_writer_a_mismatch_after_a_break_is_ambiguous() {
    let mut rig = Rig::open(None, 4);
    rig.append_if("a", 0);
    rig.look();
    rig.lost();
    rig.tick();
    rig.look();
    rig.producer.handle_opened(opened(1, 4));
    assert_eq!(rig.look(), ["b0"]);
    rig.rejected(refusal(Code::SeqMismatch));
    assert_eq!(rig.look(), ["ambiguous0", "resume"]);
    let error = rig.results[0].1.clone().expect_err("ambiguous");
    let since = error.ambiguity().map(|ambiguity| ambiguity.since);
    assert_eq!(since, Some(SequenceNumber(0)));
}

#[test]
fn a_writer_gap_takes_a_new_writer_and_reports_what_may_have_been_applied() {
    let mut rig = Rig::open(Some(9), 4);
    rig.append("a");
    rig.append("b");
    rig.look();
    rig.lost();
    rig.append("c");
    rig.look();
    rig.tick();
    rig.look();
    rig.producer.handle_opened(opened(2, 4));
    assert_eq!(rig.look(), ["b0#0", "b1#1", "b2#2"]);
    rig.rejected(refusal(Code::WriterGap).with(Facts::Expected(0)));
    assert_eq!(
        rig.look(),
        ["ambiguous0", "ambiguous1", "disconnect", "writer"]
    );
    let at = rig.at();
    rig.producer.set_writer(at, WriterId(10));
    assert_eq!(rig.look(), ["connect"]);
    rig.producer.handle_opened(opened(2, 4));
    assert_eq!(
        rig.look(),
        ["b2#0"],
        "what certainly was not applied goes on"
    );
}

#[test]
fn a_stream_made_anew_gets_nothing_of_the_old_one() {
    let mut rig = Rig::open(Some(9), 4);
    rig.append("a");
    rig.look();
    rig.lost();
    rig.append("b");
    rig.look();
    rig.tick();
    rig.look();
    let other = AppendOpened {
        stream_id: StreamId(2),
        ..opened(0, 4)
    };
    rig.producer.handle_opened(other);
    assert_eq!(rig.look(), ["ambiguous0", "disconnect", "refused1"]);
    rig.append("c");
    assert_eq!(rig.look(), ["refused2"], "for good");
}

#[test]
fn a_dropped_producer_resolves_everything() {
    let mut rig = Rig::open(Some(9), 1);
    rig.append("a");
    rig.append("b");
    rig.look();
    rig.producer.abandon(&mut rig.batcher);
    assert_eq!(rig.look(), ["ambiguous0", "closed1", "disconnect"]);
}

#[test]
fn a_lingering_batch_leaves_at_its_time() {
    let mut rig = Rig::open(Some(9), 4);
    rig.batcher = Batcher::new(BatcherConfig {
        linger_us: 300,
        ..BatcherConfig::default()
    });
    rig.batcher
        .push(rig.now, Record::new("a"))
        .expect("there is room");
    assert!(rig.look().is_empty());
    rig.tick();
    assert_eq!(rig.now, Instant(300));
    assert_eq!(rig.look(), ["b0#0"]);
}
