//! Axes have ends and ticks that people like; every line is inside of its plot.

use super::*;

fn axis(scale: Scale) -> Axis {
    Axis {
        label: "any",
        scale,
        text: |value| format!("{value}"),
    }
}

#[test]
fn ticks_are_round_numbers_within_the_axis() {
    let cases: [(Scale, &[f64], &[f64]); 5] = [
        (Scale::Linear, &[0.0, 9.0], &[0.0, 2.0, 4.0, 6.0, 8.0]),
        (Scale::Linear, &[0.0], &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (Scale::Log, &[110.0, 900.0], &[100.0, 200.0, 500.0, 1000.0]),
        (Scale::Log, &[100.0], &[100.0, 200.0, 500.0, 1000.0]),
        (Scale::Nines, &[0.0, 0.995], &[0.0, 0.9, 0.99, 0.999]),
    ];
    for (scale, values, expected) in cases {
        let ticks = Span::new(axis(scale), values.iter().copied()).ticks();
        assert_eq!(ticks.len(), expected.len(), "{scale:?} {ticks:?}");
        for (tick, expected) in ticks.iter().zip(expected) {
            assert!(
                (tick - expected).abs() < 1e-9 * expected.max(1.0),
                "{ticks:?}"
            );
        }
    }
}

#[test]
fn lines_stay_inside_and_impossible_points_are_left_out() {
    let plot = Plot {
        title: "a < b",
        x: axis(Scale::Nines),
        y: axis(Scale::Log),
        lines: vec![
            Line {
                name: "one".to_owned(),
                points: vec![(0.0, 100.0), (0.5, 0.0), (0.99, 300.0), (1.0, 900.0)],
                is_dashed: false,
            },
            Line {
                name: "none".to_owned(),
                points: Vec::new(),
                is_dashed: true,
            },
        ],
    };
    let svg = draw(&plot);
    assert!(svg.contains("a &lt; b") && !svg.contains("NaN") && !svg.contains("inf"));
    let path = svg.split("class=\"line l0\" d=\"").nth(1).unwrap();
    let path = path.split('"').next().unwrap();
    assert_eq!(path.matches(['M', 'L']).count(), 2, "{path}");
    for pair in path.split(['M', 'L']).filter(|pair| !pair.is_empty()) {
        let (x, y) = pair.split_once(' ').unwrap();
        let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
        assert!((LEFT..=WIDTH - RIGHT).contains(&x) && (TOP..=HEIGHT - BOTTOM).contains(&y));
    }
}
