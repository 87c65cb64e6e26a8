//! The simulator: the real shards, lanes and client machines of nova on a simulated disk and
//! network, from one seed, on virtual time.
//!
//! ```text
//!   clients (producer core, lanes) <--links--> star (server lanes, shards) <--ops--> disk
//!        |                                       ^                                    |
//!        '--- what they are told ---> oracle <---+--- audit of a copy after a crash --'
//! ```
//! A seed decides everything: sizes, what clients do, how long each thing takes, and when the
//! process is killed, the power cut, a link broken. [`run`] plays it; the first promise of the
//! contract that turns out broken ends it as a finding. [`script`] plays short scenarios that a
//! test writes down in words.
//!
//! # Invariants
//! - One seed, one run: the hash of its story is the same every time.
//! - Nothing here knows which bug is planted; it is found by what it breaks.
//!
//! # Not here
//! - Real files and sockets: the tests of `nova-disk` and `nova-quic`, and the end-to-end tests.
#![forbid(unsafe_code)]

mod agenda;
mod audit;
mod buckets;
mod bugs;
mod clients;
mod cold;
mod desk;
mod disk;
mod expiry;
mod history;
mod lists;
mod network;
mod node;
mod oracle;
mod plan;
mod register;
mod rng;
pub mod script;
mod sessions;
mod settings;
mod trace;
mod updates;
mod words;
mod world;

pub use bugs::{BUGS, Bug, ClientBug};
pub use plan::Options;
pub use world::{Report, run};
