//! The certificates of a server on disk: made at the first start, kept, completed and renewed.
//!
//! ```text
//! ca.key      key of the server's own authority            0600
//! ca.pem      its certificate: what clients are given
//! server.key  key of the server                            0600
//! server.pem  its certificate, signed by the authority
//! ```
//! [`prepare`] decides by what is there:
//!
//! | `ca.key` | `ca.pem` | server pair | does |
//! | --- | --- | --- | --- |
//! | any | any | whole, not ours (signed elsewhere) | uses it |
//! | yes | yes | whole, ours, good | uses it |
//! | yes | yes | incomplete, or ours and near its end or lacking a name | signs a new one |
//! | no | yes | whole, ours | uses it: the authority's key may be kept elsewhere |
//! | no | yes | incomplete | refuses: only the missing key could sign what clients trust |
//! | any | no | incomplete | makes a new authority and server pair |
//!
//! A key is written before the certificate that needs it. So what a crash leaves is a key alone,
//! which nobody has seen a certificate of, and is replaced.
//!
//! # Invariants
//! - A file is there whole or not at all, and is durable when [`prepare`] returns: written under
//!   another name, synced, renamed, the directory synced.
//! - A `ca.pem` is never replaced: clients hold copies of it.
//!
//! # Not here
//! - TLS settings: [`crate::tls`]. One process at a time per directory: the server's lock.

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::{
    client::{verify_server_cert_signed_by_trust_anchor, verify_server_name},
    pki_types::{ServerName, UnixTime},
    server::ParsedCertificate,
};
use thiserror::Error;

use crate::tls::{self, FILE_BYTES_MAX, ServerTls, TlsError};

/// Names every server certificate holds for, beside the configured ones.
pub const NAMES_ALWAYS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Name of the authority's certificate file, which clients are given.
pub const CA_CERTIFICATE_FILE: &str = "ca.pem";
const CA_KEY_FILE: &str = "ca.key";
const SERVER_CERTIFICATE_FILE: &str = "server.pem";
const SERVER_KEY_FILE: &str = "server.key";

/// The authority outlives any deployment: its end would lock out every client at once.
const CA_YEARS: i32 = 30;
/// The server's certificate is renewed at a start within its last year.
const SERVER_YEARS: i32 = 10;
const RENEW_BEFORE_END: Duration = Duration::from_secs(365 * 24 * 3600);

/// Why there are no certificates to serve with. Each says which file, and what to do.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// The operating system refused a file operation.
    #[error("can't {operation} {}: {source}", file.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        file: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file is far larger than any certificate.
    #[error("{} is too large to be a certificate or key; put the right file there", file.display())]
    TooLarge {
        /// Which file.
        file: PathBuf,
    },
    /// A file is there and is not what its name says.
    #[error("{} is unusable: {source}; put the right file there, or remove it", file.display())]
    Unusable {
        /// Which file.
        file: PathBuf,
        /// What is wrong with it.
        source: TlsError,
    },
    /// The authority's key is needed and not there.
    #[error(
        "{} is missing and needed to sign a server certificate that clients with {} accept; \
         put it back, or put server.pem and server.key signed by it there, or remove ca.pem to \
         begin with a new authority, which all clients must then be given",
        key.display(), certificate.display()
    )]
    AuthorityKeyMissing {
        /// The missing file.
        key: PathBuf,
        /// The certificate it belongs to.
        certificate: PathBuf,
    },
    /// The authority's key and certificate are no pair.
    #[error(
        "{} and {} do not belong together; put the right pair there, or remove both to begin \
         with a new authority, which all clients must then be given",
        key.display(), certificate.display()
    )]
    AuthorityMismatch {
        /// The key.
        key: PathBuf,
        /// The certificate.
        certificate: PathBuf,
    },
    /// A configured name is no name.
    #[error("'{name}' is configured as a name of this server and is no host name or IP address")]
    Name {
        /// The name.
        name: String,
    },
    /// The cryptography library failed to make a key or certificate.
    #[error("making a key or certificate failed: {0}")]
    Making(rcgen::Error),
}

/// Makes sure `directory` holds a server's certificates, valid for `names` besides
/// [`NAMES_ALWAYS`], and loads them. Calling it again loads what has changed.
pub fn prepare(directory: &Path, names: &[String]) -> Result<ServerTls, CertificateError> {
    let mut all: Vec<String> = NAMES_ALWAYS.iter().map(|name| name.to_string()).collect();
    for name in names {
        ServerName::try_from(name.as_str())
            .map_err(|_| CertificateError::Name { name: name.clone() })?;
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    let store = Store { directory };
    store.make_directory()?;
    if store.must_sign(&all)? {
        let authority = store.authority()?;
        store.sign_server(&authority, &all)?;
    }
    store.load_server()
}

struct Store<'a> {
    directory: &'a Path,
}

/// A key and its certificate, both in PEM form.
struct Pair {
    key: Vec<u8>,
    certificate: Vec<u8>,
}

impl Store<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn make_directory(&self) -> Result<(), CertificateError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(self.directory)
            .map_err(|source| CertificateError::File {
                operation: "create",
                file: self.directory.into(),
                source,
            })
    }

    /// Both files of a pair, or `None` if one is missing.
    fn pair(&self, key: &str, certificate: &str) -> Result<Option<Pair>, CertificateError> {
        let (key, certificate) = (read(&self.path(key))?, read(&self.path(certificate))?);
        Ok(key
            .zip(certificate)
            .map(|(key, certificate)| Pair { key, certificate }))
    }

    /// Whether a new server certificate is needed, and can be had.
    fn must_sign(&self, names: &[String]) -> Result<bool, CertificateError> {
        let Some(server) = self.pair(SERVER_KEY_FILE, SERVER_CERTIFICATE_FILE)? else {
            return Ok(true);
        };
        let Some(authority) = self.pair(CA_KEY_FILE, CA_CERTIFICATE_FILE)? else {
            return Ok(false);
        };
        let condition = self.condition(&authority.certificate, &server.certificate, names)?;
        match condition {
            Condition::Good | Condition::Foreign => Ok(false),
            Condition::Ending | Condition::LacksName => {
                tracing::info!(?condition, "signing a new server certificate");
                Ok(true)
            }
        }
    }

    fn condition(
        &self,
        authority: &[u8],
        server: &[u8],
        names: &[String],
    ) -> Result<Condition, CertificateError> {
        let unusable = |name: &str| {
            let file = self.path(name);
            move |source| CertificateError::Unusable { file, source }
        };
        let roots = tls::roots(authority).map_err(unusable(CA_CERTIFICATE_FILE))?;
        let chain = tls::parse_chain(server).map_err(unusable(SERVER_CERTIFICATE_FILE))?;
        let certificate = ParsedCertificate::try_from(&chain[0])
            .map_err(|e| unusable(SERVER_CERTIFICATE_FILE)(TlsError::Unfit(e)))?;
        let algorithms = tls::provider().signature_verification_algorithms.all;
        let signed_at = |time: UnixTime| {
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                &roots,
                &chain[1..],
                time,
                algorithms,
            )
        };
        let now = since_epoch();
        match signed_at(UnixTime::since_unix_epoch(now)) {
            Ok(()) => {}
            Err(rustls::Error::InvalidCertificate(
                rustls::CertificateError::Expired | rustls::CertificateError::ExpiredContext { .. },
            )) => return Ok(Condition::Ending),
            Err(_) => return Ok(Condition::Foreign),
        }
        if signed_at(UnixTime::since_unix_epoch(now + RENEW_BEFORE_END)).is_err() {
            return Ok(Condition::Ending);
        }
        let holds = |name: &String| {
            ServerName::try_from(name.as_str())
                .is_ok_and(|name| verify_server_name(&certificate, &name).is_ok())
        };
        Ok(if names.iter().all(holds) {
            Condition::Good
        } else {
            Condition::LacksName
        })
    }

    /// The authority on disk, or a new one.
    fn authority(&self) -> Result<Issuer<'static, KeyPair>, CertificateError> {
        let (key_file, certificate_file) = (self.path(CA_KEY_FILE), self.path(CA_CERTIFICATE_FILE));
        let key = match (read(&key_file)?, read(&certificate_file)?) {
            (Some(key), Some(_)) => std::str::from_utf8(&key)
                .ok()
                .and_then(|pem| KeyPair::from_pem(pem).ok())
                .ok_or(CertificateError::AuthorityMismatch {
                    key: key_file,
                    certificate: certificate_file,
                })?,
            (None, Some(_)) => {
                return Err(CertificateError::AuthorityKeyMissing {
                    key: key_file,
                    certificate: certificate_file,
                });
            }
            (_, None) => self.make_authority()?,
        };
        Ok(Issuer::new(authority_params(&key), key))
    }

    fn make_authority(&self) -> Result<KeyPair, CertificateError> {
        let key = KeyPair::generate().map_err(CertificateError::Making)?;
        let certificate = authority_params(&key)
            .self_signed(&key)
            .map_err(CertificateError::Making)?;
        self.write(CA_KEY_FILE, &key.serialize_pem(), KEY_MODE)?;
        self.write(CA_CERTIFICATE_FILE, &certificate.pem(), CERTIFICATE_MODE)?;
        tracing::info!(
            file = %self.path(CA_CERTIFICATE_FILE).display(),
            "made a new certificate authority; clients need this file"
        );
        Ok(key)
    }

    fn sign_server(
        &self,
        authority: &Issuer<'static, KeyPair>,
        names: &[String],
    ) -> Result<(), CertificateError> {
        let key = KeyPair::generate().map_err(CertificateError::Making)?;
        let certificate = server_params(names)?
            .signed_by(&key, authority)
            .map_err(CertificateError::Making)?
            .pem();
        // The issuer is rebuilt from the key alone: check it against the certificate clients hold.
        let trusted = read(&self.path(CA_CERTIFICATE_FILE))?.unwrap_or_default();
        match self.condition(&trusted, certificate.as_bytes(), names)? {
            Condition::Good => {}
            // The authority itself ends within the year: the best that can be signed.
            Condition::Ending => {}
            Condition::Foreign | Condition::LacksName => {
                return Err(CertificateError::AuthorityMismatch {
                    key: self.path(CA_KEY_FILE),
                    certificate: self.path(CA_CERTIFICATE_FILE),
                });
            }
        }
        // With the old certificate gone first, a crash leaves an incomplete pair, not a wrong one.
        self.remove(SERVER_CERTIFICATE_FILE)?;
        self.write(SERVER_KEY_FILE, &key.serialize_pem(), KEY_MODE)?;
        self.write(SERVER_CERTIFICATE_FILE, &certificate, CERTIFICATE_MODE)
    }

    fn load_server(&self) -> Result<ServerTls, CertificateError> {
        let file = self.path(SERVER_CERTIFICATE_FILE);
        let Some(pair) = self.pair(SERVER_KEY_FILE, SERVER_CERTIFICATE_FILE)? else {
            let source = io::ErrorKind::NotFound.into();
            return Err(CertificateError::File {
                operation: "read",
                file,
                source,
            });
        };
        self.warn_if_open_to_others(SERVER_KEY_FILE);
        ServerTls::from_pem(&pair.certificate, &pair.key).map_err(|source| {
            let file = match source {
                TlsError::Key(_) => self.path(SERVER_KEY_FILE),
                TlsError::Certificate(_) | TlsError::Unfit(_) => file,
            };
            CertificateError::Unusable { file, source }
        })
    }

    fn warn_if_open_to_others(&self, name: &str) {
        let file = self.path(name);
        let open = fs::metadata(&file).is_ok_and(|data| data.permissions().mode() & 0o077 != 0);
        if open {
            tracing::warn!(file = %file.display(), "the key can be read by others; chmod it 600");
        }
    }

    /// Writes a file durably, whole or not at all.
    fn write(&self, name: &str, text: &str, mode: u32) -> Result<(), CertificateError> {
        let (file, new) = (self.path(name), self.path(&format!("{name}.new")));
        let failed = |operation, source| CertificateError::File {
            operation,
            file: file.clone(),
            source,
        };
        // What a crash left may have another mode.
        self.remove(&format!("{name}.new"))?;
        let mut handle = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&new)
            .map_err(|e| failed("create", e))?;
        handle
            .write_all(text.as_bytes())
            .map_err(|e| failed("write", e))?;
        handle.sync_all().map_err(|e| failed("sync", e))?;
        fs::rename(&new, &file).map_err(|e| failed("rename", e))?;
        self.sync_directory()
    }

    fn remove(&self, name: &str) -> Result<(), CertificateError> {
        let file = self.path(name);
        match fs::remove_file(&file) {
            Ok(()) => self.sync_directory(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(CertificateError::File {
                operation: "remove",
                file,
                source,
            }),
        }
    }

    fn sync_directory(&self) -> Result<(), CertificateError> {
        fs::File::open(self.directory)
            .and_then(|directory| directory.sync_all())
            .map_err(|source| CertificateError::File {
                operation: "sync",
                file: self.directory.into(),
                source,
            })
    }
}

/// How a server certificate stands to the authority on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    /// Signed by it, for all names, for more than a year.
    Good,
    /// Signed by it, and past its end or close to it.
    Ending,
    /// Signed by it, and a configured name is not in it.
    LacksName,
    /// Signed by another: the operator's own, not to be touched.
    Foreign,
}

const KEY_MODE: u32 = 0o600;
const CERTIFICATE_MODE: u32 = 0o644;

/// Reads a small file; `None` if it is not there.
fn read(file: &Path) -> Result<Option<Vec<u8>>, CertificateError> {
    let failed = |source| CertificateError::File {
        operation: "read",
        file: file.into(),
        source,
    };
    match fs::metadata(file) {
        Ok(data) if data.len() > FILE_BYTES_MAX => {
            Err(CertificateError::TooLarge { file: file.into() })
        }
        Ok(_) => fs::read(file).map(Some).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Follows from the key, so that the issuer can be rebuilt from it alone. The name differs from
/// that of any other authority: with the same name, a client takes a foreign certificate for a
/// forged one, and its user looks for an attacker instead of the right `ca.pem`.
fn authority_params(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mark: String = key
        .public_key_raw()
        .iter()
        .rev()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    params.distinguished_name = distinguished(&format!("nova certificate authority {mark}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_years(&mut params, CA_YEARS);
    params
}

fn server_params(names: &[String]) -> Result<CertificateParams, CertificateError> {
    let mut params = CertificateParams::new(names).map_err(CertificateError::Making)?;
    params.distinguished_name = distinguished("nova server");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    set_years(&mut params, SERVER_YEARS);
    Ok(params)
}

fn distinguished(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// From the first of last year, so that a client's clock may be behind, for `years`.
fn set_years(params: &mut CertificateParams, years: i32) {
    let year = current_year();
    params.not_before = date_time_ymd(year - 1, 1, 1);
    params.not_after = date_time_ymd(year + years, 1, 1);
}

fn current_year() -> i32 {
    // Of 365.2425 days, as the Gregorian calendar has them: right but for hours at a year's turn.
    const SECONDS_PER_YEAR: u64 = 31_556_952;
    let years = since_epoch().as_secs() / SECONDS_PER_YEAR;
    // A clock set beyond the year 9000 would exceed what a certificate can say.
    1970 + i32::try_from(years).unwrap_or(i32::MAX).min(7_000)
}

fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

#[cfg(all(test, feature = "tokio"))]
#[path = "certificates_tests.rs"]
mod tests;
