//! Ratios speak for nova above 1 in every column, and are made within rounds.

use super::*;
use std::path::Path;

fn row(system: &'static str, values: [f64; 2]) -> Row {
    let mut row = Row::new(system, "1".to_owned(), "always");
    for series in &mut row.columns {
        values.iter().for_each(|&value| series.push(value));
    }
    row
}

#[test]
fn a_ratio_above_one_speaks_for_nova() {
    let machine = Machine::look(Path::new("."), 2, 0, 1);
    let rows = vec![row("nova", [10.0, 20.0]), row("other", [20.0, 40.0])];
    let skipped = Skipped {
        system: "absent",
        why: "it is not there".to_owned(),
        install: "install it",
    };
    let comparison = Comparison::new(machine, true, rows, vec![skipped]);
    for ratio in &comparison.ratios {
        let expected = match ratio.column {
            Column::OnePerAck => 2.0,
            _ => 0.5,
        };
        assert_eq!((ratio.median, ratio.quartiles), (expected, [expected; 2]));
    }
    let text = comparison.to_string();
    for part in [
        "nova 2.00 times (2.00 to 2.00)",
        "skipped: absent",
        "install it",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
