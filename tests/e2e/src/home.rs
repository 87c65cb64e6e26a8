//! Homes of stars: a data directory on a real file system, a port that stays, the flags.

use crate::process::{Ended, Process};
use nova_client::{Authorities, Client, ClientConfig};
use rustix::process::Signal;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// Smallest segment that may be configured, as a flag.
const SEGMENT_BYTES: &str = "16MiB";

/// First port that is tried; the kernel gives clients ports from 32,768 up.
const PORT_FIRST: u16 = 12_000;
/// Ports that are tried.
const PORTS: u16 = 16_000;
/// Ports between two homes: one for each core that a test may use.
const PORT_STEP: u16 = 4;

static PORTS_TAKEN: AtomicU16 = AtomicU16::new(0);

/// Where the binary is, and where data directories may lie.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    /// The binary `nova`.
    pub binary: &'static str,
    /// A folder on a real file system.
    pub scratch: &'static str,
}

/// A data directory and how its stars are started.
#[derive(Debug)]
pub struct Home {
    site: Site,
    directory: TempDir,
    data: String,
    port: u16,
    /// Where clients dial, if not at the star itself.
    dialled: Option<u16>,
    /// Whom clients trust, if not who is named in the data directory.
    trusted: Option<Vec<u8>>,
    /// How long clients try, if not as long as those of users.
    retry_budget: Option<Duration>,
    cores: usize,
    flags: Vec<String>,
    wrapper: Vec<String>,
    http: String,
}

/// A running star. Dropped, it is killed.
#[derive(Debug)]
pub struct Star {
    process: Process,
}

impl Home {
    /// A new home for stars of one core.
    pub fn new(site: Site) -> Home {
        let directory = tempfile::Builder::new()
            .prefix("star-")
            .tempdir_in(site.scratch);
        Home {
            site,
            directory: directory.expect("the scratch folder is writable"),
            data: "data".to_owned(),
            port: free_port(),
            dialled: None,
            trusted: None,
            retry_budget: None,
            cores: 1,
            flags: Vec::new(),
            wrapper: Vec::new(),
            http: "off".to_owned(),
        }
    }

    /// The same with another number of cores.
    #[must_use]
    pub fn with_cores(mut self, cores: usize) -> Home {
        self.cores = cores;
        self
    }

    /// The number of cores.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// The same with HTTP, on a free port.
    #[must_use]
    pub fn with_http(mut self) -> Home {
        self.http = "127.0.0.1:0".to_owned();
        self
    }

    /// Another address of HTTP from the next start on.
    pub fn set_http(&mut self, address: &str) {
        address.clone_into(&mut self.http);
    }

    /// Another number of cores from the next start on.
    pub fn set_cores(&mut self, cores: usize) {
        self.cores = cores;
    }

    /// A further flag from the next start on.
    pub fn add_flag(&mut self, flag: &str) {
        self.flags.push(flag.to_owned());
    }

    /// No further flags any more.
    pub fn clear_flags(&mut self) {
        self.flags.clear();
    }

    /// A command that starts the star: `prlimit`, `unshare`...
    pub fn wrap(&mut self, words: &[&str]) {
        self.wrapper = words.iter().map(|&word| word.to_owned()).collect();
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join(&self.data)
    }

    /// Another place of the data directory inside the home's folder.
    pub fn set_data(&mut self, data: &str) {
        data.clone_into(&mut self.data);
    }

    /// The folder around the data directory.
    pub fn folder(&self) -> &Path {
        self.directory.path()
    }

    /// The port of the first core.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Clients dial this port from now on: a hop on the way to the star's one core.
    pub fn dial(&mut self, port: u16) {
        self.dialled = Some(port);
    }

    /// Clients trust this PEM text from now on: the data directory is where they do not see it.
    pub fn trust(&mut self, pem: Vec<u8>) {
        self.trusted = Some(pem);
    }

    /// Clients try for so long from now on.
    pub fn set_retry_budget(&mut self, budget: Duration) {
        self.retry_budget = Some(budget);
    }

    /// Where the binary is, and where homes lie.
    pub fn site(&self) -> Site {
        self.site
    }

    /// A home with a copy of the data directory as it is, and the same flags.
    pub fn copy(&self) -> Home {
        let mut other = Home::new(self.site).with_cores(self.cores);
        other.flags.clone_from(&self.flags);
        other.http.clone_from(&self.http);
        copy_folder(&self.data(), &other.data());
        other
    }

    /// Starts a star and waits until it is ready.
    #[track_caller]
    pub fn start(&self) -> Star {
        let star = self.begin();
        star.process.wait_for_line(|line| line == "ready");
        star
    }

    /// Starts a star and waits for nothing.
    pub fn begin(&self) -> Star {
        let mut command = self.serve_command();
        Star {
            process: Process::start("the star", &mut command),
        }
    }

    /// Starts a star that is expected to end by itself.
    #[track_caller]
    pub fn start_refused(&self) -> Ended {
        self.begin().process.wait_for_end()
    }

    /// A client whose retry budget is that of a user unless [`Home::set_retry_budget`] said so.
    pub fn client(&self) -> Client {
        Client::connect(self.client_config()).expect("a client of a star that has been there")
    }

    /// Where a star is that sees a file system of its own, and whom to trust.
    pub fn client_config_inside(&self, star: &Star) -> ClientConfig {
        let root = format!("/proc/{}/root", star.process.id());
        let data = format!("{root}{}", self.data().display());
        let authorities = Path::new(&data).join("tls/ca.pem");
        ClientConfig::new(format!("127.0.0.1:{}", self.port), authorities)
    }

    /// Where the star is and whom to trust.
    pub fn client_config(&self) -> ClientConfig {
        let port = self.dialled.unwrap_or(self.port);
        let authorities = self.data().join("tls/ca.pem");
        let mut config = ClientConfig::new(format!("127.0.0.1:{port}"), authorities);
        if let Some(pem) = &self.trusted {
            config.authorities = Authorities::Pem(pem.clone());
        }
        config.retry_budget = self.retry_budget.unwrap_or(config.retry_budget);
        config
    }

    /// Starts a command of `nova` against this home's star.
    pub fn begin_nova(&self, words: &[&str]) -> Process {
        let mut command = self.nova_command(words);
        Process::start(&format!("nova {}", words.join(" ")), &mut command)
    }

    /// Runs a command of `nova` with this stdin to its end.
    #[track_caller]
    pub fn nova(&self, words: &[&str], stdin: &[u8]) -> Ended {
        let mut process = self.begin_nova(words);
        if !stdin.is_empty() {
            process.write(stdin);
        }
        process.wait_for_end()
    }

    fn nova_command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.site.binary);
        command.args(words).arg("--data").arg(self.data());
        command
    }

    fn serve_command(&self) -> Command {
        let mut words = self.wrapper.clone();
        words.push(self.site.binary.to_owned());
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .arg("serve")
            .arg("--data")
            .arg(self.data());
        command.args(["--port", &self.port.to_string()]);
        command.args(["--cores", &self.cores.to_string()]);
        command.args(["--segment-bytes", SEGMENT_BYTES]);
        command.args(["--http", &self.http]);
        command.args(&self.flags);
        command
    }
}

impl Star {
    /// Its process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// SIGKILL: the process is gone when this returns.
    pub fn kill(self) {
        self.process.signal(Signal::KILL);
        self.process.wait_for_end();
    }

    /// SIGTERM: how it ended.
    #[track_caller]
    pub fn stop(self) -> Ended {
        self.process.signal(Signal::TERM);
        self.process.wait_for_end()
    }

    /// Waits until it ends by itself.
    #[track_caller]
    pub fn wait_for_end(self) -> Ended {
        self.process.wait_for_end()
    }

    /// Descriptors that the process has open.
    pub fn descriptors(&self) -> u64 {
        let folder = format!("/proc/{}/fd", self.process.id());
        std::fs::read_dir(folder).expect("the star runs").count() as u64
    }

    /// Anonymous memory of the process, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(path).expect("the star runs");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let number = line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok());
        number.expect("a line in kB") * 1024
    }
}

/// Ports that no client gets and nobody has, for all cores of a home.
fn free_port() -> u16 {
    let begin = std::process::id() as u16 % (PORTS / PORT_STEP);
    for _ in 0..PORTS / PORT_STEP {
        let step = PORTS_TAKEN.fetch_add(1, Ordering::Relaxed);
        let base = PORT_FIRST + (begin.wrapping_add(step) % (PORTS / PORT_STEP)) * PORT_STEP;
        let is_free = |port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if (base..base + PORT_STEP).all(is_free) {
            return base;
        }
    }
    panic!("no free ports from {PORT_FIRST} on");
}

/// Copies a folder with all in it.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("the copy's folder can be made");
    for entry in std::fs::read_dir(from).expect("the folder is there") {
        let entry = entry.expect("the folder can be listed");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().expect("a file's type").is_dir() {
            copy_folder(&from, &to);
        } else {
            std::fs::copy(&from, &to).expect("a file can be copied");
        }
    }
}
