//! Made-up log lines, like those of a web service: the same for the same number and time.

use crate::cli::time_text::show_time;
use bytes::Bytes;
use nova_model::Timestamp;
use std::io;
use std::io::Write;
use tokio::sync::mpsc;

/// Lines in one chunk: about 200 KiB.
const CHUNK_LINES: u64 = 1_000;
const CHUNKS_MAX: usize = 4;

const HOSTS: [&str; 4] = ["web-1", "web-2", "web-3", "edge-1"];
const PATHS: [&str; 8] = [
    "/api/orders",
    "/api/orders/search",
    "/api/cart",
    "/api/users/me",
    "/api/payments",
    "/static/app.js",
    "/health",
    "/api/catalog/items",
];
const AGENTS: [&str; 4] = [
    "Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/142.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_1) Safari/605.1",
    "curl/8.16.0",
];

/// Chunks of whole lines, made on a thread of their own.
pub(super) fn chunks(
    lines: u64,
    start: Timestamp,
) -> io::Result<mpsc::Receiver<io::Result<Bytes>>> {
    let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
    let make = move || {
        let mut next = 0;
        while next < lines {
            let end = (next + CHUNK_LINES).min(lines);
            let mut chunk = Vec::with_capacity(256 * CHUNK_LINES as usize);
            for number in next..end {
                write_line(&mut chunk, number, start);
            }
            if sender.blocking_send(Ok(Bytes::from(chunk))).is_err() {
                return;
            }
            next = end;
        }
    };
    std::thread::Builder::new()
        .name("lines".to_owned())
        .spawn(make)?;
    Ok(receiver)
}

fn write_line(to: &mut Vec<u8>, number: u64, start: Timestamp) {
    let dice = mix(number);
    let pick = |shift: u32, count: usize| (dice >> shift) as usize % count;
    let time = show_time(Timestamp(start.0 + number * 137 + dice % 100));
    let (status, level) = match dice % 1_000 {
        0..5 => (500, "error"),
        5..30 => (404, "warn"),
        30..120 => (304, "info"),
        _ => (200, "info"),
    };
    let written = writeln!(
        to,
        "{time} {host} {level} method=GET path={path}/{id} status={status} bytes={bytes} \
         took_ms={whole}.{part:02} client=10.{a}.{b}.{c} trace={trace:016x} agent=\"{agent}\"",
        host = HOSTS[pick(8, HOSTS.len())],
        path = PATHS[pick(12, PATHS.len())],
        id = dice >> 48,
        bytes = 180 + (dice >> 20) % 40_000,
        whole = (dice >> 24) % 90,
        part = (dice >> 31) % 100,
        a = pick(32, 256),
        b = pick(40, 256),
        c = pick(48, 256),
        trace = mix(dice),
        agent = AGENTS[pick(16, AGENTS.len())],
    );
    written.expect("writing to memory does not fail");
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014), of the number-th step.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
#[path = "made_up_tests.rs"]
mod tests;
