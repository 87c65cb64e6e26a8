//! HTTP at a star's start: its port, its certificate, its thread.

use crate::boot_error::ServeError;
use crate::config::ServeConfig;
use crate::core::desk::AskSender;
use crate::gateway::{self, GatewaySeed, GatewayThread};
use crate::metrics::figures::CoreFigures;
use crate::metrics::{Budgets, Metrics};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

/// HTTP as it is served.
pub(crate) struct Http {
    pub(crate) thread: GatewayThread,
    pub(crate) metrics: Arc<Metrics>,
    address: SocketAddr,
    is_plain: bool,
}

impl Http {
    /// What is said about it at the start.
    pub(crate) fn line(&self) -> String {
        let scheme = if self.is_plain { "http" } else { "https" };
        format!("serving {scheme}://{}\n", self.address)
    }

    /// Ends it and waits for its end.
    pub(crate) fn end(self) {
        self.thread.end();
    }
}

/// The TCP port of HTTP, if it is served: taken before anything is touched.
pub(crate) fn listener(config: &ServeConfig) -> Result<Option<TcpListener>, ServeError> {
    let Some(http) = config.http else {
        return Ok(None);
    };
    let address = http.listen;
    TcpListener::bind(address)
        .map(Some)
        .map_err(|source| ServeError::HttpPort { address, source })
}

/// Starts the gateway, if HTTP is served.
pub(crate) fn start(
    config: &ServeConfig,
    listener: Option<TcpListener>,
    cores: (&[AskSender], &[Arc<CoreFigures>]),
    tls_directory: &Path,
) -> Result<Option<Http>, ServeError> {
    let (Some(listener), Some(http)) = (listener, config.http) else {
        return Ok(None);
    };
    let (asks, figures) = cores;
    let failed = |source| ServeError::Io {
        operation: "starting the gateway",
        source,
    };
    let budgets = Budgets {
        data: config.data.clone(),
        ingress_bytes: config.ingress_bytes,
        recent_bytes: config.recent_bytes,
    };
    let metrics = Arc::new(Metrics::new(figures.to_vec(), budgets));
    let address = listener.local_addr().map_err(failed)?;
    let tls = match http.is_plain {
        true => None,
        false => Some(gateway::acceptor(tls_directory)?),
    };
    let seed = GatewaySeed {
        listener,
        tls,
        asks: asks.to_vec(),
        metrics: Arc::clone(&metrics),
        allow_origins: config.http_allow_origins.clone(),
    };
    Ok(Some(Http {
        thread: GatewayThread::start(seed).map_err(failed)?,
        metrics,
        address,
        is_plain: http.is_plain,
    }))
}
