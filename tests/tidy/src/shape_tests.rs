//! Shape: each rule refuses its bad sample and passes the largest good one.

use super::*;

const DOC: &str = "//! A sample with purpose.\n";

fn rules(path: &str, text: &str) -> Vec<(&'static str, usize)> {
    let findings = check(&File::new(path, text));
    findings.iter().map(|f| (f.rule, f.line)).collect()
}

#[test]
fn a_file_may_have_500_lines_and_not_one_more() {
    let full = format!("{DOC}{}", "//\n".repeat(FILE_LINES_MAX - 1));
    assert_eq!(rules("a.rs", &full), []);
    assert_eq!(rules("a.rs", &format!("{full}//\n")), [("file-lines", 501)]);
    assert_eq!(rules("a.sh", &"#\n".repeat(501)), [("file-lines", 501)]);
    assert_eq!(rules("a.md", &"x\n".repeat(501)), []);
}

#[test]
fn a_line_may_have_100_columns_and_not_one_more() {
    let line = "x".repeat(LINE_COLUMNS_MAX - 2);
    assert_eq!(rules("a.rs", &format!("{DOC}//{line}\n")), []);
    assert_eq!(
        rules("a.rs", &format!("{DOC}//{line}x\n")),
        [("columns", 2)]
    );
}

#[test]
fn code_is_ascii_in_comments_too() {
    assert_eq!(
        rules("a.rs", &format!("{DOC}// caf\u{e9}\n")),
        [("ascii", 2)]
    );
    assert_eq!(rules("a.md", "caf\u{e9}\n"), []);
}

#[test]
fn every_rust_file_begins_with_its_purpose() {
    assert_eq!(rules("a.rs", "use x;\n"), [("module-doc", 1)]);
    assert_eq!(
        rules("a.rs", "\n//! Late by a line.\n"),
        [("module-doc", 1)]
    );
    assert_eq!(rules("a.rs", "//! nova-sample.\n"), [("module-doc", 1)]);
    assert_eq!(rules("a.rs", ""), [("module-doc", 1)]);
    assert_eq!(rules("a.rs", DOC), []);
}

#[test]
fn a_function_may_have_70_lines_and_not_one_more() {
    let with_lines = |lines: usize| format!("{DOC}fn f() {{\n{}}}\n", "//\n".repeat(lines - 2));
    assert_eq!(rules("a.rs", &with_lines(FUNCTION_LINES_MAX)), []);
    assert_eq!(
        rules("a.rs", &with_lines(FUNCTION_LINES_MAX + 1)),
        [("function-lines", 2)]
    );
}

#[test]
fn functions_are_found_by_their_braces() {
    let source = r#"
trait T { fn declared(&self, x: [u8; { 4 }]); }
type Pointer = fn(u8) -> u8;
fn one() -> [u8; { 2 + 2 }] {
    let _ = "}"; // }
    let _ = '}';
    fn nested() {
    }
    if true { } else { }
}
macro_rules! m { ($name:ident) => { fn $name() {} } }
fn generic<F: Fn() -> u8>(f: F)
where
    F: Send,
{
    f(|| { [1]; });
}
"#;
    let found: Vec<(String, usize, usize)> = functions(&tokens(source))
        .into_iter()
        .map(|f| (f.name, f.line_first, f.line_last))
        .collect();
    let expected = [
        ("one", 4, 10),
        ("nested", 7, 8),
        ("$", 11, 11),
        ("generic", 12, 17),
    ];
    let expected = expected.map(|(name, first, last)| (name.to_owned(), first, last));
    assert_eq!(found, expected);
}
