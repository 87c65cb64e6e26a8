//! A star as a child process: started, driven from outside, told to stop or killed.
//!
//! The child is this same program with another command, unless another program is named. So the
//! star that is measured is the one that was built with the benchmark.
//!
//! # Invariants
//! - A star does not outlive its [`Star`].
//! - What it prints is taken off its pipe as long as it runs; its log is a file in its directory's
//!   neighbourhood, whose end is part of the error if it does not start.

use crate::error::BenchError;
use nova_client::ClientConfig;
use nova_quic::certificates::CA_CERTIFICATE_FILE;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What a star is made by, and where it tells how it is entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StarProgram {
    /// The program.
    pub path: PathBuf,
    /// The command that makes it a star.
    pub command: &'static str,
    /// The file in the data directory that names the star's first core.
    pub address_file: &'static str,
    /// The folder in the data directory with the certificates.
    pub tls_directory: &'static str,
}

/// The line that a star prints when it answers.
const READY_LINE: &str = "ready";
/// How long a star may take to start.
const START_PATIENCE: Duration = Duration::from_secs(120);
/// Lines of the log that an error shows.
const LOG_LINES_SHOWN: usize = 20;

/// A running star.
#[derive(Debug)]
pub struct Star {
    child: Child,
    address: String,
    authority: PathBuf,
    /// From before the process was made until its line `ready`.
    pub start_time: Duration,
}

impl Star {
    /// Starts a star on a data directory and waits until it is ready.
    pub fn start(
        program: &StarProgram,
        data: &Path,
        cores: usize,
        spin_us: u64,
    ) -> Result<Star, BenchError> {
        Star::start_with(program, data, cores, spin_us, &[])
    }

    /// The same with further words for its command line.
    pub fn start_with(
        program: &StarProgram,
        data: &Path,
        cores: usize,
        spin_us: u64,
        words: &[&str],
    ) -> Result<Star, BenchError> {
        let log_path = data.with_extension("log");
        let log = File::create(&log_path).map_err(BenchError::io("making the star's log"))?;
        let mut command = Command::new(&program.path);
        command
            .arg(program.command)
            .arg("--data")
            .arg(data)
            .args(["--port", "0", "--cores", &cores.to_string()])
            .args(["--spin-us", &spin_us.to_string()])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        let begun = Instant::now();
        let mut child = command
            .spawn()
            .map_err(BenchError::io("starting the star"))?;
        let ready = child.stdout.take().map(watch);
        let is_ready = ready.is_some_and(|ready| ready.recv_timeout(START_PATIENCE).is_ok());
        let start_time = begun.elapsed();
        let mut star = Star {
            child,
            address: String::new(),
            authority: data.join(program.tls_directory).join(CA_CERTIFICATE_FILE),
            start_time,
        };
        if !is_ready {
            return Err(star.start_error(&log_path));
        }
        let address = fs::read_to_string(data.join(program.address_file));
        let address = address.map_err(BenchError::io("reading the star's address"))?;
        address.trim().clone_into(&mut star.address);
        Ok(star)
    }

    /// How a client enters it.
    pub fn client_config(&self) -> ClientConfig {
        ClientConfig::new(&self.address, &self.authority)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Tells it to stop and waits until it has.
    pub fn stop(mut self) -> Result<(), BenchError> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)
            .map_err(io::Error::from)
            .map_err(BenchError::io("stopping the star"))?;
        let status = self.child.wait();
        let status = status.map_err(BenchError::io("waiting for the star"))?;
        if status.success() {
            Ok(())
        } else {
            let source = io::Error::other(status.to_string());
            Err(BenchError::io("stopping the star")(source))
        }
    }

    /// Ends it at once, as a crash would.
    pub fn kill(mut self) -> Result<(), BenchError> {
        self.child
            .kill()
            .map_err(BenchError::io("killing the star"))?;
        self.child
            .wait()
            .map(drop)
            .map_err(BenchError::io("waiting for the killed star"))
    }

    fn start_error(&mut self, log: &Path) -> BenchError {
        let status = match self.child.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "it still runs".to_owned(),
        };
        let text = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let shown = lines.len().saturating_sub(LOG_LINES_SHOWN);
        BenchError::Star {
            status,
            log: lines[shown..].join("\n"),
        }
    }
}

impl Drop for Star {
    fn drop(&mut self) {
        // One that has ended already can be neither killed nor waited for again.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Takes what a star prints, in a thread that ends with it; says when it is ready.
fn watch(output: ChildStdout) -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        for line in lines {
            if line == READY_LINE {
                // Nobody waits any more for a star that took too long.
                let _late = sender.try_send(());
            }
        }
    });
    receiver
}
