//! How a client reaches its star and how its producers behave.

use crate::core::BatcherConfig;
use crate::error::ConfigError;
use nova_model::limits::{
    BATCH_METERED_BYTES_MAX, CLIENT_LINGER_US_MAX, CLIENT_RETRY_BUDGET_US, CLIENT_SILENCE_US,
};
use nova_model::{FencingToken, Refusal};
use nova_quic::params::ClientParams;
use nova_quic::tls::ClientTls;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The authorities that may have signed the star's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authorities {
    /// A file in PEM form: the star's `ca.pem`.
    File(PathBuf),
    /// PEM text.
    Pem(Vec<u8>),
}

/// How a client reaches its star.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Where the star is entered, `HOST:PORT`: the address of any of its cores.
    pub star: String,
    /// Whom to trust.
    pub authorities: Authorities,
    /// The name that the star's certificate must hold for; by default the host dialled.
    pub server_name: Option<String>,
    /// How long a call, a producer or an entity writer tries without progress; by default 30 s.
    pub retry_budget: Duration,
    /// How long the star may be silent before it is taken for gone and asked anew; by default 10 s.
    /// It bounds how long a connection lasts on which nothing comes back, keep-alives included,
    /// and how long a session waits for an answer on one that is alive.
    pub silence_max: Duration,
    /// Settings of the transport; its timeouts are lowered where [`ClientConfig::silence_max`]
    /// asks for it.
    pub transport: ClientParams,
}

impl ClientConfig {
    /// Enters a star at `HOST:PORT`, trusting the authorities of a PEM file.
    pub fn new(star: impl Into<String>, authorities: impl Into<PathBuf>) -> ClientConfig {
        ClientConfig::with_authorities(star, Authorities::File(authorities.into()))
    }

    /// Enters a star at `HOST:PORT`, trusting the authorities of PEM text.
    pub fn with_pem(star: impl Into<String>, authorities: impl Into<Vec<u8>>) -> ClientConfig {
        ClientConfig::with_authorities(star, Authorities::Pem(authorities.into()))
    }

    fn with_authorities(star: impl Into<String>, authorities: Authorities) -> ClientConfig {
        ClientConfig {
            star: star.into(),
            authorities,
            server_name: None,
            retry_budget: Duration::from_micros(CLIENT_RETRY_BUDGET_US),
            silence_max: Duration::from_micros(CLIENT_SILENCE_US),
            transport: ClientParams::default(),
        }
    }

    pub(crate) fn tls(&self) -> Result<ClientTls, ConfigError> {
        let unfit = |error| ConfigError::Ca(Arc::new(error));
        match &self.authorities {
            Authorities::Pem(pem) => ClientTls::from_ca_pem(pem).map_err(unfit),
            Authorities::File(path) => {
                let pem = std::fs::read(path).map_err(|source| ConfigError::CaFile {
                    path: path.clone(),
                    source: Arc::new(source),
                })?;
                ClientTls::from_ca_pem(&pem).map_err(unfit)
            }
        }
    }

    pub(crate) fn retry_budget_us(&self) -> u64 {
        micros(self.retry_budget)
    }

    pub(crate) fn silence_us_max(&self) -> u64 {
        micros(self.silence_max)
    }

    /// A connection asks for a sign of life after a third of the silence, and QUIC waits for it
    /// from then on: the idle timeout is the rest.
    pub(crate) fn transport(&self) -> ClientParams {
        let mut params = self.transport.clone();
        params.keep_alive = params.keep_alive.min(self.silence_max / 3);
        let idle = self.silence_max.saturating_sub(params.keep_alive);
        params.transport.idle_timeout = params.transport.idle_timeout.min(idle);
        params
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// How a producer behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerConfig {
    /// The fencing token that its batches present.
    pub fence: Option<FencingToken>,
    /// Metered bytes that a merged batch aims at; by default, and at most, 1 MiB.
    pub batch_size: usize,
    /// How long a batch waits to become fuller; by default not at all, at most one second.
    pub linger: Duration,
    /// Number the batches, so that one sent again after a broken connection is recognised; by
    /// default on. Switched off, plain batches are appended at least once.
    pub recognise_repeats: bool,
}

impl Default for ProducerConfig {
    fn default() -> ProducerConfig {
        ProducerConfig {
            fence: None,
            batch_size: BATCH_METERED_BYTES_MAX,
            linger: Duration::ZERO,
            recognise_repeats: true,
        }
    }
}

impl ProducerConfig {
    pub(crate) fn batcher(&self) -> Result<BatcherConfig, Refusal> {
        let linger_us = u64::try_from(self.linger.as_micros()).unwrap_or(CLIENT_LINGER_US_MAX + 1);
        let config = BatcherConfig {
            batch_bytes: self.batch_size,
            linger_us,
        };
        config.check()?;
        self.fence.as_ref().map_or(Ok(()), FencingToken::check)?;
        Ok(config)
    }
}
