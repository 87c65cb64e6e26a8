//! The shape of a file: its length, its functions' lengths, its columns, its alphabet, its doc.

use crate::Finding;
use crate::tokens::{Token, tokens};
use crate::tree::File;

/// Lines of one file.
pub const FILE_LINES_MAX: usize = 500;
/// Lines of one function, from `fn` to its closing brace.
pub const FUNCTION_LINES_MAX: usize = 70;
/// Characters of one line.
pub const LINE_COLUMNS_MAX: usize = 100;
/// Words that the first line of a module doc has at least: fewer cannot be a sentence of purpose.
pub const PURPOSE_WORDS_MIN: usize = 3;

/// All rules of this module over one file.
pub fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if file.is_code() {
        findings.extend(check_file_lines(file));
        findings.extend(check_columns(file));
        findings.extend(check_ascii(file));
    }
    if file.is_rust() {
        findings.extend(check_functions(file));
        findings.extend(check_module_doc(file));
    }
    findings
}

fn check_file_lines(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    (lines > FILE_LINES_MAX).then(|| {
        Finding::new(
            &file.path,
            FILE_LINES_MAX + 1,
            "file-lines",
            format!("{lines} lines, at most {FILE_LINES_MAX}"),
            "split it by invariant",
        )
    })
}

fn check_columns(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > LINE_COLUMNS_MAX {
            findings.push(Finding::new(
                &file.path,
                index + 1,
                "columns",
                format!("{columns} columns, at most {LINE_COLUMNS_MAX}"),
                "break the line (rustfmt leaves long strings alone)",
            ));
        }
    }
    findings
}

fn check_ascii(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if let Some(character) = line.chars().find(|c| !c.is_ascii()) {
            findings.push(Finding::new(
                &file.path,
                index + 1,
                "ascii",
                format!("U+{:04X} in code", u32::from(character)),
                "use ASCII, or an escape such as \\u{e9} in a string",
            ));
        }
    }
    findings
}

fn check_module_doc(file: &File) -> Option<Finding> {
    let first = file.text.lines().next().unwrap_or("");
    let purpose = first.strip_prefix("//!").map(str::trim);
    let found = match purpose {
        None => "the first line is not a module doc",
        Some(text) if text.split_whitespace().count() < PURPOSE_WORDS_MIN => {
            "the module doc does not begin with a sentence of purpose"
        }
        Some(_) => return None,
    };
    Some(Finding::new(
        &file.path,
        1,
        "module-doc",
        found,
        "begin the file with `//!` and what it is for; then how, Invariants, Not here",
    ))
}

fn check_functions(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in functions(&tokens(&file.text)) {
        let lines = function.line_last - function.line_first + 1;
        if lines > FUNCTION_LINES_MAX {
            findings.push(Finding::new(
                &file.path,
                function.line_first,
                "function-lines",
                format!(
                    "`{}` has {lines} lines, at most {FUNCTION_LINES_MAX}",
                    function.name
                ),
                "let one function decide and move the leaves out",
            ));
        }
    }
    findings
}

/// A function with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`.
    pub line_first: usize,
    /// The line of its closing brace.
    pub line_last: usize,
}

/// Every function with a body, nested ones too, in the order of their `fn`.
pub fn functions(tokens: &[Token<'_>]) -> Vec<Function> {
    let mut functions = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        if token.text != "fn" {
            continue;
        }
        let rest = &tokens[index + 1..];
        // `fn(u8)` is a type.
        let Some(name) = rest.first().filter(|next| next.text != "(") else {
            continue;
        };
        if let Some(line_last) = body_end_line(rest) {
            functions.push(Function {
                name: name.text.to_owned(),
                line_first: token.line,
                line_last,
            });
        }
    }
    functions
}

/// The line of the brace that closes the first body in `rest`; `None` for a declaration.
fn body_end_line(rest: &[Token<'_>]) -> Option<usize> {
    let mut brackets = 0_usize;
    let mut braces = 0_usize;
    for token in rest {
        match token.text {
            "(" | "[" if braces == 0 => brackets += 1,
            ")" | "]" if braces == 0 => brackets = brackets.saturating_sub(1),
            ";" if braces == 0 && brackets == 0 => return None,
            "{" if brackets == 0 => braces += 1,
            "}" if brackets == 0 && braces <= 1 => return Some(token.line),
            "}" if brackets == 0 => braces -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
