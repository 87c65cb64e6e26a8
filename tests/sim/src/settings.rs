//! What was told about settings of streams and of the bucket that holds them, and what must follow.
//!
//! Each setting is a [`Register`]. An audit of the disk, followed by a start, makes all of them
//! certain: what was asked of a process that is gone does not come true any more.
//!
//! # Invariants
//! - Streams that somebody asked to delete are not judged: nobody knows which incarnation an answer
//!   without an id meant.
//!
//! # Not here
//! - What a policy means for those who append: [`crate::sessions`].

use crate::desk::Contents;
use crate::history::Mark;
use crate::oracle::Oracle;
use crate::register::Register;
use nova_model::names::BucketName;
use nova_model::request::StreamInfo;
use nova_model::settings::{
    BucketSettings, EffectiveSettings, InForce, Origin, ProducerPolicy, Retention, StreamSettings,
    TimestampMode,
};
use nova_model::{StreamId, StreamName};
use std::fmt::Debug;

/// The settings of a stream, or the defaults of a bucket.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    policy: Register<Option<ProducerPolicy>>,
    retention: Register<Option<Retention>>,
    timestamps: Register<Option<TimestampMode>>,
    uncapped: Register<Option<bool>>,
    on_empty: Register<Option<u64>>,
}

/// Does the same with each of the five.
macro_rules! each {
    ($settings:expr, $values:expr, |$register:ident, $value:ident| $act:expr) => {{
        let (settings, values): (&mut Settings, &StreamSettings) = ($settings, $values);
        each!(settings.policy, values.policy, $register, $value, $act);
        each!(
            settings.retention,
            values.retention,
            $register,
            $value,
            $act
        );
        each!(
            settings.timestamps,
            values.timestamps,
            $register,
            $value,
            $act
        );
        each!(
            settings.uncapped,
            values.timestamps_uncapped,
            $register,
            $value,
            $act
        );
        each!(
            settings.on_empty,
            values.delete_on_empty_s,
            $register,
            $value,
            $act
        );
    }};
    ($place:expr, $values:expr, $register:ident, $value:ident, $act:expr) => {{
        let ($register, $value) = (&mut $place, $values);
        $act;
    }};
}

impl Settings {
    fn begin(&mut self, values: &StreamSettings, asked: Mark, now: Mark) {
        each!(self, values, |register, value| register
            .begin(value, asked, now));
    }

    fn began_with(&mut self, asked: Mark) {
        let none = StreamSettings::default();
        each!(self, &none, |register, _value| register.began_with(asked));
    }

    fn ask(&mut self, change: &StreamSettings, asked: Mark) {
        each!(self, change, |register, value| if value.is_some() {
            register.ask(value, asked);
        });
    }

    fn end(&mut self, asked: Mark, now: Mark, is_done: bool) {
        let none = StreamSettings::default();
        each!(self, &none, |register, _value| register
            .end(asked, now, is_done));
    }

    /// The policy that somebody asked for then.
    pub(crate) fn policy_asked(&self, asked: Mark) -> Option<ProducerPolicy> {
        self.policy.asked(asked).flatten()
    }

    fn reset(&mut self, values: &StreamSettings, now: Mark) {
        each!(self, values, |register, value| register.reset(value, now));
    }

    fn told(&mut self, values: &StreamSettings, now: Mark) {
        each!(self, values, |register, value| register.told(value, now));
    }
}

/// What the stream itself said, as far as its settings in force tell.
fn said(settings: &EffectiveSettings) -> StreamSettings {
    fn own<T>(setting: InForce<T>) -> Option<T> {
        (setting.origin == Origin::Stream).then_some(setting.value)
    }
    StreamSettings {
        policy: own(settings.policy),
        retention: own(settings.retention),
        timestamps: own(settings.timestamps),
        timestamps_uncapped: own(settings.timestamps_uncapped),
        delete_on_empty_s: own(settings.delete_on_empty_s),
    }
}

/// Names the settings in force that nothing can explain.
fn unexplained(
    stream: &Settings,
    bucket: &Settings,
    told: &EffectiveSettings,
    asked: Mark,
    now: Mark,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut see = |text: Option<String>| wrong.extend(text);
    see(misfit(
        &stream.policy,
        &bucket.policy,
        told.policy,
        asked,
        now,
    ));
    see(misfit(
        &stream.retention,
        &bucket.retention,
        told.retention,
        asked,
        now,
    ));
    see(misfit(
        &stream.timestamps,
        &bucket.timestamps,
        told.timestamps,
        asked,
        now,
    ));
    see(misfit(
        &stream.uncapped,
        &bucket.uncapped,
        told.timestamps_uncapped,
        asked,
        now,
    ));
    see(misfit(
        &stream.on_empty,
        &bucket.on_empty,
        told.delete_on_empty_s,
        asked,
        now,
    ));
    wrong
}

fn misfit<T: Copy + PartialEq + Default + Debug>(
    stream: &Register<Option<T>>,
    bucket: &Register<Option<T>>,
    told: InForce<T>,
    asked: Mark,
    now: Mark,
) -> Option<String> {
    if !stream.is_judged(asked) || !bucket.is_judged(asked) {
        return None;
    }
    let has = |register: &Register<Option<T>>, value: Option<T>| {
        let mut possible = register.candidates(asked, now);
        possible.any(|candidate| candidate == value)
    };
    let fits = match told.origin {
        Origin::Stream => has(stream, Some(told.value)),
        Origin::Bucket => has(stream, None) && has(bucket, Some(told.value)),
        Origin::BuiltIn => has(stream, None) && has(bucket, None) && told.value == T::default(),
    };
    (!fits).then(|| {
        let own: Vec<_> = stream.candidates(asked, now).collect();
        let defaults: Vec<_> = bucket.candidates(asked, now).collect();
        format!("{told:?} is told, possible are {own:?} over {defaults:?}")
    })
}

impl Oracle {
    /// Somebody wants to create a stream with these settings.
    pub fn create_wanted(&mut self, name: &StreamName, settings: &StreamSettings, asked: Mark) {
        self.history.keep_stream(name, settings);
        let named = self.history.names.entry(name.clone()).or_default();
        named.creates.push((*settings, asked));
    }

    /// An incarnation is known from now on: it began with what one of those said who wanted to
    /// create it, or with nothing if an append did.
    pub(crate) fn settings_begin(&mut self, name: &StreamName, id: StreamId, now: Mark) {
        let creates = self.history.names[name].creates.clone();
        let settings = &mut self.history.accounts.entry(id).or_default().settings;
        settings.begin(&StreamSettings::default(), Mark(0), now);
        for (values, asked) in creates {
            settings.begin(&values, asked, now);
        }
    }

    /// The stream was created by what somebody asked for at `asked`.
    pub fn created(&mut self, id: StreamId, asked: Mark) {
        let account = self.history.accounts.entry(id).or_default();
        account.settings.began_with(asked);
    }

    /// Somebody wants to change a stream's settings.
    pub fn change_wanted(&mut self, id: StreamId, change: &StreamSettings, asked: Mark) {
        let account = self.history.accounts.entry(id).or_default();
        account.settings.ask(change, asked);
    }

    /// The change asked for at `asked` is done, or certainly was not.
    pub fn change_ended(&mut self, name: &StreamName, id: StreamId, asked: Mark, is_done: bool) {
        let now = self.history.mark();
        if is_done {
            self.note_policy_change(name, id, asked, now);
        }
        let account = self.history.accounts.entry(id).or_default();
        account.settings.end(asked, now, is_done);
    }

    /// Somebody wants to change the defaults of a bucket that is never deleted.
    pub fn defaults_wanted(&mut self, name: &BucketName, defaults: &StreamSettings, asked: Mark) {
        self.history.keep_bucket(name, defaults);
        let settings = self.history.defaults.entry(name.clone()).or_default();
        settings.ask(defaults, asked);
    }

    /// That change is done, or certainly was not.
    pub fn defaults_ended(&mut self, name: &BucketName, asked: Mark, is_done: bool) {
        let now = self.history.mark();
        let settings = self.history.defaults.entry(name.clone()).or_default();
        settings.end(asked, now, is_done);
    }

    /// A bucket is there for the first time.
    pub(crate) fn defaults_begin(&mut self, name: &BucketName) {
        let now = self.history.mark();
        let settings = self.history.defaults.entry(name.clone()).or_default();
        settings.begin(&StreamSettings::default(), Mark(0), now);
    }

    /// Settings in force were told to somebody who asked at `asked`.
    pub fn settings_told(&mut self, info: &StreamInfo, asked: Mark) {
        if !self.is_lasting(&info.name) {
            return;
        }
        let now = self.history.mark();
        let stream = &self.history.accounts[&info.id].settings;
        let none = Settings::default();
        let bucket = self.history.defaults.get(&info.name.bucket);
        let wrong = unexplained(stream, bucket.unwrap_or(&none), &info.settings, asked, now);
        self.check(wrong.is_empty(), || format!("{}: {wrong:?}", info.name));
        let account = self.history.accounts.entry(info.id).or_default();
        account.settings.told(&said(&info.settings), now);
    }

    /// Whether nobody ever asked to delete the stream.
    pub(crate) fn is_lasting(&self, name: &StreamName) -> bool {
        let named = self.history.names.get(name);
        named.is_some_and(|named| named.delete_asked.is_none())
    }

    /// The same of the incarnation that is known.
    pub(crate) fn is_lasting_id(&self, id: StreamId) -> bool {
        let mut names = self.history.names.values();
        let found = names.find(|named| named.alive.contains_key(&id));
        found.is_some_and(|named| named.delete_asked.is_none())
    }

    /// The policies that may have been in force between `from` and `to`, not counting what was
    /// asked for at `besides`; none if nothing can be said.
    pub(crate) fn policies(
        &self,
        name: &StreamName,
        id: StreamId,
        besides: Option<Mark>,
        (from, to): (Mark, Mark),
    ) -> Vec<ProducerPolicy> {
        let Some(own) = self.history.accounts.get(&id).map(|a| &a.settings.policy) else {
            return Vec::new();
        };
        let Some(bucket) = self.history.defaults.get(&name.bucket) else {
            return Vec::new();
        };
        if !self.is_lasting(name) || !own.is_judged(from) || !bucket.policy.is_judged(from) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for policy in own.candidates_besides(besides, from, to) {
            match policy {
                Some(policy) => found.push(policy),
                None => {
                    let defaults = bucket.policy.candidates(from, to);
                    found.extend(defaults.map(Option::unwrap_or_default));
                }
            }
        }
        found
    }

    /// Whether the stream admitted one writer at a time all the time between `from` and now.
    pub(crate) fn was_fenced(&self, name: &StreamName, id: StreamId, from: Mark) -> bool {
        let policies = self.policies(name, id, None, (from, self.history.now()));
        let is_fenced = |policy: &ProducerPolicy| *policy == ProducerPolicy::Fenced;
        !policies.is_empty() && policies.iter().all(is_fenced)
    }

    /// What the disk holds after a crash must be explained, too.
    pub(crate) fn audit_settings(&mut self, contents: &Contents) {
        let now = self.history.mark();
        for found in contents.streams.values() {
            self.settings_told(&found.info, now);
        }
        let told = contents.streams.values();
        let told = told.map(|found| (found.info.id, said(&found.info.settings)));
        self.history.found = told.collect();
        self.history.found_defaults = contents.buckets.clone();
        self.history.audited = now;
    }

    /// The star has started on what the last audit found: no older wish comes true any more.
    pub fn started(&mut self) {
        let now = self.history.audited;
        self.bucket_wishes_over(now);
        for (id, values) in std::mem::take(&mut self.history.found) {
            let account = self.history.accounts.entry(id).or_default();
            account.settings.reset(&values, now);
        }
        for (name, settings) in std::mem::take(&mut self.history.found_defaults) {
            if let Some(known) = self.history.defaults.get_mut(&name) {
                known.reset(&defaults_of(&settings), now);
            }
        }
    }
}

fn defaults_of(settings: &BucketSettings) -> StreamSettings {
    settings.defaults
}
