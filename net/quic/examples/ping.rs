//! Measures the bare transport on loopback: `cargo run --release -p nova-quic --example ping`.
//!
//! An echo server on a glommio executor and a client on a tokio runtime of one thread, in one
//! process. Arguments: stream windows of both ends to compare, in KiB (none: the defaults of each
//! end), and `spin`.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use nova_quic::{
    baseline::{EchoServer, ping_pong, pump},
    certificates,
    client::{ClientEndpoint, Connection},
    params::{ClientParams, SPIN_DEFAULT, ServerParams},
    tls::ClientTls,
};

const BUDGET_BYTES: u64 = 256 * 1024 * 1024;
const FRAMES: usize = 32_768;
const PINGS: usize = 40_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let spin = arguments.iter().any(|argument| argument == "spin");
    let mut windows: Vec<Option<u32>> = arguments
        .iter()
        .filter_map(|kib| kib.parse().ok().map(Some))
        .collect();
    if windows.is_empty() {
        windows.push(None);
    }
    let directory = std::env::temp_dir().join(format!("nova-quic-ping-{}", std::process::id()));
    let measured = windows
        .iter()
        .try_for_each(|kib| measure(&directory, *kib, spin));
    std::fs::remove_dir_all(&directory)?;
    measured
}

fn measure(
    directory: &std::path::Path,
    kib: Option<u32>,
    spin: bool,
) -> Result<(), Box<dyn Error>> {
    let tls = certificates::prepare(directory, &[])?;
    let trust = ClientTls::from_ca_file(&directory.join(certificates::CA_CERTIFICATE_FILE))?;
    let mut server_params = ServerParams::new(BUDGET_BYTES);
    let mut client_params = ClientParams::default();
    if let Some(kib) = kib {
        server_params.transport.stream_window_bytes = kib * 1024;
        client_params.transport.stream_window_bytes = kib * 1024;
    }
    let windows = [&server_params.transport, &client_params.transport]
        .map(|transport| transport.stream_window_bytes / 1024);

    let spin = if spin { SPIN_DEFAULT } else { Duration::ZERO };
    let server = EchoServer::start(
        ([127, 0, 0, 1], 0).into(),
        tls,
        server_params,
        None,
        spin,
        None,
    )?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let endpoint = ClientEndpoint::new(&trust, client_params)?;
        let connection = endpoint.connect(server.address(), "localhost").await?;
        println!("stream windows of server and client {windows:?} KiB, spin {spin:?}");
        latency(
            "128 B ping-pong",
            &mut ping_pong(&connection, 128, PINGS).await?,
        );
        // The first run finds the path's datagram size and fills the caches.
        pump(&connection, 65_536, 65_536, 16, FRAMES / 8).await?;
        rate(
            "64 KiB frames echoed, 16 in flight",
            65_536,
            FRAMES,
            pump(&connection, 65_536, 65_536, 16, FRAMES).await?,
        );
        rate(
            "64 KiB frames in, 16 B replies, 16 in flight",
            65_536,
            FRAMES,
            pump(&connection, 65_536, 16, 16, FRAMES).await?,
        );
        rate(
            "1 KiB frames echoed, 64 in flight",
            1_024,
            16 * FRAMES,
            pump(&connection, 1_024, 1_024, 64, 16 * FRAMES).await?,
        );
        mixed(&connection).await?;
        idle().await;
        println!("  {:?}", connection.stats());
        endpoint.close(0, "measured");
        endpoint.wait_idle().await;
        Ok::<_, Box<dyn Error>>(())
    })?;
    println!("  {:?}\n", server.stop()?);
    Ok(())
}

/// Ping-pong beside a full stream: what a large window costs everybody else.
async fn mixed(connection: &Connection) -> Result<(), Box<dyn Error>> {
    let beside = connection.clone();
    let load = tokio::spawn(async move { pump(&beside, 65_536, 16, 16, FRAMES).await });
    let mut times = ping_pong(connection, 128, 2_000).await?;
    load.await??;
    latency("128 B ping-pong beside 64 KiB frames", &mut times);
    Ok(())
}

/// CPU time of the whole process over two idle seconds with one open connection.
async fn idle() {
    let before = cpu_time();
    let begin = Instant::now();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let used = cpu_time().saturating_sub(before);
    println!("  idle: {used:?} of CPU in {:.1?}", begin.elapsed());
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn latency(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let (p50, p99, most) = (at(0.5), at(0.99), at(1.0));
    println!("  {name}: p50 {p50:.1?}, p99 {p99:.1?}, most {most:.1?}");
}

fn rate(name: &str, frame_bytes: usize, frames: usize, took: Duration) {
    let seconds = took.as_secs_f64();
    let megabytes = (frame_bytes * frames) as f64 / seconds / 1e6;
    println!(
        "  {name}: {megabytes:.0} MB/s, {:.0} frames/s",
        frames as f64 / seconds
    );
}
