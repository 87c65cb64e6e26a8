//! Tests of the certificate files: made, kept, completed, renewed, refused.

use std::collections::BTreeMap;

use tempfile::TempDir;

use super::*;
use crate::tls::ClientTls;

const FILES: [&str; 4] = [
    CA_KEY_FILE,
    CA_CERTIFICATE_FILE,
    SERVER_KEY_FILE,
    SERVER_CERTIFICATE_FILE,
];

fn contents(directory: &TempDir) -> BTreeMap<&'static str, Vec<u8>> {
    FILES
        .into_iter()
        .filter_map(|name| Some((name, fs::read(directory.path().join(name)).ok()?)))
        .collect()
}

fn prepared() -> TempDir {
    let directory = TempDir::new().unwrap();
    prepare(directory.path(), &[]).unwrap();
    directory
}

/// The server certificate fits the authority and the names.
fn assert_good(directory: &TempDir, names: &[&str]) {
    let files = contents(directory);
    let names: Vec<String> = NAMES_ALWAYS
        .iter()
        .chain(names)
        .map(|name| name.to_string())
        .collect();
    let store = Store {
        directory: directory.path(),
    };
    let condition = store.condition(
        &files[CA_CERTIFICATE_FILE],
        &files[SERVER_CERTIFICATE_FILE],
        &names,
    );
    assert_eq!(condition.unwrap(), Condition::Good);
}

#[test]
fn the_first_start_makes_all_files_and_keys_are_private() {
    let directory = TempDir::new().unwrap();
    let nested = directory.path().join("a/b");
    prepare(&nested, &[]).unwrap();
    for name in FILES {
        let mode = fs::metadata(nested.join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777;
        assert_eq!(
            mode & 0o077 == 0,
            name.ends_with(".key"),
            "{name} has mode {mode:o}"
        );
        assert!(!nested.join(format!("{name}.new")).exists());
    }
    ClientTls::from_ca_file(&nested.join(CA_CERTIFICATE_FILE)).unwrap();
}

#[test]
fn a_restart_keeps_all_files() {
    let directory = prepared();
    let before = contents(&directory);
    prepare(directory.path(), &[]).unwrap();
    assert_eq!(contents(&directory), before);
    assert_good(&directory, &[]);
}

#[test]
fn a_new_name_is_signed_for_by_the_same_authority() {
    let directory = prepared();
    let before = contents(&directory);
    let names = ["nova.example".to_string(), "10.1.2.3".to_string()];
    prepare(directory.path(), &names).unwrap();
    let after = contents(&directory);
    assert_eq!(after[CA_CERTIFICATE_FILE], before[CA_CERTIFICATE_FILE]);
    assert_ne!(
        after[SERVER_CERTIFICATE_FILE],
        before[SERVER_CERTIFICATE_FILE]
    );
    assert_good(&directory, &["nova.example", "10.1.2.3"]);
}

/// All sets of files a crash, or a hand, may leave: each is made whole, or refused by name.
#[test]
fn every_incomplete_set_is_completed_or_refused() {
    let whole = contents(&prepared());
    for present in 0..16u32 {
        let directory = TempDir::new().unwrap();
        let has = |name: &str| present & (1 << FILES.iter().position(|f| *f == name).unwrap()) != 0;
        for name in FILES.into_iter().filter(|name| has(name)) {
            fs::write(directory.path().join(name), &whole[name]).unwrap();
        }
        let outcome = prepare(directory.path(), &[]);
        let server = has(SERVER_KEY_FILE) && has(SERVER_CERTIFICATE_FILE);
        if !server && has(CA_CERTIFICATE_FILE) && !has(CA_KEY_FILE) {
            assert!(matches!(
                outcome,
                Err(CertificateError::AuthorityKeyMissing { .. })
            ));
            continue;
        }
        outcome.unwrap_or_else(|error| panic!("set {present:04b}: {error}"));
        let after = contents(&directory);
        assert!(after.contains_key(SERVER_KEY_FILE));
        if has(CA_CERTIFICATE_FILE) {
            assert_eq!(after[CA_CERTIFICATE_FILE], whole[CA_CERTIFICATE_FILE]);
        }
        if !server {
            assert_good(&directory, &[]);
        }
    }
}

#[test]
fn what_a_crash_left_half_written_is_replaced() {
    let directory = TempDir::new().unwrap();
    for name in FILES {
        fs::write(directory.path().join(format!("{name}.new")), "half").unwrap();
    }
    prepare(directory.path(), &[]).unwrap();
    assert_good(&directory, &[]);
    let key = fs::metadata(directory.path().join(CA_KEY_FILE)).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, KEY_MODE);
}

#[test]
fn a_pair_signed_elsewhere_is_not_touched() {
    let (directory, elsewhere) = (prepared(), prepared());
    for name in [SERVER_KEY_FILE, SERVER_CERTIFICATE_FILE] {
        fs::copy(elsewhere.path().join(name), directory.path().join(name)).unwrap();
    }
    let before = contents(&directory);
    prepare(directory.path(), &["nova.example".to_string()]).unwrap();
    assert_eq!(contents(&directory), before);
}

#[test]
fn authorities_that_are_no_pair_are_refused() {
    let (directory, elsewhere) = (prepared(), prepared());
    fs::copy(
        elsewhere.path().join(CA_KEY_FILE),
        directory.path().join(CA_KEY_FILE),
    )
    .unwrap();
    fs::remove_file(directory.path().join(SERVER_CERTIFICATE_FILE)).unwrap();
    let error = prepare(directory.path(), &[]).unwrap_err();
    assert!(
        matches!(error, CertificateError::AuthorityMismatch { .. }),
        "{error}"
    );
}

#[test]
fn damaged_files_are_refused_by_name() {
    for name in [
        SERVER_KEY_FILE,
        SERVER_CERTIFICATE_FILE,
        CA_CERTIFICATE_FILE,
    ] {
        let directory = prepared();
        fs::write(directory.path().join(name), "no PEM").unwrap();
        let error = prepare(directory.path(), &[]).unwrap_err();
        assert!(error.to_string().contains(name), "{name}: {error}");
    }
    let directory = prepared();
    fs::write(directory.path().join(SERVER_KEY_FILE), vec![b'x'; 2 << 20]).unwrap();
    let error = prepare(directory.path(), &[]).unwrap_err();
    assert!(matches!(error, CertificateError::TooLarge { .. }));
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let (directory, elsewhere) = (prepared(), prepared());
    fs::copy(
        elsewhere.path().join(SERVER_KEY_FILE),
        directory.path().join(SERVER_KEY_FILE),
    )
    .unwrap();
    let error = prepare(directory.path(), &[]).unwrap_err();
    assert!(
        matches!(error, CertificateError::Unusable { .. }),
        "{error}"
    );
}

#[test]
fn names_that_are_none_and_missing_files_are_refused() {
    let directory = TempDir::new().unwrap();
    let error = prepare(directory.path(), &["not a name".to_string()]).unwrap_err();
    assert!(matches!(error, CertificateError::Name { .. }));
    let missing = directory.path().join(CA_CERTIFICATE_FILE);
    let error = ClientTls::from_ca_file(&missing).unwrap_err();
    assert!(error.to_string().contains(CA_CERTIFICATE_FILE), "{error}");
}

#[test]
fn a_client_is_told_which_file_is_wrong() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join(CA_CERTIFICATE_FILE);
    for contents in ["no PEM".to_string(), "x".repeat(2 << 20)] {
        fs::write(&file, contents).unwrap();
        let error = ClientTls::from_ca_file(&file).unwrap_err();
        assert!(error.to_string().contains(CA_CERTIFICATE_FILE), "{error}");
    }
}

#[test]
fn the_year_is_plausible() {
    let year = current_year();
    assert!((2025..2200).contains(&year), "{year}");
}
