//! Which CPU the star's core and which the client has, and work that is held to one.
//!
//! ```text
//!   first CPU that may be used   the star's core, the echo server, the bare writes
//!   last one                     the client, also the echo server's
//! ```
//! A star of one core takes the first CPU by itself. Where there is one CPU both have it, and the
//! report warns.
//!
//! # Invariants
//! - The thread that starts a star is held to no CPU: a child inherits what its parent is held to.

use crate::error::BenchError;
use std::panic::resume_unwind;
use tokio::runtime::LocalOptions;

/// The CPUs of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpus {
    /// How many may be used.
    pub there: usize,
    /// The star's.
    pub star: usize,
    /// The client's.
    pub client: usize,
}

impl Cpus {
    /// Shares out what this process may use.
    pub fn choose() -> Cpus {
        let ids: Vec<usize> = core_affinity::get_core_ids()
            .unwrap_or_default()
            .iter()
            .map(|cpu| cpu.id)
            .collect();
        Cpus {
            there: ids.len().max(1),
            star: ids.first().copied().unwrap_or_default(),
            client: ids.last().copied().unwrap_or_default(),
        }
    }

    /// Runs a client's work on a tokio runtime of one thread, on the client's CPU. Its tasks may be
    /// local ones.
    pub fn run_client<T: Send>(
        &self,
        work: impl AsyncFnOnce() -> Result<T, BenchError> + Send,
    ) -> Result<T, BenchError> {
        let cpu = core_affinity::CoreId { id: self.client };
        apart(move || {
            // Where the system refuses, the scheduler decides: slower, not wrong.
            let _held = core_affinity::set_for_current(cpu);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build_local(LocalOptions::default())
                .map_err(BenchError::io("making the client's runtime"))?;
            runtime.block_on(work())
        })
    }
}

/// Runs work on a thread of its own, so that what it does to its thread ends with it, and waits.
pub fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => resume_unwind(panic),
    })
}

/// The CPUs of a load: the star has the first ones, clients have the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seats {
    /// Cores of the star.
    pub cores: usize,
    /// CPUs of the client's threads, one at least.
    pub clients: Vec<usize>,
    there: Vec<usize>,
}

impl Seats {
    /// Shares out what this process may use. A star elsewhere leaves all of it to the client.
    pub fn choose(cores: Option<usize>, is_elsewhere: bool) -> Result<Seats, BenchError> {
        let there: Vec<usize> = core_affinity::get_core_ids()
            .unwrap_or_default()
            .iter()
            .map(|cpu| cpu.id)
            .collect();
        Seats::share_out(there, cores, is_elsewhere)
    }

    fn share_out(
        mut there: Vec<usize>,
        cores: Option<usize>,
        is_elsewhere: bool,
    ) -> Result<Seats, BenchError> {
        if there.is_empty() {
            there.push(0);
        }
        let cores = cores.unwrap_or((there.len() / 2).max(1));
        if cores > there.len() {
            let text = format!("{} CPUs may be used: set a lower --cores", there.len());
            return Err(BenchError::Usage(text));
        }
        let clients = match (is_elsewhere, &there[cores..]) {
            (true, _) => there.clone(),
            (false, []) => there[there.len() - 1..].to_vec(),
            (false, rest) => rest.to_vec(),
        };
        Ok(Seats {
            cores,
            clients,
            there,
        })
    }

    /// Who has which CPU while the bare machine is measured.
    pub fn bare(&self) -> Cpus {
        Cpus {
            there: self.there.len(),
            star: self.there[0],
            client: self.there[self.there.len() - 1],
        }
    }
}

#[cfg(test)]
#[path = "cpus_tests.rs"]
mod tests;
