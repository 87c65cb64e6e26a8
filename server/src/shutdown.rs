//! When a star ends: on a signal, or when a core cannot go on.
//!
//! The first SIGTERM or SIGINT lets running HTTP requests finish, then every core answer what it
//! admitted and close its connections; a second one ends the process at once, which loses nothing
//! that was acked.

use crate::boot::{ServeError, warn};
use crate::core::Notice;
use crate::core::mailbox::{Mail, Sender};
use crate::gateway::GatewayThread;
use nova_model::CoreId;
use std::io;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code of a star that was told twice to stop.
const EXIT_AT_ONCE: i32 = 130;

/// The signals that end a star. From when this is made none of them ends the process by itself.
pub(crate) struct Signals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes the signals. To be done before anybody is told that the star is ready.
    pub(crate) fn take() -> Result<Signals, ServeError> {
        let error = |source| ServeError::Io {
            operation: "waiting for signals",
            source,
        };
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().map_err(error)?;
        let guard = runtime.enter();
        let terminate = signal(SignalKind::terminate()).map_err(error)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(error)?;
        drop(guard);
        Ok(Signals {
            runtime,
            terminate,
            interrupt,
        })
    }

    /// Waits until the star has stopped.
    pub(crate) fn wait(
        self,
        mail: &[Sender],
        notices: &flume::Receiver<(CoreId, Notice)>,
        gateway: Option<&GatewayThread>,
    ) -> Result<(), ServeError> {
        let Signals {
            runtime,
            mut terminate,
            mut interrupt,
        } = self;
        runtime.block_on(async {
            let mut stopped = 0;
            let mut is_stopping = false;
            let mut are_cores_told = false;
            while stopped < mail.len() {
                tokio::select! {
                    notice = notices.recv_async() => match notice {
                        Ok((core, Notice::Failed(source))) => {
                            return Err(ServeError::Core { core, source });
                        }
                        Ok((_, Notice::Stopped)) => stopped += 1,
                        Ok((_, Notice::Bound(_) | Notice::Ready)) => {}
                        Err(flume::RecvError::Disconnected) => {
                            let source = io::Error::other("a core's thread has ended");
                            return Err(ServeError::Io { operation: "running the cores", source });
                        }
                    },
                    () = told(&mut terminate, &mut interrupt) => {
                        if is_stopping {
                            warn("stopping at once");
                            std::process::exit(EXIT_AT_ONCE);
                        }
                        is_stopping = true;
                        // First done, then said: whoever reads the line finds it true.
                        if let Some(gateway) = gateway {
                            gateway.stop();
                        }
                        warn("stopping: what was admitted is answered first");
                    }
                    // The cores answer until HTTP has nothing left to ask.
                    () = gateway_ended(gateway), if is_stopping && !are_cores_told => {
                        are_cores_told = true;
                        for core in mail {
                            // A core that has ended needs no telling.
                            let _ended = core.send_async(Mail::Stop).await;
                        }
                    }
                }
            }
            Ok(())
        })
    }
}

async fn gateway_ended(gateway: Option<&GatewayThread>) {
    if let Some(gateway) = gateway {
        gateway.ended().await;
    }
}

async fn told(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
