//! The code map of `docs/ARCHITECTURE.md` names every crate, and nothing that is not there.
//!
//! The map is the section whose heading holds "code map". In it, every text in backticks and every
//! first word of a line in a code block that begins with a top folder of the tree is a place.
//!
//! # Not here
//! - Whether what the map says about a place is true.

use crate::Finding;
use crate::tree::File;

/// Where the map is.
pub const PATH: &str = "docs/ARCHITECTURE.md";
/// What makes a text a place in the tree.
const TOP_FOLDERS: [&str; 5] = ["engine", "net", "server", "bench", "tests"];

/// Compares the map with the tree.
pub fn check(files: &[File]) -> Vec<Finding> {
    let Some(document) = files.iter().find(|file| file.path == PATH) else {
        let advice = "write it, with a section \"Code map\"";
        return vec![Finding::new(
            PATH,
            1,
            "code-map",
            "the file is missing",
            advice,
        )];
    };
    let places = places(&document.text);
    if places.is_empty() {
        let advice = "give every crate a line with its folder in a section \"Code map\"";
        return vec![Finding::new(
            PATH,
            1,
            "code-map",
            "no place is named",
            advice,
        )];
    }
    let mut findings = Vec::new();
    for (place, line) in &places {
        let as_folder = format!("{place}/");
        let exists = |file: &File| file.path == *place || file.path.starts_with(&as_folder);
        if !files.iter().any(exists) {
            let found = format!("`{place}` is not in the tree");
            let advice = "correct the map, or make the place";
            findings.push(Finding::new(PATH, *line, "code-map", found, advice));
        }
    }
    let folders = files
        .iter()
        .filter_map(|f| f.path.strip_suffix("/Cargo.toml"));
    for folder in folders {
        let below = format!("{folder}/");
        let is_named = |place: &str| place == folder || place.starts_with(&below);
        if !places.iter().any(|(place, _)| is_named(place)) {
            let found = format!("the crate `{folder}` is not on the map");
            let advice = "give it a line that says what it is for";
            findings.push(Finding::new(PATH, 1, "code-map", found, advice));
        }
    }
    findings
}

/// Every place that the map names, with its line.
fn places(text: &str) -> Vec<(String, usize)> {
    let mut places = Vec::new();
    let mut map_level = None;
    let mut in_block = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            in_block = !in_block;
            continue;
        }
        if line.starts_with('#') && !in_block {
            let level = line.bytes().take_while(|&b| b == b'#').count();
            if line.to_ascii_lowercase().contains("code map") {
                map_level = Some(level);
            } else if map_level.is_some_and(|map| level <= map) {
                map_level = None;
            }
            continue;
        }
        if map_level.is_none() {
            continue;
        }
        let texts: Vec<&str> = if in_block {
            line.split_whitespace().take(1).collect()
        } else {
            line.split('`').skip(1).step_by(2).collect()
        };
        let named = texts.into_iter().filter_map(place);
        places.extend(named.map(|place| (place.to_owned(), index + 1)));
    }
    places
}

/// The place that `text` names, without a `/` at its end.
fn place(text: &str) -> Option<&str> {
    let path = text.trim_end_matches('/');
    let is_path = path
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/_-.".contains(c));
    let top = path.split('/').next()?;
    (is_path && TOP_FOLDERS.contains(&top)).then_some(path)
}

#[cfg(test)]
#[path = "code_map_tests.rs"]
mod tests;
