//! Banned words: each is refused where it has no place, and only there.

use super::*;

fn rules(path: &str, text: &str) -> Vec<(&'static str, usize)> {
    let findings = check(&File::new(path, text));
    findings.iter().map(|f| (f.rule, f.line)).collect()
}

#[test]
fn marks_and_phrases_are_refused_in_code_and_docs() {
    for word in MARKS.iter().chain(&PHRASES) {
        for path in ["engine/a.rs", "docs/A.md", "x/Cargo.toml", ".ci/a.sh"] {
            assert_eq!(rules(path, &format!("\n# {word}: x")), [("unfinished", 2)]);
        }
        assert_eq!(rules("a.bin", word), []);
        assert_eq!(rules("a.rs", &format!("// q{word}")), []);
    }
    assert_eq!(rules("a.rs", "// before nowhere"), []);
}

#[test]
fn paths_of_one_machine_are_refused() {
    for place in PLACES {
        assert_eq!(
            rules("docs/A.md", &format!("see `{place}x`")),
            [("machine-path", 1)]
        );
        assert_eq!(rules("docs/A.md", &format!("see `target{place}x`")), []);
        assert_eq!(rules("docs/A.md", &format!("see ${{ROOT}}{place}x")), []);
    }
}

#[test]
fn calls_are_refused_in_code_and_not_in_texts() {
    let cases = [
        ("debug-macro", "dbg!(x)"),
        ("placeholder", "todo!()"),
        ("placeholder", "unimplemented!()"),
        ("ignored-test", "#[ignore]"),
        ("ignored-test", "#[ignore = \"slow\"]"),
        ("ignored-test", "#[cfg_attr(x, ignore)]"),
        ("unbounded", "flume::unbounded()"),
        ("unbounded", "mpsc::unbounded_channel()"),
        ("inline-tests", "mod tests {}"),
    ];
    for (rule, code) in cases {
        assert_eq!(rules("bench/a.rs", code), [(rule, 1)], "{code}");
        assert_eq!(rules("bench/a.rs", &format!("// {code}")), [], "{code}");
        assert_eq!(rules("bench/a.rs", &format!("r#\"{code}\"#")), [], "{code}");
    }
}

#[test]
fn unwrap_is_refused_outside_tests() {
    let code = "x\n    .unwrap()";
    for path in ["engine/core/src/a.rs", "net/x/src/a.rs", "server/src/a.rs"] {
        assert_eq!(rules(path, code), [("unwrap", 2)], "{path}");
    }
    for path in [
        "engine/core/src/a_tests.rs",
        "net/x/tests/a.rs",
        "tests/sim/src/a.rs",
        "bench/src/a.rs",
    ] {
        assert_eq!(rules(path, code), [], "{path}");
    }
    assert_eq!(rules("engine/core/src/a.rs", "x.unwrap_or(1)"), []);
}

#[test]
fn sleep_is_refused_in_tests() {
    for call in [
        "thread::sleep(x)",
        "sleep(x).await",
        "sleep_until(x)",
        "sleep_ms(1)",
    ] {
        assert_eq!(rules("engine/core/src/a_tests.rs", call), [("sleep", 1)]);
        assert_eq!(rules("tests/e2e/src/a.rs", call), [("sleep", 1)]);
        assert_eq!(rules("server/src/a.rs", call), []);
    }
    assert_eq!(rules("tests/e2e/src/a.rs", "fn sleeps() {}"), []);
}
