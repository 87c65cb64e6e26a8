//! TLS of both ends: what a server shows and what a client trusts.
//!
//! TLS 1.3 only, as QUIC demands; the protocol name of [`PROTOCOL_NAME`](crate::params::PROTOCOL_NAME)
//! on both sides; AES-128-GCM first, because it beats AES-256 a little and ChaCha20 by 1.6x on
//! processors with AES instructions. The client's order decides, so a client without them may
//! still ask for ChaCha20.
//!
//! # Invariants
//! - Early data (0-RTT) is off on both sides: it can be replayed.
//! - A [`ServerTls`] holds a key that fits its certificate; a change of files makes a new one,
//!   to be set on the running endpoint.
//!
//! # Not here
//! - Files and their making: [`crate::certificates`].

use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, SecureRandom, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
    version::TLS13,
};
use thiserror::Error;

use crate::{params::PROTOCOL_NAME, reset_key::ResetKey};

/// What a server shows: its certificate chain and the key to it.
#[derive(Clone)]
pub struct ServerTls {
    crypto: Arc<QuicServerConfig>,
    reset_key: ResetKey,
}

impl ServerTls {
    /// From a PEM chain, the server's own certificate first, and the PEM key to it.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain = parse_chain(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)?;
        let reset_key = ResetKey::derive(key.secret_der());
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(TlsError::Unfit)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(TlsError::Unfit)?;
        config.alpn_protocols = vec![PROTOCOL_NAME.to_vec()];
        config.max_early_data_size = 0;
        let crypto = QuicServerConfig::try_from(config)
            .expect("the provider has the suite that QUIC's first packets need");
        Ok(Self {
            crypto: Arc::new(crypto),
            reset_key,
        })
    }

    #[cfg(feature = "glommio")]
    pub(crate) fn crypto(&self) -> Arc<QuicServerConfig> {
        Arc::clone(&self.crypto)
    }

    #[cfg(feature = "glommio")]
    pub(crate) fn reset_key(&self) -> ResetKey {
        self.reset_key.clone()
    }
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ServerTls")
    }
}

/// What a client trusts: the authorities that may have signed a server's certificate.
#[derive(Clone)]
pub struct ClientTls {
    crypto: Arc<QuicClientConfig>,
}

impl ClientTls {
    /// From the PEM certificates of one or more authorities: the `ca.pem` of the server.
    pub fn from_ca_pem(authorities: &[u8]) -> Result<Self, TlsError> {
        let roots = roots(authorities)?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(TlsError::Unfit)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![PROTOCOL_NAME.to_vec()];
        config.enable_early_data = false;
        let crypto = QuicClientConfig::try_from(config)
            .expect("the provider has the suite that QUIC's first packets need");
        Ok(Self {
            crypto: Arc::new(crypto),
        })
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn crypto(&self) -> Arc<QuicClientConfig> {
        Arc::clone(&self.crypto)
    }
}

impl std::fmt::Debug for ClientTls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ClientTls")
    }
}

/// Why PEM bytes are no use for TLS. [`crate::certificates`] adds the name of the file.
#[derive(Debug, Error)]
pub enum TlsError {
    /// No certificate could be read.
    #[error("no certificate in PEM form was found: {0}")]
    Certificate(pem::Error),
    /// No private key could be read.
    #[error("no private key in PEM form was found: {0}")]
    Key(pem::Error),
    /// Certificate or key are read, and don't work: not a pair, or of an unknown kind.
    #[error("certificate and key can't be used: {0}")]
    Unfit(rustls::Error),
}

/// Reads a chain of at least one certificate.
pub(crate) fn parse_chain(chain: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(TlsError::Certificate)?;
    if chain.is_empty() {
        return Err(TlsError::Certificate(pem::Error::NoItemsFound));
    }
    Ok(chain)
}

/// Reads authorities into a store of roots.
pub(crate) fn roots(authorities: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in parse_chain(authorities)? {
        roots.add(certificate).map_err(TlsError::Unfit)?;
    }
    Ok(roots)
}

/// The cryptography of both ends, suites in order of preference.
pub(crate) fn provider() -> CryptoProvider {
    use aws_lc_rs::cipher_suite as suite;
    CryptoProvider {
        cipher_suites: vec![
            suite::TLS13_AES_128_GCM_SHA256,
            suite::TLS13_AES_256_GCM_SHA384,
            suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        ..aws_lc_rs::default_provider()
    }
}

/// The operating system's randomness.
pub(crate) fn random() -> &'static dyn SecureRandom {
    aws_lc_rs::default_provider().secure_random
}
