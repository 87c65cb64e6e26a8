//! Tests of where lines come from.

use super::*;

fn lines(file: &Path, records: Option<u64>) -> Result<Vec<String>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut source = Source::open(Some(file), records)?;
        let mut lines = Vec::new();
        while let Some(line) = source.next().await? {
            lines.push(String::from_utf8(line.body.to_vec()).unwrap());
        }
        assert!(source.next().await?.is_none());
        Ok(lines)
    })
}

#[test]
fn the_lines_of_a_file_come_in_order_and_not_more_than_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.log");
    std::fs::write(&path, "one\ntwo\n\nlast").unwrap();
    assert_eq!(lines(&path, None).unwrap(), ["one", "two", "", "last"]);
    assert_eq!(lines(&path, Some(2)).unwrap(), ["one", "two"]);
    assert_eq!(lines(&path, Some(9)).unwrap().len(), 4);
    std::fs::write(&path, "").unwrap();
    assert_eq!(lines(&path, None).unwrap(), [""; 0]);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let failure = lines(Path::new("no/such.log"), None).unwrap_err();
    assert_eq!(failure.what, "no/such.log can't be read");
}

#[test]
fn a_line_that_is_too_long_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.log");
    std::fs::write(&path, format!("short\n{}", "x".repeat(LINE_BYTES_MAX + 1))).unwrap();
    let failure = lines(&path, None).unwrap_err();
    assert!(
        failure
            .why
            .starts_with("line 2 has more than 1048568 bytes")
    );
}
