//! Which directories are opened, made and refused, and that a refused one is left alone.

use super::*;
use crate::registry::{FileRegistry, raise_incarnation};
use crate::trial_tests::names;
use std::collections::BTreeMap;

/// Every file of a directory with its content.
fn contents(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let content = |name: String| {
        let bytes = fs::read(path.join(&name)).unwrap_or_default();
        (name, bytes)
    };
    names(path).into_iter().map(content).collect()
}

/// A directory that was opened, used and closed.
fn used() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let directory = DataDirectory::open(root.path()).unwrap();
    raise_incarnation(&mut FileRegistry::open(directory.layout()).unwrap()).unwrap();
    fs::create_dir(root.path().join("core-000")).unwrap();
    fs::create_dir(root.path().join("core-012")).unwrap();
    root
}

#[test]
fn a_new_directory_gets_an_identity_that_stays() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("data");
    let first = DataDirectory::open(&path).unwrap();
    assert!(first.is_fresh());
    assert_ne!(first.identity().star, StarId(0));
    let identity = first.identity();
    drop(first);
    let second = DataDirectory::open(&path).unwrap();
    assert_eq!(second.identity(), identity);
    assert!(!second.is_fresh());
    let other = DataDirectory::open(&root.path().join("other")).unwrap();
    assert_ne!(other.identity().star, identity.star);
}

#[test]
fn logs_are_found() {
    let root = used();
    let directory = DataDirectory::open(root.path()).unwrap();
    assert_eq!(directory.logs(), [LogId(0), LogId(12)]);
}

#[test]
fn an_interrupted_first_start_is_taken_up_again() {
    let root = tempfile::tempdir().unwrap();
    for name in ["LOCK", "star.draft"] {
        fs::write(root.path().join(name), b"1").unwrap();
    }
    fs::create_dir(root.path().join("lost+found")).unwrap();
    assert!(DataDirectory::open(root.path()).unwrap().is_fresh());
}

#[test]
fn a_directory_that_cannot_be_nova_s_is_refused_and_left_alone() {
    type Check = fn(&DirectoryError) -> bool;
    let cases: [(&str, &[u8], Check); 5] = [
        ("photo.jpg", b"x", |error| {
            matches!(error, DirectoryError::Foreign { .. })
        }),
        ("star", b"twinkle\n", |error| {
            matches!(error, DirectoryError::Foreign { .. })
        }),
        ("star", b"", |error| {
            matches!(error, DirectoryError::Foreign { .. })
        }),
        ("star", &[b'x'; 10_000], |error| {
            matches!(error, DirectoryError::Foreign { .. })
        }),
        ("registry", b"x", |error| {
            matches!(error, DirectoryError::Damaged { .. })
        }),
    ];
    for (name, content, check) in cases {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(name), content).unwrap();
        let before = contents(root.path());
        let error = DataDirectory::open(root.path()).unwrap_err();
        assert!(check(&error), "{name}: {error}");
        assert_eq!(contents(root.path()), before);
    }
}

#[test]
fn an_unknown_format_is_refused_and_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let star = b"nova star\nformat 2\nwhatever format 2 has\n";
    fs::write(root.path().join("star"), star).unwrap();
    fs::write(root.path().join("galaxy"), b"x").unwrap();
    let before = contents(root.path());
    let error = DataDirectory::open(root.path()).unwrap_err();
    assert!(
        matches!(error, DirectoryError::UnknownFormat { found: 2, .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("start the nova that wrote it"),
        "{error}"
    );
    assert_eq!(contents(root.path()), before);
}

#[test]
fn damage_to_the_identity_is_noticed_at_every_byte() {
    let root = used();
    let star = root.path().join("star");
    let whole = fs::read(&star).unwrap();
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        fs::write(&star, damaged).unwrap();
        DataDirectory::open(root.path()).unwrap_err();
    }
    fs::remove_file(&star).unwrap();
    let error = DataDirectory::open(root.path()).unwrap_err();
    assert!(matches!(error, DirectoryError::Damaged { .. }), "{error}");
    fs::write(&star, whole).unwrap();
    drop(DataDirectory::open(root.path()).unwrap());
    fs::remove_file(root.path().join("registry")).unwrap();
    let error = DataDirectory::open(root.path()).unwrap_err();
    assert!(matches!(error, DirectoryError::Damaged { .. }), "{error}");
}

#[test]
fn a_place_where_no_directory_can_be_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, b"x").unwrap();
    let error = DataDirectory::open(&file).unwrap_err();
    assert!(matches!(error, DirectoryError::NotDirectory(_)), "{error}");
    let error = DataDirectory::open(&root.path().join("a/b")).unwrap_err();
    assert!(matches!(error, DirectoryError::MissingParent(_)), "{error}");
    for kind in [
        io::ErrorKind::PermissionDenied,
        io::ErrorKind::ReadOnlyFilesystem,
    ] {
        let error = write_error("making", &file, kind.into());
        assert!(
            matches!(error, DirectoryError::NotWritable { .. }),
            "{error}"
        );
    }
}

#[test]
fn a_second_start_is_refused_while_the_first_one_runs() {
    let root = tempfile::tempdir().unwrap();
    let first = DataDirectory::open(root.path()).unwrap();
    let error = DataDirectory::open(root.path()).unwrap_err();
    let DirectoryError::InUse { pid, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(pid, Some(std::process::id()));
    let sentence = error.to_string();
    assert!(
        sentence.contains(root.path().to_str().unwrap()),
        "{sentence}"
    );
    drop(first);
    DataDirectory::open(root.path()).unwrap();
}
