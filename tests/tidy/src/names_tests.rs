//! Names: empty ones are refused in paths and definitions, telling ones pass.

use super::*;

fn rules(path: &str, text: &str) -> Vec<(&'static str, usize)> {
    let findings = check(&File::new(path, text));
    findings.iter().map(|f| (f.rule, f.line)).collect()
}

#[test]
fn empty_file_names_are_refused() {
    for path in [
        "server/src/util.rs",
        "server/src/disk_helpers.rs",
        "server/src/common.rs",
        "tests/common/mod.rs",
        "server/src/misc.rs",
        "server/src/session_manager.rs",
        "server/src/frame2.rs",
    ] {
        assert_eq!(rules(path, ""), [("file-name", 1)], "{path}");
    }
    for path in [
        "server/src/utility_curve.rs",
        "a/crc32.rs",
        "a/log2.rs",
        ".ci/run",
    ] {
        assert_eq!(rules(path, ""), [], "{path}");
    }
}

#[test]
fn empty_definition_names_are_refused() {
    for code in [
        "struct SegmentManager;",
        "mod util;",
        "fn send_messages2() {}",
        "trait Common2 {}",
        "mod common;",
    ] {
        assert_eq!(rules("a.rs", code), [("name", 1)], "{code}");
    }
    for code in [
        "fn common_prefix() {}",
        "struct U32;",
        "fn log2() {}",
        "// mod util;",
    ] {
        assert_eq!(rules("a.rs", code), [], "{code}");
    }
}

#[test]
fn names_fall_into_words() {
    let cases: &[(&str, &[&str])] = &[
        ("match_seq_num", &["match", "seq", "num"]),
        ("SequenceNumber", &["sequence", "number"]),
        ("LSNRange", &["lsn", "range"]),
        ("FNV_OFFSET", &["fnv", "offset"]),
        ("http2Frame", &["http2", "frame"]),
        ("nova-core", &["nova", "core"]),
        ("_", &[]),
        ("X", &["x"]),
    ];
    for (name, expected) in cases {
        assert_eq!(&words(name), expected, "{name}");
    }
}
