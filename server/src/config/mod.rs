//! What a star is started with, resolved: every value is there and in range.
//!
//! ```text
//!   flags ----+
//!             +--> resolve --> ServeConfig --> the start of a star
//!   file -----+        (what neither says is a default, written down in `resolve`)
//! ```
//!
//! # Invariants
//! - A [`ServeConfig`] made by [`resolve()`] is within the limits of `nova_model::limits`, and the
//!   certificate's names hold the host that is advertised.
//!
//! # Not here
//! - Whether the machine and the data directory are good enough: the start of the star.

pub mod file;
pub mod http;
pub(crate) mod nearest;
pub mod resolve;
pub mod units;

pub use file::{FileError, read_file};
pub use resolve::{ConfigError, DATA_DEFAULT, PORT_DEFAULT, ServeSettings, resolve};

pub use http::{HttpConfig, HttpListen};
use nova_disk::SyncMode;
use std::net::IpAddr;
use std::path::PathBuf;

/// All that the start of a star needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeConfig {
    /// The data directory.
    pub data: PathBuf,
    /// The address that every core binds.
    pub listen: IpAddr,
    /// UDP port of the first core; core `k` has `port + k`. 0: free ports are picked.
    pub port: u16,
    /// The host that clients are told, without a port, an IPv6 address without brackets; the
    /// address bound if there is none.
    pub advertise: Option<String>,
    /// Number of cores; one for each CPU that this process may use if it is not said.
    pub cores: Option<usize>,
    /// Size of a segment file in bytes.
    pub segment_bytes: u64,
    /// Free bytes below which appends are refused; by segments and file system if it is not said.
    pub floor_bytes: Option<u64>,
    /// Serve although stored data is damaged; reads of the damaged ranges are refused `CORRUPT`.
    pub allow_corrupt: bool,
    /// How writes become durable.
    pub sync: SyncMode,
    /// Bytes of the newest batches that each core keeps in memory for readers.
    pub recent_bytes: usize,
    /// Bytes admitted and not yet durable above which a core takes no more appends.
    pub ingress_bytes: usize,
    /// How long a stream that nothing holds stays led and in memory, in microseconds.
    pub idle_us: u64,
    /// Names that the certificate holds beside `localhost`, `127.0.0.1` and `::1`.
    pub tls_names: Vec<String>,
    /// Where HTTP is served; nowhere if there is none.
    pub http: Option<HttpConfig>,
    /// Origins whose web pages may ask over HTTP; `*` is all of them.
    pub http_allow_origins: Vec<String>,
    /// How long a core spins after it has received or sent something, in microseconds.
    pub spin_us: u64,
}
