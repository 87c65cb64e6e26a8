//! Reads what the arrows need from a `Cargo.toml`: the package's name and its dependencies.
//!
//! It understands the part of TOML that manifests are written in here: sections, and one `key =
//! value` a line, where arrays may span lines. A line of a dependency section that it does not
//! understand is an error, so that nothing slips by unread.
//!
//! # Not here
//! - What a dependency may be: [`crate::arrows`].

use std::collections::BTreeMap;

/// For what a package is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `[dependencies]`.
    Normal,
    /// `[build-dependencies]`.
    Build,
    /// `[dev-dependencies]`.
    Dev,
}

/// One dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// For what.
    pub kind: Kind,
    /// The package's own name, whatever it is called here.
    pub package: String,
    /// The line of the manifest.
    pub line: usize,
}

/// What one manifest says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// The package's name; empty for a workspace alone.
    pub name: String,
    /// Its dependencies in their order.
    pub dependencies: Vec<Dependency>,
    /// Whether the lints of the workspace apply.
    pub has_workspace_lints: bool,
}

/// A line that was not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotUnderstood {
    /// From 1.
    pub line: usize,
    /// The line itself.
    pub text: String,
}

/// The names that `[workspace.dependencies]` gives to packages, where they differ.
pub type Renames = BTreeMap<String, String>;

/// Reads the renamed packages of the workspace's manifest.
pub fn renames(text: &str) -> Result<Renames, NotUnderstood> {
    let mut renames = Renames::new();
    for entry in entries(text)? {
        if entry.section == "workspace.dependencies"
            && let Some(package) = inline_package(&entry.value)
        {
            renames.insert(entry.key, package);
        }
    }
    Ok(renames)
}

/// Reads one manifest.
pub fn parse(text: &str, renames: &Renames) -> Result<Manifest, NotUnderstood> {
    let mut manifest = Manifest::default();
    for entry in entries(text)? {
        let key = entry.key.as_str();
        match (entry.section.as_str(), key) {
            ("package", "name") => manifest.name = unquoted(&entry.value),
            ("lints", "workspace") => manifest.has_workspace_lints = entry.value == "true",
            _ => manifest.dependencies.extend(dependency(&entry, renames)),
        }
    }
    Ok(manifest)
}

/// One key of one section.
struct Entry {
    section: String,
    key: String,
    value: String,
    line: usize,
}

fn entries(text: &str) -> Result<Vec<Entry>, NotUnderstood> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut section = String::new();
    let mut is_open_array = false;
    for (index, raw) in text.lines().enumerate() {
        let line = without_comment(raw);
        if line.is_empty() {
            continue;
        }
        if is_open_array {
            is_open_array = !line.ends_with(']');
            continue;
        }
        if line.starts_with('[') && line.ends_with(']') {
            section = line.trim_matches(['[', ']']).trim().to_owned();
            // `[dependencies.name]` has a section of its own; its keys come on the next lines.
            if let Some((head, name)) = split_section(&section) {
                entries.push(Entry {
                    section: head.to_owned(),
                    key: unquoted(name),
                    value: String::new(),
                    line: index + 1,
                });
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err(NotUnderstood {
                line: index + 1,
                text: raw.to_owned(),
            });
        };
        let value = value.trim();
        is_open_array = value.starts_with('[') && !value.ends_with(']');
        if key.trim() == "package"
            && let Some((head, _)) = split_section(&section)
            && let Some(opened) = entries.iter_mut().rfind(|entry| entry.section == head)
        {
            opened.value = format!("{{ package = {value} }}");
        }
        entries.push(Entry {
            section: section.clone(),
            key: unquoted(key.trim()),
            value: value.to_owned(),
            line: index + 1,
        });
    }
    Ok(entries)
}

/// Splits `dependencies.name` and `target.x.dependencies.name` before the name.
fn split_section(section: &str) -> Option<(&str, &str)> {
    let (head, name) = section.rsplit_once('.')?;
    kind(head).map(|_| (head, name))
}

/// The kind of a dependency section, also of one below `target`; `None` for other sections.
fn kind(section: &str) -> Option<Kind> {
    let tail = match section.strip_prefix("target.") {
        Some(rest) => rest.rsplit_once('.').map_or("", |(_, tail)| tail),
        None => section,
    };
    match tail {
        "dependencies" => Some(Kind::Normal),
        "build-dependencies" => Some(Kind::Build),
        "dev-dependencies" => Some(Kind::Dev),
        _ => None,
    }
}

fn dependency(entry: &Entry, renames: &Renames) -> Option<Dependency> {
    let kind = kind(&entry.section)?;
    let name = entry.key.split('.').next().unwrap_or(&entry.key);
    let package = inline_package(&entry.value)
        .or_else(|| renames.get(name).cloned())
        .unwrap_or_else(|| name.to_owned());
    Some(Dependency {
        kind,
        package,
        line: entry.line,
    })
}

/// The value of `package` in `{ package = "name", .. }`.
fn inline_package(value: &str) -> Option<String> {
    let table = value.strip_prefix('{')?.strip_suffix('}')?;
    table
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| key.trim() == "package")
        .map(|(_, name)| unquoted(name.trim()))
}

fn unquoted(text: &str) -> String {
    text.trim_matches(['"', '\'']).to_owned()
}

/// The line without its comment; a `#` inside quotes is no comment.
fn without_comment(line: &str) -> &str {
    let mut in_quotes = false;
    for (at, character) in line.char_indices() {
        match character {
            '"' => in_quotes = !in_quotes,
            '#' if !in_quotes => return line[..at].trim(),
            _ => {}
        }
    }
    line.trim()
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
