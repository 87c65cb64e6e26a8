//! A device is believed when it says that a write is durable, and only then.

use super::*;

fn queue(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

#[test]
fn a_queue_says_whether_a_flush_is_needed() {
    let cases: [(&[(&str, &str)], bool); 5] = [
        (&[("fua", "1\n"), ("write_cache", "write back\n")], true),
        (&[("fua", "0\n"), ("write_cache", "write through\n")], true),
        (&[("fua", "0\n"), ("write_cache", "write back\n")], false),
        (&[("fua", "0\n")], false),
        (&[], false),
    ];
    for (files, expected) in cases {
        assert_eq!(is_through(queue(files).path()), expected, "{files:?}");
    }
}

#[test]
fn what_is_not_there_needs_a_flush() {
    assert!(!writes_through(Path::new("/proc/self/nothing")));
    assert!(!writes_through(Path::new("/proc")));
}
