//! Whether docs/MODELS.md names all of the models, and only what is in the code.
//!
//! A row of its tables is `| names in the model | file | names in that file | remark |`, with names
//! and file in backticks. The file must be in the tree and hold each name as a whole word; each
//! variable and each action of a model must be in a first column, if only to say that there is no
//! code for it.
//!
//! # Not here
//! - Whether the two mean the same: readers judge that.

use std::fs;
use std::path::Path;

struct Row<'a> {
    line: usize,
    model: Vec<&'a str>,
    /// None if nothing in the code corresponds.
    file: Option<&'a str>,
    code: Vec<&'a str>,
}

/// What `text`, the document, says wrongly about the tree at `root`.
pub fn check_code(text: &str, root: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    for row in rows(text) {
        let (Some(file), line) = (row.file, row.line) else {
            continue;
        };
        let Ok(source) = fs::read_to_string(root.join(file)) else {
            findings.push(format!("line {line}: there is no {file}"));
            continue;
        };
        for name in row.code.iter().filter(|name| !holds_word(&source, name)) {
            findings.push(format!("line {line}: {file} has no `{name}`"));
        }
    }
    findings
}

/// The variables and actions of `model`, a TLA+ module, that no row of `text` explains.
pub fn check_model(text: &str, model: &str) -> Vec<String> {
    let rows = rows(text);
    let mut names = variables(model);
    names.extend(actions(model));
    names
        .into_iter()
        .filter(|name| !rows.iter().any(|row| row.model.contains(name)))
        .map(|name| format!("`{name}` has no row"))
        .collect()
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(index, line)| row(index + 1, line))
        .collect()
}

fn row(line: usize, text: &str) -> Option<Row<'_>> {
    let mut cells = text.strip_prefix('|')?.split('|');
    let model = quoted(cells.next()?);
    let file = quoted(cells.next()?).first().copied();
    let code = cells.next().map(quoted).unwrap_or_default();
    (!model.is_empty()).then_some(Row {
        line,
        model,
        file: file.filter(|file| file.ends_with(".rs")),
        code,
    })
}

/// The texts in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The names in the list under `VARIABLES`, one a line.
fn variables(model: &str) -> Vec<&str> {
    let lines = model
        .lines()
        .skip_while(|line| line.trim() != "VARIABLES")
        .skip(1);
    let list = lines.take_while(|line| line.starts_with(' '));
    list.filter_map(|line| line.split([',', ' ']).find(|word| !word.is_empty()))
        .collect()
}

/// Definitions that say what stays unchanged: the actions, and the parts of actions.
fn actions(model: &str) -> Vec<&str> {
    let mut actions: Vec<&str> = Vec::new();
    let mut current = None;
    for line in model.lines() {
        let is_head = line.starts_with(|c: char| c.is_ascii_uppercase()) && line.contains("==");
        if is_head {
            current = line.split([' ', '(']).next();
        }
        if line.contains("UNCHANGED")
            && let Some(name) = current.take()
        {
            actions.push(name);
        }
    }
    actions
}

/// Whether `word` stands in `text` with no letter, digit or `_` on either side.
fn holds_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
