//! Names are read back as they are built, and nothing else is taken for one.

use super::*;

const FILE: SegmentFile = SegmentFile {
    log: LogId(7),
    number: SegmentNumber(42),
};

const NEWER: Generation = Generation(3);

fn name(path: PathBuf) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn built_names_are_read_back() {
    let layout = Layout::new("/data");
    let cases = [
        (
            layout.segment(FILE),
            LogEntry::Segment(FILE.number, Generation(0)),
        ),
        (
            layout.index(FILE),
            LogEntry::Index(FILE.number, Generation(0)),
        ),
        (layout.spare(FILE.log, 3), LogEntry::Spare(3)),
        (layout.draft(FILE), LogEntry::Draft),
        (layout.draft_of(FILE, NEWER), LogEntry::Draft),
        (
            layout.segment_of(FILE, NEWER),
            LogEntry::Segment(FILE.number, NEWER),
        ),
        (
            layout.index_of(FILE, NEWER),
            LogEntry::Index(FILE.number, NEWER),
        ),
    ];
    for (path, entry) in cases {
        assert!(path.starts_with("/data/core-007"), "{path:?}");
        assert_eq!(parse(&name(path)), Some(entry));
    }
    assert_eq!(
        segment_name(FILE.number, Generation(0)),
        name(layout.segment(FILE))
    );
    for log in [0, 7, 255, 1_000, u16::MAX] {
        assert_eq!(parse_log(&name(layout.log(LogId(log)))), Some(LogId(log)));
    }
}

#[test]
fn other_names_are_nothing_of_ours() {
    for name in [
        "",
        "1.seg",
        "0000000000000000000x.seg",
        "+0000000000000000001.seg",
        "99999999999999999999.seg",
        "18446744073709551615.seg",
        "00000000000000000001.seg.bak",
        "00000000000000000001-00000.seg",
        "00000000000000000001-65536.seg",
        "00000000000000000001-1.seg",
        "spare-1.seg",
        "spare-0001.seg",
        "notes.txt",
    ] {
        assert_eq!(parse(name), None, "{name}");
    }
    for name in [
        "core-",
        "core-1",
        "core-0001",
        "core-+01",
        "core-65536",
        "log-001",
    ] {
        assert_eq!(parse_log(name), None, "{name}");
    }
}
