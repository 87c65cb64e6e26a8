//! The configuration file: TOML whose keys are the names of the flags.
//!
//! ```text
//!   data = "/var/lib/nova"
//!   listen = "10.0.0.7"
//!   segment-bytes = "512MiB"
//! ```
//!
//! # Invariants
//! - A key that no flag has is refused with the nearest that one has, so that a slip of the pen
//!   never means a default in silence. The known keys are the flags themselves, not a second list.
//! - A path in the file is relative to the file.
//!
//! # Not here
//! - What the values mean: [`crate::config::resolve()`].

use crate::config::nearest::nearest;
use crate::config::resolve::ServeSettings;
use clap::Args;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// Largest configuration file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("the configuration file {} can't be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is far larger than a configuration is.
    #[error("the configuration file {} has more than {FILE_BYTES_MAX} bytes", .0.display())]
    TooLarge(PathBuf),
    /// It is no TOML, or a value is of the wrong kind.
    #[error("the configuration file {} is wrong: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What and where.
        message: String,
    },
    /// There is no such key.
    #[error("{}:{line}: there is no setting '{key}'{}", path.display(), meant(nearest))]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The line of the key, from 1.
        line: usize,
        /// The key.
        key: String,
        /// The known key that is nearest, if one is near.
        nearest: Option<String>,
    },
}

fn meant(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or_else(String::new, |key| format!("; did you mean '{key}'?"))
}

/// Reads a configuration file.
pub fn read_file(path: &Path) -> Result<ServeSettings, FileError> {
    let read = || {
        let mut text = String::new();
        let file = std::fs::File::open(path)?;
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = read().map_err(|source| FileError::Read {
        path: path.to_owned(),
        source,
    })?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(FileError::TooLarge(path.to_owned()));
    }
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<ServeSettings, FileError> {
    let malformed = |error: toml::de::Error| FileError::Malformed {
        path: path.to_owned(),
        message: error.to_string().trim_end().to_owned(),
    };
    let table = DeTable::parse(text).map_err(malformed)?;
    let known = known_keys();
    for key in table.get_ref().keys() {
        let name = key.get_ref().as_ref();
        if !known.iter().any(|known| known == name) {
            let before = text.get(..key.span().start).unwrap_or_default();
            return Err(FileError::UnknownKey {
                path: path.to_owned(),
                line: before.matches('\n').count() + 1,
                key: name.to_owned(),
                nearest: nearest_key(name, &known),
            });
        }
    }
    let mut settings: ServeSettings = toml::from_str(text).map_err(malformed)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    settings.data = settings.data.map(|data| folder.join(data));
    Ok(settings)
}

/// The names of the flags.
fn known_keys() -> Vec<String> {
    let command = ServeSettings::augment_args(clap::Command::new("serve"));
    let names = command.get_arguments().filter_map(clap::Arg::get_long);
    names.map(str::to_owned).collect()
}

/// The known key that is nearest to a key as people write it.
fn nearest_key(key: &str, known: &[String]) -> Option<String> {
    let key = key.replace('_', "-").to_lowercase();
    nearest(&key, known.iter().map(String::as_str)).map(str::to_owned)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
