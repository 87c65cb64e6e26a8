//! The files of the tree: those that git knows or would know, with their texts.
//!
//! With git: tracked files and untracked ones that are not ignored. Without git, or in an unpacked
//! archive: every file below the root except build output and git's own folder.
//!
//! # Invariants
//! - Paths are relative to the root, use `/` and are sorted.
//! - A file that is not UTF-8 is data and is left out.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// Folders that a walk without git leaves out.
const FOLDERS_LEFT_OUT: [&str; 3] = [".git", "target", "nova-data"];

/// One text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Relative to the root, with `/`.
    pub path: String,
    /// All of it.
    pub text: String,
}

impl File {
    /// A file from its parts.
    pub fn new(path: &str, text: &str) -> File {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// The name after the last `/`.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Rust source.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// A script: shell, Python, or a file that says so in its first line.
    pub fn is_script(&self) -> bool {
        self.path.ends_with(".sh") || self.path.ends_with(".py") || self.text.starts_with("#!/")
    }

    /// Something people write and a machine runs.
    pub fn is_code(&self) -> bool {
        self.is_rust() || self.is_script() || self.path.ends_with(".tla")
    }

    /// Code that only tests run: a test crate, a `tests` or `benches` folder, a `*_tests.rs` file.
    pub fn is_test(&self) -> bool {
        let in_folder = self
            .path
            .split('/')
            .any(|part| part == "tests" || part == "benches");
        in_folder || self.path.ends_with("_tests.rs") || self.name() == "tests.rs"
    }
}

/// The root of the tree this crate was built in.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every text file below `root`.
pub fn files(root: &Path) -> io::Result<Vec<File>> {
    let mut paths = match paths_by_git(root) {
        Some(paths) => paths,
        None => paths_by_walk(root)?,
    };
    paths.sort();
    paths.dedup();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        match fs::read(root.join(&path)) {
            Ok(bytes) => {
                if let Ok(text) = String::from_utf8(bytes) {
                    files.push(File { path, text });
                }
            }
            // Git still lists a file that was deleted and not yet committed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}

/// What git lists; `None` where git is missing, refuses, or `root` is not what it tracks.
pub fn paths_by_git(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others"])
        .arg("--exclude-standard")
        .current_dir(root)
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let listing = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<String> = listing
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect();
    // An archive unpacked inside another repository, in a folder that it ignores.
    paths
        .iter()
        .any(|path| path == "Cargo.toml")
        .then_some(paths)
}

/// Every file below `root` but build output and git's own.
pub fn paths_by_walk(root: &Path) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            if kind.is_dir() && !FOLDERS_LEFT_OUT.contains(&name.as_str()) {
                folders.push(format!("{folder}{name}/"));
            } else if kind.is_file() {
                paths.push(format!("{folder}{name}"));
            }
        }
    }
    Ok(paths)
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
