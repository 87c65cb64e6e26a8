//! One QUIC connection per address, shared by all that speak with it.
//!
//! A connection is dialled when it is asked for; who asks meanwhile waits for the same attempt.
//! After a failure the next attempt to that address waits for a backoff.
//!
//! ```text
//!   handshake -----------------------------------> no answer within the connect timeout
//!      pace    knocks ------> answered: handshake -> whichever is through first
//! ```
//! The first packet to a star that is just restarting is lost in silence, and the transport doubles
//! the time before it repeats one. So a handshake without an answer is accompanied by knocks at the
//! pace of [`Probes`], and begun once more when one is answered.
//!
//! # Invariants
//! - At most one attempt per address at a time, whose failure is that of all who waited for it:
//!   twenty callers of a star that is gone end when one does, and not one after another.
//! - At most two handshakes per attempt, and one that is refused ends it: a star at its limits is
//!   not pressed.
//! - An address is resolved and dialled as it was given, and nothing else.

use crate::core::retry::{Probes, dial_us};
use crate::core::{HandshakeFailure, HandshakeProblem};
use crate::driver::knock;
use crate::driver::source::Source;
use nova_quic::client::{ClientEndpoint, Connection};
use nova_quic::error::{CertificateProblem, ConnectError, QuicError};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Addresses kept; beyond, those that nobody uses are dropped.
const ADDRESSES_MAX: usize = 1024;
/// Resolved addresses of one name that are tried in one attempt.
const RESOLVED_MAX: usize = 4;
/// How long the end of all connections may take. A close is sent at once; the rest of the time is
/// for repeating it to peers that have not heard of it.
const GOODBYE: Duration = Duration::from_millis(500);
/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DialError {
    /// The address does not resolve.
    Unresolvable { address: String },
    /// Who answers there does not fit the configuration.
    Handshake(Box<HandshakeFailure>),
    /// Nobody could be reached there.
    Unreachable,
}

#[derive(Debug, Default)]
struct Line {
    connection: Option<Connection>,
    failures: u32,
    probes: Probes,
    not_before: Option<Instant>,
    /// When the last attempt ended without a connection, and why.
    failed: Option<(Instant, DialError)>,
}

/// All connections of a client.
#[derive(Debug)]
pub(crate) struct Dialer {
    endpoint: ClientEndpoint,
    server_name: Option<String>,
    authorities: Option<PathBuf>,
    lines: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Line>>>>,
}

impl Dialer {
    pub(crate) fn new(
        endpoint: ClientEndpoint,
        server_name: Option<String>,
        authorities: Option<PathBuf>,
    ) -> Dialer {
        Dialer {
            endpoint,
            server_name,
            authorities,
            lines: Mutex::new(BTreeMap::new()),
        }
    }

    /// The connection to an address; dialled if there is none.
    pub(crate) async fn connection(
        &self,
        source: &Source,
        address: &str,
    ) -> Result<Connection, DialError> {
        let asked = Instant::now();
        let line = self.line(address);
        let mut line = line.lock().await;
        if let Some(connection) = &line.connection
            && connection.close_reason().is_none()
        {
            return Ok(connection.clone());
        }
        line.connection = None;
        if let Some((ended, error)) = &line.failed
            && *ended >= asked
        {
            return Err(error.clone());
        }
        if let Some(not_before) = line.not_before {
            tokio::time::sleep_until(not_before).await;
        }
        let dialled = self.dial(source, &mut line.probes, address).await;
        match &dialled {
            Ok(connection) => {
                *line = Line {
                    connection: Some(connection.clone()),
                    ..Line::default()
                };
            }
            Err(error) => {
                line.failed = Some((Instant::now(), error.clone()));
                let wait = dial_us(line.failures, source.moment().random);
                line.failures = line.failures.saturating_add(1);
                line.not_before = Some(Instant::now() + Duration::from_micros(wait));
            }
        }
        dialled
    }

    /// Closes all connections and gives their peers time to learn of it.
    pub(crate) async fn close(&self) {
        self.endpoint
            .close(nova_proto::CLOSE_CODE_NONE, "the client is closed");
        // A handshake that was given up is kept by QUIC for seconds, and nobody waits for its end.
        if tokio::time::timeout(GOODBYE, self.endpoint.wait_idle())
            .await
            .is_err()
        {
            tracing::debug!("not all connections ended in time");
        }
    }

    async fn dial(
        &self,
        source: &Source,
        probes: &mut Probes,
        address: &str,
    ) -> Result<Connection, DialError> {
        let unresolvable = || DialError::Unresolvable {
            address: address.to_owned(),
        };
        let found = tokio::net::lookup_host(address).await.map_err(|error| {
            tracing::debug!(address, %error, "an address does not resolve");
            unresolvable()
        })?;
        let mut error = unresolvable();
        let name = self.server_name.as_deref().unwrap_or_else(|| host(address));
        for resolved in found.take(RESOLVED_MAX) {
            match self.reach(source, probes, resolved, name).await {
                Ok(connection) => return Ok(connection),
                Err(failure) => {
                    tracing::debug!(address, %resolved, %failure, "no connection");
                    error = match (problem(&failure), error) {
                        (Some(problem), _) => self.misfit(address, name, problem),
                        (None, known @ DialError::Handshake(_)) => known,
                        (None, _) => DialError::Unreachable,
                    };
                }
            }
        }
        Err(error)
    }

    /// Connects to one resolved address.
    async fn reach(
        &self,
        source: &Source,
        probes: &mut Probes,
        resolved: SocketAddr,
        name: &str,
    ) -> Result<Connection, ConnectError> {
        let mut first = pin!(self.endpoint.connect(resolved, name));
        tokio::select! {
            answer = &mut first => return answer,
            () = knock::answered(resolved, source, probes) => {}
        }
        tokio::select! {
            biased;
            answer = &mut first => answer,
            answer = self.endpoint.connect(resolved, name) => answer,
        }
    }

    fn misfit(&self, address: &str, name: &str, problem: HandshakeProblem) -> DialError {
        DialError::Handshake(Box::new(HandshakeFailure {
            address: address.to_owned(),
            server_name: name.to_owned(),
            authorities: self.authorities.clone(),
            problem,
        }))
    }

    fn line(&self, address: &str) -> Arc<tokio::sync::Mutex<Line>> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= ADDRESSES_MAX {
            lines.retain(|_, line| Arc::strong_count(line) > 1);
        }
        Arc::clone(lines.entry(address.to_owned()).or_default())
    }
}

/// What does not fit, if trying again can't help.
fn problem(failure: &ConnectError) -> Option<HandshakeProblem> {
    match failure {
        ConnectError::InvalidName { .. } => Some(HandshakeProblem::InvalidName),
        ConnectError::Failed(QuicError::Incompatible) => Some(HandshakeProblem::Incompatible),
        ConnectError::Failed(QuicError::Certificate(problem)) => Some(match *problem {
            CertificateProblem::UnknownAuthority => HandshakeProblem::UnknownAuthority,
            CertificateProblem::Expired => HandshakeProblem::Expired,
            CertificateProblem::Unfit => HandshakeProblem::WrongName,
            CertificateProblem::Handshake { alert } => HandshakeProblem::Alert(alert),
        }),
        ConnectError::NoAnswer { .. }
        | ConnectError::InvalidAddress { .. }
        | ConnectError::NoSocket { .. }
        | ConnectError::EndpointClosed
        | ConnectError::Failed(
            QuicError::Refused
            | QuicError::TimedOut
            | QuicError::ClosedByPeer { .. }
            | QuicError::ClosedHere
            | QuicError::PeerRestarted
            | QuicError::Violation { .. },
        ) => None,
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
