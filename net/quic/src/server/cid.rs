//! Connection ids that name the core which owns the connection.
//!
//! ```text
//! byte 0        bytes 1..8
//! core number   random
//! ```
//! One port per core makes steering needless; the number is in the id from the first day so that
//! a later single port can steer by it. A plain group of sockets on one port (SO_REUSEPORT) lost
//! 24 of 40 connections when the client's port changed.
//!
//! # Invariants
//! - Ids of a core begin with its number, and [`CoreIds::validate`] accepts no other, so that a
//!   stray packet is not answered.
//!
//! # Not here
//! - Steering of packets between cores.

use std::time::Duration;

use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};
use rustls::crypto::SecureRandom;

use crate::tls;

/// Length of an id: one byte of core number, seven that can't be guessed.
pub(crate) const ID_BYTES: usize = 8;

/// Makes the ids of one core.
pub(crate) struct CoreIds {
    core: u8,
    random: &'static dyn SecureRandom,
}

impl CoreIds {
    pub(crate) fn new(core: u8) -> Self {
        Self {
            core,
            random: tls::random(),
        }
    }

    fn bytes(&self) -> [u8; ID_BYTES] {
        let mut bytes = [0; ID_BYTES];
        self.random
            .fill(&mut bytes)
            .expect("the operating system gives random bytes once booted");
        bytes[0] = self.core;
        bytes
    }
}

impl ConnectionIdGenerator for CoreIds {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.bytes())
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        if id.len() == ID_BYTES && id[0] == self.core {
            Ok(())
        } else {
            Err(InvalidCid)
        }
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
#[path = "cid_tests.rs"]
mod tests;
