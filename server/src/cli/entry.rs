//! The way into a star: where it is, whom to trust, and the first contact.
//!
//! On the star's own machine its data directory tells both: `DIR/address` and `DIR/tls/ca.pem`.
//! Elsewhere `--star HOST:PORT --ca FILE` does.
//!
//! # Invariants
//! - A client that is handed out has heard from its star, so that a star that is not there is told
//!   within seconds and not after the whole retry budget.

use crate::boot::{ADDRESS_FILE, TLS_DIRECTORY};
use crate::cli::failure::{Exit, Failure, Subject};
use crate::config::DATA_DEFAULT;
use crate::config::units::parse_duration;
use nova_client::{Client, ClientConfig, ClientError, HandshakeProblem};
use nova_model::limits::ADDRESS_BYTES_MAX;
use nova_quic::certificates::CA_CERTIFICATE_FILE;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the first answer of a star may take.
const FIRST_CONTACT: Duration = Duration::from_secs(6);

/// Where the star is.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Which star")]
pub(crate) struct Entry {
    /// Data directory of the star on this machine, which tells address and certificate
    #[arg(long, value_name = "DIR", default_value = DATA_DEFAULT)]
    pub(crate) data: PathBuf,
    /// Address of any core of the star, if it is not on this machine
    #[arg(long, value_name = "HOST:PORT", requires = "ca", value_parser = parse_address)]
    pub(crate) star: Option<String>,
    /// Copy of the star's tls/ca.pem, with --star
    #[arg(long, value_name = "FILE", requires = "star")]
    pub(crate) ca: Option<PathBuf>,
    /// Name that the star's certificate must hold for [default: the host dialled]
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
    /// How long to try without progress when the star can't be reached
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_patience)]
    pub(crate) retry_for: Duration,
    /// Print results and errors as JSON
    #[arg(long, help_heading = None::<&str>)]
    pub(crate) json: bool,
}

impl Entry {
    /// The way into the star of a data directory.
    pub(crate) fn of_data(data: &Path) -> Entry {
        Entry {
            data: data.to_owned(),
            star: None,
            ca: None,
            server_name: None,
            retry_for: Duration::from_secs(30),
            json: false,
        }
    }

    /// The flags that name the same star, as they go behind a command; nothing if none is needed.
    pub(crate) fn flags(&self) -> String {
        let mut flags = String::new();
        if let (Some(star), Some(ca)) = (&self.star, &self.ca) {
            flags += &format!(" --star {star} --ca {}", ca.display());
        } else if self.data != Path::new(DATA_DEFAULT) {
            flags += &format!(" --data {}", self.data.display());
        }
        if let Some(name) = &self.server_name {
            flags += &format!(" --server-name {name}");
        }
        flags
    }

    /// A client that has heard from the star.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        let config = self.config()?;
        let address = config.star.clone();
        let what = format!("the star at {address} can't be used");
        let failed = |error| self.unusable(&what, &error);
        let client = Client::connect(config).map_err(failed)?;
        let patience = FIRST_CONTACT.min(self.retry_for.max(Duration::from_millis(100)));
        match tokio::time::timeout(patience, client.describe_star()).await {
            Ok(Ok(_)) => Ok(client),
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Err(self.silent(&address, patience)),
        }
    }

    fn config(&self) -> Result<ClientConfig, Failure> {
        let (star, ca) = match (&self.star, &self.ca) {
            (Some(star), Some(ca)) => (star.clone(), ca.clone()),
            _ => {
                let ca = self.data.join(TLS_DIRECTORY).join(CA_CERTIFICATE_FILE);
                (self.address_of_data()?, ca)
            }
        };
        let mut config = ClientConfig::new(star, ca);
        config.server_name.clone_from(&self.server_name);
        config.retry_budget = self.retry_for;
        Ok(config)
    }

    fn address_of_data(&self) -> Result<String, Failure> {
        let path = self.data.join(ADDRESS_FILE);
        let mut text = String::new();
        let read = std::fs::File::open(&path).and_then(|file| {
            file.take(ADDRESS_BYTES_MAX as u64 + 1)
                .read_to_string(&mut text)
        });
        let unusable = |why: String| {
            let data = self.data.display();
            let what = format!("no star runs in {data}");
            let next = format!(
                "start one with: nova serve --data {data}\n\
                 or name one elsewhere: --star HOST:PORT --ca FILE"
            );
            Failure::new(Exit::Unreachable, what, why, next)
        };
        if let Err(error) = read {
            return Err(unusable(format!(
                "{} can't be read: {error}",
                path.display()
            )));
        }
        parse_address(text.trim())
            .map_err(|error| unusable(format!("{} is damaged: {error}", path.display())))
    }

    fn unusable(&self, what: &str, error: &ClientError) -> Failure {
        let mut failure = Failure::client(what, error, Subject::Star);
        if let (None, ClientError::Handshake(handshake)) = (&self.star, error)
            && handshake.problem == HandshakeProblem::UnknownAuthority
        {
            // The data directory told both, so who answers is not the star that wrote it.
            let data = self.data.display();
            failure.next = format!(
                "another star has that address: name its directory with --data, or start the one \
                 of {data} with: nova serve --data {data}"
            );
        }
        failure
    }

    fn silent(&self, address: &str, patience: Duration) -> Failure {
        let what = format!("the star at {address} does not answer");
        let seconds = patience.as_secs_f32();
        let why = format!(
            "nothing came back within {seconds} s: it does not run, or a firewall is between"
        );
        let next = match &self.star {
            Some(_) => "see whether it runs, and whether --star is its address".into(),
            None => format!("start it with: nova serve --data {}", self.data.display()),
        };
        Failure::new(Exit::Unreachable, what, why, next)
    }
}

fn parse_patience(text: &str) -> Result<Duration, String> {
    parse_duration(text, "s")
}

/// Parses `HOST:PORT`.
fn parse_address(text: &str) -> Result<String, String> {
    let wrong = || format!("'{text}' is not HOST:PORT");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_open = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
    if host.is_empty() || text.len() > ADDRESS_BYTES_MAX || !is_port || is_open {
        return Err(wrong());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
