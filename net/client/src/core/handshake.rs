//! Why a star that answers can't be spoken with: its certificate or its protocol is not what the
//! client is configured for.
//!
//! # Invariants
//! - Nothing here passes by itself: somebody has to change a configuration first.

use std::fmt;
use std::path::PathBuf;

/// A star answered, and the handshake with it can't succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandshakeFailure {
    /// The address that was dialled.
    pub address: String,
    /// The name that the certificate was to hold for.
    pub server_name: String,
    /// The file of the authorities that are trusted, if they come from a file.
    pub authorities: Option<PathBuf>,
    /// What is wrong.
    pub problem: HandshakeProblem,
}

/// What is wrong with a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeProblem {
    /// The star's certificate is signed by none of the authorities that are trusted.
    UnknownAuthority,
    /// The star's certificate has expired, or the clock of one end is wrong.
    Expired,
    /// The star's certificate does not hold for the name that was asked for.
    WrongName,
    /// What was asked for can't be the name in a certificate.
    InvalidName,
    /// The ends have no version of the protocol in common, or no star is there.
    Incompatible,
    /// Any other alert of TLS (RFC 8446, section 6).
    Alert(u8),
}

impl HandshakeFailure {
    /// What is wrong, without what to do about it.
    pub fn cause(&self) -> String {
        let (address, name) = (&self.address, &self.server_name);
        match self.problem {
            HandshakeProblem::UnknownAuthority => {
                let trusted = match &self.authorities {
                    Some(file) => format!("in {}", file.display()),
                    None => "that this client trusts".to_owned(),
                };
                format!(
                    "the certificate of the star at {address} is not signed by the authority \
                     {trusted}"
                )
            }
            HandshakeProblem::Expired => format!(
                "the certificate of the star at {address} has expired, or one of the two clocks \
                 is wrong"
            ),
            HandshakeProblem::WrongName => format!(
                "the certificate of the star at {address} does not hold for the name '{name}'"
            ),
            HandshakeProblem::InvalidName => {
                format!("'{name}' is neither a host name nor an IP address")
            }
            HandshakeProblem::Incompatible => {
                format!("who answers at {address} shares no version of the protocol")
            }
            HandshakeProblem::Alert(alert) => {
                format!("the TLS handshake with {address} failed with alert {alert}")
            }
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self.problem {
            HandshakeProblem::UnknownAuthority => match &self.authorities {
                Some(file) => format!(
                    "copy tls/ca.pem of that star's data directory to {}, or name another copy",
                    file.display()
                ),
                None => "trust tls/ca.pem of that star's data directory".to_owned(),
            },
            HandshakeProblem::Expired => {
                "set the clocks, or restart the star: it renews its certificate".to_owned()
            }
            HandshakeProblem::WrongName => format!(
                "dial a name that it holds for, or start the star with --tls-names {}",
                self.server_name
            ),
            HandshakeProblem::InvalidName => "correct the server name".to_owned(),
            HandshakeProblem::Incompatible => {
                "see whether a star has that port, and update the older of the two ends".to_owned()
            }
            HandshakeProblem::Alert(_) => {
                "see whether a star has that port, and look at its log".to_owned()
            }
        }
    }
}

impl fmt::Display for HandshakeFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; {}", self.cause(), self.remedy())
    }
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
