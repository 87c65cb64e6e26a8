//! Sessions that end: what is in doubt then, and what is not.

use super::rig::*;
use super::*;
use nova_model::Code;
use nova_model::limits::{CLIENT_RETRY_BUDGET_US, CLIENT_SILENCE_US};

#[test]
fn after_a_clean_notice_nothing_is_in_doubt() {
    for notice in [
        holder("three:1"),
        refusal(Code::Draining),
        refusal(Code::PolicyBusy),
    ] {
        let mut rig = Rig::open(None, 4);
        rig.append_if("a", 0);
        rig.append("b");
        rig.append_if("c", 2);
        assert_eq!(rig.look(), ["b0", "b1", "b2"]);
        rig.broken(notice.clone());
        rig.look();
        if notice.code != Code::NotOwner {
            rig.tick();
            rig.look();
        }
        rig.producer.handle_opened(opened(1, 4));
        assert_eq!(rig.look(), ["b0", "b1", "b2"], "in their order, {notice}");
        rig.rejected(mismatch_at(1));
        rig.rejected(refusal(Code::BehindRejected));
        rig.rejected(refusal(Code::BehindRejected));
        assert_eq!(
            rig.look(),
            ["refused0", "refused2", "resume", "b1"],
            "{notice}"
        );
    }
}

#[test]
fn a_final_and_clean_notice_refuses_what_it_did_not_answer() {
    for writer in [None, Some(9)] {
        let mut rig = Rig::open(writer, 4);
        rig.append("a");
        rig.append_if("b", 1);
        rig.look();
        rig.acked(0);
        rig.broken(refusal(Code::Fenced));
        assert_eq!(rig.look()[..3], ["ok0", "disconnect", "refused1"]);
        let (_, told) = &rig.results[1];
        assert!(told.clone().expect_err("fenced").is_clean());
    }
}

#[test]
fn a_notice_that_is_not_clean_leaves_doubt() {
    let mut rig = Rig::open(None, 4);
    rig.append_if("a", 0);
    rig.look();
    rig.broken(refusal(Code::Unavailable));
    rig.look();
    rig.tick();
    rig.look();
    rig.producer.handle_opened(opened(1, 4));
    rig.look();
    rig.rejected(mismatch_at(1));
    assert_eq!(rig.look(), ["ambiguous0", "resume"]);
}

#[test]
fn a_clean_notice_does_not_settle_what_an_earlier_session_left_in_doubt() {
    let mut rig = Rig::open(None, 4);
    rig.append_if("a", 0);
    rig.look();
    rig.lost();
    rig.tick();
    rig.look();
    rig.producer.handle_opened(opened(0, 4));
    rig.append("b");
    assert_eq!(rig.look(), ["b0", "b1"]);
    rig.broken(refusal(Code::Fenced));
    assert_eq!(rig.look(), ["disconnect", "ambiguous0", "refused1"]);
}

#[test]
fn a_clean_notice_keeps_the_numbers_dense() {
    let mut rig = Rig::open(Some(9), 4);
    for body in ["a", "b", "c"] {
        rig.append(body);
    }
    rig.look();
    rig.acked(0);
    rig.broken(holder("three:1"));
    rig.look();
    rig.producer.handle_opened(opened(1, 4));
    assert_eq!(rig.look(), ["b1#1", "b2#2"]);
    rig.rejected(refusal(Code::Invalid));
    rig.rejected(refusal(Code::BehindRejected));
    let words = ["refused1", "resume", "b2#1"];
    assert_eq!(
        rig.look(),
        words,
        "nobody has the number of what was refused"
    );
}

/// The notice came in the same read as the rejection, and opened a session for the writer that had
/// just been given up, with its numbers begun anew: what had the content of an old batch was
/// answered as a repeat of it, and was nowhere.
#[test]
fn a_notice_behind_a_lost_numbering_does_not_bring_the_old_writer_back() {
    let mut rig = Rig::open(Some(9), 4);
    rig.append("a");
    rig.look();
    rig.acked(0);
    rig.append("b");
    rig.look();
    rig.rejected(refusal(Code::WriterGap));
    rig.broken(holder("three:1"));
    assert_eq!(rig.look(), ["disconnect", "writer"]);
    let at = rig.at();
    rig.producer.set_writer(at, WriterId(10));
    rig.producer.pump(rig.now, &mut rig.batcher);
    match rig.producer.poll_action() {
        Some(Action::Connect { open, .. }) => assert_eq!(open.writer, Some(WriterId(10))),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_star_that_owes_answers_and_is_silent_is_asked_anew() {
    let mut rig = Rig::open(Some(9), 4);
    rig.append("a");
    rig.append("b");
    rig.look();
    rig.now = rig.now.plus_us(CLIENT_SILENCE_US - 1);
    rig.acked(0);
    rig.look();
    rig.tick();
    let heard = CLIENT_SILENCE_US - 1;
    assert_eq!(
        rig.now,
        Instant(heard + CLIENT_SILENCE_US),
        "since it was heard last"
    );
    assert_eq!(rig.look(), ["disconnect"]);
    rig.tick();
    assert_eq!(rig.look(), ["connect"]);
    rig.producer.handle_opened(opened(1, 4));
    assert_eq!(rig.look(), ["b1#1"]);
    rig.acked(1);
    assert_eq!(rig.look(), ["ok1"]);
    assert_eq!(
        rig.producer.next_deadline(&rig.batcher),
        None,
        "nothing is owed"
    );
}

#[test]
fn the_time_in_which_nothing_was_owed_does_not_count_as_silence() {
    let mut rig = Rig::open(Some(9), 4);
    assert_eq!(rig.producer.next_deadline(&rig.batcher), None);
    rig.now = rig.now.plus_us(100 * CLIENT_SILENCE_US);
    rig.append("a");
    assert_eq!(rig.look(), ["b0#0"]);
    let deadline = rig.producer.next_deadline(&rig.batcher);
    assert_eq!(deadline, Some(rig.now.plus_us(CLIENT_SILENCE_US)));
    let at = rig.at();
    rig.producer.handle_tick(at);
    assert!(rig.look().is_empty());
}

#[test]
fn a_session_whose_opening_is_not_answered_is_asked_for_anew() {
    let mut rig = Rig::new(Some(9));
    rig.append("a");
    assert_eq!(rig.look(), ["connect"]);
    let deadline = rig.producer.next_deadline(&rig.batcher);
    assert_eq!(deadline, None, "dialling has a limit of its own");
    rig.producer.handle_asked(rig.now);
    rig.tick();
    assert_eq!(rig.now, Instant(CLIENT_SILENCE_US));
    assert_eq!(rig.look(), ["disconnect"]);
    rig.tick();
    assert_eq!(rig.look(), ["connect"]);
}

#[test]
fn a_star_that_stays_silent_is_given_up_past_the_budget() {
    let mut rig = Rig::open(Some(9), 4);
    rig.append("a");
    rig.look();
    while rig.producer.broken().is_none() {
        rig.tick();
        if rig.look().iter().any(|word| word == "connect") {
            rig.producer.handle_asked(rig.now);
            rig.producer.handle_opened(opened(0, 4));
            rig.look();
        }
        assert!(
            rig.now.0 <= CLIENT_SILENCE_US + CLIENT_RETRY_BUDGET_US,
            "no end"
        );
    }
    rig.look();
    let (_, told) = rig.results.pop().expect("it was told");
    assert_eq!(kind(&told.expect_err("unavailable")), "unavailable");
}
