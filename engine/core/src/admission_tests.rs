//! Every cell of policy x token installed x token presented, and the order of the checks.

use super::*;
use crate::state::StreamState;
use nova_model::ids::{StreamId, WriterId};
use nova_model::settings::StreamSettings;
use nova_model::{Record, StreamName, Timestamp};

fn state(fence: &str) -> StreamState {
    let name = StreamName::parse("bucket/key").expect("legal");
    let mut state = StreamState::new(StreamId(1), name, Timestamp(0), StreamSettings::default());
    state.fence = FencingToken::parse(fence).expect("legal");
    state
}

#[test]
fn every_cell_of_policy_and_tokens() {
    use ProducerPolicy::{Any, Fenced};
    let cells = [
        (Any, "", None, true),
        (Any, "", Some(""), true),
        (Any, "", Some("a"), false),
        (Any, "a", None, true),
        (Any, "a", Some(""), false),
        (Any, "a", Some("a"), true),
        (Any, "a", Some("b"), false),
        (Fenced, "", None, true),
        (Fenced, "", Some(""), true),
        (Fenced, "", Some("a"), false),
        (Fenced, "a", None, false),
        (Fenced, "a", Some(""), false),
        (Fenced, "a", Some("a"), true),
        (Fenced, "a", Some("b"), false),
    ];
    for (policy, installed, presented, passes) in cells {
        let token = presented.map(|text| FencingToken::parse(text).expect("legal"));
        let result = check_fence(&state(installed), policy, token.as_ref());
        assert_eq!(
            result.is_ok(),
            passes,
            "{policy:?} {installed:?} {presented:?}"
        );
        if let Err(refusal) = result {
            assert_eq!(refusal.facts, Facts::Token(installed.to_owned()));
        }
    }
}

#[test]
fn checks_come_in_the_order_of_the_contract() {
    let state = state("a");
    let settings = StreamSettings {
        timestamps: Some(TimestampMode::ClientRequire),
        ..StreamSettings::default()
    };
    let settings = EffectiveSettings::resolve(&settings, &StreamSettings::default());
    let batch = EncodedBatch::encode(&[Record::new("x")]).expect("legal");
    let timed = Record::new("x").with_timestamp(Timestamp(1));
    let timed = EncodedBatch::encode(&[timed]).expect("legal");
    let wrong = FencingToken::parse("b").expect("legal");
    let right = FencingToken::parse("a").expect("legal");
    let mut case = AppendCase {
        state: &state,
        settings: &settings,
        fence: Some(&wrong),
        match_sequence: Some(SequenceNumber(7)),
        writer: Some(WriterStamp {
            writer: WriterId(1),
            sequence: 3,
        }),
        batch: &batch,
        shortage: Some(Refusal::new(Code::DiskFull, "full")),
    };
    let code = |case: &AppendCase<'_>| match judge(case) {
        Verdict::Refuse(refusal) => refusal.code,
        other => panic!("{other:?}"),
    };
    assert_eq!(code(&case), Code::WriterGap);
    case.writer = None;
    assert_eq!(code(&case), Code::Fenced);
    case.fence = Some(&right);
    assert_eq!(code(&case), Code::SeqMismatch);
    case.match_sequence = Some(SequenceNumber(0));
    assert_eq!(code(&case), Code::Invalid);
    case.batch = &timed;
    assert_eq!(code(&case), Code::DiskFull);
    case.shortage = None;
    assert_eq!(judge(&case), Verdict::Admit);
}
