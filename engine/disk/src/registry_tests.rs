//! Compare-and-set, durability against torn drafts, and damage.

use super::*;
use crate::layout::DRAFT_ENDING;
use std::fs;
use std::os::unix::fs::MetadataExt;

fn opened(root: &std::path::Path) -> Result<FileRegistry, RegistryError> {
    FileRegistry::open(&Layout::new(root))
}

#[test]
fn each_start_has_a_higher_incarnation() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(
        incarnation(&mut opened(root.path()).unwrap()).unwrap(),
        None
    );
    for start in 1..=3 {
        let mut registry = opened(root.path()).unwrap();
        assert_eq!(
            raise_incarnation(&mut registry).unwrap(),
            Incarnation(start)
        );
        assert_eq!(
            incarnation(&mut registry).unwrap(),
            Some(Incarnation(start))
        );
    }
    assert_eq!(
        incarnation(&mut opened(root.path()).unwrap()).unwrap(),
        Some(Incarnation(3))
    );
}

#[test]
fn a_change_that_expects_another_revision_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut registry = opened(root.path()).unwrap();
    let first = registry.compare_and_set("key", None, "a").unwrap();
    let second = registry.compare_and_set("key", Some(first), "b").unwrap();
    assert_eq!((first, second), (Revision(1), Revision(2)));
    for stale in [None, Some(first), Some(Revision(3))] {
        let error = registry.compare_and_set("key", stale, "c").unwrap_err();
        let RegistryError::Conflict { found, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(found, Some(second));
    }
    let error = registry
        .compare_and_set("other", Some(first), "c")
        .unwrap_err();
    assert!(
        matches!(error, RegistryError::Conflict { found: None, .. }),
        "{error}"
    );
    let entry = Entry {
        value: "b".to_owned(),
        revision: second,
    };
    assert_eq!(
        opened(root.path()).unwrap().get("key").unwrap(),
        Some(entry)
    );
}

#[test]
fn a_torn_draft_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    raise_incarnation(&mut opened(root.path()).unwrap()).unwrap();
    let draft = root.path().join(format!("{REGISTRY_NAME}{DRAFT_ENDING}"));
    fs::write(&draft, b"nova registry 1\nincarn").unwrap();
    let mut registry = opened(root.path()).unwrap();
    assert_eq!(raise_incarnation(&mut registry).unwrap(), Incarnation(2));
    let mut registry = opened(root.path()).unwrap();
    assert_eq!(incarnation(&mut registry).unwrap(), Some(Incarnation(2)));
}

#[test]
fn changes_go_into_the_blocks_of_two_files_in_turns() {
    let root = tempfile::tempdir().unwrap();
    let mut registry = opened(root.path()).unwrap();
    let mut inodes = Vec::new();
    for start in 1..=20 {
        assert_eq!(
            raise_incarnation(&mut registry).unwrap(),
            Incarnation(start)
        );
        let path = root.path().join(REGISTRY_NAME);
        inodes.push(fs::metadata(path).unwrap().ino());
        let mut again = opened(root.path()).unwrap();
        assert_eq!(incarnation(&mut again).unwrap(), Some(Incarnation(start)));
    }
    assert_ne!(inodes[0], inodes[1]);
    for (before, after) in inodes.iter().zip(&inodes[2..]) {
        assert_eq!(before, after);
    }
}

#[test]
fn a_registry_without_blocks_for_the_next_time_is_stored_anew() {
    let root = tempfile::tempdir().unwrap();
    let mut registry = opened(root.path()).unwrap();
    for start in 1..=3 {
        let draft = root.path().join(format!("{REGISTRY_NAME}{DRAFT_ENDING}"));
        let _none = fs::remove_file(draft);
        assert_eq!(
            raise_incarnation(&mut registry).unwrap(),
            Incarnation(start)
        );
        let mut again = opened(root.path()).unwrap();
        assert_eq!(incarnation(&mut again).unwrap(), Some(Incarnation(start)));
    }
}

#[test]
fn damage_anywhere_is_noticed() {
    let root = tempfile::tempdir().unwrap();
    let mut registry = opened(root.path()).unwrap();
    raise_incarnation(&mut registry).unwrap();
    registry.compare_and_set("key", None, "value").unwrap();
    let path = root.path().join(REGISTRY_NAME);
    let whole = fs::read(&path).unwrap();
    for place in 0..whole.len() {
        for flip in [0x01, 0x20, 0x80] {
            let mut damaged = whole.clone();
            damaged[place] ^= flip;
            fs::write(&path, damaged).unwrap();
            let error = opened(root.path()).unwrap_err();
            assert!(
                matches!(error, RegistryError::Damaged { .. }),
                "{place}: {error}"
            );
        }
        fs::write(&path, &whole[..place]).unwrap();
        opened(root.path()).unwrap_err();
    }
    fs::write(&path, vec![b'x'; FILE_BYTES_MAX + 1]).unwrap();
    assert!(matches!(opened(root.path()), Err(RegistryError::Io { .. })));
}

#[test]
fn what_does_not_fit_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut registry = opened(root.path()).unwrap();
    let long = "k".repeat(KEY_BYTES_MAX);
    registry
        .compare_and_set(&long, None, &"v".repeat(VALUE_BYTES_MAX))
        .unwrap();
    let too_long = "v".repeat(VALUE_BYTES_MAX + 1);
    for (key, value) in [
        ("", "v"),
        ("a b", "v"),
        ("a\n", "v"),
        ("k", ""),
        ("k", "a b"),
        ("k", too_long.as_str()),
        (&format!("{long}k"), "v"),
    ] {
        let error = registry.compare_and_set(key, None, value).unwrap_err();
        assert!(matches!(error, RegistryError::Refused(_)), "{error}");
    }
    registry
        .compare_and_set(INCARNATION_KEY, None, "many")
        .unwrap();
    assert!(matches!(
        raise_incarnation(&mut registry),
        Err(RegistryError::Refused(_))
    ));
    for key in registry.entries.len()..KEYS_MAX {
        // Through the front door each would be a sync; the bound is what is tested.
        let entry = Entry {
            value: "v".to_owned(),
            revision: Revision(1),
        };
        registry.entries.insert(format!("key-{key}"), entry);
    }
    let error = registry.compare_and_set("one-more", None, "v").unwrap_err();
    assert!(matches!(error, RegistryError::Refused(_)), "{error}");
    registry
        .compare_and_set(&long, Some(Revision(1)), "v")
        .unwrap();
    opened(root.path()).unwrap();
}
