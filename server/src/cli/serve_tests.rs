//! Tests of what a star that does not start says.

use super::*;
use nova_core::disk::{DiskError, DiskFailure};
use nova_core::recovery::RecoveryError;
use nova_disk::{DirectoryError, ProbeError};
use std::io;

#[test]
fn each_kind_of_failed_start_has_its_code_and_says_what_to_change() {
    let path = PathBuf::from("/data");
    let foreign = DirectoryError::Foreign {
        path,
        found: "photos".to_owned(),
    };
    let address = "127.0.0.1:7400".parse().unwrap();
    let taken = ServeError::PortInUse {
        address,
        source: io::Error::from(io::ErrorKind::AddrInUse),
    };
    let cores = ServeError::Cores {
        wanted: 9,
        there: 2,
    };
    let full = ServeError::Recovery(RecoveryError::Disk(DiskError {
        operation: "store",
        path: "/data/core-000/1.idx".to_owned(),
        offset: 0,
        length: 4096,
        failure: DiskFailure::NoSpace,
        message: "No space left on device".to_owned(),
    }));
    let cases = [
        (ServeError::Probe(ProbeError::NoRing), 11, "run a kernel"),
        (
            ServeError::Directory(foreign),
            10,
            "name an empty directory",
        ),
        (taken, 12, "set --port"),
        (cores, 2, "set --cores"),
        (full, 16, "free some space"),
    ];
    for (error, code, part) in cases {
        let failure = failure(&error);
        assert_eq!(failure.code(), code, "{error}");
        assert!(failure.next.contains(part), "{}", failure.next);
        assert!(!failure.why.is_empty() && !failure.why.contains(';'));
    }
}

#[test]
fn a_wrong_setting_is_a_usage_error() {
    let args = ServeArgs {
        config: None,
        settings: ServeSettings {
            cores: Some(0),
            ..ServeSettings::default()
        },
    };
    let failure = run(args).unwrap_err();
    assert_eq!(failure.code(), 2);
    assert_eq!(failure.why, "cores is 0, and it is 1 to 256");
}

#[test]
fn a_missing_configuration_file_is_a_usage_error() {
    let args = ServeArgs {
        config: Some("no/such.toml".into()),
        settings: ServeSettings::default(),
    };
    assert_eq!(run(args).unwrap_err().code(), 2);
}
