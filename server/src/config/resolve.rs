//! From what was said in flags and file to a [`ServeConfig`]: flags first, then the file, then the
//! defaults, which are all here.
//!
//! # Invariants
//! - One struct is both the flags and the keys of the file, so the two never differ.
//!
//! # Not here
//! - Reading the file: [`crate::config::file`].

use crate::config::ServeConfig;
use crate::config::http::{self, HttpListen};
use crate::config::units::{parse_bytes, parse_duration, show_bytes};
use nova_disk::SyncMode;
use nova_model::limits::{
    BATCH_METERED_BYTES_MAX, BLOCK_BYTES, INGRESS_BYTES_DEFAULT, LEADERSHIP_IDLE_US,
    LEADERSHIP_IDLE_US_MAX, LEADERSHIP_IDLE_US_MIN, RECENT_BYTES_DEFAULT, SEGMENT_BYTES_DEFAULT,
    SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, SESSION_WINDOW_BATCHES, STAR_CORES_MAX,
};
use nova_quic::params::SPIN_DEFAULT;
use serde::{Deserialize, Deserializer};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

/// The data directory that is used when none is named.
pub const DATA_DEFAULT: &str = "./nova-data";
/// UDP port of the first core when none is named.
pub const PORT_DEFAULT: u16 = 7400;
/// How long a core spins unless told otherwise, in microseconds.
const SPIN_US_DEFAULT: u64 = SPIN_DEFAULT.as_micros() as u64;

/// Longest spin of a core, in microseconds.
const SPIN_US_MAX: u64 = 1_000;
/// Longest host name (RFC 1035).
const HOST_BYTES_MAX: usize = 253;
/// Names that a certificate is made for at most.
const TLS_NAMES_MAX: usize = 64;
/// A full window of full batches: less, and one session could never use its window.
const INGRESS_BYTES_MIN: usize = SESSION_WINDOW_BATCHES * BATCH_METERED_BYTES_MAX;

/// How writes become durable, as it is written in flags and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncName {
    /// Each write is durable by itself (O_DSYNC).
    Dsync,
    /// Each write is followed by fdatasync.
    Fdatasync,
}

/// What was said about a star, in flags or in a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, clap::Args, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct ServeSettings {
    /// Data directory; made if it is not there [default: ./nova-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// IP address to listen on [default: 127.0.0.1]
    ///
    /// Only this machine is served unless another address is named here.
    #[arg(long, value_name = "IP")]
    pub listen: Option<IpAddr>,
    /// UDP port of the first core; core K has PORT + K. 0 picks free ports [default: 7400]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Host name or IP address that clients are told to dial [default: the address listened on]
    #[arg(long, value_name = "HOST")]
    pub advertise: Option<String>,
    /// Number of cores [default: one for each CPU that this process may use]
    #[arg(long, value_name = "N")]
    pub cores: Option<usize>,
    /// Size of a segment file, 16MiB to 2GiB [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    #[serde(deserialize_with = "bytes_in_file")]
    pub segment_bytes: Option<u64>,
    /// Free space below which appends are refused [default: 3 segments a core, at most a tenth]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    #[serde(deserialize_with = "bytes_in_file")]
    pub floor_bytes: Option<u64>,
    /// Serve although stored data is damaged; reads of the damaged ranges fail as CORRUPT
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(value_name = "true|false")]
    pub allow_corrupt: Option<bool>,
    /// How writes become durable [default: dsync]
    #[arg(long, value_enum, value_name = "MODE")]
    pub sync: Option<SyncName>,
    /// Newest batches that each core keeps in memory for readers [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    #[serde(deserialize_with = "bytes_in_file")]
    pub recent_bytes: Option<u64>,
    /// Appends of each core that may wait for the disk, at least 16MiB [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    #[serde(deserialize_with = "bytes_in_file")]
    pub ingress_bytes: Option<u64>,
    /// How long a stream without sessions and readers stays led, 1s to 1d [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    #[serde(deserialize_with = "duration_in_file")]
    pub idle_timeout: Option<Duration>,
    /// Further names that the star's certificate holds; repeat it or separate them by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub tls_names: Option<Vec<String>>,
    /// IP address and TCP port of HTTP, or off [default: 127.0.0.1:7380]
    #[arg(long, value_name = "IP:PORT|off")]
    pub http: Option<HttpListen>,
    /// Serve HTTP without TLS also where other machines reach it
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(value_name = "true|false")]
    pub http_plain: Option<bool>,
    /// Origin whose web pages may ask over HTTP, or *; repeat it or separate them by commas
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    pub http_allow_origin: Option<Vec<String>>,
    /// Microseconds that a core looks for more before it sleeps, at most 1000, 0 for none
    /// [default: 50]
    #[arg(long, value_name = "US")]
    pub spin_us: Option<u64>,
}

/// What is wrong with what was said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} is {found}, and {rule}")]
pub struct ConfigError {
    /// The name of the flag or key.
    pub setting: &'static str,
    /// Its value.
    pub found: String,
    /// What it must be.
    pub rule: String,
}

impl ServeSettings {
    /// These settings, and those of `other` where these say nothing.
    #[must_use]
    pub fn or(self, other: ServeSettings) -> ServeSettings {
        ServeSettings {
            data: self.data.or(other.data),
            listen: self.listen.or(other.listen),
            port: self.port.or(other.port),
            advertise: self.advertise.or(other.advertise),
            cores: self.cores.or(other.cores),
            segment_bytes: self.segment_bytes.or(other.segment_bytes),
            floor_bytes: self.floor_bytes.or(other.floor_bytes),
            allow_corrupt: self.allow_corrupt.or(other.allow_corrupt),
            sync: self.sync.or(other.sync),
            recent_bytes: self.recent_bytes.or(other.recent_bytes),
            ingress_bytes: self.ingress_bytes.or(other.ingress_bytes),
            idle_timeout: self.idle_timeout.or(other.idle_timeout),
            tls_names: self.tls_names.or(other.tls_names),
            http: self.http.or(other.http),
            http_plain: self.http_plain.or(other.http_plain),
            http_allow_origin: self.http_allow_origin.or(other.http_allow_origin),
            spin_us: self.spin_us.or(other.spin_us),
        }
    }
}

/// The configuration that these settings stand for.
pub fn resolve(said: ServeSettings) -> Result<ServeConfig, ConfigError> {
    let listen = said.listen.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let advertise = said.advertise.map(without_brackets);
    check_hosts(listen, advertise.as_deref())?;
    let port = said.port.unwrap_or(PORT_DEFAULT);
    check_cores(said.cores, port)?;
    let segment_bytes = said.segment_bytes.unwrap_or(SEGMENT_BYTES_DEFAULT);
    check_segment(segment_bytes)?;
    let recent_bytes = memory("recent-bytes", said.recent_bytes, RECENT_BYTES_DEFAULT, 0)?;
    let ingress_bytes = memory(
        "ingress-bytes",
        said.ingress_bytes,
        INGRESS_BYTES_DEFAULT,
        INGRESS_BYTES_MIN,
    )?;
    let idle_us = idle_us(said.idle_timeout)?;
    let spin_us = said.spin_us.unwrap_or(SPIN_US_DEFAULT);
    if spin_us > SPIN_US_MAX {
        let rule = format!("it is at most {SPIN_US_MAX}");
        return Err(wrong("spin-us", spin_us, rule));
    }
    let tls_names = tls_names(said.tls_names.unwrap_or_default(), &advertise, listen)?;
    Ok(ServeConfig {
        data: said.data.unwrap_or_else(|| PathBuf::from(DATA_DEFAULT)),
        listen,
        port,
        advertise,
        cores: said.cores,
        segment_bytes,
        floor_bytes: said.floor_bytes,
        allow_corrupt: said.allow_corrupt.unwrap_or(false),
        sync: match said.sync {
            Some(SyncName::Fdatasync) => SyncMode::Fdatasync,
            Some(SyncName::Dsync) | None => SyncMode::Dsync,
        },
        recent_bytes,
        ingress_bytes,
        idle_us,
        tls_names,
        http: http::resolve(said.http, said.http_plain.unwrap_or(false), port),
        http_allow_origins: said.http_allow_origin.unwrap_or_default(),
        spin_us,
    })
}

/// An IPv6 address as it is written in a certificate: `[::1]` is `::1`.
fn without_brackets(host: String) -> String {
    let inner = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    match inner.map(str::parse::<Ipv6Addr>) {
        Some(Ok(address)) => address.to_string(),
        Some(Err(_)) | None => host,
    }
}

fn check_hosts(listen: IpAddr, advertise: Option<&str>) -> Result<(), ConfigError> {
    let Some(host) = advertise else {
        if listen.is_unspecified() {
            let rule = "no client can dial that: say with --advertise which host they dial";
            return Err(wrong("listen", listen, rule));
        }
        return Ok(());
    };
    let is_name = host
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'));
    let is_host = is_name && !host.is_empty() && host.len() <= HOST_BYTES_MAX;
    if !is_host && host.parse::<Ipv6Addr>().is_err() {
        let rule = "it is a host name or an IP address, without a port";
        return Err(wrong("advertise", format!("'{host}'"), rule));
    }
    Ok(())
}

/// `HOST:PORT` as clients dial it: an IPv6 address is put in brackets.
pub(crate) fn told_address(host: &str, port: u16) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]:{port}"),
        Err(_) => format!("{host}:{port}"),
    }
}

fn check_cores(cores: Option<usize>, port: u16) -> Result<(), ConfigError> {
    let Some(cores) = cores else { return Ok(()) };
    if cores == 0 || cores > STAR_CORES_MAX {
        let rule = format!("it is 1 to {STAR_CORES_MAX}");
        return Err(wrong("cores", cores, rule));
    }
    if port != 0 && usize::from(port) + cores - 1 > usize::from(u16::MAX) {
        let rule = format!("{cores} cores need as many ports up to {}", u16::MAX);
        return Err(wrong("port", port, rule));
    }
    Ok(())
}

fn check_segment(bytes: u64) -> Result<(), ConfigError> {
    let least = show_bytes(SEGMENT_BYTES_MIN);
    let most = show_bytes(SEGMENT_BYTES_MAX);
    if !(SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&bytes) {
        let rule = format!("it is {least} to {most}");
        return Err(wrong("segment-bytes", bytes, rule));
    }
    if !bytes.is_multiple_of(BLOCK_BYTES as u64) {
        let rule = format!("it is a multiple of {BLOCK_BYTES}");
        return Err(wrong("segment-bytes", bytes, rule));
    }
    Ok(())
}

fn memory(
    setting: &'static str,
    said: Option<u64>,
    default: usize,
    least: usize,
) -> Result<usize, ConfigError> {
    let Some(bytes) = said else {
        return Ok(default);
    };
    match usize::try_from(bytes) {
        Ok(bytes) if bytes >= least => Ok(bytes),
        Ok(bytes) => {
            let rule = format!("it is at least {}", show_bytes(least as u64));
            Err(wrong(setting, bytes, rule))
        }
        Err(_) => Err(wrong(setting, bytes, "no machine has that much memory")),
    }
}

fn idle_us(said: Option<Duration>) -> Result<u64, ConfigError> {
    let Some(time) = said else {
        return Ok(LEADERSHIP_IDLE_US);
    };
    let range = LEADERSHIP_IDLE_US_MIN..=LEADERSHIP_IDLE_US_MAX;
    match u64::try_from(time.as_micros()) {
        Ok(us) if range.contains(&us) => Ok(us),
        Ok(_) | Err(_) => {
            let found = format!("{} s", time.as_secs_f64());
            Err(wrong("idle-timeout", found, "it is 1s to 1d"))
        }
    }
}

/// The names of the certificate: those said, and the hosts that clients will dial.
fn tls_names(
    mut names: Vec<String>,
    advertise: &Option<String>,
    listen: IpAddr,
) -> Result<Vec<String>, ConfigError> {
    names.extend(advertise.clone());
    let is_given_anyway =
        listen == IpAddr::V4(Ipv4Addr::LOCALHOST) || listen == IpAddr::V6(Ipv6Addr::LOCALHOST);
    if !listen.is_unspecified() && !is_given_anyway {
        names.push(listen.to_string());
    }
    names.sort_unstable();
    names.dedup();
    if names.len() > TLS_NAMES_MAX {
        let rule = format!("a certificate is made for at most {TLS_NAMES_MAX}");
        return Err(wrong("tls-names", format!("{} names", names.len()), rule));
    }
    if names.iter().any(String::is_empty) {
        return Err(wrong("tls-names", "''", "a name is not empty"));
    }
    Ok(names)
}

fn wrong(setting: &'static str, found: impl ToString, rule: impl Into<String>) -> ConfigError {
    ConfigError {
        setting,
        found: found.to_string(),
        rule: rule.into(),
    }
}

/// A size in a file: a number, or a text with a unit.
fn bytes_in_file<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Number(u64),
        Text(String),
    }
    match Size::deserialize(input)? {
        Size::Number(bytes) => Ok(Some(bytes)),
        Size::Text(text) => parse_bytes(&text)
            .map(Some)
            .map_err(serde::de::Error::custom),
    }
}

/// A duration in flags: in seconds unless a unit is said.
fn parse_seconds(text: &str) -> Result<Duration, String> {
    parse_duration(text, "s")
}

/// A duration in a file: a number of seconds, or a text with a unit.
fn duration_in_file<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Time {
        Number(u64),
        Text(String),
    }
    match Time::deserialize(input)? {
        Time::Number(seconds) => Ok(Some(Duration::from_secs(seconds))),
        Time::Text(text) => parse_seconds(&text)
            .map(Some)
            .map_err(serde::de::Error::custom),
    }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
