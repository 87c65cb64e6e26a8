//! Tests of the flags of settings.

use super::*;
use clap::{Args, FromArgMatches};

fn flags(words: &[&str]) -> Result<SettingsFlags, clap::Error> {
    let command = SettingsFlags::augment_args(clap::Command::new("test"));
    let matches = command.try_get_matches_from([&["test"], words].concat())?;
    SettingsFlags::from_arg_matches(&matches)
}

#[test]
fn what_is_not_said_stays_unsaid() {
    let settings = flags(&[]).unwrap().settings(Retention::default());
    assert_eq!(settings, StreamSettings::default());
}

#[test]
fn every_setting_can_be_said() {
    let words = [
        "--policy=fenced",
        "--retention-age=7d",
        "--retention-bytes=10GiB",
        "--timestamps=arrival",
        "--timestamps-uncapped",
        "--delete-on-empty=1h",
    ];
    let expected = StreamSettings {
        policy: Some(ProducerPolicy::Fenced),
        retention: Some(Retention {
            age_s: Some(7 * SECONDS_PER_DAY),
            bytes: Some(10 << 30),
        }),
        timestamps: Some(TimestampMode::Arrival),
        timestamps_uncapped: Some(true),
        delete_on_empty_s: Some(3_600),
    };
    let settings = flags(&words).unwrap().settings(Retention::default());
    assert_eq!(settings, expected);
}

#[test]
fn half_a_retention_keeps_the_other_half() {
    let before = Retention {
        age_s: Some(60),
        bytes: Some(9),
    };
    let half = flags(&["--retention-age=forever"]).unwrap();
    assert!(half.is_half_retention());
    let after = Retention {
        age_s: None,
        bytes: Some(9),
    };
    assert_eq!(half.settings(before).retention, Some(after));
    let never = flags(&["--delete-on-empty=never", "--timestamps-uncapped=false"]).unwrap();
    assert!(!never.is_half_retention());
    let settings = never.settings(before);
    assert_eq!(settings.delete_on_empty_s, Some(0));
    assert_eq!(settings.timestamps_uncapped, Some(false));
    assert_eq!(settings.retention, None);
}

#[test]
fn what_means_nothing_is_refused() {
    for word in [
        "--policy=some",
        "--retention-age=long",
        "--retention-age=1500ms",
        "--retention-bytes=7d",
        "--timestamps=never",
        "--delete-on-empty=forever",
    ] {
        assert!(flags(&[word]).is_err(), "{word}");
    }
}

#[test]
fn settings_are_shown_with_their_origin() {
    let own = flags(&["--policy=fenced", "--delete-on-empty=90m"]).unwrap();
    let own = own.settings(Retention::default());
    let defaults = flags(&["--retention-age=2d"]).unwrap();
    let defaults = defaults.settings(Retention::default());
    let shown = show_in_force(&EffectiveSettings::resolve(&own, &defaults));
    let expected = "\u{20} policy               fenced (stream)\n  \
                    retention            2d (bucket)\n  \
                    timestamps           client-prefer (built-in)\n  \
                    timestamps uncapped  false (built-in)\n  \
                    delete on empty      after 90m (stream)\n";
    assert_eq!(shown, expected);
    let said = "\u{20} policy               fenced\n  delete on empty      after 90m\n";
    assert_eq!(show_said(&own), said);
}
