//! Tests of the text form.

use super::*;

#[test]
fn figures_are_written_line_by_line() {
    let mut text = Text::default();
    text.head("a_total", "What it is", Kind::Counter);
    text.line("a_total", &[], 3.0);
    text.line("a_total", &[("core", "0"), ("code", "FENCED")], 1.5);
    let snapshot = Snapshot {
        buckets: vec![(1, 2), (20, 3)],
        count: 4,
        sum: 70,
    };
    text.head("b_seconds", "Times", Kind::Histogram);
    text.histogram("b_seconds", &[("core", "1")], &snapshot, 1e6);
    let expected = "\
# HELP a_total What it is.
# TYPE a_total counter
a_total 3
a_total{core=\"0\",code=\"FENCED\"} 1.5
# HELP b_seconds Times.
# TYPE b_seconds histogram
b_seconds_bucket{core=\"1\",le=\"0.000001\"} 2
b_seconds_bucket{core=\"1\",le=\"0.00002\"} 3
b_seconds_bucket{core=\"1\",le=\"+Inf\"} 4
b_seconds_sum{core=\"1\"} 0.00007
b_seconds_count{core=\"1\"} 4
";
    assert_eq!(text.finish(), expected);
}
