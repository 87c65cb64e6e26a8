//! Outcomes that are not known, where they come from, and how they are found out.

mod star;

use nova_client::*;
use nova_model::{WriterId, WriterStamp};
use star::TestStar;

async fn with_stream(star: &TestStar) -> (Client, StreamName) {
    let client = Client::connect(star.config()).expect("a client");
    let name = StreamName::parse("bucket/stream").expect("a legal name");
    let made = client.ensure_stream(name.clone(), StreamSettings::default());
    made.await.expect("a stream");
    (client, name)
}

fn order(id: &str) -> [Record; 1] {
    [Record::new("an order").with_header("id", id.to_owned())]
}

async fn append(client: &Client, name: &StreamName, id: &str) -> Result<Appended, ClientError> {
    let records = order(id);
    let with = AppendOnce::default();
    client.append_once(name.clone(), &records, with).await
}

/// Appends a batch whose answer is lost with its connection.
async fn lose_answer(star: &TestStar, client: &Client, name: &StreamName, id: &str) -> ClientError {
    star.knobs().break_every = Some(1);
    let error = append(client, name, id)
        .await
        .expect_err("the answer is lost");
    star.knobs().break_every = None;
    error
}

async fn tail(client: &Client, name: &StreamName) -> u64 {
    let tail = client.check_tail(name.clone()).await;
    tail.expect("a tail").sequence.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_is_ambiguous_and_can_be_found_out() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star).await;
    append(&client, &name, "zero").await.expect("appended");
    let error = lose_answer(&star, &client, &name, "one").await;
    assert!(matches!(error, ClientError::Ambiguous(_)), "{error:?}");
    assert!(!error.is_clean() && error.is_retryable());
    let ambiguity = error.ambiguity().expect("what is needed to find out");
    let found = client.find_append(&name, ambiguity, &order("one")).await;
    let found = found.expect("a search").expect("it is there");
    assert_eq!((found.start.sequence.0, found.end.sequence.0), (1, 2));
    let absent = client.find_append(&name, ambiguity, &order("two")).await;
    assert_eq!(absent, Ok(None));
    let settled = client
        .settle_append(&name, ambiguity, None, &order("one"))
        .await;
    let settled = settled.expect("settled");
    assert!(settled.duplicate && settled.start.sequence.0 == 1);
    assert_eq!(tail(&client, &name).await, 2, "nothing was sent again");
    let settled = client
        .settle_append(&name, ambiguity, None, &order("two"))
        .await;
    let settled = settled.expect("settled");
    assert!(!settled.duplicate && settled.start.sequence.0 == 2);
    assert_eq!(tail(&client, &name).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_absent_is_appended_once_however_many_others_append() {
    const OTHERS: u64 = 60;
    let star = TestStar::start();
    let (client, name) = with_stream(&star).await;
    let error = lose_answer(&star, &client, &name, "lost").await;
    let ambiguity = error.ambiguity().expect("what is needed to find out");
    let others = tokio::spawn({
        let (client, name) = (client.clone(), name.clone());
        async move {
            for n in 0..OTHERS {
                let placed = append(&client, &name, &format!("other-{n}")).await;
                placed.expect("appended");
            }
        }
    });
    for id in ["a", "b", "c", "lost", "d"] {
        let settled = client
            .settle_append(&name, ambiguity, None, &order(id))
            .await;
        assert_eq!(settled.expect("settled").duplicate, id == "lost", "{id}");
    }
    others.await.expect("no panic");
    let refused = Refusal::new(Code::SeqMismatch, "something came between");
    star.knobs().refuse = vec![refused; 3];
    let settled = client
        .settle_append(&name, ambiguity, None, &order("e"))
        .await;
    settled.expect("searched for again, and appended then");
    assert_eq!(tail(&client, &name).await, OTHERS + 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_numbered_append_is_tried_again_and_known() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star).await;
    star.knobs().break_every = Some(2);
    for sequence in 0..6 {
        let writer = WriterStamp {
            writer: WriterId(7),
            sequence,
        };
        let with = AppendOnce {
            writer: Some(writer),
            ..AppendOnce::default()
        };
        let placed = client.append_once(name.clone(), &order("any"), with).await;
        assert_eq!(placed.expect("appended").start.sequence.0, sequence);
    }
    assert!(star.knobs().batches > 6, "answers were lost");
    star.knobs().break_every = None;
    assert_eq!(tail(&client, &name).await, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_that_is_not_clean_is_ambiguous() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star).await;
    star.knobs().refuse = vec![Refusal::new(Code::Unavailable, "who knows")];
    let error = append(&client, &name, "one")
        .await
        .expect_err("it is not known");
    assert!(matches!(error, ClientError::Ambiguous(_)), "{error:?}");
    let refusal = error.refusal().expect("the star said something");
    assert_eq!(refusal.code, Code::Unavailable);
    let ambiguity = error.ambiguity().expect("what is needed to find out");
    let found = client.find_append(&name, ambiguity, &order("one")).await;
    assert_eq!(found, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_whose_repeat_changes_nothing_are_repeated_and_no_others() {
    let star = TestStar::start();
    let (client, name) = with_stream(&star).await;
    star.knobs().break_requests = 2;
    assert_eq!(tail(&client, &name).await, 0);
    star.knobs().break_requests = 1;
    let other = StreamName::parse("bucket/other").expect("a legal name");
    let made = client.ensure_stream(other, StreamSettings::default()).await;
    assert!(
        !made.expect("it is there").1,
        "made by the attempt whose answer was lost"
    );
    star.knobs().break_requests = 1;
    let third = StreamName::parse("bucket/third").expect("a legal name");
    let made = client.create_stream(third, StreamSettings::default()).await;
    let error = made.expect_err("made, or there before?");
    assert!(matches!(error, ClientError::Ambiguous(_)), "{error:?}");
}
