//! What a load came to, at a glance.
//!
//! ```text
//!                     p50       p90       p99     p99.9    p99.99       max
//!   ack            112 us    130 us    330 us    890 us   1.20 ms   3.10 ms
//!   queued           9 us     ...
//! ```

use crate::machine::Machine;
use crate::run::outcome::{LoadResult, Verified};
use crate::run::quantiles::Quantiles;
use crate::show::report::LoadReport;
use crate::workload::{Pace, Shape};
use std::fmt::Write;

/// A time with three digits.
pub fn micros(us: f64) -> String {
    match us {
        us if us < 9.95 => format!("{us:.1} us"),
        us if us < 999.5 => format!("{us:.0} us"),
        us if us < 999_500.0 => format!("{} ms", three_digits(us / 1e3)),
        us => format!("{} s", three_digits(us / 1e6)),
    }
}

fn three_digits(value: f64) -> String {
    match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// A number with a comma for each thousand.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The rows of a load's table of times: a name and the times.
pub fn rows(load: &LoadResult) -> Vec<(String, Quantiles)> {
    let mut rows = Vec::new();
    if load.latency.count > 0 {
        rows.push(("due to durable ack".to_owned(), load.latency));
        rows.push(("in the star: queued".to_owned(), load.queued));
        rows.push(("in the star: written".to_owned(), load.written));
        rows.push(("in the star: in all".to_owned(), load.inside));
    }
    if let Some(delivered) = load.delivered {
        rows.push(("arrival to follower".to_owned(), delivered));
    }
    for (number, bare) in load.baselines.iter().enumerate() {
        let when = if number == 0 { "before" } else { "after" };
        rows.push((
            format!("bare write {} B, {when}", bare.write_bytes),
            bare.write,
        ));
        let trip = format!("bare round trip {} B, {when}", bare.request_bytes);
        rows.push((trip, bare.round_trip));
        let both = format!("bare round trip with a write, {when}");
        rows.push((both, bare.round_trip_with_write));
    }
    rows
}

/// The rates of the bare machine, in words.
pub fn bare_rates(load: &LoadResult) -> Vec<String> {
    let of = |bare: &crate::run::bare::Bare| {
        let mut text = format!(
            "1 MiB writes {:.0} MB/s, 64 KiB frames echoed {:.0} MB/s, one way {:.0} MB/s",
            bare.large_writes_mb_per_s, bare.echo_mb_per_s, bare.one_way_mb_per_s
        );
        if let Some(reading) = &bare.reading {
            let (reads, frames) = (reading.reads_mb_per_s, reading.frames_mb_per_s);
            let at_once = reading.at_once;
            write!(
                text,
                "; 1 MiB reads, {at_once} at once, {reads:.0} MB/s, frames from the star's end \
                 {frames:.0} MB/s"
            )
            .expect("a string takes it");
        }
        text
    };
    load.baselines.iter().map(of).collect()
}

/// What readers were given, in words; the CPU time of those that catch up, too, which others at
/// work change less than the rate.
pub fn readers(load: &LoadResult) -> Option<String> {
    let read = load.read_mb_per_s?;
    let mut text = format!("{read:.1} MB/s");
    if load.workload.shape == Shape::CatchUp {
        let for_each_gb = |percent: f64| percent / 100.0 / (read / 1e3).max(f64::MIN_POSITIVE);
        let client = for_each_gb(load.usage.client_cpu_percent);
        write!(text, "; CPU time for each GB: client {client:.2} s").expect("a string takes it");
        if let Some(star) = load.usage.star_cpu_percent {
            write!(text, ", star {:.2} s", for_each_gb(star)).expect("a string takes it");
        }
    }
    Some(text)
}

/// What the load's records came to, in words.
pub fn rate(load: &LoadResult) -> String {
    let mut text = format!(
        "{} records/s, {:.2} MB/s; {} records in {:.1} s",
        count(load.records_per_s as u64),
        load.mb_per_s,
        count(load.acked),
        load.seconds
    );
    if let Pace::Open { per_second } = load.workload.pace {
        write!(text, "; {}/s were offered", count(per_second)).expect("a string takes it");
    }
    if load.behind_max > 1 {
        let behind = count(load.behind_max);
        write!(text, ", {behind} of a session due at once").expect("a string takes it");
    }
    text
}

/// Whether what was read back is what was acked, in words.
pub fn verified(verified: &Verified) -> String {
    match verified {
        Verified::NotAsked => "not asked for".to_owned(),
        Verified::Same { records } => {
            format!(
                "{} records, all in their places, the same bytes",
                count(*records)
            )
        }
        Verified::Unsure { acked, read } => format!(
            "{} were acked, {} are there: some appends have no result",
            count(*acked),
            count(*read)
        ),
        Verified::Different { streams } => {
            format!("NOT what was acked, in {}", streams.join(", "))
        }
    }
}

/// CPU and memory, in words.
pub fn usage(load: &LoadResult) -> String {
    let usage = &load.usage;
    let mut text = String::new();
    if let (Some(cpu), Some(now), Some(peak)) =
        (usage.star_cpu_percent, usage.star_mib, usage.star_mib_peak)
    {
        text = format!("star {cpu:.1} % of a CPU, {now:.0} MiB (peak {peak:.0}); ");
    }
    text + &format!("client {:.1} % of a CPU", usage.client_cpu_percent)
}

/// The facts of the machine, each with a name.
pub fn facts(machine: &Machine, report: &LoadReport) -> Vec<(&'static str, String)> {
    let others = &report.others;
    vec![
        ("commit", machine.commit.clone()),
        ("CPU", format!("{} of {}", machine.cpus, machine.cpu)),
        ("governor", machine.governor.clone()),
        ("kernel", machine.kernel.clone()),
        ("file system", machine.file_system.clone()),
        ("device", machine.device.clone()),
        ("star", report.star.clone()),
        ("load before", machine.load_before.clone()),
        ("load after", machine.load_after.clone()),
        (
            "others",
            format!(
                "{:.1} % of a CPU used by others, {:.1} % stolen by the host",
                others.others_percent, others.stolen_percent
            ),
        ),
    ]
}

/// All of a run.
pub fn report(report: &LoadReport) -> String {
    let mut text = format!("nova bench {}\n", report.shape.name());
    for (name, fact) in facts(&report.machine, report) {
        text += &format!("  {name:<12} {fact}\n");
    }
    for load in &report.loads {
        text += &format!("\n{}\n", load.title);
        text += &table(load);
    }
    if report.loads.len() > 1 {
        text += &matrix(&report.loads);
    }
    for warning in &report.warnings {
        text += &format!("\nWARNING: {warning}");
    }
    if !report.warnings.is_empty() {
        text.push('\n');
    }
    if let Some(out) = &report.out {
        text += &format!("\nwritten: {}\n", out.join("report.html").display());
    }
    text
}

fn table(load: &LoadResult) -> String {
    let mut text = format!("  {:<30}", "");
    for (name, _) in Quantiles::default().named() {
        text += &format!(" {name:>9}");
    }
    text.push('\n');
    for (name, quantiles) in rows(load) {
        text += &format!("  {name:<30}");
        for (_, us) in quantiles.named() {
            text += &format!(" {:>9}", micros(us));
        }
        text.push('\n');
    }
    if load.acked > 0 {
        text += &format!("  {:<12} {}\n", "rate", rate(load));
    }
    if let Some(read) = readers(load) {
        text += &format!("  {:<12} {read}\n", "readers");
    }
    for bare in bare_rates(load) {
        text += &format!("  {:<12} {bare}\n", "bare");
    }
    text += &format!("  {:<12} {}\n", "used", usage(load));
    text += &format!("  {:<12} {}\n", "read back", verified(&load.verified));
    for ratio in &load.ratios {
        text += &format!("  {:<12} {:.2}  {}\n", "ratio", ratio.value, ratio.what);
    }
    for warning in &load.warnings {
        text += &format!("  {:<12} {warning}\n", "WARNING");
    }
    text
}

/// All loads of a run, a line each.
fn matrix(loads: &[LoadResult]) -> String {
    let mut text = format!(
        "\n  {:>9} {:>8} {:>12} {:>10} {:>9} {:>9} {:>9} {:>8}\n",
        "producers", "streams", "records/s", "MB/s", "p50", "p99", "p99.9", "star CPU"
    );
    for load in loads {
        let cpu = load.usage.star_cpu_percent.unwrap_or_default();
        text += &format!(
            "  {:>9} {:>8} {:>12} {:>10.2} {:>9} {:>9} {:>9} {:>6.0} %\n",
            load.workload.producers,
            load.workload.streams,
            count(load.records_per_s as u64),
            load.mb_per_s,
            micros(load.latency.p50),
            micros(load.latency.p99),
            micros(load.latency.p99_9),
            cpu
        );
    }
    text
}

#[cfg(test)]
#[path = "text_tests.rs"]
pub(crate) mod tests;
