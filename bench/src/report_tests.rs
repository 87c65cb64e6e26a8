//! Verdicts judge, doubtful baselines are warned of, text and JSON hold all there is.

use super::*;
use crate::series::Unit;
use std::path::Path;

fn section(baseline: &[f64]) -> Section {
    let mut bare = Series::new(Role::Baseline, "bare", Unit::Micros);
    baseline.iter().for_each(|&value| bare.push(value));
    let mut star = Series::new(Role::Star, "whole", Unit::Micros);
    star.push(1.0);
    star.push(100.0);
    Section {
        name: "latency",
        title: "any".to_owned(),
        series: vec![bare, star],
        verdicts: vec![Verdict::new("whole / bare", 1.25, Bound::AtMost, 1.3)],
        notes: vec!["any note".to_owned()],
    }
}

fn report(baseline: &[f64]) -> Report {
    let mut machine = Machine::look(Path::new("."), 2, 0, 1);
    machine.load_before = "0.00 0.00 0.00".to_owned();
    Report::new(machine, true, 20, vec![section(baseline)])
}

#[test]
fn a_verdict_is_on_the_right_side_of_its_limit() {
    for (value, bound, limit, holds) in [
        (1.3, Bound::AtMost, 1.3, true),
        (1.31, Bound::AtMost, 1.3, false),
        (0.6, Bound::AtLeast, 0.6, true),
        (0.59, Bound::AtLeast, 0.6, false),
        (f64::NAN, Bound::AtLeast, 0.6, false),
        (f64::NAN, Bound::AtMost, 0.6, false),
    ] {
        let verdict = Verdict::new("any", value, bound, limit);
        assert_eq!(verdict.holds, holds, "{verdict}");
    }
}

#[test]
fn only_a_baseline_that_varies_is_warned_of() {
    let warned = |baseline: &[f64]| {
        let warnings = report(baseline).warnings;
        warnings.iter().any(|warning| warning.contains("'bare'"))
    };
    assert!(!warned(&[100.0, 135.0, 100.0]));
    assert!(warned(&[100.0, 136.0, 100.0]));
    assert!(!report(&[1.0]).warnings.iter().any(|w| w.contains("whole")));
}

#[test]
fn text_and_json_hold_the_quantities_and_the_verdict() {
    let report = report(&[100.0, 104.0, 102.0]);
    let text = report.to_string();
    for part in [
        "quick form",
        "bare     102.00 us, spread 4 % [100.0 104.0 102.0]",
        "holds     1.25, at most 1.30: whole / bare",
        "note      any note",
    ] {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
    let json = serde_json::to_value(&report).unwrap();
    let section = &json["sections"][0];
    assert_eq!(section["series"][0]["rounds"][1], 104.0);
    assert_eq!(section["series"][0]["role"], "baseline");
    assert_eq!(section["verdicts"][0]["bound"], "at_most");
    assert_eq!(section["verdicts"][0]["holds"], true);
    assert_eq!(json["spin_us"], 20);
}

#[test]
fn a_verdict_that_fails_is_named() {
    let mut report = report(&[100.0]);
    assert_eq!(report.missed(), Vec::<String>::new());
    let failed = Verdict::new("MB/s", 0.5, Bound::AtLeast, 0.6);
    report.sections[0].verdicts.push(failed);
    assert_eq!(report.missed(), ["latency: 0.50, at least 0.60: MB/s"]);
}
