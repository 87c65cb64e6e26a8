//! Tests of what people read.

use super::*;
use nova_client::{StreamMove, StreamName};
use nova_model::{Incarnation, StarId};

fn core(number: u16) -> CoreStatus {
    CoreStatus {
        core: CoreId(number),
        address: format!("localhost:{}", 7_400 + number),
        is_drained: false,
        is_disk_full: false,
        streams_led: 12,
        streams_loaded: 1_400,
        streams_moving: 0,
        sessions: 3,
        readers: 1,
        appended_bytes_per_s: 3 << 20,
        appended_records_per_s: 31_000,
        read_bytes_per_s: 0,
        segments: 3,
        log_bytes: 700 << 20,
        pending_bytes: 4_096,
        recent_bytes: 64 << 20,
    }
}

#[test]
fn a_status_is_a_table_with_a_line_for_each_core() {
    let mut drained = core(1);
    drained.is_drained = true;
    drained.streams_led = 0;
    let status = StarStatus {
        star: StarId(42),
        incarnation: Incarnation(3),
        cores: vec![core(0), drained],
    };
    let told = super::status(&status);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].ends_with("start 3"), "{told}");
    let expected = [
        "core  address         leads  loaded  moving  sessions  readers  records/s  appended/s  \
         read/s      log  pending  state",
        "0     localhost:7400     12   1,400       0         3        1     31,000       3 MiB     \
         0 B  700 MiB    4 KiB  ok",
        "1     localhost:7401      0   1,400       0         3        1     31,000       3 MiB     \
         0 B  700 MiB    4 KiB  drained",
    ];
    assert_eq!(lines[2..], expected, "{told}");
}

#[test]
fn every_state_has_its_word() {
    let state_of = |is_drained, is_disk_full| {
        state(&CoreStatus {
            is_drained,
            is_disk_full,
            ..core(0)
        })
    };
    assert_eq!(state_of(false, false), "ok");
    assert_eq!(state_of(true, false), "drained");
    assert_eq!(state_of(false, true), "disk full");
    assert_eq!(state_of(true, true), "drained, disk full");
}

#[test]
fn drains_say_how_long_they_last() {
    let done = Placement {
        drained: vec![CoreId(1)],
        moved: 1,
    };
    let told = drained(CoreSet::One(CoreId(1)), &done);
    assert!(told.contains("1 stream went"), "{told}");
    assert!(
        told.contains("nova admin undrain 1, or the star's next start"),
        "{told}"
    );
    let told = drained(
        CoreSet::All,
        &Placement {
            moved: 2_000,
            ..done.clone()
        },
    );
    assert!(told.contains("2,000 streams"), "{told}");
    assert!(
        told.contains("nova admin undrain --all, or the star's next start"),
        "{told}"
    );
    let told = undrained(CoreSet::One(CoreId(0)), &done);
    assert_eq!(
        told,
        format!(
            "{} takes streams again; 1 stream moved\nStill drained: {}\n",
            CoreId(0),
            CoreId(1)
        )
    );
    let none = Placement {
        drained: Vec::new(),
        moved: 0,
    };
    assert_eq!(
        undrained(CoreSet::All, &none),
        "all cores take streams again\n"
    );
}

#[test]
fn a_rebalance_tells_its_moves() {
    let nothing = Rebalanced {
        moves: Vec::new(),
        has_more: false,
    };
    assert!(rebalanced(&nothing).starts_with("nothing to move"));
    let name = StreamName::parse("logs/web").unwrap();
    let (from, to) = (CoreId(0), CoreId(1));
    let moves = vec![StreamMove { name, from, to }];
    let told = rebalanced(&Rebalanced {
        moves,
        has_more: true,
    });
    let expected = format!(
        "1 stream moved\n  logs/web from {from} to {to}\n\
         There is more to do: nova admin rebalance\n"
    );
    assert_eq!(told, expected);
}
