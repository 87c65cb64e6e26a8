//! Operations: a start that can't be is refused with the exit code of its kind, words that say what
//! to change, and nothing touched.

use crate::{SITE, all_bodies, append_each, make_stream, numbered};
use nova_e2e::home::Home;
use nova_e2e::process::{Ended, Process};
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: i32 = 2;
const DIRECTORY: i32 = 10;
const MACHINE: i32 = 11;
const PORT: i32 = 12;
const CERTIFICATES: i32 = 13;

/// Every file below a folder with its bytes, but the one that is locked.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir(folder) else {
        return all;
    };
    for entry in entries {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if !path.ends_with("LOCK") {
            all.insert(path.clone(), std::fs::read(&path).expect("a file"));
        }
    }
    all
}

#[track_caller]
fn expect_refusal(ended: Ended, code: i32, words: &[&str]) {
    let ended = ended.expect_code(code);
    for word in words {
        assert!(
            ended.stderr.contains(word),
            "{word:?} is not in: {}",
            ended.stderr
        );
    }
    let lines = ended.stderr.lines().count();
    assert!(lines <= 8, "a few lines say it:\n{}", ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert!(!ended.text().contains("ready"));
}

/// Starts a star in any directory, which is expected to end by itself.
fn serve(data: &Path, port: u16) -> Ended {
    let mut command = Command::new(SITE.binary);
    command
        .args([
            "serve",
            "--cores",
            "1",
            "--port",
            &port.to_string(),
            "--data",
        ])
        .arg(data);
    Process::start("a star elsewhere", &mut command).wait_for_end()
}

/// A home that a star has been in.
async fn used_home() -> Home {
    let home = Home::new(SITE);
    let star = home.start();
    let client = home.client();
    let name = make_stream(&client, "kept").await;
    append_each(&client, &name, (0..3).map(numbered)).await;
    star.stop().expect_done();
    home
}

async fn expect_kept(home: &Home) {
    let star = home.start();
    assert_eq!(
        all_bodies(&home.client(), &crate::stream("kept"))
            .await
            .len(),
        3
    );
    star.stop().expect_done();
}

/// A directory in use names who uses it, who goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_in_use_is_refused_and_its_star_goes_on() {
    let home = used_home().await;
    let star = home.start();
    let pid = star.process().id().to_string();
    let other = Home::new(SITE);
    expect_refusal(
        serve(&home.data(), other.port()),
        DIRECTORY,
        &["in use", &pid],
    );
    assert_eq!(
        all_bodies(&home.client(), &crate::stream("kept"))
            .await
            .len(),
        3
    );
    star.stop().expect_done();
}

/// Directories that are another version's, somebody else's, damaged, or not there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn directories_that_are_not_this_versions_are_left_as_they_are() {
    let home = used_home().await;
    let star_file = home.data().join("star");
    let identity = std::fs::read_to_string(&star_file).expect("an identity");
    let foreign = Home::new(SITE);
    std::fs::create_dir(foreign.data()).expect("a folder");
    std::fs::write(foreign.data().join("notes.txt"), "mine").expect("a file");
    let newer = home.copy();
    std::fs::write(
        newer.data().join("star"),
        identity.replace("format 1", "format 2"),
    )
    .expect("");
    let damaged = home.copy();
    std::fs::write(
        damaged.data().join("star"),
        identity.replace("star ", "star f"),
    )
    .expect("");
    let lost = home.copy();
    std::fs::remove_file(lost.data().join("star")).expect("an identity");
    let cases: [(&Home, &[&str]); 4] = [
        (&foreign, &["notes.txt", "empty directory"]),
        (&newer, &["format 2"]),
        (&damaged, &["damaged"]),
        (&lost, &["star", "missing"]),
    ];
    for (home, words) in cases {
        let before = files(&home.data());
        expect_refusal(home.start_refused(), DIRECTORY, words);
        assert!(
            files(&home.data()) == before,
            "{words:?}: nothing is touched"
        );
    }
    expect_kept(&home).await;
}

/// Certificates and the registry that are not what they were.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_certificates_and_a_damaged_registry_are_named() {
    let home = used_home().await;
    let key = home.copy();
    let tls = std::fs::read_dir(key.data().join("tls")).expect("certificates");
    let keys = tls.map(|entry| entry.expect("a file").path());
    let keys: Vec<PathBuf> = keys
        .filter(|path| path.to_string_lossy().contains("key"))
        .collect();
    assert!(!keys.is_empty());
    for path in &keys {
        std::fs::write(path, "no key").expect("written");
    }
    let before = files(&key.data());
    expect_refusal(key.start_refused(), CERTIFICATES, &["tls"]);
    assert!(files(&key.data()) == before);
    let registry = home.copy();
    std::fs::write(registry.data().join("registry"), "no registry").expect("written");
    let before = files(&registry.data());
    expect_refusal(registry.start_refused(), DIRECTORY, &["registry"]);
    assert!(files(&registry.data()) == before);
    expect_kept(&home).await;
}

/// A port that is taken is found out before anything is touched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_port_is_named() {
    let home = used_home().await;
    let before = files(&home.data());
    let taken = UdpSocket::bind(("127.0.0.1", home.port())).expect("a free port");
    expect_refusal(
        home.start_refused(),
        PORT,
        &[&home.port().to_string(), "--port"],
    );
    assert!(files(&home.data()) == before);
    drop(taken);
    expect_kept(&home).await;
}

/// Too little memory to lock, too few descriptors, too many cores.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_of_the_process_that_are_too_low_are_named() {
    let mut home = used_home().await;
    let before = files(&home.data());
    home.wrap(&["prlimit", "--memlock=65536:65536", "--"]);
    expect_refusal(home.start_refused(), MACHINE, &["locked", "ulimit -l"]);
    assert!(files(&home.data()) == before);
    home.wrap(&["prlimit", "--nofile=24:24", "--"]);
    expect_refusal(home.start_refused(), MACHINE, &["ulimit -n"]);
    assert!(files(&home.data()) == before);
    home.wrap(&[]);
    home.set_cores(250);
    expect_refusal(home.start_refused(), USAGE, &["250", "--cores"]);
    assert!(files(&home.data()) == before);
    home.set_cores(1);
    expect_kept(&home).await;
}

/// Whether this command can be run here; what is missing is printed.
pub fn can_run(words: &[&str]) -> bool {
    let ran = Command::new(words[0]).args(&words[1..]).output();
    let can = ran.as_ref().is_ok_and(|output| output.status.success());
    if !can {
        println!(
            "not run: `{}` does not work here ({ran:?})",
            words.join(" ")
        );
    }
    can
}

/// A directory that this user may not write to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_is_not_writable_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let mut home = used_home().await;
    // Modes bind everybody who is not root, and root without this capability.
    let bound = [
        "setpriv",
        "--bounding-set=-dac_override",
        "--inh-caps=-dac_override",
    ];
    if rustix::process::geteuid().is_root() {
        if !can_run(&[&bound[..], &["true"]].concat()) {
            return;
        }
        home.wrap(&bound);
    }
    let before = files(&home.data());
    let set = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(home.data(), mode).expect("it is ours");
    };
    set(0o555);
    let ended = home.start_refused();
    set(0o755);
    expect_refusal(ended, DIRECTORY, &["owner"]);
    assert!(files(&home.data()) == before);
    expect_kept(&home).await;
}

/// A file system without direct I/O.
#[test]
fn a_file_system_without_direct_io_is_refused() {
    let mut home = Home::new(SITE);
    let folder = home.folder().to_str().expect("a plain path").to_owned();
    let mount = format!("mount -t ramfs none {folder}");
    if !can_run(&["unshare", "--mount", "sh", "-c", &mount]) {
        return;
    }
    let script = format!("{mount} && exec \"$0\" \"$@\"");
    home.wrap(&["unshare", "--mount", "sh", "-c", &script]);
    expect_refusal(home.start_refused(), MACHINE, &["O_DIRECT", "ext4"]);
}

/// A parent that is not there is not made.
#[test]
fn a_directory_without_a_parent_is_refused() {
    let home = Home::new(SITE);
    let deep = home.data().join("a/b");
    expect_refusal(serve(&deep, home.port()), DIRECTORY, &["parent"]);
    assert!(!home.data().exists());
}
