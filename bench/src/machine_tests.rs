//! The kernel's texts about the machine are read right.

use super::*;

#[test]
fn the_mount_with_the_longest_point_holds_the_data() {
    let mounts = "\
        1 0 254:1 / / rw,relatime - ext4 /dev/vda rw\n\
        2 1 0:21 / /data rw - xfs /dev/nvme0n1 rw\n\
        3 1 0:22 / /data/fast rw,noatime shared:4 - btrfs /dev/nvme1n1 rw\n\
        broken\n";
    let cases = [
        ("/tmp", "ext4 on /dev/vda (rw,relatime)"),
        ("/data", "xfs on /dev/nvme0n1 (rw)"),
        ("/data/fast/a", "btrfs on /dev/nvme1n1 (rw,noatime)"),
        ("/database", "ext4 on /dev/vda (rw,relatime)"),
    ];
    for (data, expected) in cases {
        let found = mount_of(mounts, Path::new(data));
        assert_eq!(found.as_deref(), Some(expected), "{data}");
    }
    assert_eq!(mount_of("", Path::new("/tmp")), None);
}

#[test]
fn the_model_of_the_cpu_is_found() {
    let text = "processor\t: 0\nmodel name\t: Some CPU @ 2.5GHz\nmodel name\t: Other\n";
    assert_eq!(cpu_model(text), "Some CPU @ 2.5GHz");
    assert_eq!(cpu_model(""), "unknown");
}

#[test]
fn a_busy_machine_and_a_shared_cpu_are_warned_of() {
    let mut machine = Machine::look(Path::new("."), 4, 0, 1);
    let mut warned = |load: &str, client_cpu: usize| {
        machine.load_before = load.to_owned();
        machine.client_cpu = client_cpu;
        let warnings = machine.warnings();
        let has = |part: &str| warnings.iter().any(|warning| warning.contains(part));
        (has("others work"), has("share CPU"))
    };
    assert_eq!(warned("1.90 9.00 9.00 1/80 5", 1), (false, false));
    assert_eq!(warned("2.10 0.00 0.00 1/80 5", 0), (true, true));
    assert_eq!(warned("unknown", 1), (false, false));
}

#[test]
fn ticks_are_parsed_and_others_are_told() {
    let text = "cpu  10 1 20 1000 5 3 4 7 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
    let expected = Ticks {
        busy: 38,
        stolen: 7,
    };
    assert_eq!(parse_ticks(text), Some(expected));
    assert_eq!(parse_ticks("cpu  1 2"), None);
    let others = |stolen_percent, others_percent| Others {
        stolen_percent,
        others_percent,
    };
    assert_eq!(others(0.0, 1.0).warnings(), [""; 0]);
    assert_eq!(others(50.0, 50.0).warnings().len(), 2);
    assert!(Noise::begin().unwrap().end().unwrap().others_percent >= 0.0);
}

#[test]
fn a_program_that_is_older_than_the_commit_is_not_said_to_be_of_it() {
    let commit = || Some("abc".to_owned());
    assert_eq!(commit_of(commit(), Some(10), Some(9)), "older than abc");
    assert_eq!(commit_of(commit(), Some(10), Some(10)), "abc");
    assert_eq!(commit_of(commit(), None, Some(9)), "abc");
    assert_eq!(commit_of(None, Some(10), Some(9)), "unknown");
}
