//! Several processes write the same entities, are killed at random, and the result is checked:
//! `ordered_writes (--data DIR | --star HOST:PORT --ca CA.PEM) [--seconds 5] [--writers 3]
//! [--entities 4] [--seed 1] [--careless]`.
//!
//! ```text
//!   parent: entity 0: update 0, 1, 2 ...   each to two writers at once
//!      |       ^
//!      v       | "0 2 2": update 2 of entity 0 is stored at 2
//!   writer processes (this program again): an EntityWriter each, killed with SIGKILL at random
//! ```
//! A writer that was killed loses what it held, and its last append may still land. The parent
//! starts another one, routes its entities anew and sends what has no answer again, in order. Now
//! and then it sends an update again that was answered long ago. At the end it reads all entities:
//! every update must be there once, in the order of issue, where each of its answers said. The
//! exit code is 0 only then.
//!
//! With `--careless` the writers append with a plain producer instead, which is fine for a single
//! process that keeps running. Here it stores updates twice, and the check says so.

mod check;
mod route;
mod writer;

use nova_client::{BucketSettings, Client, ClientConfig, StreamName, StreamSettings};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

type Failure = Box<dyn Error + Send + Sync>;

/// What the command line says.
struct Settings {
    star: String,
    ca: PathBuf,
    duration: Duration,
    writers: usize,
    entities: usize,
    seed: u64,
    is_careless: bool,
}

/// Bounds of the run.
const SECONDS_MAX: u64 = 3_600;
const WRITERS_MAX: usize = 32;
const ENTITIES_MAX: usize = 256;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match &args[..] {
        [verb, star, ca] if verb == "writer" => writer::run(star, ca).map(|()| true),
        [verb, star, ca] if verb == "careless-writer" => {
            writer::run_careless(star, ca).map(|()| true)
        }
        _ => run(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("ordered_writes: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<bool, Failure> {
    let settings = parse(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let client = {
        let _inside = runtime.enter();
        Client::connect(ClientConfig::new(settings.star.clone(), &settings.ca))?
    };
    let names = runtime.block_on(create(&client, settings.entities))?;
    let run = route::run(&settings, &names)?;
    println!("{run}");
    let findings = runtime.block_on(check::check(&client, &names, &run))?;
    runtime.block_on(client.close());
    for finding in &findings {
        println!("VIOLATION: {finding}");
    }
    if findings.is_empty() {
        println!("every update is stored once, in order, where its answers said");
    }
    Ok(findings.is_empty())
}

/// The streams of the entities, new for each run.
async fn create(client: &Client, entities: usize) -> Result<Vec<StreamName>, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let mut names = Vec::new();
    for entity in 0..entities {
        let key = format!("{}-{}/{entity}", now.as_millis(), std::process::id());
        names.push(StreamName::parse(&format!("ordered-writes/{key}"))?);
    }
    let bucket = names[0].bucket.clone();
    client
        .ensure_bucket(bucket, BucketSettings::default())
        .await?;
    for name in &names {
        client
            .ensure_stream(name.clone(), StreamSettings::default())
            .await?;
    }
    Ok(names)
}

fn parse(args: &[String]) -> Result<Settings, Failure> {
    let value = |flag: &str| {
        let place = args.iter().position(|arg| arg == flag)?;
        args.get(place + 1).cloned()
    };
    let number = |flag: &str, default: u64, max: u64| -> Result<u64, Failure> {
        let number = value(flag).map_or(Ok(default), |text| text.parse())?;
        let fits = (1..=max).contains(&number);
        fits.then_some(number)
            .ok_or_else(|| format!("{flag} is 1 to {max}").into())
    };
    let (star, ca) = match (value("--data"), value("--star"), value("--ca")) {
        (Some(data), None, None) => {
            let data = PathBuf::from(data);
            let path = data.join("address");
            let star = std::fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}; does the star run?", path.display()))?;
            (star.trim().to_owned(), data.join("tls/ca.pem"))
        }
        (None, Some(star), Some(ca)) => (star, PathBuf::from(ca)),
        _ => return Err("usage: ordered_writes (--data DIR | --star HOST:PORT --ca FILE)".into()),
    };
    Ok(Settings {
        star,
        ca,
        duration: Duration::from_secs(number("--seconds", 5, SECONDS_MAX)?),
        writers: number("--writers", 3, WRITERS_MAX as u64)? as usize,
        entities: number("--entities", 4, ENTITIES_MAX as u64)? as usize,
        seed: number("--seed", 1, u64::MAX)?,
        is_careless: args.iter().any(|arg| arg == "--careless"),
    })
}
