//! TLS of both ends: what a server shows and what a client trusts.
//!
//! TLS 1.3 only, as QUIC demands; the protocol name of [`PROTOCOL_NAME`] on both
//! sides; AES-128-GCM first, because it beats AES-256 a little and ChaCha20 by 1.6x on
//! processors with AES instructions. The client's order decides, so a client without them may
//! still ask for ChaCha20.
//!
//! # Invariants
//! - Early data (0-RTT) is off on both sides: it can be replayed.
//! - A [`ServerTls`] holds a key that fits its certificate; a change of files makes a new one,
//!   to be set on the running endpoint.
//!
//! # Not here
//! - The server's files and their making: `certificates`.

use std::sync::Arc;
#[cfg(feature = "tokio")]
use std::{
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

#[cfg(feature = "tokio")]
use quinn_proto::crypto::rustls::QuicClientConfig;
#[cfg(feature = "glommio")]
use quinn_proto::crypto::rustls::QuicServerConfig;
#[cfg(feature = "tokio")]
use rustls::ClientConfig;
use rustls::{
    RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, pem, pem::PemObject},
    version::TLS13,
};
#[cfg(feature = "glommio")]
use rustls::{ServerConfig, crypto::SecureRandom, pki_types::PrivateKeyDer};
use thiserror::Error;

use crate::params::PROTOCOL_NAME;
#[cfg(feature = "glommio")]
use crate::reset_key::ResetKey;

/// Largest certificate or key file that is read; a chain of certificates has a few KiB.
pub(crate) const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// What a server shows: its certificate chain and the key to it.
#[cfg(feature = "glommio")]
#[derive(Clone)]
pub struct ServerTls {
    crypto: Arc<QuicServerConfig>,
    reset_key: ResetKey,
}

#[cfg(feature = "glommio")]
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

    pub(crate) fn crypto(&self) -> Arc<QuicServerConfig> {
        Arc::clone(&self.crypto)
    }

    pub(crate) fn reset_key(&self) -> ResetKey {
        self.reset_key.clone()
    }
}

#[cfg(feature = "glommio")]
impl std::fmt::Debug for ServerTls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ServerTls")
    }
}

/// What a client trusts: the authorities that may have signed a server's certificate.
#[cfg(feature = "tokio")]
#[derive(Clone)]
pub struct ClientTls {
    crypto: Arc<QuicClientConfig>,
}

#[cfg(feature = "tokio")]
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

    /// From a file: the `ca.pem` of the server, or several such one after the other.
    pub fn from_ca_file(file: &Path) -> Result<Self, CaFileError> {
        let failed = |source| CaFileError::Read {
            file: file.into(),
            source,
        };
        let mut authorities = Vec::new();
        let handle = fs::File::open(file).map_err(failed)?;
        handle
            .take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut authorities)
            .map_err(failed)?;
        if authorities.len() as u64 > FILE_BYTES_MAX {
            return Err(CaFileError::TooLarge { file: file.into() });
        }
        Self::from_ca_pem(&authorities).map_err(|source| CaFileError::Unusable {
            file: file.into(),
            source,
        })
    }

    pub(crate) fn crypto(&self) -> Arc<QuicClientConfig> {
        Arc::clone(&self.crypto)
    }
}

#[cfg(feature = "tokio")]
impl std::fmt::Debug for ClientTls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ClientTls")
    }
}

/// Why a client can't use the file it was given.
#[cfg(feature = "tokio")]
#[derive(Debug, Error)]
pub enum CaFileError {
    /// The file can't be read.
    #[error("can't read {}: {source}; copy the server's ca.pem there", file.display())]
    Read {
        /// Which file.
        file: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is far larger than any certificate.
    #[error("{} is too large to be a certificate; copy the server's ca.pem there", file.display())]
    TooLarge {
        /// Which file.
        file: PathBuf,
    },
    /// The file holds no certificate.
    #[error("{} is unusable: {source}; copy the server's ca.pem there", file.display())]
    Unusable {
        /// Which file.
        file: PathBuf,
        /// What is wrong with it.
        source: TlsError,
    },
}

/// Why PEM bytes are no use for TLS. Errors of files add the name.
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
    use ring::cipher_suite as suite;
    CryptoProvider {
        cipher_suites: vec![
            suite::TLS13_AES_128_GCM_SHA256,
            suite::TLS13_AES_256_GCM_SHA384,
            suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        ..ring::default_provider()
    }
}

/// The operating system's randomness.
#[cfg(feature = "glommio")]
pub(crate) fn random() -> &'static dyn SecureRandom {
    ring::default_provider().secure_random
}
