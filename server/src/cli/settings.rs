//! The flags of stream settings, and how settings are shown to people.
//!
//! # Invariants
//! - What was not said stays unsaid, so that later changes of the bucket's defaults are seen.

use crate::cli::shapes;
use crate::config::units::{parse_bytes, parse_duration, show_bytes};
use nova_client::{ProducerPolicy, StreamSettings};
use nova_model::settings::{EffectiveSettings, InForce, Retention, TimestampMode};

const SECONDS_PER_DAY: u64 = 86_400;

/// The flags.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingsFlags {
    /// Who may append: any number of producers, or one at a time
    #[arg(long, value_enum, value_name = "POLICY")]
    policy: Option<PolicyName>,
    /// Records older than this may go: 12h, 7d... or forever
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    retention_age: Option<Bound>,
    /// Records before the newest of this size may go: 10GiB... or forever
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    retention_bytes: Option<Bound>,
    /// Where the timestamps of records come from
    #[arg(long, value_enum, value_name = "MODE")]
    timestamps: Option<TimestampsName>,
    /// Let a client's time be later than the arrival
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(value_name = "true|false")]
    timestamps_uncapped: Option<bool>,
    /// Delete a stream that has held no record for this long: 1h... or never
    #[arg(long, value_name = "TIME", value_parser = parse_empty)]
    delete_on_empty: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PolicyName {
    Any,
    Fenced,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TimestampsName {
    /// The client's where given, else the arrival
    ClientPrefer,
    /// The client's; a record without one is refused
    ClientRequire,
    /// The arrival
    Arrival,
}

/// A bound of a retention: `None` is forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bound(Option<u64>);

impl SettingsFlags {
    /// Whether one of the two parts of a retention is said without the other.
    pub(crate) fn is_half_retention(&self) -> bool {
        self.retention_age.is_some() != self.retention_bytes.is_some()
    }

    /// The settings that were said; the part of a retention that was not is that of `before`.
    pub(crate) fn settings(&self, before: Retention) -> StreamSettings {
        let is_said = self.retention_age.is_some() || self.retention_bytes.is_some();
        let retention = Retention {
            age_s: self.retention_age.map_or(before.age_s, |bound| bound.0),
            bytes: self.retention_bytes.map_or(before.bytes, |bound| bound.0),
        };
        StreamSettings {
            policy: self.policy.map(|policy| match policy {
                PolicyName::Any => ProducerPolicy::Any,
                PolicyName::Fenced => ProducerPolicy::Fenced,
            }),
            retention: is_said.then_some(retention),
            timestamps: self.timestamps.map(|mode| match mode {
                TimestampsName::ClientPrefer => TimestampMode::ClientPrefer,
                TimestampsName::ClientRequire => TimestampMode::ClientRequire,
                TimestampsName::Arrival => TimestampMode::Arrival,
            }),
            timestamps_uncapped: self.timestamps_uncapped,
            delete_on_empty_s: self.delete_on_empty,
        }
    }
}

/// Settings in force, a line each, with where each came from.
pub(crate) fn show_in_force(settings: &EffectiveSettings) -> String {
    [
        line("policy", settings.policy, |value| {
            shapes::policy(value).to_owned()
        }),
        line("retention", settings.retention, show_retention),
        line("timestamps", settings.timestamps, |value| {
            shapes::timestamps(value).to_owned()
        }),
        line(
            "timestamps uncapped",
            settings.timestamps_uncapped,
            |value| value.to_string(),
        ),
        line("delete on empty", settings.delete_on_empty_s, show_empty),
    ]
    .concat()
}

/// What was said, a line each; nothing for what was not.
pub(crate) fn show_said(settings: &StreamSettings) -> String {
    let lines = [
        settings
            .policy
            .map(|value| ("policy", shapes::policy(value).to_owned())),
        settings
            .retention
            .map(|value| ("retention", show_retention(value))),
        settings
            .timestamps
            .map(|value| ("timestamps", shapes::timestamps(value).to_owned())),
        settings
            .timestamps_uncapped
            .map(|value| ("timestamps uncapped", value.to_string())),
        settings
            .delete_on_empty_s
            .map(|value| ("delete on empty", show_empty(value))),
    ];
    let lines = lines.into_iter().flatten();
    lines
        .map(|(name, value)| format!("  {name:<20} {value}\n"))
        .collect()
}

fn line<T: Copy>(name: &str, setting: InForce<T>, show: impl Fn(T) -> String) -> String {
    let (value, origin) = (show(setting.value), shapes::origin(setting.origin));
    format!("  {name:<20} {value} ({origin})\n")
}

fn show_retention(retention: Retention) -> String {
    match (retention.age_s, retention.bytes) {
        (None, None) => "forever".to_owned(),
        (Some(age), None) => show_seconds(age),
        (None, Some(bytes)) => show_bytes(bytes),
        (Some(age), Some(bytes)) => format!("{}, {}", show_seconds(age), show_bytes(bytes)),
    }
}

fn show_empty(seconds: u64) -> String {
    match seconds {
        0 => "never".to_owned(),
        _ => format!("after {}", show_seconds(seconds)),
    }
}

fn show_seconds(seconds: u64) -> String {
    let steps = [(SECONDS_PER_DAY, "d"), (3_600, "h"), (60, "m")];
    let whole = |step: u64| seconds > 0 && seconds.is_multiple_of(step);
    match steps.into_iter().find(|(step, _)| whole(*step)) {
        Some((step, unit)) => format!("{}{unit}", seconds / step),
        None => format!("{seconds}s"),
    }
}

fn parse_age(text: &str) -> Result<Bound, String> {
    if text == "forever" {
        return Ok(Bound(None));
    }
    Ok(Bound(Some(whole_seconds(text)?)))
}

fn parse_size(text: &str) -> Result<Bound, String> {
    if text == "forever" {
        return Ok(Bound(None));
    }
    Ok(Bound(Some(parse_bytes(text)?)))
}

fn parse_empty(text: &str) -> Result<u64, String> {
    if text == "never" {
        return Ok(0);
    }
    whole_seconds(text)
}

fn whole_seconds(text: &str) -> Result<u64, String> {
    let duration = parse_duration(text, "s")?;
    if duration.subsec_nanos() != 0 {
        return Err(format!("'{text}' is not a whole number of seconds"));
    }
    Ok(duration.as_secs())
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
