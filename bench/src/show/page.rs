//! What a load came to, as one page that needs nothing from elsewhere.

use crate::run::outcome::LoadResult;
use crate::run::quantiles::Quantiles;
use crate::show::plot::{Axis, Line, Plot, Scale, draw, escape};
use crate::show::report::LoadReport;
use crate::show::text;
use crate::workload::Pace;

const STYLE: &str = "\
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2024;--dim:#687076;--grid:#e6e8eb;--card:#f6f7f8;\
--warn:#fff4d5;--warnfg:#7a4b00;--l0:#0b68cb;--l1:#d6409f;--l2:#e5484d;--l3:#30a46c;--l4:#8e4ec6}\
@media(prefers-color-scheme:dark){:root{--bg:#111314;--fg:#edeef0;--dim:#9ba1a6;--grid:#2b2f31;\
--card:#1a1d1e;--warn:#3a2b00;--warnfg:#ffd479;--l0:#52a9ff;--l1:#f65cb6;--l2:#ff6369;\
--l3:#3cb179;--l4:#bf7af0}}\
*{box-sizing:border-box}body{margin:0 auto;max-width:860px;padding:28px 24px 60px;\
background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}\
h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:40px 0 12px}p{margin:4px 0}\
.dim{color:var(--dim)}table{border-collapse:collapse;width:100%;margin:12px 0;font-size:13px}\
td,th{padding:4px 8px;border-bottom:1px solid var(--grid);text-align:right;white-space:nowrap;\
font-variant-numeric:tabular-nums}td:first-child,th:first-child{text-align:left}\
th{color:var(--dim);font-weight:500}.facts td{text-align:left;white-space:normal}\
.facts td:first-child{color:var(--dim);width:110px}\
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(118px,1fr));gap:10px}\
.card{background:var(--card);border-radius:8px;padding:10px 12px}\
.card b{display:block;font-size:19px;font-weight:600;white-space:nowrap}\
.card span{color:var(--dim);font-size:12px}.warn{background:var(--warn);color:var(--warnfg);\
border-radius:8px;padding:8px 12px;margin:8px 0}\
svg{width:100%;height:auto;display:block;margin:18px 0}\
svg text{fill:var(--fg);font:12px system-ui,-apple-system,'Segoe UI',sans-serif}\
svg .title{font-weight:600;font-size:13px}svg .tick{fill:var(--dim);font-size:11px}\
svg .end{text-anchor:end}svg .mid{text-anchor:middle}svg path{fill:none}\
svg .grid{stroke:var(--grid)}svg .axis{stroke:var(--dim)}\
svg .line{stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}\
svg .dashed{stroke-dasharray:5 5}\
svg .l0{stroke:var(--l0)}svg .l1{stroke:var(--l1)}svg .l2{stroke:var(--l2)}\
svg .l3{stroke:var(--l3)}svg .l4{stroke:var(--l4)}";

/// Makes the page.
pub fn page(report: &LoadReport) -> String {
    let title = format!("nova bench {}", report.shape.name());
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         <p class=\"dim\">commit {}, {}</p>\n",
        escape(&report.machine.commit),
        escape(&report.machine.cpu)
    );
    for warning in &report.warnings {
        page += &warn(warning);
    }
    if report.loads.len() > 1 {
        page += &matrix(&report.loads);
    }
    for load in &report.loads {
        page += &section(load);
    }
    page += "<h2>The machine</h2>\n<table class=\"facts\">\n";
    for (name, fact) in text::facts(&report.machine, report) {
        page += &format!("<tr><td>{name}</td><td>{}</td></tr>\n", escape(&fact));
    }
    page + "</table>\n</body>\n</html>\n"
}

fn warn(text: &str) -> String {
    format!("<p class=\"warn\">{}</p>\n", escape(text))
}

fn section(load: &LoadResult) -> String {
    let mut section = format!("<h2>{}</h2>\n", escape(&load.title));
    for warning in &load.warnings {
        section += &warn(warning);
    }
    section += "<div class=\"cards\">\n";
    for (name, value) in cards(load) {
        let (name, value) = (escape(&name), escape(&value));
        section += &format!("<div class=\"card\"><b>{value}</b><span>{name}</span></div>\n");
    }
    section += "</div>\n";
    section += &table(load);
    for plot in plots(load) {
        section += &draw(&plot);
    }
    section
}

fn cards(load: &LoadResult) -> Vec<(String, String)> {
    let mut cards = Vec::new();
    let mut card = |name: &str, value: String| cards.push((name.to_owned(), value));
    if load.latency.count > 0 {
        card("latency, p50", text::micros(load.latency.p50));
        card("latency, p99", text::micros(load.latency.p99));
        card("latency, p99.9", text::micros(load.latency.p99_9));
    }
    if load.acked > 0 {
        card("records/s, durable", text::count(load.records_per_s as u64));
        card("MB/s, durable", format!("{:.2}", load.mb_per_s));
    }
    if let Some(read) = load.read_mb_per_s {
        card("MB/s, read", format!("{read:.1}"));
    }
    for ratio in load.ratios.iter().take(1) {
        card(ratio.what, format!("{:.2}", ratio.value));
    }
    cards
}

fn table(load: &LoadResult) -> String {
    let mut table = "<table>\n<tr><th></th>".to_owned();
    for (name, _) in Quantiles::default().named() {
        table += &format!("<th>{name}</th>");
    }
    table += "</tr>\n";
    for (name, quantiles) in text::rows(load) {
        table += &format!("<tr><td>{}</td>", escape(&name));
        for (_, us) in quantiles.named() {
            table += &format!("<td>{}</td>", text::micros(us));
        }
        table += "</tr>\n";
    }
    table += "</table>\n<table class=\"facts\">\n";
    let mut fact = |name: &str, text: &str| {
        table += &format!("<tr><td>{name}</td><td>{}</td></tr>\n", escape(text));
    };
    if load.acked > 0 {
        fact("rate", &text::rate(load));
    }
    if let Some(readers) = text::readers(load) {
        fact("readers", &readers);
    }
    for bare in text::bare_rates(load) {
        fact("bare machine", &bare);
    }
    fact("used", &text::usage(load));
    fact("read back", &text::verified(&load.verified));
    for ratio in &load.ratios {
        fact("ratio", &format!("{:.2}: {}", ratio.value, ratio.what));
    }
    table + "</table>\n"
}

/// All loads of a run, a line each.
fn matrix(loads: &[LoadResult]) -> String {
    let mut table = "<table>\n<tr><th>producers x streams</th><th>records/s</th><th>MB/s</th>\
                     <th>p50</th><th>p99</th><th>p99.9</th><th>star CPU</th></tr>\n"
        .to_owned();
    for load in loads {
        let cells = [
            text::count(load.records_per_s as u64),
            format!("{:.2}", load.mb_per_s),
            text::micros(load.latency.p50),
            text::micros(load.latency.p99),
            text::micros(load.latency.p99_9),
            format!("{:.0} %", load.usage.star_cpu_percent.unwrap_or_default()),
        ];
        let (producers, streams) = (load.workload.producers, load.workload.streams);
        let cells: String = cells
            .iter()
            .map(|cell| format!("<td>{cell}</td>"))
            .collect();
        table += &format!("<tr><td>{producers} x {streams}</td>{cells}</tr>\n");
    }
    table + "</table>\n"
}

fn plots(load: &LoadResult) -> Vec<Plot> {
    let mut plots = Vec::new();
    if load.latency.count > 0 {
        plots.push(by_percentile(load));
        plots.push(over_time(load));
    }
    plots.push(throughput(load));
    plots
}

const LATENCY: Axis = Axis {
    label: "latency",
    scale: Scale::Log,
    text: round_micros,
};
const TIME: Axis = Axis {
    label: "seconds since the warm-up",
    scale: Scale::Linear,
    text: plain,
};

/// A time that is 1, 2, 3 or 5 times a power of ten of microseconds.
fn round_micros(us: f64) -> String {
    let (value, unit) = match us {
        us if us < 999.5 => (us, "us"),
        us if us < 999_500.0 => (us / 1e3, "ms"),
        us => (us / 1e6, "s"),
    };
    format!("{} {unit}", (value * 1e3).round() / 1e3)
}

fn plain(value: f64) -> String {
    if value.fract().abs() < 1e-9 {
        text::count(value as u64)
    } else {
        format!("{value:.1}")
    }
}

/// `99.9` for 0.999; a share is a sum of powers of ten, which has no exact binary form.
fn percent(share: f64) -> String {
    let nines = -(1.0 - share).log10();
    let digits = (nines.round() as usize).saturating_sub(2);
    format!("{:.digits$}", 100.0 * share)
}

fn line(name: &str, points: Vec<(f64, f64)>, is_dashed: bool) -> Line {
    Line {
        name: name.to_owned(),
        points,
        is_dashed,
    }
}

fn by_percentile(load: &LoadResult) -> Plot {
    let points: Vec<(f64, f64)> = load
        .curve
        .iter()
        .map(|point| (point.share, point.us))
        .collect();
    let last = points
        .iter()
        .map(|point| point.0)
        .filter(|share| *share < 1.0)
        .fold(0.9, f64::max);
    let mut lines = vec![line("due to durable ack", points, false)];
    if let Some(bare) = load.baselines.first() {
        let sum = bare.round_trip.p50 + bare.write.p50;
        lines.push(line(
            "bare round trip + write, p50",
            vec![(0.0, sum), (last, sum)],
            true,
        ));
    }
    Plot {
        title: "Latency by percentile",
        x: Axis {
            label: "percentile",
            scale: Scale::Nines,
            text: percent,
        },
        y: LATENCY,
        lines,
    }
}

fn over_time(load: &LoadResult) -> Plot {
    let of = |value: fn(&crate::run::conductor::Interval) -> f64| {
        let shown = load
            .intervals
            .iter()
            .filter(|interval| interval.max_us > 0.0);
        shown
            .map(|interval| (interval.at + interval.seconds / 2.0, value(interval)))
            .collect()
    };
    Plot {
        title: "Latency over time",
        x: TIME,
        y: LATENCY,
        lines: vec![
            line("p50", of(|interval| interval.p50_us), false),
            line("p99", of(|interval| interval.p99_us), false),
            line("max", of(|interval| interval.max_us), false),
        ],
    }
}

fn throughput(load: &LoadResult) -> Plot {
    let rate = |number: u64, seconds: f64| number as f64 / 1e6 / seconds.max(1e-9);
    let of = |bytes: fn(&crate::run::conductor::Interval) -> u64| {
        load.intervals
            .iter()
            .map(|interval| {
                let at = interval.at + interval.seconds / 2.0;
                (at, rate(bytes(interval), interval.seconds))
            })
            .collect()
    };
    let mut lines = Vec::new();
    if load.acked > 0 {
        lines.push(line("durable", of(|interval| interval.acked_bytes), false));
    }
    if load.read_mb_per_s.is_some() {
        lines.push(line("read", of(|interval| interval.read_bytes), false));
    }
    if let Pace::Open { per_second } = load.workload.pace {
        let offered = (per_second * load.workload.record_bytes as u64) as f64 / 1e6;
        lines.push(line(
            "offered",
            vec![(0.0, offered), (load.seconds, offered)],
            true,
        ));
    }
    Plot {
        title: "Throughput over time",
        x: TIME,
        y: Axis {
            label: "MB/s",
            scale: Scale::Linear,
            text: |value| format!("{} MB/s", (value * 1e3).round() / 1e3),
        },
        lines,
    }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
