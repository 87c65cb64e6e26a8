//! Shapes have their defaults, the command line changes them, every stream has a session.

use super::*;
use clap::Parser;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    options: LoadOptions,
}

fn of(shape: Shape, words: &[&str]) -> Vec<Workload> {
    let line = Line::parse_from(["bench"].iter().chain(words));
    workloads(shape, &line.options).unwrap()
}

#[test]
fn every_shape_is_a_load() {
    let shapes = [
        (Shape::Latency, 1),
        (Shape::Throughput, 1),
        (Shape::FanIn, 1),
        (Shape::FanOut, 9),
        (Shape::CatchUp, 1),
        (Shape::Soak, 1),
    ];
    for (shape, loads) in shapes {
        let all = of(shape, &[]);
        assert_eq!(all.len(), loads, "{shape:?}");
        for load in all {
            assert!(load.producers > 0 && load.streams > 0 && load.verify);
            assert!(load.title().contains("1024 B"), "{}", load.title());
        }
    }
    assert!(of(Shape::CatchUp, &[])[0].records_max.is_some());
}

#[test]
fn what_is_said_wins() {
    let words = [
        "--rate",
        "50",
        "--producers",
        "2,3",
        "--count",
        "100",
        "--warm-up",
        "0.5",
        "--no-verify",
    ];
    let all = of(Shape::FanIn, &words);
    let producers: Vec<usize> = all.iter().map(|load| load.producers).collect();
    assert_eq!(producers, [2, 3]);
    assert_eq!(all[0].pace, Pace::Open { per_second: 50 });
    assert_eq!(all[0].duration, Duration::from_secs(2));
    assert_eq!(all[0].warm_up, Duration::from_millis(500));
    assert!(!all[0].verify);
    let closed = of(Shape::Latency, &["--in-flight", "1", "--count", "10"]);
    assert_eq!(closed[0].pace, Pace::Closed { in_flight: 1 });
    assert_eq!(closed[0].records_max, Some(10));
}

#[test]
fn producers_have_a_client_each_or_share_some() {
    let clients = |words: &[&str]| {
        let load = of(Shape::FanIn, words).remove(0);
        let mut clients: Vec<usize> = load.sessions().iter().map(|s| s.client).collect();
        clients.dedup();
        (clients, load.title())
    };
    let (each, title) = clients(&["--producers", "3"]);
    assert_eq!(each, [0, 1, 2]);
    assert!(title.starts_with("3 producers x 1 stream"), "{title}");
    let (shared, title) = clients(&["--producers", "4", "--clients", "2"]);
    assert_eq!(shared, [0, 1, 0, 1]);
    assert!(
        title.starts_with("4 producers through 2 clients x"),
        "{title}"
    );
    let (more, _) = clients(&["--producers", "2", "--clients", "9"]);
    assert_eq!(more, [0, 1]);
}

#[test]
fn a_record_that_no_star_takes_is_refused() {
    let line = Line::parse_from(["bench", "--record-bytes", "2000000000"]);
    assert!(workloads(Shape::Latency, &line.options).is_err());
    assert!(Line::try_parse_from(["bench", "--rate", "5", "--in-flight", "5"]).is_err());
    assert!(Line::try_parse_from(["bench", "--producers", "0"]).is_err());
}

#[test]
fn every_producer_and_every_stream_has_a_session() {
    for (producers, streams) in [(1, 1), (3, 1), (1, 3), (50, 2000), (4, 100), (7, 3)] {
        let mut load = of(Shape::Latency, &[]).remove(0);
        (load.producers, load.streams) = (producers, streams);
        let sessions = load.sessions();
        assert_eq!(sessions.len(), producers.max(streams));
        for producer in 0..producers {
            assert!(sessions.iter().any(|session| session.producer == producer));
        }
        for stream in 0..streams {
            assert!(sessions.iter().any(|session| session.stream == stream));
        }
    }
}
