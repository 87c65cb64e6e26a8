//! Contract 8; storage, forgetting: a full disk refuses appends and nothing else. It neither ends
//! the star nor keeps it from starting.
//!
//! What this test has found: a start on a full disk waited for a whole segment without a word.

use crate::start_failures::can_run;
use crate::{SITE, all_bodies, append_once, in_time, make_stream};
use nova_client::*;
use nova_e2e::home::Home;
use std::time::Duration;

/// A file system that holds a few segments.
const IMAGE_BYTES: u64 = 100 << 20;
/// More than fits.
const RECORDS_MAX: u64 = IMAGE_BYTES >> 20;

fn body(n: u64) -> Vec<u8> {
    let word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    word.repeat(128 * 1024 - 16)
}

/// A home on a small file system of its own, if one can be made here.
fn small_home() -> Option<Home> {
    let mut home = Home::new(SITE);
    let folder = home.folder().to_str().expect("a plain path").to_owned();
    let image = format!("{folder}/image");
    let file = std::fs::File::create(&image).expect("the scratch folder is writable");
    file.set_len(IMAGE_BYTES).expect("a sparse file");
    if !can_run(&["mkfs.ext4", "-q", "-F", &image]) {
        return None;
    }
    let disk = format!("{folder}/disk");
    std::fs::create_dir(&disk).expect("a folder");
    let mount = format!("mount -o loop {image} {disk}");
    if !can_run(&["unshare", "--mount", "sh", "-c", &mount]) {
        return None;
    }
    home.set_data("disk/data");
    let script = format!("{mount} && exec \"$0\" \"$@\"");
    home.wrap(&["unshare", "--mount", "sh", "-c", &script]);
    Some(home)
}

/// A client that does not wait long for a disk to have room again.
fn client(home: &Home, star: &nova_e2e::home::Star) -> Client {
    let mut config = home.client_config_inside(star);
    config.retry_budget = Duration::from_millis(200);
    Client::connect(config).expect("a client")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_appends_and_nothing_else() {
    let Some(home) = small_home() else { return };
    let star = home.start();
    let first = client(&home, &star);
    let name = make_stream(&first, "full").await;
    let mut count = 0;
    let error = loop {
        assert!(count < RECORDS_MAX, "the disk is full at some point");
        match append_once(&first, &name, Record::new(body(count))).await {
            Ok(appended) => assert_eq!(appended.start.sequence.0, count),
            Err(error) => break error,
        }
        count += 1;
    };
    let refused = error.refusal().expect("the star says why");
    assert_eq!(
        (refused.code, refused.retry, refused.clean),
        (Code::DiskFull, true, true)
    );
    assert!(error.is_clean(), "{error:?}");
    let Facts::Space { free, floor } = refused.facts else {
        panic!("{refused:?}");
    };
    assert!(
        floor > 0 && floor < IMAGE_BYTES && free < IMAGE_BYTES / 2,
        "{free} {floor}"
    );
    assert!(count > 10, "{count} records of 1 MiB");
    let expect_all = async |client: &Client| {
        let read = all_bodies(client, &name).await;
        assert_eq!(read.len() as u64, count);
        assert!((0..count).zip(&read).all(|(n, there)| body(n) == there[..]));
    };
    expect_all(&first).await;
    let tail = in_time("a tail", first.check_tail(name.clone()))
        .await
        .expect("a tail");
    assert_eq!(tail.sequence.0, count);
    let ended = star.stop().expect_done();
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    for _ in 0..2 {
        let star = home.start();
        expect_all(&client(&home, &star)).await;
        star.kill();
    }
    appends_resume(&home, name, count).await;
}

/// Segments are given back, and appends taken, without anybody's doing but a trim.
async fn appends_resume(home: &Home, name: StreamName, count: u64) {
    let star = home.start();
    let patient = Client::connect(home.client_config_inside(&star)).expect("a client");
    let last = SequenceNumber(count - 2);
    let trimmed = patient.trim(name.clone(), last, Conditions::default());
    in_time("a trim", trimmed).await.expect("trims go on");
    // The client tries again until the segments are given back and appends are taken.
    for n in count..count + 40 {
        let appended = append_once(&patient, &name, Record::new(body(n))).await;
        assert_eq!(appended.expect("appends resume").start.sequence.0, n);
        let first = SequenceNumber(n - 2);
        let trimmed = patient.trim(name.clone(), first, Conditions::default());
        in_time("a trim", trimmed).await.expect("trims go on");
    }
    star.kill();
}
