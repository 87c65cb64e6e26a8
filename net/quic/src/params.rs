//! Transport settings of both ends, each with its reason.
//!
//! ```text
//! Transport   what both ends share: windows of a stream, datagram sizes, timeouts
//!   ServerParams  + budget of windows, limits on connections and handshakes
//!   ClientParams  + windows of the connection, patience while connecting
//! ```
//!
//! # Invariants
//! - [`ServerParams::check`] and [`ClientParams::check`] hold before a socket is opened.
//! - A batch of datagrams given to the kernel at once fits one UDP payload: [`segments_max`].
//!
//! # Not here
//! - Cipher suites and certificates: [`crate::tls`].
//! - How a core waits for datagrams: `server::Spin`.

use std::{sync::Arc, time::Duration};

use quinn_proto::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use thiserror::Error;

use crate::congestion::Congestion;

/// Name of the protocol in the TLS handshake (ALPN). A server of another protocol refuses it.
pub const PROTOCOL_NAME: &[u8] = b"nova/1";

/// Largest payload of one UDP datagram over IPv4: 65,535 less 20 of IP and 8 of UDP header.
pub const UDP_PAYLOAD_BYTES_MAX: u16 = 65_507;

/// Smallest datagram size QUIC guarantees (RFC 9000, section 14).
pub const MTU_MIN: u16 = 1_200;

/// How long a core spins after it has received or sent something, unless told otherwise. It trades
/// CPU for latency: the measurements are in docs/decisions/0008.
pub const SPIN_DEFAULT: Duration = Duration::from_micros(50);

/// How many datagrams of `mtu` bytes fit the one send that segmentation offload (GSO) makes of
/// them. The kernel refuses a send that is longer (ten datagrams above an MTU of 6,550), and what
/// is lost with it looks like a path that carries 1,200 bytes only. Worked example: with 8,952
/// bytes 7 fit, 62,664 in all.
pub const fn segments_max(mtu: u16) -> usize {
    let fit = (UDP_PAYLOAD_BYTES_MAX / mtu) as usize;
    if fit == 0 { 1 } else { fit }
}

/// What both ends share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transport {
    /// Unread bytes a peer may have under way on one stream. The window is also the longest queue
    /// before other streams of the core. `examples/ping` on loopback, the same window on both ends,
    /// 64 KiB frames echoed with 16 in flight, and p99 of a 128 byte ping-pong beside a stream of
    /// such frames; medians of five interleaved runs on two CPUs that were shared with other work:
    ///
    /// | window | MB/s (least to most) | p99 |
    /// | --- | --- | --- |
    /// | 256 KiB | 952 (526 to 1,063) | 0.22 ms |
    /// | 512 KiB | 1,113 (516 to 1,247) | 0.48 ms |
    /// | 1 MiB | 1,177 (952 to 1,489) | 0.97 ms |
    /// | 4 MiB | 1,289 (1,073 to 1,476) | 1.00 ms |
    ///
    /// 512 KiB halves the wait of 1 MiB; what it costs in throughput is less than the spread.
    pub stream_window_bytes: u32,
    /// Largest datagram that path MTU discovery tries: a jumbo frame of 9,000 bytes less IPv6 and
    /// UDP headers. On loopback and such LANs it doubles the throughput; elsewhere the discovery
    /// ends at what the path carries.
    pub mtu_max: u16,
    /// First congestion window. quinn's 14,720 bytes are less than two jumbo packets; 64 KiB lets
    /// one batch of records go out in one round trip, as soon as the connection has its share of
    /// the window: that is behind the handshake.
    pub congestion_window_initial_bytes: u64,
    /// Guess of the round-trip time before the first sample. QUIC's 333 ms make a lost first
    /// packet cost a second; servers of nova are rarely more than 100 ms away.
    pub round_trip_initial: Duration,
    /// A connection that has heard nothing for so long is lost. It bounds how long an append
    /// waits on a dead peer.
    pub idle_timeout: Duration,
    /// Requested size of both socket buffers, best effort. The kernel's usual 208 KiB hold
    /// three full batches, which is little for a core that is busy with something else.
    pub socket_buffer_bytes: usize,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            stream_window_bytes: 512 * 1024,
            mtu_max: 8_952,
            congestion_window_initial_bytes: 64 * 1024,
            round_trip_initial: Duration::from_millis(100),
            idle_timeout: Duration::from_secs(15),
            socket_buffer_bytes: 4 * 1024 * 1024,
        }
    }
}

/// Settings of a server's endpoint: one core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerParams {
    /// What both ends share.
    pub transport: Transport,
    /// Memory the connections of this core may fill with received and unread, and with written
    /// and unacknowledged bytes, all together. quinn itself bounds neither sum.
    pub windows_budget_bytes: u64,
    /// Largest receive window (and send window) of one connection, while few are open.
    pub connection_window_bytes_max: u32,
    /// Smallest, when many are. Budget and this bound the number of connections.
    pub connection_window_bytes_min: u32,
    /// Most connections at a time, closing ones included. More are refused.
    pub connections_max: u32,
    /// Streams a peer may have open on one connection.
    pub streams_max: u32,
    /// Handshakes under way at a time. More are refused: each costs 0.6 ms of CPU.
    pub handshakes_max: u32,
    /// With more handshakes under way than this, a peer must prove its address first (RFC 9000,
    /// section 8.1.2), which costs it a round trip and costs forged addresses the connection.
    pub handshakes_unproven_max: u32,
    /// Bytes kept of connections that are not yet accepted, all together.
    pub handshake_buffer_bytes: u64,
    /// How long a bind is retried while the port is taken. The sockets of a process that used
    /// io_uring stay bound for about 10 ms after its end.
    pub bind_patience: Duration,
}

impl ServerParams {
    /// Settings for a core that may spend `windows_budget_bytes` on connection windows.
    pub fn new(windows_budget_bytes: u64) -> Self {
        Self {
            transport: Transport::default(),
            windows_budget_bytes,
            connection_window_bytes_max: 8 * 1024 * 1024,
            connection_window_bytes_min: 16 * 1024,
            connections_max: 16_384,
            streams_max: 1_024,
            handshakes_max: 1_024,
            handshakes_unproven_max: 128,
            handshake_buffer_bytes: 8 * 1024 * 1024,
            bind_patience: Duration::from_secs(1),
        }
    }

    /// Says what contradicts itself.
    pub fn check(&self) -> Result<(), ParamsError> {
        self.transport.check()?;
        let (least, most) = (
            self.connection_window_bytes_min,
            self.connection_window_bytes_max,
        );
        if least < 16 * 1024 || most < least {
            return Err(ParamsError::ConnectionWindows { least, most });
        }
        if self.windows_budget_bytes < 2 * u64::from(least) {
            return Err(ParamsError::Budget {
                bytes: self.windows_budget_bytes,
            });
        }
        if self.connections_max == 0 || self.streams_max == 0 || self.handshakes_max == 0 {
            return Err(ParamsError::NothingAllowed);
        }
        Ok(())
    }

    #[cfg(feature = "glommio")]
    pub(crate) fn transport_config(&self) -> TransportConfig {
        let mut config = self.transport.config();
        config.max_concurrent_bidi_streams(self.streams_max.into());
        // The least window until the handshake is through: then the connection has a share.
        config.receive_window(self.connection_window_bytes_min.into());
        config.send_window(self.connection_window_bytes_min.into());
        config
    }
}

/// Settings of a client's endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientParams {
    /// What both ends share.
    pub transport: Transport,
    /// Unread bytes a server may have under way on one connection.
    pub connection_window_bytes: u32,
    /// Written bytes that a connection holds until they are acknowledged.
    pub send_window_bytes: u32,
    /// A connection that has been silent for so long sends a ping. Only the client does: the
    /// answer keeps the server's side alive as well.
    pub keep_alive: Duration,
    /// How long an attempt to connect waits for an answer.
    pub connect_timeout: Duration,
}

impl Default for ClientParams {
    fn default() -> Self {
        // A client has no core to share: a larger window only helps on distant paths.
        let transport = Transport {
            stream_window_bytes: 1024 * 1024,
            ..Transport::default()
        };
        Self {
            transport,
            connection_window_bytes: 16 * 1024 * 1024,
            send_window_bytes: 8 * 1024 * 1024,
            keep_alive: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(5),
        }
    }
}

impl ClientParams {
    /// Says what contradicts itself.
    pub fn check(&self) -> Result<(), ParamsError> {
        self.transport.check()?;
        let (least, most) = (self.send_window_bytes, self.connection_window_bytes);
        if least < 16 * 1024 || most < 16 * 1024 {
            return Err(ParamsError::ConnectionWindows { least, most });
        }
        if self.keep_alive.is_zero() || self.keep_alive >= self.transport.idle_timeout {
            return Err(ParamsError::KeepAlive {
                keep_alive: self.keep_alive,
            });
        }
        Ok(())
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn transport_config(&self) -> TransportConfig {
        let mut config = self.transport.config();
        // Streams are opened by the client only.
        config.max_concurrent_bidi_streams(0u32.into());
        config.receive_window(self.connection_window_bytes.into());
        config.send_window(self.send_window_bytes.into());
        config.keep_alive_interval(Some(self.keep_alive));
        config
    }
}

impl Transport {
    fn check(&self) -> Result<(), ParamsError> {
        if !(MTU_MIN..=UDP_PAYLOAD_BYTES_MAX).contains(&self.mtu_max) {
            return Err(ParamsError::Mtu {
                mtu_max: self.mtu_max,
            });
        }
        // A packet larger than the window would never be sent.
        if self.congestion_window_initial_bytes < 2 * u64::from(self.mtu_max) {
            let bytes = self.congestion_window_initial_bytes;
            return Err(ParamsError::CongestionWindow {
                bytes,
                mtu_max: self.mtu_max,
            });
        }
        if self.stream_window_bytes < 16 * 1024 {
            return Err(ParamsError::StreamWindow {
                bytes: self.stream_window_bytes,
            });
        }
        if self.idle_timeout < IDLE_TIMEOUT_MIN || self.idle_timeout > IDLE_TIMEOUT_MAX {
            return Err(ParamsError::IdleTimeout {
                idle_timeout: self.idle_timeout,
            });
        }
        Ok(())
    }

    fn config(&self) -> TransportConfig {
        let congestion = Congestion::new(self.congestion_window_initial_bytes);
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(self.mtu_max);
        let idle_timeout = IdleTimeout::try_from(self.idle_timeout.min(IDLE_TIMEOUT_MAX))
            .expect("the longest idle timeout fits a variable-length integer");

        let mut config = TransportConfig::default();
        config
            .stream_receive_window(VarInt::from_u32(self.stream_window_bytes))
            .max_concurrent_uni_streams(0u32.into())
            .datagram_receive_buffer_size(None)
            .max_idle_timeout(Some(idle_timeout))
            .initial_rtt(self.round_trip_initial)
            .mtu_discovery_config(Some(discovery))
            .congestion_controller_factory(Arc::new(congestion));
        config
    }
}

const IDLE_TIMEOUT_MIN: Duration = Duration::from_millis(100);
const IDLE_TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// Settings that contradict each other or QUIC.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParamsError {
    /// QUIC needs 1,200 bytes, UDP carries 65,507.
    #[error("the largest datagram must be of 1,200 to 65,507 bytes, not {mtu_max}")]
    Mtu {
        /// What was given.
        mtu_max: u16,
    },
    /// A window smaller than two packets would never let one out.
    #[error("an initial congestion window of {bytes} bytes is less than two of {mtu_max}")]
    CongestionWindow {
        /// What was given.
        bytes: u64,
        /// The datagram size that needs more.
        mtu_max: u16,
    },
    /// Less than 16 KiB would mean a round trip every few packets.
    #[error("a stream window of {bytes} bytes is less than 16 KiB")]
    StreamWindow {
        /// What was given.
        bytes: u32,
    },
    /// Less than 16 KiB, or in the wrong order.
    #[error("connection windows of {least} and {most} bytes are under 16 KiB or out of order")]
    ConnectionWindows {
        /// The smaller one.
        least: u32,
        /// The larger one.
        most: u32,
    },
    /// Not even one connection fits.
    #[error("a window budget of {bytes} bytes does not suffice for one connection")]
    Budget {
        /// What was given.
        bytes: u64,
    },
    /// A limit of zero shuts the endpoint.
    #[error("connections, streams and handshakes must be allowed at least one each")]
    NothingAllowed,
    /// Longer than the idle timeout, it keeps nothing alive.
    #[error("a keep-alive of {keep_alive:?} does not lie between 0 and the idle timeout")]
    KeepAlive {
        /// What was given.
        keep_alive: Duration,
    },
    /// From 100 ms to 10 minutes.
    #[error("an idle timeout of {idle_timeout:?} is not between 100 ms and 10 minutes")]
    IdleTimeout {
        /// What was given.
        idle_timeout: Duration,
    },
}

#[cfg(test)]
#[path = "params_tests.rs"]
mod tests;
