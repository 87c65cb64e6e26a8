//! Stars as processes, for tests of the real thing: real files, real QUIC, real signals.
//!
//! ```text
//!   Site          where the binary is, where data directories may lie
//!    +- Home      a data directory, a port, the flags of its stars; outlives them
//!        +- Star  a running `nova serve`; SIGKILL when dropped
//!        +- cli   any other command of `nova` against the star
//!   calls         calls of the SDK that end in time
//!   load          producers, entity writers and followers of all kinds, noted as a history
//!   history       what clients asked and were told, as lines
//!    +- checker   whether those lines keep the contract
//!   network       a hop between clients and a star that treats datagrams badly
//!   segments      looking into a stopped star's files, and damaging them
//!   small_disk    a file system of its own for a home, which can be filled
//! ```
//!
//! # Invariants
//! - Nothing sleeps: a test waits for a line, an exit or an event, and at most as long as it says.
//! - A port is below the range that the kernel gives to clients, so a star that is down keeps it.
//!
//! # Not here
//! - The tests: `tests/star`.

pub mod calls;
pub mod chance;
pub mod checker;
pub mod history;
pub mod home;
pub mod http;
pub mod load;
pub mod network;
pub mod process;
pub mod segments;
pub mod small_disk;
