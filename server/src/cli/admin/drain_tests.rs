//! Tests of which cores are meant.

use super::*;
use clap::{Args, FromArgMatches};

fn parsed(words: &[&str]) -> Result<CoreSet, clap::Error> {
    let command = DrainArgs::augment_args(clap::Command::new("drain"));
    let matches = command.try_get_matches_from([&["drain"], words].concat())?;
    Ok(DrainArgs::from_arg_matches(&matches)?.cores())
}

#[test]
fn one_core_or_all_must_be_said() {
    assert_eq!(parsed(&["1"]).unwrap(), CoreSet::One(CoreId(1)));
    assert_eq!(parsed(&["--all"]).unwrap(), CoreSet::All);
    for wrong in [&[][..], &["1", "--all"], &["one"], &["-1"], &["70000"]] {
        let error = parsed(wrong).unwrap_err();
        assert!(error.use_stderr(), "{wrong:?}: {error}");
    }
}
