//! Names of files and definitions: none that says nothing, none told apart by a number.

use crate::Finding;
use crate::tokens::tokens;
use crate::tree::File;

/// Words that say nothing about what is inside.
const EMPTY_WORDS: [&str; 8] = [
    "util", "utils", "helper", "helpers", "misc", "manager", "managers", "impls",
];
/// Names that say nothing when they are the whole name.
const EMPTY_NAMES: [&str; 2] = ["common", "stuff"];
/// Words that end in a 2 and mean it.
const WORDS_WITH_TWO: [&str; 6] = ["log2", "exp2", "http2", "sha2", "ext2", "h2"];
/// What comes before the name of a definition.
const DEFINITIONS: [&str; 6] = ["mod", "struct", "enum", "trait", "fn", "type"];

const ADVICE: &str = "name it after what it does or holds";

/// All rules of this module over one file.
pub fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for part in file.path.split('/') {
        let stem = part.split('.').find(|piece| !piece.is_empty());
        if let Some(stem) = stem.filter(|stem| says_nothing(stem)) {
            let found = format!("the name `{stem}`");
            findings.push(Finding::new(&file.path, 1, "file-name", found, ADVICE));
        }
    }
    if file.is_rust() {
        findings.extend(check_definitions(file));
    }
    findings
}

fn check_definitions(file: &File) -> Vec<Finding> {
    let tokens = tokens(&file.text);
    let mut findings = Vec::new();
    for pair in tokens.windows(2) {
        let [before, name] = pair else { continue };
        if DEFINITIONS.contains(&before.text) && name.is_word() && says_nothing(name.text) {
            let found = format!("the name `{}`", name.text);
            findings.push(Finding::new(&file.path, name.line, "name", found, ADVICE));
        }
    }
    findings
}

fn says_nothing(name: &str) -> bool {
    let words = words(name);
    let empty = words.iter().any(|w| EMPTY_WORDS.contains(&w.as_str()));
    let trailing_two = words.last().is_some_and(|word| {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &word[letters.len()..];
        !letters.is_empty() && digits == "2" && !WORDS_WITH_TWO.contains(&word.as_str())
    });
    empty || trailing_two || EMPTY_NAMES.contains(&name)
}

/// The words of a name in small letters: `HTTPGateway`, `http_gateway` and `http-gateway` have the
/// same two.
pub fn words(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut words = Vec::new();
    let mut word = String::new();
    for (index, &character) in characters.iter().enumerate() {
        let next = characters.get(index + 1);
        let previous = index.checked_sub(1).map(|at| characters[at]);
        let is_start = character.is_uppercase()
            && (previous.is_some_and(|c| c.is_lowercase() || c.is_ascii_digit())
                || next.is_some_and(|c| c.is_lowercase()));
        let is_gap = !character.is_alphanumeric();
        if (is_start || is_gap) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if !is_gap {
            word.extend(character.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
