//! Contract 2.3, 2.7, 3: what an append may require, repeats, fencing and the policy of producers.

use crate::{
    SITE, all_bodies, append_once, in_time, make_stream, numbered, producer, refusal, stream,
    token, with_fence,
};
use nova_client::*;
use nova_e2e::home::Home;
use nova_model::{WriterId, WriterStamp};

/// Contract 2.3: `match_seq_num` is judged with all earlier admitted batches applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_conditional_appends_hold_or_name_the_tail() {
    let home = Home::new(SITE);
    let _star = home.start();
    let client = home.client();
    let name = make_stream(&client, "match").await;
    let producer = producer(&client, &name);
    let mut tickets = Vec::new();
    for n in 0..40 {
        let records = vec![Record::new(numbered(n))];
        tickets.push(
            producer
                .append_if_async(SequenceNumber(n), records)
                .await
                .expect("room"),
        );
    }
    for (n, ticket) in (0..).zip(tickets) {
        let appended = in_time("an ack", ticket)
            .await
            .expect("its condition holds");
        assert_eq!(appended.start.sequence.0, n);
    }
    let late = producer.append_if(SequenceNumber(39), vec![Record::new("late")]);
    let refused = refusal(in_time("an answer", late).await, Code::SeqMismatch);
    assert!(refused.clean && !refused.retry);
    assert!(matches!(refused.facts, Facts::Tail(tail) if tail.sequence.0 == 40));
    let next = producer.append_if(SequenceNumber(40), vec![Record::new(numbered(40))]);
    in_time("an ack", next)
        .await
        .expect("the session goes on behind a refusal");
    let read = all_bodies(&client, &name).await;
    assert!(
        (0..41)
            .map(numbered)
            .eq(read.iter().map(|body| body.to_vec()))
    );
}

/// Contract 2.7: a repeat is answered with its original positions, and nothing is guessed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writers_repeats_are_recognised() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "repeats").await;
    let once = async |sequence: u64, body: &'static str| {
        let stamp = WriterStamp {
            writer: WriterId(77),
            sequence,
        };
        let with = AppendOnce {
            writer: Some(stamp),
            ..AppendOnce::default()
        };
        let records = [Record::new(body)];
        in_time(
            "an answer",
            client.append_once(name.clone(), &records, with),
        )
        .await
    };
    let first = once(0, "a").await.expect("an ack");
    let second = once(1, "b").await.expect("an ack");
    let again = once(0, "a").await.expect("an ack");
    assert!(again.duplicate && !first.duplicate);
    assert_eq!((again.start, again.end), (first.start, first.end));
    refusal(once(1, "other").await, Code::DuplicateMismatch);
    let gap = refusal(once(3, "d").await, Code::WriterGap);
    assert_eq!(gap.facts, Facts::Expected(2));
    star.kill();
    let _star = home.start();
    let again = once(1, "b").await.expect("an ack");
    assert!(again.duplicate, "the table is rebuilt from the log");
    assert_eq!((again.start, again.end), (second.start, second.end));
    assert_eq!(all_bodies(&client, &name).await, ["a", "b"]);
}

/// Contract 3: a token shuts out who presents another one, at once, also across a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_shuts_older_tokens_out() {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "fence").await;
    let fence = client.fence(name.clone(), token("one"), Conditions::default());
    in_time("a fence", fence).await.expect("a fence");
    let one = client
        .producer(name.clone(), with_fence("one"))
        .expect("legal settings");
    in_time("an ack", one.append(Record::new("1")))
        .await
        .expect("it holds the token");
    let taken = Conditions {
        fence: Some(token("zero")),
        ..Conditions::default()
    };
    let refused = in_time("an answer", client.fence(name.clone(), token("two"), taken)).await;
    assert_eq!(
        refusal(refused, Code::Fenced).facts,
        Facts::Token("one".to_owned())
    );
    let fence = client.fence(name.clone(), token("two"), Conditions::default());
    in_time("a fence", fence).await.expect("a fence");
    let refused = in_time("an answer", one.append(Record::new("late"))).await;
    assert_eq!(
        refusal(refused, Code::Fenced).facts,
        Facts::Token("two".to_owned())
    );
    star.kill();
    let _star = home.start();
    let late = client
        .producer(name.clone(), with_fence("one"))
        .expect("legal settings");
    let refused = in_time("an answer", late.append(Record::new("later"))).await;
    assert_eq!(
        refusal(refused, Code::Fenced).facts,
        Facts::Token("two".to_owned())
    );
    let two = client
        .producer(name.clone(), with_fence("two"))
        .expect("legal settings");
    in_time("an ack", two.append(Record::new("2")))
        .await
        .expect("it holds the token");
    assert_eq!(all_bodies(&client, &name).await, ["1", "2"]);
}

/// Contract 3: on a `fenced` stream one session appends; a new writer takes over by a token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fenced_stream_has_one_producer_and_a_way_to_take_over() {
    let home = Home::new(SITE);
    let _star = home.start();
    let client = home.client();
    make_stream(&client, "any").await;
    let name = stream("fenced");
    let policy = Some(ProducerPolicy::Fenced);
    let settings = StreamSettings {
        policy,
        ..StreamSettings::default()
    };
    let made = client.create_stream(name.clone(), settings);
    in_time("a stream", made).await.expect("a stream");
    let old = producer(&client, &name);
    in_time("an ack", old.append(Record::new("old")))
        .await
        .expect("the first has the handle");
    let budget = std::time::Duration::from_millis(300);
    let once = append_once(&client, &name, Record::new("x"));
    let waited = tokio::time::timeout(budget, once).await;
    assert!(
        waited.is_err(),
        "busy is tried again for as long as the caller waits: {waited:?}"
    );
    let fence = client.fence(name.clone(), token("new"), Conditions::default());
    in_time("a fence", fence).await.expect("a fence");
    let new = client
        .producer(name.clone(), with_fence("new"))
        .expect("legal settings");
    in_time("an ack", new.append(Record::new("new")))
        .await
        .expect("the handle is free");
    let late = in_time("an answer", old.append(Record::new("late"))).await;
    refusal(late, Code::Fenced);
    assert_eq!(all_bodies(&client, &name).await, ["old", "new"]);
}
