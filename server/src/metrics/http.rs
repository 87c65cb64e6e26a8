//! The figures of the gateway.
//!
//! # Invariants
//! - Requests are counted by route, not by path: there are few routes and any number of paths.

use super::figures::{Counter, Gauge, Times};
use super::histogram::{Histogram, TIME_BOUNDS_US};
use super::text::{Kind, Text};
use nova_model::limits::HTTP_MEMORY_BYTES;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Method, route and status of requests.
type Answered = (String, String, u16);

/// What the gateway notes.
#[derive(Debug)]
pub(crate) struct HttpFigures {
    answered: Mutex<BTreeMap<Answered, Arc<Counter>>>,
    /// From a request's head to its answer's head.
    request_us: Times,
    /// Open connections.
    pub(crate) connections: Gauge,
    /// Connections that were closed for others to come.
    pub(crate) evicted: Counter,
}

impl HttpFigures {
    pub(crate) fn new() -> HttpFigures {
        HttpFigures {
            answered: Mutex::default(),
            request_us: Histogram::new(&TIME_BOUNDS_US),
            connections: Gauge::default(),
            evicted: Counter::default(),
        }
    }

    /// A request was answered. The method is one that is known, or none.
    pub(crate) fn note(&self, method: &str, route: &str, status: u16, us: u64) {
        self.request_us.note(us);
        let key = (method.to_owned(), route.to_owned(), status);
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.entry(key).or_default().add(1);
    }

    pub(super) fn add(&self, text: &mut Text, memory_used: usize) {
        let name = "nova_http_requests_total";
        text.head(name, "HTTP requests that were answered", Kind::Counter);
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        for ((method, route, status), count) in &*answered {
            let status = status.to_string();
            let labels = [("method", &**method), ("route", route), ("status", &status)];
            text.line(name, &labels, count.value() as f64);
        }
        drop(answered);
        let name = "nova_http_request_seconds";
        text.head(
            name,
            "From the head of a request to that of its answer",
            Kind::Histogram,
        );
        text.histogram(name, &[], &self.request_us.snapshot(), 1e6);
        let name = "nova_http_connections_evicted_total";
        text.head(
            name,
            "Connections closed while idle so that others could come",
            Kind::Counter,
        );
        text.line(name, &[], self.evicted.value() as f64);
        let gauges = [
            (
                "nova_http_connections",
                "Open HTTP connections",
                self.connections.value(),
            ),
            (
                "nova_http_memory_bytes",
                "Memory that bodies and pages of HTTP requests hold",
                memory_used as u64,
            ),
            (
                "nova_http_memory_bytes_max",
                "Most memory that they may hold",
                HTTP_MEMORY_BYTES as u64,
            ),
        ];
        for (name, help, value) in gauges {
            text.head(name, help, Kind::Gauge);
            text.line(name, &[], value as f64);
        }
    }
}
