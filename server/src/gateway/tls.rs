//! TLS of HTTP: the certificate that the star's sessions show, too.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use tokio_rustls::rustls::{self, ServerConfig};

/// Why HTTP cannot be served under TLS.
#[derive(Debug, thiserror::Error)]
pub enum HttpTlsError {
    /// A file of the certificate cannot be read.
    #[error("{} can't be read for HTTP: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no PEM.
    #[error("{} is no PEM file: {source}", file.display())]
    Pem {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        source: pem::Error,
    },
    /// Certificate and key are of no use together.
    #[error("the star's certificate is of no use for HTTP: {0}")]
    Unfit(#[from] rustls::Error),
}

/// What accepts connections under TLS, with the certificate in this directory.
pub(crate) fn acceptor(directory: &Path) -> Result<TlsAcceptor, HttpTlsError> {
    let (chain_file, chain) = read(directory, "server.pem")?;
    let (key_file, key) = read(directory, "server.key")?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain).collect();
    let chain = chain.map_err(|source| HttpTlsError::Pem {
        file: chain_file,
        source,
    })?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|source| HttpTlsError::Pem {
        file: key_file,
        source,
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read(directory: &Path, name: &str) -> Result<(PathBuf, Vec<u8>), HttpTlsError> {
    let file = directory.join(name);
    match std::fs::read(&file) {
        Ok(bytes) => Ok((file, bytes)),
        Err(source) => Err(HttpTlsError::Read { file, source }),
    }
}
