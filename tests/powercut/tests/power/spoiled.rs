//! Sectors below the index of a segment that the device does not give any more: a star starts,
//! builds the index anew from its segment, and all records are there.

use crate::numbers;
use crate::scene::Scene;
use nova_client::read_from;
use nova_e2e::calls::bodies_of;
use nova_e2e::load::setting;
use nova_e2e::small_disk::Kind as FileSystem;
use nova_powercut::order::Order;
use rustix::fs::{Advice, fadvise};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The unit in which places are asked for.
const UNIT_BYTES: u64 = 512;

/// Where a file lies on its device: places and lengths in bytes.
fn stretches_of(file: &Path) -> Vec<(u64, usize)> {
    let mut command = Command::new("filefrag");
    command.arg(format!("-b{UNIT_BYTES}")).arg("-v").arg(file);
    let output = command.output().expect("a program of e2fsprogs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    // `0:  0..  7:  4096..  4103:  8: last,eof`: number, logical and physical range, length.
    let stretches = text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |field: &str| field.trim_end_matches(['.', ':']).parse::<u64>().ok();
        number(fields.first()?)?;
        let (place, length) = (number(fields.get(3)?)?, number(fields.get(5)?)?);
        Some((place * UNIT_BYTES, (length * UNIT_BYTES) as usize))
    });
    stretches.collect()
}

/// The indexes of all logs in a data directory.
fn indexes_below(data: &Path) -> Vec<PathBuf> {
    let entries = |path: &Path| {
        let listed = fs::read_dir(path).expect("a directory");
        listed.map(|entry| entry.expect("an entry").path())
    };
    let logs = entries(data).filter(|path| path.is_dir());
    let files = logs.flat_map(|log| entries(&log).collect::<Vec<_>>());
    let is_index = |path: &PathBuf| path.extension().is_some_and(|word| word == "idx");
    files.filter(is_index).collect()
}

/// How a star names the segment of an index.
fn segment(index: &Path) -> String {
    let log = index.parent().and_then(Path::file_name);
    let log = log.expect("the directory of a log").display();
    let number = index.file_stem().expect("a name").display();
    format!("{log}/{number}.seg")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_the_device_does_not_give_is_built_anew() {
    let seed = setting("NOVA_POWERCUT_SEED", u64::from(std::process::id()));
    println!("spoiled: NOVA_POWERCUT_SEED={seed}");
    let Some(mut scene) = Scene::of(FileSystem::Ext4, seed) else {
        return;
    };
    scene.start_first();
    let client = scene.home.client();
    let stream = numbers::write(&client, "spoiled").await;
    // The next start seals what this one wrote, and stores its index.
    scene.star.take().expect("it runs").stop().expect_done();
    scene.home.start().stop().expect_done();

    let indexes = indexes_below(&scene.disk.path(""));
    assert!(!indexes.is_empty(), "no index to spoil");
    for path in &indexes {
        let stretches = stretches_of(path);
        assert!(!stretches.is_empty(), "{} lies nowhere", path.display());
        for (offset, length) in stretches {
            scene.disk.order(Order::Spoil(offset, length));
        }
        let file = File::open(path).expect("an index");
        fadvise(&file, 0, None, Advice::DontNeed).expect("advice");
        fs::read(path).expect_err("the device does not give it");
        fadvise(&file, 0, None, Advice::DontNeed).expect("advice");
    }
    println!("{} indexes are not to be had", indexes.len());

    scene.star = Some(scene.home.start());
    let read = bodies_of(&client, read_from(stream, 0)).await;
    numbers::assert_all(read.expect("all is there"));
    let ended = scene.star.take().expect("it runs").stop().expect_done();
    for path in &indexes {
        let built = format!("The index of {} was built again: the device", segment(path));
        assert!(ended.stderr.contains(&built), "{built}\n{}", ended.stderr);
        // It may be gone with its segment by now, which nobody needs.
        let read = fs::read(path).map_err(|error| error.kind());
        assert!(matches!(read, Ok(_) | Err(ErrorKind::NotFound)), "{read:?}");
    }
}
