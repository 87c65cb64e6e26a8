//! Accepts connections and serves each in a task of its own.
//!
//! # Invariants
//! - The head of a request, its body and the taking of its answer each have their time.
//! - When the star stops, connections without a request are closed at once and running requests
//!   have [`GRACE`] to finish; who comes meanwhile is told.

use super::bytes::{Arriving, Leaving, Patient};
use super::connections::{Admitted, Connections, Slot};
use super::state::Gateway;
use axum::Router;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use nova_model::limits::{HTTP_HEAD_US, HTTP_HEADER_BYTES_MAX, HTTP_HEADERS_MAX};
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

/// How long running requests may go on when the star stops.
const GRACE: Duration = Duration::from_secs(1);
/// A pause after a connection could not be accepted: descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Bytes of a connection that are kept: a head over our own limit is still read, so that its
/// refusal can name the field.
const BUFFER_BYTES: usize = 4 * HTTP_HEADER_BYTES_MAX;
/// Headers that are still read, for the same reason.
const HEADERS_READ_MAX: usize = 2 * HTTP_HEADERS_MAX;

/// Serves until the star stops.
pub(crate) async fn listen(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    gateway: Gateway,
) {
    let connections = Arc::new(Connections::new());
    let mut tasks = JoinSet::new();
    let (mut is_stopping, mut until) = (false, Instant::now());
    let mut is_short = false;
    while !is_stopping || !tasks.is_empty() {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_ended) = tasks.join_next(), if !tasks.is_empty() => continue,
            () = gateway.stopping(), if !is_stopping => {
                (is_stopping, until) = (true, Instant::now() + GRACE);
                continue;
            }
            () = sleep_until(until), if is_stopping => break,
        };
        let socket = match accepted {
            Ok((socket, _peer)) => {
                is_short = false;
                socket
            }
            Err(error) => {
                // Told once, and tried until it passes: who has connected waits.
                if !std::mem::replace(&mut is_short, true) {
                    tracing::warn!(%error, "connections are not accepted");
                }
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(slot) = admit(&connections, &gateway) else {
            // Closed at once; whoever comes back finds room or not.
            continue;
        };
        let (connections, gateway) = (Arc::clone(&connections), gateway.clone());
        let (router, tls) = (router.clone(), tls.clone());
        tasks.spawn(async move {
            let served = serve(socket, tls, router, &slot, &gateway).await;
            if let Err(error) = served {
                tracing::debug!(%error, "an HTTP connection broke off");
            }
            connections.remove(&slot);
            let open = connections.count() as u64;
            gateway.metrics.http.connections.set(open);
        });
    }
    if !tasks.is_empty() {
        tracing::warn!("HTTP requests were broken off");
    }
}

fn admit(connections: &Connections, gateway: &Gateway) -> Option<Arc<Slot>> {
    let slot = match connections.admit() {
        Admitted::Yes(slot) => slot,
        Admitted::Instead(slot) => {
            gateway.metrics.http.evicted.add(1);
            slot
        }
        Admitted::No => return None,
    };
    let open = connections.count() as u64;
    gateway.metrics.http.connections.set(open);
    Some(slot)
}

async fn serve(
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    slot: &Arc<Slot>,
    gateway: &Gateway,
) -> io::Result<()> {
    // Answers are small and written whole.
    socket.set_nodelay(true)?;
    let Some(tls) = tls else {
        return serve_bytes(socket, router, slot, gateway).await;
    };
    let head = Duration::from_micros(HTTP_HEAD_US);
    let handshake = timeout(head, tls.accept(Patient::new(socket)));
    let stream = tokio::select! {
        done = handshake => done.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??,
        () = slot.told_to_go() => return Ok(()),
    };
    serve_bytes(stream, router, slot, gateway).await
}

async fn serve_bytes<S>(
    bytes: S,
    router: Router,
    slot: &Arc<Slot>,
    gateway: &Gateway,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (service, own) = (TowerToHyperService::new(router), Arc::clone(slot));
    let service = service_fn(move |request: Request<Incoming>| {
        let slot = Arc::clone(&own);
        let request = request.map(|body| Arriving::new(body, Arc::clone(&slot)));
        let answer = service.call(request);
        async move {
            let response = answer.await?;
            Ok::<Response<Leaving>, Infallible>(response.map(|body| Leaving::new(body, slot)))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_micros(HTTP_HEAD_US))
        .max_buf_size(BUFFER_BYTES)
        .max_headers(HEADERS_READ_MAX)
        .serve_connection(TokioIo::new(Patient::new(bytes)), service);
    let mut connection = pin!(connection);
    // One that comes to a star on its way down is told so, and closed by the answer.
    let mut is_stopping = gateway.is_stopping();
    loop {
        tokio::select! {
            done = connection.as_mut() => return done.map_err(io::Error::other),
            () = slot.told_to_go() => return Ok(()),
            () = gateway.stopping(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}
