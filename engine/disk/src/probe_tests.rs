//! What the machine is found fit for, and each refusal.

use super::*;
use crate::trial_tests::{in_child, names};

fn report() -> ProbeReport {
    ProbeReport {
        kernel: "6.1.0".to_owned(),
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
        memory_align_bytes: 512,
        offset_align_bytes: 512,
        request_bytes_max: None,
        in_memory: false,
    }
}

#[test]
fn this_machine_is_fit_and_nothing_stays_behind() {
    let root = tempfile::tempdir().unwrap();
    let there = probe(root.path()).unwrap();
    assert!(there.logical_block_bytes.is_power_of_two());
    assert!(there.physical_block_bytes <= BLOCK_BYTES);
    assert_eq!(probe(&root.path().join("data")).unwrap(), there);
    assert!(names(root.path()).is_empty());
}

#[test]
fn a_place_without_a_parent_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let error = probe(&root.path().join("a/b")).unwrap_err();
    assert!(matches!(error, ProbeError::MissingParent(_)), "{error}");
}

/// `/proc` takes no files, and names the reason in its own way.
#[test]
fn a_file_system_that_takes_no_files_is_refused() {
    probe(Path::new("/proc")).unwrap_err();
}

#[test]
fn each_way_of_having_no_ring_has_its_sentence() {
    assert!(check_ring(Ok(())).is_ok());
    let cases = [
        (Errno::NOSYS, "CONFIG_IO_URING"),
        (Errno::PERM, "io_uring"),
        (Errno::NOMEM, "ulimit -l"),
        (Errno::MFILE, "could not be set up"),
    ];
    for (errno, words) in cases {
        let sentence = check_ring(Err(errno)).unwrap_err().to_string();
        assert!(sentence.contains(words), "{sentence}");
    }
}

#[test]
fn units_larger_than_a_block_are_refused() {
    let root = Path::new("/data");
    assert!(check_blocks(root, &report()).is_ok());
    let large = 2 * BLOCK_BYTES;
    let cases = [
        ProbeReport {
            logical_block_bytes: large,
            ..report()
        },
        ProbeReport {
            physical_block_bytes: large,
            ..report()
        },
        ProbeReport {
            offset_align_bytes: large,
            ..report()
        },
        ProbeReport {
            memory_align_bytes: large,
            ..report()
        },
    ];
    for case in cases {
        let error = check_blocks(root, &case).unwrap_err();
        assert!(matches!(error, ProbeError::BlockTooLarge { found, .. } if found == large));
    }
}

#[test]
fn a_low_limit_of_locked_memory_is_refused_first() {
    let name = "probe::tests::a_low_limit_of_locked_memory_is_refused_first";
    in_child(name, || {
        let current = Some(LOCKED_MEMORY_BYTES_MIN - 1);
        let maximum = getrlimit(Resource::Memlock).maximum;
        setrlimit(Resource::Memlock, Rlimit { current, maximum }).unwrap();
        let error = probe(Path::new("/tmp")).unwrap_err();
        let expected = LOCKED_MEMORY_BYTES_MIN - 1;
        assert!(matches!(error, ProbeError::LockedMemory { found } if found == expected));
        assert!(error.to_string().contains("LimitMEMLOCK"), "{error}");
    });
    assert!(check_locked_memory(None).is_ok());
    assert!(check_locked_memory(Some(LOCKED_MEMORY_BYTES_MIN)).is_ok());
}

#[test]
fn few_open_files_are_refused_and_all_that_are_allowed_are_taken() {
    let name = "probe::tests::few_open_files_are_refused_and_all_that_are_allowed_are_taken";
    in_child(name, || {
        let maximum = Some(OPEN_FILES_MIN + 7);
        let current = Some(16);
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
        assert_eq!(raise_open_files(), maximum);
        let maximum = Some(OPEN_FILES_MIN - 1);
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
        let error = probe(Path::new("/tmp")).unwrap_err();
        let expected = OPEN_FILES_MIN - 1;
        assert!(matches!(error, ProbeError::OpenFiles { found } if found == expected));
        assert!(error.to_string().contains("LimitNOFILE"), "{error}");
    });
}
