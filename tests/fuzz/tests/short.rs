//! The short form: samples with changes that follow from a seed, through every target.
//!
//! A run prints its seed; `NOVA_FUZZ_SEED` and `NOVA_FUZZ_ROUNDS` set it and how many inputs each
//! target gets. An input that fails is written to the folder of the build's temporary files.

use nova_fuzz::mutate::{Chance, mutated};
use nova_fuzz::samples;
use nova_fuzz::targets::{self, Depth};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

const ROUNDS_SHORT: u64 = 20_000;

fn setting(name: &str, default: u64) -> u64 {
    let said = std::env::var(name).ok();
    said.map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name}: {text}"))
    })
}

/// What came of all inputs: how many were refused, accepted in part, and as a whole.
fn fuzz(name: &str, samples: &[Vec<u8>], target: impl Fn(&[u8]) -> Depth) -> [u64; 3] {
    let seed = setting("NOVA_FUZZ_SEED", u64::from(std::process::id()));
    let rounds = setting("NOVA_FUZZ_ROUNDS", ROUNDS_SHORT);
    let mut chance = Chance(seed);
    let mut depths = [0; 3];
    for round in 0..rounds {
        let input = mutated(samples, &mut chance);
        match catch_unwind(AssertUnwindSafe(|| target(&input))) {
            Ok(depth) => depths[depth as usize] += 1,
            Err(_) => {
                let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}"));
                std::fs::write(&path, &input).expect("the folder can be written");
                panic!(
                    "round {round} of NOVA_FUZZ_SEED={seed}; its input is in {}",
                    path.display()
                );
            }
        }
    }
    println!("{name}, NOVA_FUZZ_SEED={seed}: {depths:?} of {rounds} refused, in part, whole");
    depths
}

/// The samples themselves are accepted, and enough of what is made of them gets far.
fn check(name: &str, samples: &[Vec<u8>], target: impl Fn(&[u8]) -> Depth) {
    let whole = samples
        .iter()
        .filter(|sample| target(sample) == Depth::Whole);
    assert!(whole.count() > 0, "{name}: no sample is accepted");
    let [refused, part, whole] = fuzz(name, samples, target);
    let all = refused + part + whole;
    assert!(10 * (part + whole) >= all, "{name}: little is reached");
    assert!(20 * whole >= all, "{name}: little is accepted as a whole");
    assert!(50 * refused >= all, "{name}: little is refused");
}

#[test]
fn the_star_survives_what_clients_send() {
    check("star", &samples::of_clients(), targets::star);
}

#[test]
fn clients_survive_what_stars_send() {
    check("client", &samples::of_stars(), targets::client);
}

#[test]
fn recovery_survives_any_segment() {
    check("segment", &samples::segments(), targets::segment);
}

#[test]
fn an_index_survives_any_question() {
    check("index", &samples::indexes(), targets::index);
}

/// The canary: a decoder that believes a length must be found.
#[test]
fn a_decoder_that_believes_a_length_is_found() {
    let credulous = |input: &[u8]| {
        let frame = &input[samples::CHOICES.min(input.len())..];
        if frame.len() >= 16 {
            let head = u32::from_le_bytes([frame[4], frame[5], frame[6], frame[7]]) as usize;
            let _head = &frame[16..16 + head];
        }
        Depth::Whole
    };
    let found = catch_unwind(|| fuzz("canary", &samples::of_clients(), credulous));
    assert!(found.is_err(), "a planted bug was not found");
}
