//! One word per thing: the words that `docs/GLOSSARY.md` replaces are not used in code.
//!
//! The document is the only list. Its section "Words not used" has a table whose first column holds
//! the refused words in backticks, the second the word to use. A word is compared with the words of
//! each name, so `` `lsn` `` refuses `LsnRange` and `first_lsn` alike.
//!
//! # Not here
//! - Words inside comments and texts: people may explain with whatever word explains.

use crate::Finding;
use crate::names::words;
use crate::tokens::tokens;
use crate::tree::File;

/// Where the words are kept.
pub const PATH: &str = "docs/GLOSSARY.md";
/// The heading over the refused words.
const HEADING_REFUSED: &str = "## Words not used";

/// What the glossary says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Glossary {
    /// Each explained term with its line.
    pub terms: Vec<(String, usize)>,
    /// Each refused word.
    pub refused: Vec<Refused>,
}

/// A word that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// As it stands in the document.
    pub word: String,
    /// What to say.
    pub instead: String,
    /// Where the document says so.
    pub line: usize,
}

/// Reads the tables of the document.
pub fn parse(text: &str) -> Glossary {
    let mut glossary = Glossary::default();
    let mut in_refused = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            in_refused = line.trim() == HEADING_REFUSED;
        }
        let Some((first, second)) = row(line) else {
            continue;
        };
        if in_refused {
            for word in backticked(first) {
                glossary.refused.push(Refused {
                    word: word.to_owned(),
                    instead: second.to_owned(),
                    line: index + 1,
                });
            }
        } else if let Some(term) = bold(first) {
            glossary.terms.push((term.to_owned(), index + 1));
        }
    }
    glossary
}

/// Whether the document is a glossary: it explains, it refuses, nothing twice, nothing both ways.
pub fn check_document(file: &File) -> Vec<Finding> {
    let glossary = parse(&file.text);
    let mut findings = Vec::new();
    let mut refuse = |line: usize, found: String, advice: &'static str| {
        findings.push(Finding::new(&file.path, line, "glossary", found, advice));
    };
    if glossary.terms.is_empty() || glossary.refused.is_empty() {
        refuse(
            1,
            "no explained term or no refused word".to_owned(),
            "keep a table of **terms** and one under `## Words not used`",
        );
    }
    let mut seen: Vec<&str> = Vec::new();
    for (term, line) in &glossary.terms {
        if seen.contains(&term.as_str()) {
            let found = format!("`{term}` is explained twice");
            refuse(*line, found, "keep the better explanation");
        }
        seen.push(term);
    }
    for refused in &glossary.refused {
        let word = &refused.word;
        if seen.contains(&word.as_str()) {
            let found = format!("`{word}` is used and refused, or refused twice");
            refuse(refused.line, found, "decide for one");
        }
        seen.push(word);
    }
    findings
}

/// The refused words that one file uses.
pub fn check(file: &File, glossary: &Glossary) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let refused: Vec<(Vec<String>, &Refused)> = glossary
        .refused
        .iter()
        .map(|refused| (words(&refused.word), refused))
        .collect();
    let mut findings = Vec::new();
    for token in tokens(&file.text).iter().filter(|token| token.is_word()) {
        let in_name = words(token.text);
        for (pattern, refused) in &refused {
            if in_name.windows(pattern.len()).any(|w| w == pattern) {
                findings.push(Finding::new(
                    &file.path,
                    token.line,
                    "word",
                    format!("`{}`: say {}", token.text, refused.instead),
                    "use the word of docs/GLOSSARY.md",
                ));
            }
        }
    }
    findings
}

/// The first two cells of a table's row.
fn row(line: &str) -> Option<(&str, &str)> {
    let mut cells = line.trim().strip_prefix('|')?.split('|').map(str::trim);
    Some((cells.next()?, cells.next()?))
}

/// The text between `**` and `**` at the start of a cell.
fn bold(cell: &str) -> Option<&str> {
    let (term, _) = cell.strip_prefix("**")?.split_once("**")?;
    Some(term)
}

/// Every text between backticks.
fn backticked(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[cfg(test)]
#[path = "glossary_tests.rs"]
mod tests;
