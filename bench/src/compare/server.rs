//! A system's server as a child process on the star's CPU, with a folder and a port of its own.
//!
//! # Invariants
//! - A server does not outlive its [`Server`].
//! - It is held to the CPU that the star's core has in its own turn.

use crate::cpus::apart;
use crate::error::BenchError;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to start, and to stop.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is asked meanwhile.
const PACE: Duration = Duration::from_millis(20);
/// Where Debian has the programs of PostgreSQL, one folder for each version.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Its TCP port on the loopback address.
    pub port: u16,
}

impl Server {
    /// Starts it on a CPU and waits until its port answers.
    pub fn start(
        system: &'static str,
        mut command: Command,
        port: u16,
        log: &Path,
        cpu: usize,
    ) -> Result<Server, BenchError> {
        let output = File::create(log).map_err(BenchError::io("making a server's log"))?;
        let errors = output.try_clone();
        let errors = errors.map_err(BenchError::io("making a server's log"))?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        // A child is held to what the thread is held to that makes it.
        let spawned = apart(move || {
            let _held = core_affinity::set_for_current(core_affinity::CoreId { id: cpu });
            command.spawn()
        });
        let child = spawned.map_err(BenchError::io(format!("starting {system}")))?;
        let mut server = Server { child, port };
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let is_over = !matches!(server.child.try_wait(), Ok(None));
            if is_over || begun.elapsed() > PATIENCE {
                let text = fs::read_to_string(log).unwrap_or_default();
                return Err(BenchError::system(
                    system,
                    format!("it did not start:\n{text}"),
                ));
            }
            std::thread::sleep(PACE);
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended by itself is waited for all the same.
        let _ended = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < PATIENCE {
            std::thread::sleep(PACE);
        }
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// A port that nobody has at the moment.
pub fn free_port() -> Result<u16, BenchError> {
    let failed = || BenchError::io("looking for a free port");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed())?;
    let address = listener.local_addr().map_err(failed())?;
    Ok(address.port())
}

/// Where a program is: on the path, or where Debian puts PostgreSQL.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let versions = fs::read_dir(POSTGRES_VERSIONS).into_iter().flatten();
    let mut versions: Vec<PathBuf> = versions.flatten().map(|entry| entry.path()).collect();
    versions.sort();
    folders.extend(versions.iter().rev().map(|version| version.join("bin")));
    let files = folders.iter().map(|folder| folder.join(program));
    files.into_iter().find(|file| file.is_file())
}

/// What a program says when it is asked for its version.
pub fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    text.lines().next().unwrap_or("unknown").trim().to_owned()
}
