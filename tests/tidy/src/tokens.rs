//! Cuts Rust source into words and punctuation, without comments, strings and characters.
//!
//! The rules look at tokens so that a forbidden word in a message or a comment is not taken for
//! code. A word is a run of letters, digits and `_`; everything else is a token of one character.
//! Lifetimes are dropped; they carry nothing that a rule asks about.
//!
//! # Invariants
//! - Every input ends: what is opened and never closed reaches to the end of the text.
//!
//! # Not here
//! - Any grammar. A rule recognises what it needs by [`find`] or by counting brackets.

/// A word or one character of punctuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Where, from 1.
    pub line: usize,
    /// Its text.
    pub text: &'a str,
}

impl Token<'_> {
    /// Whether it is a word, not punctuation.
    pub fn is_word(&self) -> bool {
        self.text.starts_with(is_word_char)
    }
}

/// The tokens of `text` in their order.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let skipped = skipped_bytes(rest);
        let length = match skipped {
            Some(length) => length,
            None if is_word_char(first) => word_bytes(rest),
            None => first.len_utf8(),
        };
        let (piece, after) = rest.split_at(length);
        if skipped.is_none() && !first.is_whitespace() {
            tokens.push(Token { line, text: piece });
        }
        line += piece.matches('\n').count();
        rest = after;
    }
    tokens
}

/// The lines where the tokens of `pattern` follow each other.
pub fn find(tokens: &[Token<'_>], pattern: &[&str]) -> Vec<usize> {
    let same = |window: &[Token<'_>]| window.iter().map(|t| t.text).eq(pattern.iter().copied());
    tokens
        .windows(pattern.len())
        .filter(|window| same(window))
        .map(|window| window[0].line)
        .collect()
}

/// How much of the start of `rest` is a comment, a literal or a lifetime.
fn skipped_bytes(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(block_comment_bytes(rest));
    }
    for prefix in ["br", "cr", "r"] {
        if let Some(body) = rest.strip_prefix(prefix)
            && let Some(length) = raw_string_bytes(body)
        {
            return Some(prefix.len() + length);
        }
    }
    for prefix in ["b", "c", ""] {
        let Some(body) = rest.strip_prefix(prefix) else {
            continue;
        };
        if body.starts_with('"') {
            return Some(prefix.len() + quoted_bytes(body, '"'));
        }
        if body.starts_with('\'') && prefix != "c" {
            return Some(prefix.len() + character_or_lifetime_bytes(body));
        }
    }
    None
}

/// Length of a block comment; they nest.
fn block_comment_bytes(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Length of `#"..."#` with any number of `#`; `None` if `rest` is something else.
fn raw_string_bytes(rest: &str) -> Option<usize> {
    let body = rest.trim_start_matches('#');
    let hashes = rest.len() - body.len();
    let body = body.strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let inner = body.find(&close).map_or(body.len(), |at| at + close.len());
    Some(hashes + 1 + inner)
}

/// Length of a literal between two `quote`s, with backslash escapes.
fn quoted_bytes(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return at + quote.len_utf8();
        }
    }
    rest.len()
}

/// Length of a character literal, or of a lifetime or loop label.
fn character_or_lifetime_bytes(rest: &str) -> usize {
    let mut characters = rest.chars().skip(1);
    let first = characters.next();
    if first == Some('\\') || characters.next() == Some('\'') {
        return quoted_bytes(rest, '\'');
    }
    1 + word_bytes(&rest[1..])
}

/// Length of the word at the start of `rest`.
fn word_bytes(rest: &str) -> usize {
    rest.find(|c| !is_word_char(c)).unwrap_or(rest.len())
}

fn is_word_char(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
