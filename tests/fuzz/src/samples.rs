//! Inputs to begin with: the golden files of the wire and of the log.

use std::path::PathBuf;

/// Bytes that a target reads before its input proper: see [`crate::targets`].
pub const CHOICES: usize = 8;

/// What clients send on lanes of each kind.
pub fn of_clients() -> Vec<Vec<u8>> {
    sequences(&[
        &["01"],
        &["01", "02"],
        &["01", "02", "02", "03", "02"],
        &["04"],
        &["05"],
        &["06"],
        &["05", "06"],
        &["06", "05"],
    ])
}

/// What stars send on them.
pub fn of_stars() -> Vec<Vec<u8>> {
    sequences(&[
        &["82"],
        &["81", "83", "84"],
        &["81", "83", "84", "83", "85"],
        &["86", "8b"],
        &["86", "87", "88", "89", "87", "8a"],
        &["8c"],
        &["8d"],
        &["8e"],
    ])
}

/// Files of segments.
pub fn segments() -> Vec<Vec<u8>> {
    vec![log_file("segment"), log_file("rewritten")]
        .into_iter()
        .map(behind_choices)
        .collect()
}

/// Indexes of sealed segments.
pub fn indexes() -> Vec<Vec<u8>> {
    vec![behind_choices(log_file("index"))]
}

fn sequences(lanes: &[&[&str]]) -> Vec<Vec<u8>> {
    let bytes = lanes
        .iter()
        .map(|kinds| kinds.iter().flat_map(|kind| frame(kind)).collect());
    bytes.map(behind_choices).collect()
}

fn behind_choices(bytes: Vec<u8>) -> Vec<u8> {
    let mut whole = vec![0; CHOICES];
    whole.extend(bytes);
    whole
}

/// The golden frame of a kind, by its two digits.
fn frame(kind: &str) -> Vec<u8> {
    let folder = golden().join("frames");
    let names = std::fs::read_dir(&folder).expect("the golden frames");
    let paths = names.map(|entry| entry.expect("a listing").path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(kind) && name.ends_with(".bin"))
    };
    let path = paths.into_iter().find(is_it).expect("a frame of each kind");
    std::fs::read(path).expect("a golden frame")
}

fn log_file(name: &str) -> Vec<u8> {
    let path = golden().join("log").join(format!("{name}.bin"));
    std::fs::read(path).expect("a golden file")
}

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../golden")
}
