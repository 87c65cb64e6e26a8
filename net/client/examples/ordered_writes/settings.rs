//! What the command line says, checked.
//!
//! # Invariants
//! - A flag that is not known, or has no value or a wrong one, is refused in words.

use crate::Failure;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The answer to `--help`.
pub const HELP: &str = "\
Several processes write the same entities, through any route, are killed at random, and the result
is checked: every update must be stored once, in the order of issue, where its answers said.

Usage: ordered_writes (--data DIR | --star HOST:PORT --ca FILE) [FLAGS]

  --data DIR        Data directory of a star on this machine
  --star HOST:PORT  Address of any core of the star
  --ca FILE         Copy of the star's tls/ca.pem, with --star
  --seconds N       How long updates are issued, up to 3600 [default: 5]
  --writers N       Writer processes, up to 32 [default: 3]
  --entities N      Entities, a stream each, up to 256 [default: 4]
  --seed N          Decides who is killed and which route is taken [default: 1]
  --careless        Write with a plain producer; the check is to find what goes wrong then
  --help            Print this

Exit codes: 0 all is as it should be, 1 it is not (VIOLATION lines), 2 the run did not come about.

Example, beside a star started with `nova serve` in the same directory:
  cargo run --release -p nova-client --example ordered_writes -- --data nova-data --seconds 20
";

/// Bounds of the run.
const SECONDS_MAX: u64 = 3_600;
const WRITERS_MAX: u64 = 32;
const ENTITIES_MAX: u64 = 256;

/// What the command line says.
pub struct Settings {
    /// Where the star is entered.
    pub star: String,
    /// Whom to trust.
    pub ca: PathBuf,
    /// How long updates are issued.
    pub duration: Duration,
    /// Writer processes.
    pub writers: usize,
    /// Entities.
    pub entities: usize,
    /// Decides who is killed and which route is taken.
    pub seed: u64,
    /// Whether the writers are plain producers.
    pub is_careless: bool,
}

#[derive(Default)]
struct Said {
    data: Option<PathBuf>,
    star: Option<String>,
    ca: Option<PathBuf>,
}

/// Parses the command line.
pub fn parse(args: &[String]) -> Result<Settings, Failure> {
    let mut said = Said::default();
    let mut settings = Settings {
        star: String::new(),
        ca: PathBuf::new(),
        duration: Duration::from_secs(5),
        writers: 3,
        entities: 4,
        seed: 1,
        is_careless: false,
    };
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        if flag == "--careless" {
            settings.is_careless = true;
            continue;
        }
        let mut value = || {
            let missing = || format!("{flag} needs a value; --help tells the flags");
            args.next().ok_or_else(missing)
        };
        match flag.as_str() {
            "--data" => said.data = Some(value()?.into()),
            "--star" => said.star = Some(value()?.clone()),
            "--ca" => said.ca = Some(value()?.into()),
            "--seconds" => {
                settings.duration = Duration::from_secs(number(flag, value()?, SECONDS_MAX)?);
            }
            "--writers" => settings.writers = number(flag, value()?, WRITERS_MAX)? as usize,
            "--entities" => settings.entities = number(flag, value()?, ENTITIES_MAX)? as usize,
            "--seed" => settings.seed = number(flag, value()?, u64::MAX)?,
            _ => return Err(format!("there is no flag {flag}; --help tells the flags").into()),
        }
    }
    (settings.star, settings.ca) = entry(said)?;
    Ok(settings)
}

fn number(flag: &str, text: &str, max: u64) -> Result<u64, Failure> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| format!("{flag} is 1 to {max}, not '{text}'").into())
}

fn entry(said: Said) -> Result<(String, PathBuf), Failure> {
    match (said.data, said.star, said.ca) {
        (Some(data), None, None) => Ok((address_of(&data)?, data.join("tls/ca.pem"))),
        (None, Some(star), Some(ca)) => Ok((star, ca)),
        _ => Err("name a star: --data DIR, or --star HOST:PORT --ca FILE".into()),
    }
}

fn address_of(data: &Path) -> Result<String, Failure> {
    let path = data.join("address");
    let read = std::fs::read_to_string(&path);
    let star = read.map_err(|error| format!("{}: {error}; does the star run?", path.display()))?;
    Ok(star.trim().to_owned())
}
