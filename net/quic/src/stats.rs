//! Figures of endpoints and connections, as the metrics show them.
//!
//! # Not here
//! - Their names outside of the process: the server's metrics page.

use std::time::Duration;

/// What an endpoint of a server has seen since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndpointStats {
    /// Connections open now, closing ones included.
    pub connections_open: u64,
    /// Handshakes under way now.
    pub handshakes_open: u64,
    /// Handshakes that ended well.
    pub handshakes_done: u64,
    /// Handshakes that failed.
    pub handshakes_failed: u64,
    /// Attempts refused at a limit.
    pub refused: u64,
    /// Attempts told to prove their address first.
    pub challenged: u64,
    /// Window each connection has in each direction, in bytes.
    pub window_bytes: u32,
}

/// What a connection has seen since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Smoothed round-trip time.
    pub round_trip: Duration,
    /// Datagram size the path is known to carry, in bytes.
    pub mtu: u16,
    /// Bytes that may be under way now.
    pub congestion_window_bytes: u64,
    /// How often the window was reduced for congestion.
    pub congestion_events: u64,
    /// Datagrams sent.
    pub sent_datagrams: u64,
    /// Bytes of datagrams sent.
    pub sent_bytes: u64,
    /// Sends it took; fewer than datagrams while segmentation offload works.
    pub sent_batches: u64,
    /// Datagrams received.
    pub received_datagrams: u64,
    /// Bytes of datagrams received.
    pub received_bytes: u64,
    /// Packets taken for lost.
    pub lost_packets: u64,
    /// How often the path carried less than before.
    pub black_holes: u64,
}

impl From<quinn_proto::ConnectionStats> for ConnectionStats {
    fn from(stats: quinn_proto::ConnectionStats) -> Self {
        Self {
            round_trip: stats.path.rtt,
            mtu: stats.path.current_mtu,
            congestion_window_bytes: stats.path.cwnd,
            congestion_events: stats.path.congestion_events,
            sent_datagrams: stats.udp_tx.datagrams,
            sent_bytes: stats.udp_tx.bytes,
            sent_batches: stats.udp_tx.ios,
            received_datagrams: stats.udp_rx.datagrams,
            received_bytes: stats.udp_rx.bytes,
            lost_packets: stats.path.lost_packets,
            black_holes: stats.path.black_holes_detected,
        }
    }
}
