//! Standard output, written on a thread of its own, so that a slow pipe never holds up a session.
//!
//! ```text
//!   command --> buffer --(full, or nothing more to come at the moment)--> channel of 4 --> thread
//! ```
//!
//! # Invariants
//! - At most 6 buffers are in memory: who writes faster waits.
//! - A pipe that nobody reads any more is no failure: the command is told, and ends.

use crate::cli::failure::Failure;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::thread::JoinHandle;
use tokio::sync::mpsc;

/// Bytes that are gathered before they are written.
const BUFFER_BYTES: usize = 256 * 1024;
/// Buffers between the command and the thread.
const BUFFERS_MAX: usize = 4;

/// Nobody takes the output any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// Buffered output.
#[derive(Debug)]
pub(crate) struct Output {
    buffer: Vec<u8>,
    sender: mpsc::Sender<Vec<u8>>,
    thread: JoinHandle<io::Result<()>>,
}

impl Output {
    /// Standard output.
    pub(crate) fn stdout() -> Result<Output, Failure> {
        let stdout = io::stdout().as_fd().try_clone_to_owned();
        let stdout = stdout.map_err(|error| Failure::local("stdout can't be written", &error))?;
        Output::to(File::from(stdout))
    }

    /// Any file or pipe.
    pub(crate) fn to(mut file: File) -> Result<Output, Failure> {
        let (sender, mut receiver) = mpsc::channel::<Vec<u8>>(BUFFERS_MAX);
        let write = move || {
            while let Some(buffer) = receiver.blocking_recv() {
                file.write_all(&buffer)?;
            }
            Ok(())
        };
        let thread = std::thread::Builder::new().name("output".to_owned());
        let thread = thread
            .spawn(write)
            .map_err(|error| Failure::local("a thread for the output can't be started", &error))?;
        Ok(Output {
            buffer: Vec::new(),
            sender,
            thread,
        })
    }

    /// What is written next; see [`Output::flush_if_full`].
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Hands the buffer on if it is full.
    pub(crate) async fn flush_if_full(&mut self) -> Result<(), Gone> {
        if self.buffer.len() < BUFFER_BYTES {
            return Ok(());
        }
        self.flush().await
    }

    /// Hands the buffer on.
    pub(crate) async fn flush(&mut self) -> Result<(), Gone> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let permit = self.sender.reserve().await.map_err(|_| Gone)?;
        permit.send(std::mem::take(&mut self.buffer));
        Ok(())
    }

    /// Waits until all that was handed on is written. An error of a pipe that nobody reads is none.
    pub(crate) async fn finish(mut self) -> Result<(), Failure> {
        // If it is gone, the thread knows why.
        let _told_by_thread = self.flush().await;
        drop(self.sender);
        let thread = self.thread;
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        match joined {
            Ok(Ok(Err(error))) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::local("stdout can't be written", &error))
            }
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => {
                let error = io::Error::other("its thread panicked");
                Err(Failure::local("stdout can't be written", &error))
            }
        }
    }
}

/// Writes a short result to stdout; nobody reading it is no failure.
pub(crate) fn say(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::local("stdout can't be written", &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
