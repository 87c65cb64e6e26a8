//! Tests of all figures together.

use super::*;
use std::collections::BTreeSet;

fn metrics() -> Metrics {
    let cores = vec![Arc::new(CoreFigures::new()), Arc::new(CoreFigures::new())];
    let budgets = Budgets {
        data: "/".into(),
        ingress_bytes: 1,
        recent_bytes: 2,
    };
    let metrics = Metrics::new(cores, budgets);
    metrics.set_recovered(vec![Recovered {
        log: LogId(0),
        report: RecoveryReport::default(),
        took: Duration::from_millis(5),
    }]);
    metrics.http.note("GET", "/v1/star", 200, 7);
    metrics
}

/// Names follow the conventions: one prefix, base units, `_total` for what only grows.
#[test]
fn every_figure_is_named_by_the_conventions_and_told_once() {
    let text = metrics().text(0);
    let mut names = BTreeSet::new();
    let mut kinds = 0;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(names.insert(name.to_owned()), "{name} is told twice");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
            assert!(
                name.starts_with("nova_") || name.starts_with("process_"),
                "{name}"
            );
            kinds += 1;
        }
    }
    assert!(kinds > 30, "{kinds}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let family = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end).filter(|name| names.contains(*name)));
        assert!(names.contains(family.unwrap_or(name)), "{line}");
        let value = line.rsplit_once(' ').unwrap().1;
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

/// The dashboard asks for figures that there are.
#[test]
fn the_dashboard_shows_figures_that_there_are() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/grafana-dashboard.json"
    );
    let dashboard = std::fs::read_to_string(path).unwrap();
    serde_json::from_str::<serde_json::Value>(&dashboard).unwrap();
    let text = metrics().text(0);
    let word = |c: char| c.is_ascii_lowercase() || c == '_';
    let asked = dashboard.split(|c| !word(c));
    let asked: BTreeSet<_> = asked
        .filter(|name| name.starts_with("nova_") || name.starts_with("process_"))
        .collect();
    assert!(asked.len() > 15, "{asked:?}");
    for name in asked {
        let there = text
            .lines()
            .any(|line| line.split(['{', ' ']).next() == Some(name));
        assert!(there, "{name} is no figure");
    }
}
