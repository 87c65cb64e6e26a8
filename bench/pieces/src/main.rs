//! The gate: counts the instructions of each piece and fails if one has become dearer.
//!
//! ```text
//!   gate               count all pieces and hold them to instructions.txt
//!   gate write         count all pieces and write instructions.txt anew
//!   gate run NAME N    run a piece N times: what is counted
//! ```
//! Needs valgrind; without it, it says so and passes.

use nova_pieces::counted::{
    Counts, FEW, MORE, dearer_percent, judge, parse_callgrind, parse_written, write_down,
};
use nova_pieces::pieces::{NAMES, make};
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

const WRITTEN: &str = include_str!("../instructions.txt");

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["run", name, times] => run(name, times),
        ["write"] => write(),
        [] => hold(),
        _ => {
            eprintln!("gate: say nothing, or write, or run NAME N");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &str, times: &str) -> ExitCode {
    let (Some(mut piece), Ok(times)) = (make(name), times.parse::<u64>()) else {
        eprintln!("gate: there is no piece {name}, or {times} is no number");
        return ExitCode::FAILURE;
    };
    (0..times).for_each(|_| (piece.run)());
    ExitCode::SUCCESS
}

fn hold() -> ExitCode {
    if cfg!(debug_assertions) {
        eprintln!("gate: this is a debug build, whose numbers say nothing: use --release");
        return ExitCode::FAILURE;
    }
    let found = match count_all() {
        Ok(Some(found)) => found,
        Ok(None) => {
            println!("gate: not run, since valgrind is not there: apt-get install valgrind");
            return ExitCode::SUCCESS;
        }
        Err(error) => return failed(&error),
    };
    let written = parse_written(WRITTEN).unwrap_or_default();
    for (name, &count) in &found {
        let change = written
            .get(name)
            .map(|&written| dearer_percent(count, written));
        let change = change.map_or("new".to_owned(), |percent| format!("{percent:+.1} %"));
        println!("{count:>10}  {change:>8}  {name}");
    }
    let wrong = judge(&found, &written);
    for line in &wrong {
        println!("DEARER {line}");
    }
    if wrong.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("make it cheaper, or write the numbers down anew and say why: gate write");
    ExitCode::FAILURE
}

fn write() -> ExitCode {
    let found = match count_all() {
        Ok(Some(found)) => found,
        Ok(None) => return failed(&io::Error::other("valgrind is not there")),
        Err(error) => return failed(&error),
    };
    let compiler = Command::new("rustc").arg("--version").output();
    let compiler = compiler.map_or_else(
        |_| "an unknown compiler".to_owned(),
        |said| String::from_utf8_lossy(&said.stdout).trim().to_owned(),
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.txt");
    match std::fs::write(&file, write_down(&found, &compiler)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &io::Error) -> ExitCode {
    eprintln!("gate: the pieces could not be counted: {error}");
    ExitCode::FAILURE
}

/// `None` without valgrind.
fn count_all() -> io::Result<Option<Counts>> {
    let mut counts = Counts::new();
    for name in NAMES {
        let (Some(few), Some(more)) = (count(name, FEW)?, count(name, MORE)?) else {
            return Ok(None);
        };
        let each = more.saturating_sub(few) / (MORE - FEW);
        counts.insert(name.to_owned(), each);
    }
    Ok(Some(counts))
}

fn count(name: &str, times: u64) -> io::Result<Option<u64>> {
    let counted = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(["run", name, &times.to_string()])
        .output();
    let counted = match counted {
        Ok(counted) => counted,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let said = String::from_utf8_lossy(&counted.stderr);
    match parse_callgrind(&said).filter(|_| counted.status.success()) {
        Some(count) => Ok(Some(count)),
        None => Err(io::Error::other(format!("{name}: valgrind says:\n{said}"))),
    }
}
