//! What a failure is called.

use super::*;
use glommio::LocalExecutorBuilder;
use glommio::io::DmaFile;

/// A segment is opened as a draft and renamed: the draft's name says nothing any more.
#[test]
fn a_failure_in_the_ring_has_the_name_of_the_attempt_alone() {
    let executor = LocalExecutorBuilder::default().make().unwrap();
    let opened = executor.run(DmaFile::open("/no/such/draft"));
    let error = opened.expect_err("it is not there");
    assert!(error.to_string().contains("draft"), "{error}");
    let attempt = Attempt::new("write", Path::new("core-000/7.seg"), 4096, 8192);
    let failed = attempt.failed_in_ring(&error);
    assert_eq!(failed.failure, DiskFailure::NotFound);
    assert_eq!(
        failed.to_string(),
        "write of core-000/7.seg at 4096 for 8192 bytes failed: No such file or directory \
         (os error 2)"
    );
}
