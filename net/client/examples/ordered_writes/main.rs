//! Several processes write the same entities, are killed at random, and the result is checked;
//! `--help` tells the flags.
//!
//! ```text
//!   parent: entity 0: update 0, 1, 2 ...   each to two writers at once
//!      |       ^
//!      v       | "0 2 2": update 2 of entity 0 is stored at 2
//!   writer processes (this program again): an EntityWriter each, killed with SIGKILL at random;
//!      |                                    each life enters the star at a core of its own
//!      v
//!   the star: one stream for each entity
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
mod settings;
mod writer;

use nova_client::{BucketSettings, Client, ClientConfig, StreamName, StreamSettings};
use std::error::Error;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match &args[..] {
        [verb, star, ca] if verb == "writer" => writer::run(star, ca).map(|()| true),
        [verb, star, ca] if verb == "careless-writer" => {
            writer::run_careless(star, ca).map(|()| true)
        }
        _ if args.iter().any(|arg| arg == "--help") => {
            print!("{}", settings::HELP);
            Ok(true)
        }
        _ => run(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("ordered_writes: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &[String]) -> Result<bool, Failure> {
    let settings = settings::parse(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let client = {
        let _inside = runtime.enter();
        Client::connect(ClientConfig::new(settings.star.clone(), &settings.ca))?
    };
    let names = runtime.block_on(create(&client, settings.entities))?;
    let cores = runtime.block_on(client.describe_star())?.cores;
    let entries: Vec<String> = cores.into_iter().map(|core| core.address).collect();
    let run = route::run(&settings, &names, &entries)?;
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
