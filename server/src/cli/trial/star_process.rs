//! A star in a process of its own: this program again, with `serve`.
//!
//! # Invariants
//! - The process is told to end, and waited for, when the value is dropped.
//!
//! # Not here
//! - The star: [`crate::boot`].

use crate::cli::failure::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::mpsc;

/// The line that a star prints once it serves.
const READY: &str = "ready";
/// Lines of a star that are kept until they are looked at.
const LINES_MAX: usize = 64;
/// Bytes of what a star says on stderr that are kept.
const SAID_BYTES_MAX: usize = 64 * 1024;
/// How a star is called whose exit code is lost: it was killed.
const KILLED: u8 = 16;

/// A running star.
#[derive(Debug)]
pub(super) struct StarProcess {
    child: Child,
    said: Arc<Mutex<Vec<u8>>>,
    listener: Option<JoinHandle<()>>,
}

impl StarProcess {
    /// Starts a star on a data directory, on free ports, and waits until it serves.
    pub(super) async fn start(data: &Path, cores: Option<usize>) -> Result<StarProcess, Failure> {
        let failed = |error: io::Error| Failure::local("the star could not be started", &error);
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.arg("serve").arg("--port=0").arg("--data").arg(data);
        if let Some(cores) = cores {
            command.arg(format!("--cores={cores}"));
        }
        let command = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut star = StarProcess {
            child,
            said: Arc::default(),
            listener: None,
        };
        let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
            return Err(failed(io::Error::other("its output is not there")));
        };
        let mut lines = listen(stdout).map_err(failed)?;
        let said = Arc::clone(&star.said);
        let listener = std::thread::Builder::new().name("star".to_owned());
        star.listener = Some(
            listener
                .spawn(move || keep(stderr, &said))
                .map_err(failed)?,
        );
        while let Some(line) = lines.recv().await {
            if line == READY {
                return Ok(star);
            }
        }
        Err(star.end_of_start())
    }

    /// Stops it in order.
    pub(super) async fn stop(mut self) -> Result<(), Failure> {
        let ended = tokio::task::spawn_blocking(move || {
            let status = self.end();
            (self, status)
        });
        let failed = |error: io::Error| Failure::local("the star could not be stopped", &error);
        let (star, status) = ended
            .await
            .map_err(|error| failed(io::Error::other(error)))?;
        match status.map_err(failed)? {
            status if status.success() => Ok(()),
            status => Err(Failure::relayed(code(status), star.said())),
        }
    }

    /// The star has ended before it served: its own words and code.
    fn end_of_start(&mut self) -> Failure {
        match self.child.wait() {
            Ok(status) => {
                if let Some(listener) = self.listener.take() {
                    // A panic there costs words, nothing else.
                    let _words_lost = listener.join();
                }
                let said = self.said();
                // What is logged on the way is of no use here; the last three lines say it.
                let at = said.rfind("nova: ").unwrap_or(0);
                Failure::relayed(code(status), said[at..].to_owned())
            }
            Err(error) => Failure::local("the star could not be started", &error),
        }
    }

    fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said).into_owned()
    }

    fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM)?;
        }
        self.child.wait()
    }
}

impl Drop for StarProcess {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("nova: the star could not be stopped: {error}");
        }
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    match code {
        None | Some(0) => KILLED,
        Some(code) => code,
    }
}

/// The lines of the star's stdout. What comes after `LINES_MAX` unread ones waits for nobody: the
/// thread reads on so that the star never blocks.
fn listen(stdout: ChildStdout) -> io::Result<mpsc::Receiver<String>> {
    let (sender, lines) = mpsc::channel(LINES_MAX);
    let read = move || {
        for line in BufReader::new(stdout).lines() {
            let Ok(line) = line else { return };
            // Full or gone: nobody needs it.
            let _unread = sender.try_send(line);
        }
    };
    std::thread::Builder::new()
        .name("star".to_owned())
        .spawn(read)?;
    Ok(lines)
}

/// Keeps the end of what the star says on stderr.
fn keep(mut stderr: ChildStderr, said: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer) {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&buffer[..count]);
        let surplus = said.len().saturating_sub(SAID_BYTES_MAX);
        said.drain(..surplus);
    }
}
