//! Plays seeds: `nova-sim --seeds A..B`, or one with its story: `nova-sim --seed N --trace`.
//!
//! A finding is printed with the command that plays it again.

use nova_sim::{BUGS, Bug, Options, Report, run};
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str =
    "nova-sim [--seeds A..B | --seed N] [--trace] [--all] [--bug NAME] [--locks yes|no] ...
  --seeds A..B   plays these seeds, each twice, and stops at the first finding
  --seed N       plays one
  --trace        prints the story of a finding, or of the one seed
  --bug NAME     plants a bug; a wrong name lists them
  --undamaged    leaves cold data alone at the end of a run
  --all          goes on after a finding
  --forgets yes|no  trims much and recycles often; decided by the seed if nothing is said
  --locks no     a start does not wait for writes of a killed process";

struct Arguments {
    seeds: std::ops::Range<u64>,
    is_single: bool,
    with_trace: bool,
    goes_on: bool,
    options: Options,
    bug: Option<String>,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(arguments) => play(&arguments),
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut parsed = Arguments {
        seeds: 0..1_000,
        is_single: false,
        with_trace: false,
        goes_on: false,
        options: Options::default(),
        bug: None,
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} wants a value"));
        match argument.as_str() {
            "--trace" => parsed.with_trace = true,
            "--undamaged" => parsed.options.without_damage = true,
            "--all" => parsed.goes_on = true,
            "--seed" => {
                let seed = number(&value()?)?;
                parsed.seeds = seed..seed + 1;
                parsed.is_single = true;
            }
            "--seeds" => {
                let text = value()?;
                let (from, to) = text.split_once("..").ok_or("seeds are given as A..B")?;
                parsed.seeds = number(from)?..number(to)?;
            }
            "--bug" => {
                let name = value()?;
                parsed.options.bug = Some(bug(&name)?);
                parsed.bug = Some(name);
            }
            "--locks" => parsed.options.locks_work = Some(value()? == "yes"),
            "--forgets" => parsed.options.forgets = Some(value()? == "yes"),
            other => return Err(format!("{other} is not known")),
        }
    }
    Ok(parsed)
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

fn bug(name: &str) -> Result<Bug, String> {
    Bug::named(name).ok_or_else(|| {
        let names: Vec<&str> = BUGS.iter().map(|(known, _)| *known).collect();
        format!("no bug is named {name}; there are {}", names.join(", "))
    })
}

fn play(arguments: &Arguments) -> ExitCode {
    let begun = Instant::now();
    let (mut events, mut checks, mut records, mut starts) = (0, 0, 0, 0);
    let mut findings = 0;
    for seed in arguments.seeds.clone() {
        let report = run(seed, &arguments.options);
        events += report.events;
        checks += report.checks;
        records += report.records;
        starts += report.starts;
        let again = run(seed, &arguments.options);
        if report.hash != again.hash {
            println!("seed {seed} is not played twice alike");
            return ExitCode::FAILURE;
        }
        if let Some(finding) = &report.finding {
            tell(arguments, &report, finding);
            findings += 1;
            if !arguments.goes_on {
                return ExitCode::FAILURE;
            }
        }
        if arguments.is_single && arguments.with_trace {
            print_story(arguments, seed);
        }
    }
    let count = arguments.seeds.end - arguments.seeds.start;
    let seconds = begun.elapsed().as_secs_f64();
    let per_second = count as f64 / seconds;
    println!(
        "{count} seeds, each twice, {findings} findings: {per_second:.0} seeds/s; {events} events, \
         {starts} starts, {records} records acked, {checks} checks"
    );
    match findings {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn tell(arguments: &Arguments, report: &Report, finding: &str) {
    let seed = report.seed;
    if arguments.with_trace {
        print_story(arguments, seed);
    }
    println!("seed {seed}: {finding}");
    let bug = arguments.bug.as_ref();
    let bug = bug.map_or(String::new(), |bug| format!(" --bug {bug}"));
    let locks = match arguments.options.locks_work {
        Some(true) => " --locks yes",
        Some(false) => " --locks no",
        None => "",
    };
    let whole = if arguments.options.without_damage {
        " --undamaged"
    } else {
        ""
    };
    let forgets = match arguments.options.forgets {
        Some(true) => " --forgets yes",
        Some(false) => " --forgets no",
        None => "",
    };
    let with = format!("{bug}{locks}{whole}{forgets}");
    println!("again: cargo run --release -p nova-sim -- --seed {seed} --trace{with}");
}

fn print_story(arguments: &Arguments, seed: u64) {
    let options = Options {
        with_lines: true,
        ..arguments.options
    };
    for line in run(seed, &options).lines {
        println!("{line}");
    }
}
