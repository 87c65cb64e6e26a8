//! Tokens: what is code, what is not, and on which line.

use super::*;

fn texts(source: &str) -> Vec<&str> {
    tokens(source).iter().map(|token| token.text).collect()
}

#[test]
fn comments_strings_and_characters_are_left_out() {
    let cases: &[(&str, &[&str])] = &[
        ("a // b\nc", &["a", "c"]),
        ("a /* b /* c */ d */ e", &["a", "e"]),
        ("a \"b \\\" c\" d", &["a", "d"]),
        ("a r#\"b \" c\"# d", &["a", "d"]),
        ("a br\"b\\\" c", &["a", "c"]),
        ("b\"x\" c\"y\" b'z' q", &["q"]),
        ("'{' '\\'' '\\u{7d}' x '\u{e9}' y", &["x", "y"]),
        (
            "fn f<'a>(x: &'a str)",
            &["fn", "f", "<", ">", "(", "x", ":", "&", "str", ")"],
        ),
        ("'outer: loop", &[":", "loop"]),
        ("r#type", &["r", "#", "type"]),
        ("a.b()", &["a", ".", "b", "(", ")"]),
        ("brief \"x\" crate", &["brief", "crate"]),
    ];
    for (source, expected) in cases {
        assert_eq!(&texts(source), expected, "{source}");
    }
}

#[test]
fn every_opened_thing_ends_with_the_text() {
    for source in ["/* a", "\"a", "r##\"a\"#", "'\\", "'", "b'", "//", "r#"] {
        let count = tokens(source).len();
        assert!(count <= source.len(), "{source}");
    }
}

#[test]
fn lines_count_through_literals() {
    let source = "a\n\"two\nlines\"\n/* and\nmore */ b";
    let found: Vec<(usize, &str)> = tokens(source).iter().map(|t| (t.line, t.text)).collect();
    assert_eq!(found, [(1, "a"), (5, "b")]);
}

#[test]
fn find_gives_the_line_of_each_match() {
    let source = "x.unwrap();\n\"y.unwrap()\"\nz\n.unwrap()";
    assert_eq!(find(&tokens(source), &[".", "unwrap", "("]), [1, 4]);
    assert_eq!(find(&tokens(""), &["a"]), Vec::<usize>::new());
}
