//! Where HTTP is served, and whether it is under TLS.
//!
//! # Invariants
//! - Without TLS only this machine is served, unless `http-plain` says otherwise.

use serde::{Deserialize, Deserializer};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// TCP port of HTTP when none is named.
pub const HTTP_PORT_DEFAULT: u16 = 7380;

/// Where HTTP is to be served, as it is written in flags and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpListen {
    /// Nowhere.
    Off,
    /// At this address.
    At(SocketAddr),
}

/// Where HTTP is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpConfig {
    /// The address. Port 0: a free one is picked.
    pub listen: SocketAddr,
    /// Without TLS.
    pub is_plain: bool,
}

impl FromStr for HttpListen {
    type Err = String;

    fn from_str(text: &str) -> Result<HttpListen, String> {
        if text == "off" {
            return Ok(HttpListen::Off);
        }
        let address = text
            .parse()
            .map_err(|_| format!("'{text}' is neither off nor IP:PORT, such as 127.0.0.1:7380"))?;
        Ok(HttpListen::At(address))
    }
}

impl<'de> Deserialize<'de> for HttpListen {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<HttpListen, D::Error> {
        String::deserialize(input)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// What was said and the UDP port of the first core; with free ports there, a free port here.
pub(crate) fn resolve(said: Option<HttpListen>, plain: bool, port: u16) -> Option<HttpConfig> {
    let listen = match said {
        Some(HttpListen::Off) => return None,
        Some(HttpListen::At(address)) => address,
        None => {
            let port = if port == 0 { 0 } else { HTTP_PORT_DEFAULT };
            SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
        }
    };
    Some(HttpConfig {
        listen,
        is_plain: plain || listen.ip().is_loopback(),
    })
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
