//! The glossary: refused words are found in names, and the document itself is checked.

use super::*;

const DOCUMENT: &str = "\
# Glossary
| word | meaning |
| --- | --- |
| **stream** | an ordered list |
| **tail** | its end |

## Words not used
| not | instead | why |
| --- | --- | --- |
| `lsn`, `seqno` | position | two kinds |
| `high_water` | durable | one word |
";

#[test]
fn the_tables_are_read() {
    let glossary = parse(DOCUMENT);
    let terms: Vec<&str> = glossary.terms.iter().map(|(t, _)| t.as_str()).collect();
    assert_eq!(terms, ["stream", "tail"]);
    let words: Vec<&str> = glossary.refused.iter().map(|r| r.word.as_str()).collect();
    assert_eq!(words, ["lsn", "seqno", "high_water"]);
    assert_eq!(check_document(&File::new(PATH, DOCUMENT)), []);
}

#[test]
fn refused_words_are_found_in_names_only() {
    let glossary = parse(DOCUMENT);
    let lines = |text: &str| -> Vec<usize> {
        let findings = check(&File::new("a.rs", text), &glossary);
        findings.iter().map(|f| f.line).collect()
    };
    for code in [
        "let first_lsn = 1;",
        "struct LsnRange;",
        "const HIGH_WATER_MARK: u8 = 1;",
    ] {
        assert_eq!(lines(&format!("\n{code}")), [2], "{code}");
    }
    for code in [
        "// the lsn",
        "\"lsn\"",
        "let pulsn = 1;",
        "let high = water;",
    ] {
        assert_eq!(lines(code), Vec::<usize>::new(), "{code}");
    }
    let message = check(&File::new("a.rs", "let seqno = 1;"), &glossary)[0].to_string();
    assert!(message.contains("say position"), "{message}");
}

#[test]
fn a_document_that_is_empty_or_says_a_thing_twice_is_refused() {
    let twice = DOCUMENT.replace("**tail**", "**stream**");
    let both = DOCUMENT.replace("`seqno`", "`tail`");
    let renamed = DOCUMENT.replace("Words not used", "Others");
    for text in ["", &twice, &both, &renamed] {
        assert_eq!(check_document(&File::new(PATH, text)).len(), 1, "{text}");
    }
}
