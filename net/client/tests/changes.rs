//! Fences, settings and deletions whose answers are lost, with others who come in between.

mod star;

use nova_client::*;
use star::TestStar;
use std::time::Duration;

/// A request is lost before it is done.
const REQUEST: bool = false;
/// A request is done, and its answer lost.
const ANSWER: bool = true;
/// Times that a request must have been sent until it was clearly asked anew.
const SENDINGS: u32 = 3;

async fn with_stream(star: &TestStar) -> (Client, StreamName) {
    let client = Client::connect(star.config()).expect("a client");
    let name = StreamName::parse("bucket/stream").expect("a legal name");
    let made = client.ensure_stream(name.clone(), StreamSettings::default());
    made.await.expect("a stream");
    (client, name)
}

fn token(text: &str) -> FencingToken {
    FencingToken::parse(text).expect("a legal token")
}

async fn fence(client: &Client, name: &StreamName, text: &str) -> Result<Position, ClientError> {
    let conditions = Conditions::default();
    client.fence(name.clone(), token(text), conditions).await
}

async fn installed(client: &Client, name: &StreamName) -> String {
    let info = client.describe_stream(name.clone()).await;
    info.expect("a stream").fence.to_string()
}

/// Seen before: a fence whose answer was lost with its star was sent again 5.5 s later, and took
/// the stream back from whoever had fenced in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_whose_answer_is_lost_is_found_and_not_repeated() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star).await;
    fence(&client, &name, "old").await.expect("fenced");
    star.knobs().lose.push_back(ANSWER);
    let done = star.knobs().changes;
    fence(&client, &name, "new").await.expect("it is there");
    assert_eq!(star.knobs().changes, done + 1, "it was installed once");
    assert_eq!(installed(&client, &name).await, "new");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_that_never_came_is_sent_again() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star).await;
    fence(&client, &name, "old").await.expect("fenced");
    star.knobs().lose.extend([REQUEST, REQUEST, ANSWER]);
    fence(&client, &name, "new").await.expect("fenced");
    assert_eq!(installed(&client, &name).await, "new");
    assert_eq!(star.knobs().changes, 2);
    let conditions = Conditions {
        fence: Some(token("new")),
        match_sequence: Some(SequenceNumber(0)),
    };
    star.knobs().lose.extend([REQUEST, ANSWER]);
    let fenced = client.fence(name.clone(), token("next"), conditions.clone());
    fenced.await.expect("fenced");
    star.knobs().lose.push_back(REQUEST);
    let refused = client.fence(name.clone(), token("late"), conditions).await;
    let error = refused.expect_err("the token is gone");
    assert!(matches!(error, ClientError::Ambiguous(_)) || error.is_clean());
    assert_eq!(installed(&client, &name).await, "next");
}

/// Whoever fences as soon as the first attempt is gone keeps the stream, whether it had arrived
/// or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_never_takes_a_stream_back_from_whoever_came_in_between() {
    for loss in [REQUEST, ANSWER] {
        let star = TestStar::start();
        let (client, name) = with_stream(&star).await;
        fence(&client, &name, "old").await.expect("fenced");
        let other = Client::connect(star.config()).expect("a client");
        star.knobs().lose.push_back(loss);
        star.knobs().fence_after_loss = Some(token("other"));
        let error = fence(&client, &name, "new").await.expect_err("in between");
        assert!(matches!(error, ClientError::Ambiguous(_)), "{error:?}");
        let refusal = error.refusal().expect("what is there");
        assert_eq!(refusal.facts, Facts::Token("other".to_owned()));
        assert_eq!(installed(&other, &name).await, "other");
        fence(&client, &name, "again")
            .await
            .expect("asked for anew");
        assert_eq!(installed(&other, &name).await, "again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_and_deletions_are_done_once_whatever_is_lost() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star).await;
    let change = StreamSettings {
        policy: Some(ProducerPolicy::Fenced),
        ..StreamSettings::default()
    };
    star.knobs().lose.extend([REQUEST, ANSWER]);
    let changed = client.reconfigure_stream(name.clone(), change).await;
    let info = changed.expect("changed");
    assert_eq!(info.settings.policy.value, ProducerPolicy::Fenced);
    assert_eq!(star.knobs().changes, 1);
    star.knobs().lose.extend([REQUEST, ANSWER]);
    client.delete_stream(name.clone()).await.expect("deleted");
    assert_eq!(star.knobs().changes, 2);
    let again = client.delete_stream(name).await.expect_err("it is gone");
    let code = again.refusal().map(|refusal| refusal.code);
    assert!(again.is_clean() && code == Some(Code::StreamNotFound));
}

/// A request that was lost, or came late, did to a stream made anew under the same name what was
/// meant for the old one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_meant_for_a_stream_does_nothing_to_one_made_anew() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star).await;
    let one = Record::new("one");
    for loss in [REQUEST, ANSWER] {
        let change = StreamSettings {
            policy: Some(ProducerPolicy::Fenced),
            ..StreamSettings::default()
        };
        let lose = || {
            star.knobs().lose.push_back(loss);
            star.knobs().remakes_after_loss = true;
        };
        let once = client.append_once(
            name.clone(),
            std::slice::from_ref(&one),
            AppendOnce::default(),
        );
        once.await.expect("an ack");
        let old = client.describe_stream(name.clone()).await.expect("there");
        lose();
        let trimmed = client
            .trim(name.clone(), SequenceNumber(1), Conditions::default())
            .await;
        assert!(matches!(trimmed, Err(ClientError::Ambiguous(_))));
        lose();
        let changed = client.reconfigure_stream(name.clone(), change).await;
        assert!(matches!(changed, Err(ClientError::Ambiguous(_))));
        lose();
        let fenced = fence(&client, &name, "mine").await;
        assert!(matches!(fenced, Err(ClientError::Ambiguous(_))));
        lose();
        let deleted = client.delete_stream(name.clone()).await;
        deleted.expect("that one is gone");
        // Where the deletion was done before the loss, nothing was there to be made anew.
        let made = client.ensure_stream(name.clone(), StreamSettings::default());
        made.await.expect("a stream");
        let new = client.describe_stream(name.clone()).await.expect("there");
        assert!(new.id != old.id && new.first == SequenceNumber(0));
        assert!(new.fence.is_none());
    }
}

/// A trim was given up as ambiguous at once when its answer was lost and it had a condition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trim_whose_answer_is_lost_is_looked_for() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star).await;
    let records = [Record::new("one"), Record::new("two")];
    let once = client.append_once(name.clone(), &records, AppendOnce::default());
    once.await.expect("an ack");
    let under = Conditions {
        match_sequence: Some(SequenceNumber(2)),
        ..Conditions::default()
    };
    star.knobs().lose.extend([REQUEST, ANSWER]);
    let trimmed = client.trim(name.clone(), SequenceNumber(1), Conditions::default());
    assert_eq!(trimmed.await.expect("trimmed").0, SequenceNumber(1));
    assert_eq!(star.knobs().changes, 1);
    star.knobs().lose.push_back(REQUEST);
    let trimmed = client.trim(name.clone(), SequenceNumber(2), under.clone());
    assert_eq!(trimmed.await.expect("trimmed").0, SequenceNumber(2));
    star.knobs().lose.push_back(ANSWER);
    let trimmed = client.trim(name.clone(), SequenceNumber(2), under).await;
    let error = trimmed.expect_err("who trimmed is not known");
    assert!(matches!(error, ClientError::Ambiguous(_)), "{error:?}");
}

/// A star that lives and does not answer a request: it is taken for lost after the silence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_an_answer_is_asked_anew_after_the_silence() {
    let star = TestStar::start();
    let mut config = star.config();
    config.silence_max = Duration::from_millis(600);
    let client = Client::connect(config).expect("a client");
    let (_, name) = with_stream(&star).await;
    client.check_tail(name.clone()).await.expect("a tail");
    star.knobs().answers_no_request = true;
    let asked = star.knobs().requests;
    let asking = tokio::spawn({
        let name = name.clone();
        async move { client.check_tail(name).await }
    });
    let asked_anew = async {
        while star.knobs().requests < asked + SENDINGS {
            tokio::task::yield_now().await;
        }
    };
    let patience = Duration::from_secs(20);
    let waited = tokio::time::timeout(patience, asked_anew).await;
    waited.expect("it is asked anew");
    star.knobs().answers_no_request = false;
    let tail = tokio::time::timeout(patience, asking).await;
    tail.expect("in time").expect("no panic").expect("a tail");
}
