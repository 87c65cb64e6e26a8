//! The registry: few small values that are changed by compare-and-set.
//!
//! One star alone keeps it in a file; many stars will keep it in a service that they agree through,
//! behind the same trait. Today it holds the incarnation, which is raised at each start before any
//! segment is opened.
//!
//! ```text
//! nova registry 1
//! incarnation 7 7          key, revision, value
//! checksum 89abcdef
//! ```
//!
//! # Invariants
//! - A change is durable before it is answered, and a crash leaves the old file or the new one.
//! - A change of a registry that was changed before needs no space.
//! - Each change of a key raises its revision by one; the first has revision 1.
//!
//! # Not here
//! - Keeping other processes out: the data directory's lock does ([`crate::directory`]).

use crate::durable;
use crate::layout::{Layout, REGISTRY_NAME};
use nova_model::{Checksum, Incarnation};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Most keys that the registry's file holds.
const KEYS_MAX: usize = 256;
/// Longest key.
const KEY_BYTES_MAX: usize = 128;
/// Longest value.
const VALUE_BYTES_MAX: usize = 512;
/// Longest file that follows from these, with room for the numbers and the first and last lines.
const FILE_BYTES_MAX: usize = KEYS_MAX * (KEY_BYTES_MAX + VALUE_BYTES_MAX + 32) + 256;

const MAGIC_LINE: &str = "nova registry 1";
const INCARNATION_KEY: &str = "incarnation";

/// Counts the changes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub u64);

/// A key's value and how often it was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The value: printable ASCII without spaces.
    pub value: String,
    /// Its revision.
    pub revision: Revision,
}

/// A store of small values with compare-and-set.
pub trait Registry {
    /// The value of `key`, if it has one.
    fn get(&mut self, key: &str) -> Result<Option<Entry>, RegistryError>;
    /// Sets `key` if its revision is `expected` (`None`: if it has no value), durably.
    fn compare_and_set(
        &mut self,
        key: &str,
        expected: Option<Revision>,
        value: &str,
    ) -> Result<Revision, RegistryError>;
}

/// Why the registry did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Somebody else has changed the key: read it again.
    #[error("the registry's key {key} is at revision {found:?}, not at {expected:?}")]
    Conflict {
        /// The key.
        key: String,
        /// The revision that the caller named.
        expected: Option<Revision>,
        /// The revision that it has.
        found: Option<Revision>,
    },
    /// The key or the value is longer than allowed, has other characters, or there are too many.
    #[error("the registry does not take {0}")]
    Refused(String),
    /// The file is damaged; restore it or the whole directory from a copy.
    #[error("the registry {path} is damaged: {reason}; restore it from a copy")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The file could not be read or written.
    #[error("the registry {path} could not be used: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The registry of one star: a file in its data directory.
#[derive(Debug)]
pub struct FileRegistry {
    layout: Layout,
    entries: BTreeMap<String, Entry>,
}

impl FileRegistry {
    /// Opens the registry of a data directory that the caller has locked; none yet is an empty one.
    pub fn open(layout: &Layout) -> Result<FileRegistry, RegistryError> {
        let path = layout.registry();
        let entries = match durable::read_small(&path, FILE_BYTES_MAX) {
            Ok(bytes) => {
                decode(&bytes).map_err(|reason| RegistryError::Damaged { path, reason })?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(source) => return Err(RegistryError::Io { path, source }),
        };
        let layout = layout.clone();
        Ok(FileRegistry { layout, entries })
    }
}

impl Registry for FileRegistry {
    fn get(&mut self, key: &str) -> Result<Option<Entry>, RegistryError> {
        Ok(self.entries.get(key).cloned())
    }

    fn compare_and_set(
        &mut self,
        key: &str,
        expected: Option<Revision>,
        value: &str,
    ) -> Result<Revision, RegistryError> {
        check_word("key", key, KEY_BYTES_MAX)?;
        check_word("value", value, VALUE_BYTES_MAX)?;
        let found = self.entries.get(key).map(|entry| entry.revision);
        if found != expected {
            let key = key.to_owned();
            return Err(RegistryError::Conflict {
                key,
                expected,
                found,
            });
        }
        if found.is_none() && self.entries.len() == KEYS_MAX {
            return Err(RegistryError::Refused(format!("more than {KEYS_MAX} keys")));
        }
        let revision = Revision(found.map_or(0, |revision| revision.0) + 1);
        let value = value.to_owned();
        let mut changed = self.entries.clone();
        changed.insert(key.to_owned(), Entry { value, revision });
        durable::swap(self.layout.root(), REGISTRY_NAME, &encode(&changed)).map_err(|source| {
            let path = self.layout.registry();
            RegistryError::Io { path, source }
        })?;
        self.entries = changed;
        Ok(revision)
    }
}

/// The incarnation of the last start; `None` when there was none.
pub fn incarnation(registry: &mut dyn Registry) -> Result<Option<Incarnation>, RegistryError> {
    registry
        .get(INCARNATION_KEY)?
        .map(|entry| parse_incarnation(&entry))
        .transpose()
}

/// Raises the incarnation by one, durably, for the start that now begins.
pub fn raise_incarnation(registry: &mut dyn Registry) -> Result<Incarnation, RegistryError> {
    let entry = registry.get(INCARNATION_KEY)?;
    let last = entry.as_ref().map(parse_incarnation).transpose()?;
    let next = Incarnation(last.map_or(0, |incarnation| incarnation.0) + 1);
    let expected = entry.map(|entry| entry.revision);
    registry.compare_and_set(INCARNATION_KEY, expected, &next.0.to_string())?;
    Ok(next)
}

fn parse_incarnation(entry: &Entry) -> Result<Incarnation, RegistryError> {
    let number = entry.value.parse().ok().filter(|number| *number < u64::MAX);
    number
        .map(Incarnation)
        .ok_or_else(|| RegistryError::Refused(format!("{:?} as an incarnation", entry.value)))
}

fn check_word(what: &str, word: &str, bytes_max: usize) -> Result<(), RegistryError> {
    let fits = !word.is_empty() && word.len() <= bytes_max;
    if fits && word.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let rule = format!("1 to {bytes_max} printable characters");
    Err(RegistryError::Refused(format!(
        "the {what} {word:?}: a {what} has {rule}"
    )))
}

fn encode(entries: &BTreeMap<String, Entry>) -> Vec<u8> {
    let mut text = format!("{MAGIC_LINE}\n");
    for (key, entry) in entries {
        text.push_str(&format!("{key} {} {}\n", entry.revision.0, entry.value));
    }
    let checksum = Checksum::of(text.as_bytes());
    text.push_str(&format!("checksum {checksum}\n"));
    text.into_bytes()
}

fn decode(bytes: &[u8]) -> Result<BTreeMap<String, Entry>, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text")?;
    let body = text
        .strip_prefix(MAGIC_LINE)
        .ok_or("it does not begin as a registry does")?;
    let mut entries = BTreeMap::new();
    for line in body.lines().skip(1) {
        let mut words = line.split(' ');
        let (Some(key), Some(number)) = (words.next(), words.next()) else {
            return Err("a line has too few words");
        };
        let Some(value) = words.next() else {
            break; // The checksum, which the comparison below covers.
        };
        let revision = number
            .parse()
            .map(Revision)
            .map_err(|_| "a revision is no number")?;
        let value = value.to_owned();
        entries.insert(key.to_owned(), Entry { value, revision });
    }
    // The encoding is unique, so comparing it whole checks the checksum and every byte.
    if encode(&entries) != bytes {
        return Err("its checksum does not fit");
    }
    Ok(entries)
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
