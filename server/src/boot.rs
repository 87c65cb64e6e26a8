//! From a configuration to a serving star, and back down.
//!
//! ```text
//!   probe, ports, directory, certificates      nothing is changed by a refusal up to here
//!   -> cores bind their ports
//!   -> incarnation + 1, durably
//!   -> each log recovered, in a thread of its own
//!   -> cores: disk, shard, first segment durable -> accept
//!   -> `address` names the star to the command line
//!   ... serve ...
//!   -> a signal: cores answer what was admitted, close, end
//! ```
//!
//! # Invariants
//! - The incarnation is durable before any segment is opened.
//! - All logs of the directory are recovered before any core answers.
//!
//! # Not here
//! - What a core does: `core`. What files mean: `nova-disk`, `nova-core`'s recovery.

pub use crate::boot_error::ServeError;
use crate::boot_http::{self, Http};
use crate::config::ServeConfig;
use crate::config::resolve::told_address;
use crate::core::desk::{AskSender, asks};
use crate::core::mailbox::{Mail, Sender, mailbox};
use crate::core::{self, CoreSeed, CoreStart, Notice};
use crate::gateway;
use crate::metrics::Recovered;
use crate::metrics::figures::CoreFigures;
use crate::shutdown::Signals;
use glommio::{ExecutorJoinHandle, LocalExecutorBuilder, Placement};
use nova_core::recovery::{RecoveredLog, RecoveryError, RecoveryOptions, reconcile, recover};
use nova_core::{ShardConfig, ShardStart, StarIndexes};
use nova_disk::{
    DEVICE_MEMORY_BYTES, DataDirectory, DriverConfig, FileBootDisk, FileRegistry, Layout, probe,
    raise_incarnation,
};
use nova_model::limits::STAR_CORES_MAX;
use nova_model::names::BucketName;
use nova_model::placement::bucket_home;
use nova_model::request::BucketInfo;
use nova_model::{CoreId, Incarnation, LogId, StarId};
use nova_quic::certificates::prepare;
use nova_quic::tls::ServerTls;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The file in the data directory that names the running star's first core, `HOST:PORT`.
pub const ADDRESS_FILE: &str = "address";
/// The folder in the data directory with the certificates.
pub const TLS_DIRECTORY: &str = "tls";

/// Memory that the connections of one core may fill with bytes on their way.
const WINDOWS_BYTES: u64 = 64 * 1024 * 1024;

/// Exit code of a star that ends because of a mistake of its own (EX_SOFTWARE of sysexits).
const EXIT_PANIC: i32 = 70;

/// How long a port may still be held by a process that is just ending.
const PORT_PATIENCE: Duration = Duration::from_secs(1);

/// Runs a star until it is told to stop.
pub fn serve(config: &ServeConfig) -> Result<(), ServeError> {
    end_with_any_thread();
    let cpus = choose_cpus(config)?;
    probe(&config.data)?;
    let listen = listen_addresses(config, cpus.len())?;
    let listener = boot_http::listener(config)?;
    let directory = DataDirectory::open(&config.data)?;
    let tls_directory = directory.layout().root().join(TLS_DIRECTORY);
    let mut names = config.tls_names.clone();
    names.extend(config.advertise.clone());
    let tls = prepare(&tls_directory, &names)?;
    let spin = Duration::from_micros(config.spin_us);
    let mut cores = Cores::spawn(&cpus, &listen, &tls, spin)?;
    let ways = (&*cores.asks, &*cores.figures);
    let served = boot_http::start(config, listener, ways, &tls_directory).and_then(|gateway| {
        let served = serve_with(config, &directory, &mut cores, gateway.as_ref());
        if let Some(gateway) = gateway {
            gateway.end();
        }
        served
    });
    cores.end();
    remove_address(directory.layout());
    served
}

fn serve_with(
    config: &ServeConfig,
    directory: &DataDirectory,
    cores: &mut Cores,
    gateway: Option<&Http>,
) -> Result<(), ServeError> {
    let bound = cores.bound()?;
    let layout = &directory.layout().of_cores(bound.len() as u16);
    let star = directory.identity().star;
    let mut registry = FileRegistry::open(layout)?;
    let incarnation = raise_incarnation(&mut registry)?;
    let (logs, recovered) = recover_all(config, directory, incarnation, bound.len())?;
    let addresses = advertised(config, &bound);
    let signals = Signals::take()?;
    // Written before the first segment may take the last of the space; it counts from its rename.
    let has_address = draft_address(layout, &addresses[0])?;
    cores.start(config, layout, star, incarnation, &addresses, logs)?;
    if let Some(http) = gateway {
        http.metrics.set_recovered(recovered);
        http.thread.serve(addresses.clone());
    }
    if has_address {
        place_address(layout)?;
    }
    tell(&format!(
        "star {star}, start {incarnation}, data in {}\nlistening on {}\n{}ready\n",
        layout.root().display(),
        addresses.join(", "),
        gateway.map_or_else(String::new, Http::line)
    ));
    let thread = gateway.map(|http| &http.thread);
    signals.wait(&cores.mail, &cores.notices, thread)
}

/// Says something on stdout. A star serves also when nobody listens any more: a closed pipe, a full
/// disk below a log.
fn tell(text: &str) {
    let mut stdout = io::stdout().lock();
    let _unheard = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}

/// Says a line on stderr, in the same way.
pub(crate) fn warn(line: &str) {
    let _unheard = writeln!(io::stderr(), "{line}");
}

/// A panic is a mistake of ours in an unknown state: the process ends, recovery decides what holds.
/// The gateway's thread alone holds no state of streams: it unwinds, and a connection ends.
fn end_with_any_thread() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        if std::thread::current().name() != Some(gateway::THREAD) {
            end_after_panic();
        }
    }));
}

/// Ends the process.
pub(crate) fn end_after_panic() {
    warn("the star ends here; start it again: what was acked is safe");
    std::process::exit(EXIT_PANIC);
}

fn choose_cpus(config: &ServeConfig) -> Result<Vec<usize>, ServeError> {
    let there: Vec<usize> = core_affinity::get_core_ids()
        .unwrap_or_default()
        .into_iter()
        .map(|cpu| cpu.id)
        .collect();
    let wanted = config.cores.unwrap_or(there.len().min(STAR_CORES_MAX));
    if wanted == 0 || wanted > there.len() || wanted > STAR_CORES_MAX {
        return Err(ServeError::Cores {
            wanted,
            there: there.len(),
        });
    }
    Ok(there[..wanted].to_vec())
}

/// The address of each core; a taken port is found out before anything is touched.
fn listen_addresses(config: &ServeConfig, cores: usize) -> Result<Vec<SocketAddr>, ServeError> {
    let port_of = |core: usize| match config.port {
        0 => Some(0),
        base => u16::try_from(core)
            .ok()
            .and_then(|core| base.checked_add(core)),
    };
    let mut addresses = Vec::with_capacity(cores);
    for core in 0..cores {
        let port = port_of(core).ok_or(ServeError::Ports {
            port: config.port,
            cores,
        })?;
        let address = SocketAddr::new(config.listen, port);
        try_port(address)?;
        addresses.push(address);
    }
    Ok(addresses)
}

fn try_port(address: SocketAddr) -> Result<(), ServeError> {
    let until = Instant::now() + PORT_PATIENCE;
    loop {
        match UdpSocket::bind(address) {
            Ok(_free) => return Ok(()),
            Err(source) if source.kind() == io::ErrorKind::AddrInUse && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(source) => return Err(ServeError::PortInUse { address, source }),
        }
    }
}

fn advertised(config: &ServeConfig, bound: &[SocketAddr]) -> Vec<String> {
    let name = |address: &SocketAddr| match &config.advertise {
        Some(host) => told_address(host, address.port()),
        None if address.ip().is_unspecified() => format!("127.0.0.1:{}", address.port()),
        None => address.to_string(),
    };
    bound.iter().map(name).collect()
}

/// Recovers every log, each in its own thread, and prints what was found.
fn recover_all(
    config: &ServeConfig,
    directory: &DataDirectory,
    incarnation: Incarnation,
    cores: usize,
) -> Result<(BTreeMap<LogId, RecoveredLog>, Vec<Recovered>), ServeError> {
    let own = (0..cores).map(|core| LogId(core as u16));
    let all: BTreeSet<LogId> = own.chain(directory.logs().iter().copied()).collect();
    let star = directory.identity().star;
    let layout = directory.layout().of_cores(cores as u16);
    let recovered = std::thread::scope(|scope| {
        let work: Vec<_> = all
            .iter()
            .map(|&log| {
                let options = RecoveryOptions {
                    allow_corrupt: config.allow_corrupt,
                    closing: (usize::from(log.0) >= cores).then_some(incarnation),
                    ..RecoveryOptions::default()
                };
                let layout = layout.clone();
                scope.spawn(move || {
                    let begun = Instant::now();
                    let found = recover(&mut FileBootDisk::new(layout), log, star, options);
                    (log, found, begun.elapsed())
                })
            })
            .collect();
        work.into_iter()
            .map(|thread| thread.join().expect("recovery ends"))
            .collect::<Vec<_>>()
    });
    let (mut logs, mut figures) = (BTreeMap::new(), Vec::new());
    for (log, found, took) in recovered {
        let found = found?;
        let report = found.report.clone();
        figures.push(Recovered { log, report, took });
        warn(&format!(
            "{log}: {} ({} ms)",
            found.report,
            took.as_millis()
        ));
        logs.insert(log, found);
    }
    let options = RecoveryOptions {
        allow_corrupt: config.allow_corrupt,
        ..RecoveryOptions::default()
    };
    let mut disk = FileBootDisk::new(layout);
    reconcile(&mut disk, logs.values_mut(), options)?;
    for &log in logs.keys().filter(|log| usize::from(log.0) >= cores) {
        disk.drop_spares(log).map_err(RecoveryError::Disk)?;
    }
    Ok((logs, figures))
}

/// Whether there was space for it: a full disk is no reason not to start.
fn draft_address(layout: &Layout, address: &str) -> Result<bool, ServeError> {
    let draft = address_draft(layout);
    match std::fs::write(&draft, format!("{address}\n")) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            warn("nova: the disk is full: no DIR/address, so commands here need --star, too");
            // Else an empty draft would stay, or what a start that was killed has left.
            let _gone = std::fs::remove_file(&draft);
            remove_address(layout);
            Ok(false)
        }
        Err(error) => Err(address_error(error)),
    }
}

fn place_address(layout: &Layout) -> Result<(), ServeError> {
    let file = layout.root().join(ADDRESS_FILE);
    std::fs::rename(address_draft(layout), &file).map_err(address_error)
}

fn address_draft(layout: &Layout) -> PathBuf {
    layout.root().join(format!("{ADDRESS_FILE}.new"))
}

fn address_error(source: io::Error) -> ServeError {
    let operation = "writing the address file";
    ServeError::Io { operation, source }
}

fn remove_address(layout: &Layout) {
    let file: PathBuf = layout.root().join(ADDRESS_FILE);
    if let Err(error) = std::fs::remove_file(&file)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, file = %file.display(), "the address file stays");
    }
}

/// The cores' threads and the ways to and from them.
struct Cores {
    threads: Vec<ExecutorJoinHandle<()>>,
    mail: Vec<Sender>,
    asks: Vec<AskSender>,
    figures: Vec<Arc<CoreFigures>>,
    starts: Vec<flume::Sender<CoreStart>>,
    notices: flume::Receiver<(CoreId, Notice)>,
}

impl Cores {
    fn spawn(
        cpus: &[usize],
        listen: &[SocketAddr],
        tls: &ServerTls,
        spin: Duration,
    ) -> Result<Cores, ServeError> {
        let (notices_in, notices) = flume::bounded(4 * cpus.len());
        let (mail, mut mailboxes): (Vec<_>, Vec<_>) = cpus.iter().map(|_| mailbox()).unzip();
        let (asks, mut desks): (Vec<_>, Vec<_>) = cpus.iter().map(|_| asks()).unzip();
        let figures = cpus.iter().map(|_| Arc::new(CoreFigures::new()));
        let mut cores = Cores {
            threads: Vec::new(),
            mail,
            asks,
            figures: figures.collect(),
            starts: Vec::new(),
            notices,
        };
        for (index, (&cpu, &listen)) in cpus.iter().zip(listen).enumerate().rev() {
            let (start_in, start) = flume::bounded(1);
            let core = CoreId(index as u16);
            let seed = CoreSeed {
                core,
                listen,
                tls: tls.clone(),
                windows_bytes: WINDOWS_BYTES,
                spin,
                notices: notices_in.clone(),
                start,
                mail: mailboxes.pop().expect("a mailbox for each core"),
                peers: cores.mail.clone(),
                asks: desks.pop().expect("a desk for each core"),
                figures: Arc::clone(&cores.figures[index]),
            };
            let thread = LocalExecutorBuilder::new(Placement::Fixed(cpu))
                .name(&core.to_string())
                .io_memory(DEVICE_MEMORY_BYTES)
                .spawn(move || core::live(seed))
                .map_err(|error| ServeError::Thread {
                    core,
                    reason: error.to_string(),
                })?;
            cores.threads.push(thread);
            cores.starts.insert(0, start_in);
        }
        Ok(cores)
    }

    /// Waits until every core has its port.
    fn bound(&self) -> Result<Vec<SocketAddr>, ServeError> {
        let mut bound = BTreeMap::new();
        self.wait_for_all(|core, notice| {
            if let Notice::Bound(address) = notice {
                bound.insert(core, address);
            }
        })?;
        Ok(bound.into_values().collect())
    }

    /// One notice of each core; a failure of any is the star's.
    fn wait_for_all(&self, mut note: impl FnMut(CoreId, Notice)) -> Result<(), ServeError> {
        for _ in 0..self.mail.len() {
            match self.notices.recv() {
                Ok((core, Notice::Failed(source))) => {
                    return Err(ServeError::Core { core, source });
                }
                Ok((core, notice)) => note(core, notice),
                Err(flume::RecvError::Disconnected) => return Err(thread_lost()),
            }
        }
        Ok(())
    }

    fn start(
        &self,
        config: &ServeConfig,
        layout: &Layout,
        star: StarId,
        incarnation: Incarnation,
        addresses: &[String],
        mut logs: BTreeMap<LogId, RecoveredLog>,
    ) -> Result<(), ServeError> {
        let buckets = buckets_of(&logs)?;
        let indexes: StarIndexes = logs
            .iter_mut()
            .map(|(log, found)| (*log, std::mem::take(&mut found.indexes)))
            .collect();
        let indexes = Arc::new(indexes);
        for (index, start) in self.starts.iter().enumerate() {
            let core = CoreId(index as u16);
            let found = &logs[&LogId(core.0)];
            let mut shard = ShardConfig::new(star, incarnation, core, addresses.to_vec());
            shard.segment_bytes = config.segment_bytes;
            shard.floor_bytes = config.floor_bytes;
            shard.recent_bytes = config.recent_bytes;
            shard.ingress_bytes = config.ingress_bytes;
            shard.idle_us = config.idle_us;
            let mut disk = DriverConfig::new(layout.clone());
            disk.sync = config.sync;
            let found = ShardStart {
                end: found.end,
                next_number: found.next_number,
                indexes: Arc::clone(&indexes),
                released: found.released.clone(),
                buckets: buckets.clone(),
            };
            start
                .send(CoreStart { shard, found, disk })
                .map_err(|_| thread_lost())?;
        }
        self.wait_for_all(|_, _| {})
    }

    /// Lets every core end and waits for it.
    fn end(self) {
        drop(self.starts);
        for mail in &self.mail {
            // A core that has ended needs no telling.
            let _ended = mail.send(Mail::Stop);
        }
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a core's thread panicked");
            }
        }
    }
}

fn thread_lost() -> ServeError {
    let source = io::Error::other("a core's thread has ended");
    ServeError::Io {
        operation: "running the cores",
        source,
    }
}

/// The buckets, as their home's log has them.
fn buckets_of(
    logs: &BTreeMap<LogId, RecoveredLog>,
) -> Result<BTreeMap<BucketName, BucketInfo>, ServeError> {
    let home = LogId(bucket_home_core().0);
    let newest = logs.get(&home).and_then(|found| found.indexes.last());
    let Some(index) = newest else {
        return Ok(BTreeMap::new());
    };
    index.buckets().map_err(|damage| {
        let source = io::Error::other(format!("{} is damaged: {damage}", index.file()));
        ServeError::Io {
            operation: "reading the buckets",
            source,
        }
    })
}

fn bucket_home_core() -> CoreId {
    let any = BucketName::parse("any").expect("a legal name");
    bucket_home(&any)
}
