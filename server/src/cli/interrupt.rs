//! Ctrl-C and SIGTERM, for commands that have something to finish.

use crate::cli::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both signals.
pub(crate) struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupt {
    /// From here on the signals are ours to answer.
    pub(crate) fn listen() -> Result<Interrupt, Failure> {
        let failed = |error| Failure::local("signals can't be caught", &error);
        Ok(Interrupt {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }

    /// Waits for the next of them.
    pub(crate) async fn told(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
