//! The tree: both ways to list it agree on what matters.

use super::*;

#[test]
fn a_walk_finds_what_git_lists() {
    let walked = paths_by_walk(&root()).unwrap();
    for path in [
        "Cargo.toml",
        "tests/tidy/src/tree_tests.rs",
        "docs/GLOSSARY.md",
    ] {
        assert!(walked.iter().any(|found| found == path), "{path}");
    }
    assert!(!walked.iter().any(|path| path.starts_with("target/")));
    assert!(!walked.iter().any(|path| path.starts_with(".git/")));
    // Where there is no git there is nothing to compare with.
    for path in paths_by_git(&root()).unwrap_or_default() {
        let exists = root().join(&path).is_file();
        assert!(!exists || walked.contains(&path), "{path}");
    }
}

#[test]
fn a_folder_without_a_repository_is_walked() {
    let folder = std::env::temp_dir().join(format!("nova-tidy-{}", std::process::id()));
    fs::create_dir_all(folder.join("target")).unwrap();
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("src/a.rs"), "x").unwrap();
    fs::write(folder.join("src/b.bin"), [0xff, 0xfe]).unwrap();
    fs::write(folder.join("target/c.rs"), "x").unwrap();
    let listed = paths_by_git(&folder);
    let found = files(&folder).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(listed, None);
    assert_eq!(found, [File::new("src/a.rs", "x")]);
}

#[test]
fn kinds_of_files_are_told_apart() {
    let is_test = |path: &str| File::new(path, "").is_test();
    assert!(is_test("tests/sim/src/lib.rs"));
    assert!(is_test("net/quic/tests/a.rs"));
    assert!(is_test("engine/core/src/state_tests.rs"));
    assert!(is_test("engine/core/src/shard/tests.rs"));
    assert!(!is_test("engine/core/src/state.rs"));
    assert!(!is_test("net/quic/examples/ping.rs"));
    assert!(File::new(".ci/run", "#!/usr/bin/env bash\n").is_script());
    assert!(File::new("a.tla", "").is_code());
    assert!(!File::new("README.md", "").is_code());
}
