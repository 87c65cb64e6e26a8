//! The congestion window of a connection: Cubic's, held to what the connection makes use of.
//!
//! An acknowledgement lets a window grow because as much as the window allows got through. Where
//! the peer's windows or the writer bound a connection that is not so (RFC 9002, section 7.8), and
//! a window that grows all the same reaches hundreds of megabytes: a loss then takes a part of it
//! and slows nobody down. quinn-proto goes by whether it was last asked for more than there was to
//! send, and a driver asks for so many datagrams at a time.
//!
//! # Invariants
//! - The window grows only while half of it or more is in flight, as Linux' does in slow start.
//!
//! # Not here
//! - When a window grows otherwise, and when it shrinks: quinn-proto's Cubic.

use std::{any::Any, sync::Arc, time::Instant};

use quinn_proto::{
    RttEstimator,
    congestion::{Controller, ControllerFactory, ControllerMetrics, CubicConfig},
};

/// Makes the controllers of connections.
pub(crate) struct Congestion {
    cubic: Arc<CubicConfig>,
}

impl Congestion {
    /// Windows begin with `initial_bytes`.
    pub(crate) fn new(initial_bytes: u64) -> Congestion {
        let mut cubic = CubicConfig::default();
        cubic.initial_window(initial_bytes);
        Congestion {
            cubic: Arc::new(cubic),
        }
    }
}

impl ControllerFactory for Congestion {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Window {
            cubic: Arc::clone(&self.cubic).build(now, current_mtu),
            in_flight: 0,
        })
    }
}

/// The window of one path.
struct Window {
    cubic: Box<dyn Controller>,
    /// Bytes in flight, at most: packets that are lost, or that nobody acknowledges, count until
    /// the next acknowledgement.
    in_flight: u64,
}

impl Window {
    fn is_used(&self) -> bool {
        2 * self.in_flight >= self.cubic.window()
    }
}

impl Controller for Window {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.in_flight += bytes;
        self.cubic.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let app_limited = app_limited || !self.is_used();
        self.cubic.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.in_flight = in_flight;
        self.cubic
            .on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.cubic
            .on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.cubic.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.cubic.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.cubic.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Window {
            cubic: self.cubic.clone_box(),
            in_flight: self.in_flight,
        })
    }

    fn initial_window(&self) -> u64 {
        self.cubic.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
