//! One QUIC connection per address, shared by all that speak with it.
//!
//! A connection is dialled when it is asked for; who asks meanwhile waits for the same attempt.
//! After a failure the next attempt to that address waits for a backoff.
//!
//! # Invariants
//! - At most one attempt per address at a time.
//! - An address is resolved and dialled as it was given, and nothing else.

use crate::core::retry::backoff_us;
use crate::driver::source::Source;
use nova_quic::client::{ClientEndpoint, Connection};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Addresses kept; beyond, those that nobody uses are dropped.
const ADDRESSES_MAX: usize = 1024;
/// Resolved addresses of one name that are tried in one attempt.
const RESOLVED_MAX: usize = 4;

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DialError {
    /// The address does not resolve.
    Unresolvable { address: String },
    /// Nobody could be reached there.
    Unreachable,
}

#[derive(Debug, Default)]
struct Line {
    connection: Option<Connection>,
    failures: u32,
    not_before: Option<Instant>,
}

/// All connections of a client.
#[derive(Debug)]
pub(crate) struct Dialer {
    endpoint: ClientEndpoint,
    server_name: Option<String>,
    lines: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Line>>>>,
}

impl Dialer {
    pub(crate) fn new(endpoint: ClientEndpoint, server_name: Option<String>) -> Dialer {
        Dialer {
            endpoint,
            server_name,
            lines: Mutex::new(BTreeMap::new()),
        }
    }

    /// The connection to an address; dialled if there is none.
    pub(crate) async fn connection(
        &self,
        source: &Source,
        address: &str,
    ) -> Result<Connection, DialError> {
        let line = self.line(address);
        let mut line = line.lock().await;
        if let Some(connection) = &line.connection
            && connection.close_reason().is_none()
        {
            return Ok(connection.clone());
        }
        line.connection = None;
        if let Some(not_before) = line.not_before {
            tokio::time::sleep_until(not_before).await;
        }
        let dialled = self.dial(address).await;
        match &dialled {
            Ok(connection) => {
                *line = Line {
                    connection: Some(connection.clone()),
                    ..Line::default()
                };
            }
            Err(_) => {
                let wait = backoff_us(line.failures, source.moment().random);
                line.failures = line.failures.saturating_add(1);
                line.not_before = Some(Instant::now() + Duration::from_micros(wait));
            }
        }
        dialled
    }

    /// Closes all connections and waits until their peers know.
    pub(crate) async fn close(&self) {
        self.endpoint
            .close(nova_proto::CLOSE_CODE_NONE, "the client is closed");
        self.endpoint.wait_idle().await;
    }

    async fn dial(&self, address: &str) -> Result<Connection, DialError> {
        let unresolvable = || DialError::Unresolvable {
            address: address.to_owned(),
        };
        let found = tokio::net::lookup_host(address).await.map_err(|error| {
            tracing::debug!(address, %error, "an address does not resolve");
            unresolvable()
        })?;
        let mut error = unresolvable();
        for resolved in found.take(RESOLVED_MAX) {
            let name = self.server_name.as_deref().unwrap_or_else(|| host(address));
            match self.endpoint.connect(resolved, name).await {
                Ok(connection) => return Ok(connection),
                Err(failure) => {
                    tracing::debug!(address, %resolved, %failure, "no connection");
                    error = DialError::Unreachable;
                }
            }
        }
        Err(error)
    }

    fn line(&self, address: &str) -> Arc<tokio::sync::Mutex<Line>> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= ADDRESSES_MAX {
            lines.retain(|_, line| Arc::strong_count(line) > 1);
        }
        Arc::clone(lines.entry(address.to_owned()).or_default())
    }
}

/// The host of `HOST:PORT`, without the brackets of an IPv6 address.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
#[path = "dialer_tests.rs"]
mod tests;
