//! Answers of a scenario as words, and the words of reads and settings as values.
//!
//! # Not here
//! - Playing them: [`crate::script`].

use nova_core::Event;
use nova_model::condition::{Conditions, FencingToken};
use nova_model::names::BucketName;
use nova_model::request::{
    Ack, Answer, CoreSet, Page, ReadLimits, ReadOpen, ReadStart, Request, StreamMove,
};
use nova_model::settings::{
    BucketChange, BucketSettings, ProducerPolicy, Retention, StreamSettings,
};
use nova_model::{CoreId, StreamId, StreamName, Timestamp};
use nova_model::{EncodedBatch, Facts, Record, Refusal, SequenceNumber, StoredBatch};
use std::collections::BTreeMap;

/// A refusal: its code and what it names.
pub fn code_words(refusal: &Refusal) -> String {
    let facts = match &refusal.facts {
        Facts::None | Facts::Field { .. } | Facts::After(_) | Facts::Space { .. } => String::new(),
        Facts::Token(token) => format!(" token {token}"),
        Facts::Tail(tail) => format!(" tail {}", tail.sequence),
        Facts::First(first) => format!(" first {first}"),
        Facts::Expected(number) => format!(" expected {number}"),
        Facts::Holder { address, .. } => format!(" at {}", address.as_deref().unwrap_or("?")),
        Facts::Range { from, to } => format!(" {from}..{to}"),
    };
    format!("{}{facts}", refusal.code)
}

/// An ack: the range, and whether it had been applied before.
pub fn ack_words(ack: &Ack) -> String {
    let again = if ack.duplicate { " again" } else { "" };
    format!("acked {}..{}{again}", ack.start.sequence, ack.end.sequence)
}

/// A batch: each record with its number; a long body by its length.
pub fn records_words(batch: &StoredBatch) -> String {
    let mut words = Vec::new();
    batch.for_each(|position, record| {
        let body = match record.body() {
            body if body.len() > 40 => format!("*{}", body.len()),
            body => String::from_utf8_lossy(body).into_owned(),
        };
        words.push(format!("{}:{body}", position.sequence));
    });
    words.join(" ")
}

/// An event that names neither a session nor a reader, in short.
pub fn event_words(event: &Event) -> String {
    match event {
        Event::AppendedOnce(_, Ok(ack)) => ack_words(ack),
        Event::Answered(_, Ok(answer)) => answer_words(answer),
        Event::AppendedOnce(_, Err(refusal)) | Event::Answered(_, Err(refusal)) => {
            code_words(refusal)
        }
        Event::Fatal(error) => format!("fatal {}", error.operation),
        Event::IndexNotStored(file, _) => format!("no index of {file}"),
        Event::NotRecycled(file, _) => format!("{file} stays"),
        Event::NotRewritten(file, why) => format!("{file} is not rewritten: {why}"),
        other => format!("{other:?}"),
    }
}

/// An answer in short.
pub fn answer_words(answer: &Answer) -> String {
    match answer {
        Answer::Bucket { created, .. } => {
            let what = if *created { "made" } else { "there" };
            format!("bucket {what}")
        }
        Answer::Buckets { items, has_more } => {
            let names = items.iter().map(|info| info.name.to_string());
            list_words(names.collect(), *has_more)
        }
        Answer::Stream { info, created } => {
            let what = if *created { "made" } else { "there" };
            let token = match info.fence.is_none() {
                true => String::new(),
                false => format!(" token {}", info.fence),
            };
            let (first, tail) = (info.first, info.tail.sequence);
            format!("stream {what} {first}..{tail} {}{token}", info.epoch)
        }
        Answer::StreamsAsBefore => "as before".to_owned(),
        Answer::Streams {
            items, has_more, ..
        } => {
            let named = |info: &nova_model::request::StreamInfo| {
                format!("{}:{}", info.name.key, info.tail.sequence)
            };
            list_words(items.iter().map(named).collect(), *has_more)
        }
        Answer::Deleted => "deleted".to_owned(),
        Answer::Tail(tail) => format!("tail {}", tail.sequence),
        Answer::Fenced { tail } => format!("fenced at {}", tail.sequence),
        Answer::Trimmed { first, .. } => format!("trimmed to {first}"),
        Answer::Moved { core, epoch, .. } => format!("led by {core} under {epoch}"),
        Answer::Star(star) => format!("star of {} cores", star.cores.len()),
        Answer::Placement { drained, moved } => {
            let cores = drained.iter().map(ToString::to_string).collect();
            format!("moved {moved}, drained: {}", list_words(cores, false))
        }
        Answer::Rebalanced { moves, has_more } => {
            let named = |moved: &StreamMove| {
                let StreamMove { name, from, to } = moved;
                format!("{}:{}>{}", name.key, from.0, to.0)
            };
            list_words(moves.iter().map(named).collect(), *has_more)
        }
        Answer::Status(status) => {
            let led = status.cores.iter().map(|core| core.streams_led.to_string());
            format!("led: {}", list_words(led.collect(), false))
        }
    }
}

fn list_words(mut names: Vec<String>, has_more: bool) -> String {
    if has_more {
        names.push("and more".to_owned());
    }
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(" "),
    }
}

/// The settings that are said.
pub fn settings_of(words: &[&str]) -> StreamSettings {
    let policy = match () {
        () if words.contains(&"fenced") => Some(ProducerPolicy::Fenced),
        () if words.contains(&"any") => Some(ProducerPolicy::Any),
        () => None,
    };
    let said = |word: &str| {
        let at = words.iter().position(|found| *found == word)?;
        words.get(at + 1).map(|text| number(text))
    };
    let (age_s, bytes) = (said("age"), said("keep"));
    let is_kept = age_s.is_none() && bytes.is_none();
    StreamSettings {
        policy,
        retention: (!is_kept).then_some(Retention { age_s, bytes }),
        delete_on_empty_s: said("empty"),
        ..StreamSettings::default()
    }
}

/// A read: where from, and its limits.
///
/// # Panics
/// If a word is not understood.
pub fn read_open(stream: &StreamName, words: &[&str], now: Timestamp, follow: bool) -> ReadOpen {
    let parse = |text: &str| text.parse::<u64>().expect("a number");
    let start = match words[0] {
        text if text.ends_with("..") => {
            ReadStart::Sequence(SequenceNumber(parse(text.trim_end_matches('.'))))
        }
        text if text.starts_with("tail-") => ReadStart::TailOffset(parse(&text[5..])),
        text if text.starts_with("time-") => {
            ReadStart::Timestamp(Timestamp(now.0 - parse(&text[5..])))
        }
        other => panic!("{other} is no start of a read"),
    };
    let mut open = ReadOpen {
        stream: stream.clone(),
        stream_id: None,
        start,
        limits: ReadLimits::default(),
        follow,
        clamp: words.contains(&"clamp"),
    };
    let rest: Vec<&&str> = words[1..].iter().filter(|word| **word != "clamp").collect();
    for pair in rest.chunks(2) {
        match (*pair[0], parse(pair[1])) {
            ("count", n) => open.limits.count = Some(n),
            ("bytes", n) => open.limits.bytes = Some(n),
            ("until", n) => open.limits.until_sequence = Some(SequenceNumber(n)),
            ("before", us) => open.limits.until_timestamp = Some(Timestamp(now.0 - us)),
            (other, _) => panic!("{other} is no limit of a read"),
        }
    }
    open
}

/// A number.
pub(crate) fn number(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("{text} is no number"))
}

/// A stream's name.
pub(crate) fn stream_name(text: &str) -> StreamName {
    StreamName::parse(text).expect("a stream is named B/S")
}

/// A bucket's name.
pub(crate) fn bucket(text: &str) -> BucketName {
    BucketName::parse(text).expect("a good bucket's name")
}

/// A batch of these bodies; `*N` is one of N bytes.
pub(crate) fn batch(bodies: &[&str]) -> EncodedBatch {
    let body = |text: &&str| match text.strip_prefix('*') {
        Some(bytes) => Record::new(vec![b'x'; number(bytes) as usize]),
        None => Record::new(text.as_bytes().to_vec()),
    };
    let records: Vec<Record> = bodies.iter().map(body).collect();
    EncodedBatch::encode(&records).expect("small records make a batch")
}

/// Plain words, and the pairs that begin with a word of terms.
pub(crate) fn terms<'a>(words: &[&'a str]) -> (Vec<&'a str>, BTreeMap<&'a str, &'a str>) {
    const TERMS: [&str; 5] = ["match", "token", "writer", "number", "id"];
    let at = words.iter().position(|word| TERMS.contains(word));
    let (plain, pairs) = words.split_at(at.unwrap_or(words.len()));
    let pairs = pairs.chunks(2).map(|pair| (pair[0], pair[1]));
    (plain.to_vec(), pairs.collect())
}

/// The conditions among the terms.
pub(crate) fn conditions(terms: &BTreeMap<&str, &str>) -> Conditions {
    Conditions {
        fence: terms
            .get("token")
            .map(|text| FencingToken::parse(text).expect("a good token")),
        match_sequence: terms.get("match").map(|n| SequenceNumber(number(n))),
    }
}

/// The incarnation among the terms.
fn stream_id(words: &[&str]) -> Option<StreamId> {
    let id = terms(words).1.get("id").copied();
    id.map(|id| StreamId(u128::from(number(id))))
}

/// A page of a list.
pub(crate) fn page(words: &[&str]) -> Page {
    let mut page = Page {
        limit: 100,
        ..Page::default()
    };
    for pair in words.chunks(2) {
        match pair {
            ["prefix", text] => page.prefix = (*text).to_owned(),
            ["after", text] => page.start_after = (*text).to_owned(),
            ["limit", n] => page.limit = number(n) as u32,
            other => panic!("{other:?} is no part of a page"),
        }
    }
    page
}

/// A request about all cores of a star.
///
/// # Panics
/// If the words are none.
pub fn star_request(words: &[&str]) -> Request {
    let core_set = |text: &&str| match *text {
        "all" => CoreSet::All,
        core => CoreSet::One(CoreId(number(core) as u16)),
    };
    match words {
        ["drain", cores] => Request::Drain {
            cores: core_set(cores),
        },
        ["undrain", cores] => Request::Undrain {
            cores: core_set(cores),
        },
        ["rebalance"] => Request::Rebalance,
        ["status"] => Request::Status,
        other => panic!("{other:?} is not understood"),
    }
}

/// A request.
///
/// # Panics
/// If the words are none.
pub(crate) fn request_of(words: &[&str]) -> Request {
    match words {
        ["rebucket", name, rest @ ..] => Request::ReconfigureBucket {
            name: bucket(name),
            change: BucketChange {
                create_stream_on_append: rest.contains(&"auto").then_some(true),
                defaults: settings_of(rest),
                ..BucketChange::default()
            },
        },
        ["bucket", name, rest @ ..] => Request::CreateBucket {
            name: bucket(name),
            settings: BucketSettings {
                create_stream_on_append: rest.contains(&"auto"),
                ..BucketSettings::default()
            },
            exclusive: rest.contains(&"exclusive"),
        },
        ["unbucket", name] => Request::DeleteBucket { name: bucket(name) },
        ["buckets"] => Request::ListBuckets { page: page(&[]) },
        ["create", name, rest @ ..] => Request::CreateStream {
            name: stream_name(name),
            settings: settings_of(rest),
            exclusive: rest.contains(&"exclusive"),
        },
        ["set", name, rest @ ..] => Request::ReconfigureStream {
            name: stream_name(name),
            stream_id: stream_id(rest),
            change: settings_of(rest),
        },
        ["describe", name] => Request::DescribeStream {
            name: stream_name(name),
        },
        ["delete", name, rest @ ..] => Request::DeleteStream {
            name: stream_name(name),
            stream_id: stream_id(rest),
        },
        ["tail", name] => Request::CheckTail {
            name: stream_name(name),
        },
        ["fence", name, token, rest @ ..] => Request::Fence {
            name: stream_name(name),
            stream_id: stream_id(rest),
            token: FencingToken::parse(token).expect("a good token"),
            conditions: conditions(&terms(rest).1),
        },
        ["trim", name, first, rest @ ..] => Request::Trim {
            name: stream_name(name),
            stream_id: stream_id(rest),
            first: SequenceNumber(number(first)),
            conditions: conditions(&terms(rest).1),
        },
        ["handoff", name, to] => Request::HandOff {
            name: stream_name(name),
            to: CoreId(number(to) as u16),
        },
        ["list", name, rest @ ..] => Request::ListStreams {
            bucket: bucket(name),
            page: page(rest),
            known: None,
        },
        other => star_request(other),
    }
}
