//! Numbers are written as people read them; the text holds what matters.

use super::*;
use crate::machine::Others;
use crate::run::outcome::tests::result;
use crate::workload::Shape;
use std::path::Path;

/// A report of two loads; other suites show it, too.
pub(crate) fn sample() -> LoadReport {
    let pace = Pace::Open { per_second: 500 };
    let mut machine = Machine::look(Path::new("."), 2, 0, 1);
    machine.load_before = "0.00 0.00 0.00".to_owned();
    LoadReport {
        shape: Shape::Latency,
        machine,
        others: Others {
            stolen_percent: 0.0,
            others_percent: 1.0,
        },
        star: "its own".to_owned(),
        ended: 1_500_000_000.0,
        loads: vec![result(pace, Vec::new()), result(pace, Vec::new())],
        warnings: vec!["any <warning>".to_owned()],
        out: None,
    }
}

#[test]
fn times_have_three_digits() {
    let cases = [
        (0.0, "0.0 us"),
        (9.94, "9.9 us"),
        (112.4, "112 us"),
        (999.4, "999 us"),
        (1_420.0, "1.42 ms"),
        (14_200.0, "14.2 ms"),
        (142_000.0, "142 ms"),
        (1_420_000.0, "1.42 s"),
    ];
    for (us, text) in cases {
        assert_eq!(micros(us), text);
    }
}

#[test]
fn thousands_have_commas() {
    for (number, text) in [
        (0, "0"),
        (999, "999"),
        (1_000, "1,000"),
        (1_234_567, "1,234,567"),
    ] {
        assert_eq!(count(number), text);
    }
}

#[test]
fn the_text_holds_what_matters() {
    let text = report(&sample());
    for part in [
        "due to durable ack",
        "p99.99",
        "500 records/s",
        "all in their places",
        "records/s",
        "governor",
        "WARNING: any <warning>",
    ] {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
    let json = serde_json::to_value(sample()).unwrap();
    assert_eq!(json["loads"][0]["latency"]["count"], 1000);
    assert!(json["loads"][0]["latency"]["p99.99"].as_f64().unwrap() > 399.0);
    assert_eq!(json["loads"][0]["verified"]["same"]["records"], 1000);
    assert_eq!(json["loads"][0]["intervals"].as_array().unwrap().len(), 4);
}
