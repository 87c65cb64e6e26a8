//! Scenarios in words: what a few lines ask of a star, and what it answers.
//!
//! ```text
//!   bucket b auto            |  ok
//!   append b/s a b           |  acked 0..2
//!   crash                    |
//!   read b/s 0..             |  from 0: 0:a 1:b end 2
//! ```
//! Each line is one act on real shards over the simulated disk; its answers follow in their order,
//! one a line. The disk answers at once, unless `hold` keeps its writes back until `go`.
//!
//! # Acts
//! ```text
//! start [cores N] [segment BYTES] [idle US] [recent BYTES] [ingress BYTES] [corrupt yes]
//!   [dies CALL]
//! bucket B [auto] | rebucket B [auto] [fenced|any] | unbucket B | buckets
//! create S [fenced|any] [exclusive] | set S fenced|any [id N] | describe S | delete S [id N]
//! tail S
//! append S WORD... [match N] [token T] [writer W/N]
//! handoff S CORE | drain CORE|all | undrain CORE|all | rebalance | status
//! fence S T [token T] [match N] [id N] | trim S N [id N] | list B [prefix P] [after K] [limit N]
//! session X S [token T] [writer W] | X append WORD... [match N] [number N]
//! X resume | X close
//! read S FROM [count N] [bytes N] [until N] [clamp]     FROM: N.., tail-N, time-US
//! follow X S FROM | unfollow X
//! hold | slow NUMBER (the index of that segment) | go | wait US [TIMES] | crash | power
//! clock back|ahead SECONDS (the wall clock is so far from the time)
//! late FROM TO (mail between these cores) | timely
//! flip NUMBER BYTE | unindex NUMBER | spare NUMBER | at CORE ACT | stop
//! full | free BYTES (what is told of the disk) | space
//! failing KIND (index, draft, place, drop, recycle) | works
//! loaded | segments | rewritten | pending | flights (operations that `hold` keeps back)
//! fall OPTION VALUE (power cut, start with options)
//! ```
//!
//! # Invariants
//! - Time moves by `wait` alone.

mod lives;

use crate::disk::{Background, Flight, SimDisk};
use crate::node::{BootPlan, reading};
use crate::words::{
    ack_words, batch, code_words, conditions, event_words, number, read_open, records_words,
    request_of, stream_name, terms,
};
use nova_core::disk::{OpToken, SegmentFile};
use nova_core::planted::PlantedBugs;
use nova_core::{Caller, Event, PeerMessage, ReaderKey, SessionKey, Shard};
use nova_model::condition::WriterStamp;
use nova_model::placement::stream_home;
use nova_model::request::{AppendOpen, OneShotAppend, Request, SessionAppend};
use nova_model::{CoreId, Now, Refusal, StreamId, StreamName, WriterId};
use std::collections::{BTreeMap, VecDeque};

/// Plays a scenario and compares all that was answered.
///
/// # Panics
/// If the answers are others than `expected`, or a line is not understood.
pub fn check(script: &str, expected: &str) {
    let answers = Script::play(script);
    let expected = expected.lines().map(str::trim);
    let expected: Vec<&str> = expected.filter(|line| !line.is_empty()).collect();
    assert_eq!(answers, expected, "the answers to\n{script}");
}

/// A star that is driven by hand.
pub struct Script {
    disk: SimDisk,
    plan: BootPlan,
    shards: Vec<Shard>,
    now: u64,
    /// How far the wall clock is from the time.
    wall_us: i64,
    life: u64,
    last: u64,
    sessions: BTreeMap<String, (SessionKey, usize)>,
    readers: BTreeMap<String, (ReaderKey, usize)>,
    is_held: bool,
    slow_index: Option<u64>,
    flights: VecDeque<(usize, OpToken, Flight)>,
    /// The way between two cores on which mail is late, and what is on it.
    late_way: Option<(usize, usize)>,
    late_mail: VecDeque<PeerMessage>,
    answers: Vec<String>,
    at_core: Option<usize>,
}

impl Script {
    /// Plays the lines; all answers in their order.
    pub fn play(script: &str) -> Vec<String> {
        let mut play = Script {
            disk: SimDisk::new(true),
            plan: BootPlan {
                cores: 1,
                forget_us: 1_000_000,
                segment_bytes: 64 * 1024,
                recent_bytes: 64 * 1024,
                ingress_bytes: 1024 * 1024,
                idle_us: 30_000_000,
                planted: PlantedBugs::NONE,
                allow_corrupt: false,
                dies_at_call: None,
            },
            shards: Vec::new(),
            now: 1_000_000,
            wall_us: 0,
            life: 0,
            last: 0,
            sessions: BTreeMap::new(),
            readers: BTreeMap::new(),
            is_held: false,
            slow_index: None,
            flights: VecDeque::new(),
            late_way: None,
            late_mail: VecDeque::new(),
            answers: Vec::new(),
            at_core: None,
        };
        let lines = script.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            play.now += 1;
            play.act(&words);
            play.settle();
        }
        play.answers
    }

    /// One act of the module's list.
    fn act(&mut self, words: &[&str]) {
        match words {
            ["at", core, act @ ..] => {
                self.at_core = Some(number(core) as usize);
                self.act(act);
                self.at_core = None;
            }
            ["start", options @ ..] => self.start(options),
            ["crash"] => self.end(true),
            ["power"] => self.end(false),
            ["fall", options @ ..] => {
                self.fall(false);
                self.start(options);
            }
            ["full" | "space" | "works"] | ["free" | "failing" | "clock" | "late", ..] => {
                self.turn(words)
            }
            ["stop"] => self.shards.iter_mut().for_each(Shard::stop),
            ["hold"] => self.is_held = true,
            ["slow", segment] => self.slow_index = Some(number(segment)),
            ["timely"] => self.deliver_late_mail(),
            ["go"] => (self.is_held, self.slow_index) = (false, None),
            ["wait", us, times @ ..] => {
                for _ in 0..times.first().map_or(1, |times| number(times)) {
                    self.wait(number(us));
                }
            }
            [what @ ("loaded" | "segments" | "flights" | "pending" | "rewritten")] => {
                let count = self.count(what);
                self.answers.push(count);
            }
            ["spare", segment] => {
                let file = self.file(segment);
                self.disk.leave_old_spare(file);
            }
            ["flip", segment, byte] => {
                let file = self.file(segment);
                self.disk.flip_bit(file, number(byte) as usize, 3);
            }
            ["unindex", segment] => {
                let file = self.file(segment);
                self.disk.lose_index(file);
            }
            ["append", stream, rest @ ..] => self.append(stream, rest),
            ["session", name, stream, rest @ ..] => self.open_session(name, stream, rest),
            ["read", stream, rest @ ..] => self.read(stream, rest),
            ["follow", name, stream, rest @ ..] => self.follow(name, stream, rest),
            ["unfollow", name] => {
                let (key, core) = self.readers[*name];
                let now = self.reading();
                self.shards[core].close_reader(now, key);
            }
            [name, rest @ ..] if self.sessions.contains_key(*name) => self.in_session(name, rest),
            other => self.request(other),
        }
    }

    fn count(&self, what: &str) -> String {
        match what {
            "loaded" => {
                let loaded: usize = self.shards.iter().map(Shard::streams_loaded).sum();
                format!("{loaded} in memory")
            }
            "segments" => format!("{} segments", self.disk.segments().count()),
            "flights" => format!("{} at the disk", self.flights.len()),
            "rewritten" => format!("{} rewritten", self.disk.rewritten()),
            _pending => {
                let bytes: usize = self.shards.iter().map(Shard::pending_bytes).sum();
                let ingress = self.plan.ingress_bytes;
                let is_within = if bytes < ingress { "within" } else { "beyond" };
                format!("pending {is_within} {ingress}")
            }
        }
    }

    /// What is around the star changes.
    fn turn(&mut self, words: &[&str]) {
        match words {
            ["clock", way, seconds] => {
                let us = number(seconds) as i64 * 1_000_000;
                self.wall_us = if *way == "back" { -us } else { us };
            }
            ["late", from, to] => {
                self.late_way = Some((number(from) as usize, number(to) as usize));
            }
            ["failing", kind] => self.disk.background = Background::Fails((*kind).to_owned()),
            ["free", bytes] => self.disk.free_bytes = number(bytes),
            ["works"] => self.disk.background = Background::Works,
            ["full"] => self.disk.is_full = true,
            _space => self.disk.make_space(),
        }
    }

    fn wait(&mut self, us: u64) {
        self.now += us;
        let now = self.reading();
        let shards = self.shards.iter_mut();
        shards.for_each(|shard| shard.handle_timeout(now));
        self.settle();
    }

    fn reading(&self) -> Now {
        let mut reading = reading(self.now);
        reading.wall.0 = reading.wall.0.saturating_add_signed(self.wall_us);
        reading
    }

    fn deliver_late_mail(&mut self) {
        let (from, to) = self.late_way.take().expect("mail was late");
        for mail in std::mem::take(&mut self.late_mail) {
            self.shards[to].handle_peer(CoreId(from as u16), mail);
        }
    }

    fn file(&self, segment: &str) -> SegmentFile {
        let mut files = self.disk.segments().map(|(file, _)| file);
        let found = files.find(|file| file.number.0 == number(segment));
        found.expect("there is such a segment")
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn core(&self, name: &StreamName) -> usize {
        let home = stream_home(name, self.shards.len() as u16);
        self.at_core.unwrap_or(usize::from(home.0))
    }

    fn append(&mut self, stream: &str, rest: &[&str]) {
        let name = stream_name(stream);
        let (bodies, terms) = terms(rest);
        let writer = terms.get("writer").map(|text| {
            let (writer, sequence) = text.split_once('/').expect("a writer is given as W/N");
            WriterStamp {
                writer: WriterId(u128::from(number(writer))),
                sequence: number(sequence),
            }
        });
        let head = OneShotAppend {
            stream: name.clone(),
            stream_id: None,
            conditions: conditions(&terms),
            writer,
        };
        let (core, key) = (self.core(&name), self.next());
        let (caller, fresh) = (Caller(key), StreamId(u128::from(key)));
        let now = self.reading();
        self.shards[core].append_once(now, caller, head, batch(&bodies), fresh);
    }

    fn open_session(&mut self, name: &str, stream: &str, rest: &[&str]) {
        let stream = stream_name(stream);
        let (_, terms) = terms(rest);
        let writer = terms.get("writer").map(|n| WriterId(u128::from(number(n))));
        let open = AppendOpen {
            stream: stream.clone(),
            fence: conditions(&terms).fence,
            writer,
        };
        let (core, key) = (self.core(&stream), self.next());
        let session = SessionKey(key);
        self.sessions.insert(name.to_owned(), (session, core));
        let fresh = StreamId(u128::from(key));
        let now = self.reading();
        self.shards[core].open_session(now, session, open, fresh);
    }

    fn in_session(&mut self, name: &str, rest: &[&str]) {
        let (key, core) = self.sessions[name];
        let now = self.reading();
        let shard = &mut self.shards[core];
        match rest {
            ["resume"] => shard.resume_session(key),
            ["close"] => shard.close_session(now, key),
            ["append", rest @ ..] => {
                let (bodies, terms) = terms(rest);
                let append = SessionAppend {
                    writer_sequence: terms.get("number").map(|n| number(n)),
                    match_sequence: conditions(&terms).match_sequence,
                };
                shard.append(now, key, append, batch(&bodies));
            }
            other => panic!("{other:?} is no act in a session"),
        }
    }

    fn read(&mut self, stream: &str, rest: &[&str]) {
        let name = stream_name(stream);
        let open = read_open(&name, rest, self.reading().wall, false);
        let (core, key) = (self.core(&name), ReaderKey(self.next()));
        let fresh = StreamId(u128::from(key.0));
        let now = self.reading();
        self.shards[core].open_reader(now, key, open, fresh);
        self.shards[core].credit_reader(key);
    }

    fn follow(&mut self, name: &str, stream: &str, rest: &[&str]) {
        let stream = stream_name(stream);
        let open = read_open(&stream, rest, self.reading().wall, true);
        let (core, key) = (self.core(&stream), ReaderKey(self.next()));
        self.readers.insert(name.to_owned(), (key, core));
        let fresh = StreamId(u128::from(key.0));
        let now = self.reading();
        self.shards[core].open_reader(now, key, open, fresh);
        self.shards[core].credit_reader(key);
    }

    fn request(&mut self, words: &[&str]) {
        let request = request_of(words);
        let core = match &request {
            Request::CreateStream { name, .. }
            | Request::DescribeStream { name }
            | Request::ReconfigureStream { name, .. }
            | Request::DeleteStream { name, .. }
            | Request::CheckTail { name }
            | Request::Fence { name, .. }
            | Request::HandOff { name, .. }
            | Request::Trim { name, .. } => self.core(name),
            _ => self.at_core.unwrap_or(0),
        };
        let key = self.next();
        let fresh = StreamId(u128::from(key));
        let now = self.reading();
        self.shards[core].request(now, Caller(key), request, fresh);
    }

    /// Works until all shards are dry.
    fn settle(&mut self) {
        loop {
            let mut has_moved = false;
            for core in 0..self.shards.len() {
                has_moved |= self.submit(core);
                while let Some(event) = self.shards[core].poll_event() {
                    has_moved = true;
                    self.take(core, event);
                }
            }
            if let Some((core, token, flight)) = self.next_flight() {
                let result = self.disk.end(flight);
                let now = self.reading();
                self.shards[core].handle_disk(now, token, result);
                has_moved = true;
            }
            if !has_moved {
                return;
            }
        }
    }

    fn next_flight(&mut self) -> Option<(usize, OpToken, Flight)> {
        let is_slow = |flight: &Flight| {
            flight.weight().0 == "index" && Some(flight.file().number.0) == self.slow_index
        };
        let mut flights = self.flights.iter();
        let at = flights.position(|(_, _, flight)| !self.is_held && !is_slow(flight))?;
        self.flights.remove(at)
    }

    fn submit(&mut self, core: usize) -> bool {
        let now = self.reading().instant;
        let mut has_moved = false;
        while let Some((token, op)) = self.shards[core].poll_disk(now) {
            has_moved = true;
            let flight = self.disk.begin(op);
            self.flights.push_back((core, token, flight));
        }
        has_moved
    }

    fn session_name(&self, key: SessionKey) -> &str {
        let found = self.sessions.iter().find(|(_, (known, _))| *known == key);
        found.map_or("somebody", |(name, _)| name)
    }

    fn ended(&self, key: SessionKey, how: &str, refusal: &Refusal) -> String {
        format!("{} {how} {}", self.session_name(key), code_words(refusal))
    }

    fn reader_name(&self, key: ReaderKey) -> String {
        let found = self.readers.iter().find(|(_, (known, _))| *known == key);
        found.map_or(String::new(), |(name, _)| format!("{name} "))
    }

    fn take(&mut self, core: usize, event: Event) {
        let text = match event {
            Event::Ready | Event::ReaderHeartbeat(..) | Event::Rewritten { .. } => return,
            Event::ReaderCredited(key) => return self.shards[core].credit_reader(key),
            Event::Peer(to, mail) => {
                let from = CoreId(core as u16);
                if self.late_way == Some((core, usize::from(to.0))) {
                    return self.late_mail.push_back(mail);
                }
                return self.shards[usize::from(to.0)].handle_peer(from, mail);
            }
            Event::SessionOpened(key, opened) => {
                let (tail, epoch) = (opened.tail.sequence, opened.epoch);
                format!("{} open at {tail} {epoch}", self.session_name(key))
            }
            Event::SessionRefused(key, refusal) => self.ended(key, "refused", &refusal),
            Event::Acked(key, ack) => {
                format!("{} {}", self.session_name(key), ack_words(&ack))
            }
            Event::Rejected(key, refusal) => self.ended(key, "rejected", &refusal),
            Event::SessionBroken(key, refusal) => self.ended(key, "broken", &refusal),
            Event::ReaderOpened(key, opened) => {
                format!("{}from {}", self.reader_name(key), opened.start)
            }
            Event::ReaderRefused(key, refusal) | Event::ReaderFailed(key, refusal) => {
                format!("{}{}", self.reader_name(key), code_words(&refusal))
            }
            Event::ReaderBatch(key, batch) => {
                format!("{}{}", self.reader_name(key), records_words(&batch))
            }
            Event::ReaderCaughtUp(key, tail) => {
                format!("{}has all to {}", self.reader_name(key), tail.sequence)
            }
            Event::ReaderEnded { reader, next, .. } => {
                format!("{}end {next}", self.reader_name(reader))
            }
            other => event_words(&other),
        };
        self.answers.push(text);
    }
}
