//! Runs every rule over the files of this tree.
//!
//! One test for each kind of rule, so that the name of what fails says what to look at. The rules
//! themselves, and the proof that each can fail, are in `src`.

use nova_tidy::tree::{File, files, root};
use nova_tidy::{Finding, arrows, assert_none, banned, code_map, glossary, names, purity, shape};
use std::sync::LazyLock;

static TREE: LazyLock<Vec<File>> =
    LazyLock::new(|| files(&root()).expect("the files of the tree are readable"));

fn over_all(rule: impl Fn(&File) -> Vec<Finding>) {
    let findings: Vec<Finding> = TREE.iter().flat_map(rule).collect();
    assert_none(&findings);
}

#[test]
fn the_tree_is_all_there() {
    for path in [
        "Cargo.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        ".ci/run",
    ] {
        assert!(TREE.iter().any(|file| file.path == path), "{path}");
    }
    let rust = TREE.iter().filter(|file| file.is_rust()).count();
    assert!(rust > 50, "only {rust} Rust files were found");
}

#[test]
fn shape_of_files_and_functions() {
    over_all(shape::check);
}

#[test]
fn banned_words_and_calls() {
    over_all(banned::check);
}

#[test]
fn names_say_something() {
    over_all(names::check);
}

#[test]
fn one_word_per_thing() {
    let document = TREE.iter().find(|file| file.path == glossary::PATH);
    let document = document.expect("docs/GLOSSARY.md exists");
    assert_none(&glossary::check_document(document));
    let glossary = glossary::parse(&document.text);
    over_all(|file| glossary::check(file, &glossary));
}

#[test]
fn rules_see_no_world() {
    assert_none(&purity::check_folders(&TREE));
    over_all(purity::check);
}

#[test]
fn arrows_between_crates() {
    assert_none(&arrows::check(&TREE));
}

#[test]
fn code_map_and_crates_agree() {
    assert_none(&code_map::check(&TREE));
}
