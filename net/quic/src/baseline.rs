//! The bare transport, to measure what the engine adds to it: an echo server and its client.
//!
//! Any number of requests on any number of streams; replies come in the order of requests.
//! ```text
//! request   u32 request length | u32 reply length | payload of request length     (little-endian)
//! reply     reply length bytes: the payload, cut, or filled up with zeros
//! ```
//!
//! # Invariants
//! - A length above [`PAYLOAD_BYTES_MAX`] ends the stream before anything of it is kept.
//!
//! # Not here
//! - Load over time and latency under load: `bench`.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use glommio::{ExecutorJoinHandle, LocalExecutorBuilder, Placement};
use thiserror::Error;
use tokio::sync::{Semaphore, oneshot};

use crate::{
    client, error::BindError, error::QuicError, error::ReadError, error::WriteError,
    params::ServerParams, server, stats::EndpointStats, tls::ServerTls,
};

/// Longest request and reply.
pub const PAYLOAD_BYTES_MAX: u32 = 16 * 1024 * 1024;

const HEADER_BYTES: usize = 8;
const ZEROS: Bytes = Bytes::from_static(&[0; 64 * 1024]);

/// Chunks taken from a stream at a time: those of four batches of received datagrams.
const CHUNKS_AT_A_TIME: usize = 32;

/// What a server does between a request and its reply, on its own thread, which it may block: a
/// write, to see what one round trip and one write take one behind the other.
pub type Work = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// Code an endpoint and its streams are closed with at the end of a measurement.
const CODE_DONE: u32 = 0;

/// Why a measurement ended early.
#[derive(Debug, Error)]
pub enum BaselineError {
    /// The endpoint could not be made.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The connection was lost.
    #[error(transparent)]
    Connection(#[from] QuicError),
    /// A request could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A reply could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The peer ended the stream within a request or reply.
    #[error("the stream ended within a request or reply")]
    Truncated,
    /// A length is above [`PAYLOAD_BYTES_MAX`].
    #[error("a payload of {bytes} bytes was announced, more than is allowed")]
    TooLong {
        /// The length.
        bytes: u32,
    },
    /// The server's [`Work`] failed.
    #[error("the work between a request and its reply failed: {0}")]
    Work(#[from] io::Error),
    /// The executor of the server could not be started or has ended.
    #[error("the executor of the echo server can't run: {reason}")]
    Executor {
        /// What glommio said.
        reason: String,
    },
}

/// An echo server on a thread of its own.
pub struct EchoServer {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: ExecutorJoinHandle<EndpointStats>,
}

impl EchoServer {
    /// Starts it at `address`, on a CPU of the scheduler's choice or a `fixed_cpu`, on a core that
    /// spins for `spin`. Before each reply it does the `work`, if there is any.
    pub fn start(
        address: SocketAddr,
        tls: ServerTls,
        params: ServerParams,
        fixed_cpu: Option<usize>,
        spin: Duration,
        work: Option<Work>,
    ) -> Result<Self, BaselineError> {
        let (ready, started) = mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel();
        let placement = fixed_cpu.map_or(Placement::Unbound, Placement::Fixed);
        let thread = LocalExecutorBuilder::new(placement)
            .name("echo")
            .spawn(move || async move {
                let queue = glommio::executor().current_task_queue();
                let spin = server::Spin::new(spin);
                let bound = server::Endpoint::bind(address, 0, &tls, params, queue, spin);
                let endpoint = match bound.await {
                    Ok(endpoint) => endpoint,
                    Err(error) => {
                        let _ = ready.send(Err(error));
                        return EndpointStats::default();
                    }
                };
                let _ = ready.send(Ok(endpoint.local_address()));
                let serving = glommio::spawn_local(serve(endpoint.clone(), work)).detach();
                // Dropped without a word means the same: nobody is left to measure.
                let _ = stopped.await;
                let stats = endpoint.stats();
                endpoint.close(CODE_DONE, "measured");
                serving.await;
                endpoint.wait_idle().await;
                stats
            })
            .map_err(|error| BaselineError::Executor {
                reason: error.to_string(),
            })?;
        match started.recv() {
            Ok(Ok(address)) => Ok(Self {
                address,
                stop,
                thread,
            }),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(BaselineError::Executor {
                reason: "it ended at once".into(),
            }),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it, closes its connections, and gives what it has seen.
    pub fn stop(self) -> Result<EndpointStats, BaselineError> {
        // A server that is gone already says so below.
        let _ = self.stop.send(());
        self.thread.join().map_err(|error| BaselineError::Executor {
            reason: error.to_string(),
        })
    }
}

/// Answers requests on all connections of an endpoint until it is closed. To be run inside the
/// executor the endpoint was bound in; it starts tasks in the queue it is called from.
pub async fn serve_echo(endpoint: server::Endpoint) {
    serve(endpoint, None).await;
}

async fn serve(endpoint: server::Endpoint, work: Option<Work>) {
    while let Some(incoming) = endpoint.accept().await {
        let work = work.clone();
        glommio::spawn_local(async move {
            match incoming.handshake().await {
                Ok(connection) => serve_connection(connection, work).await,
                Err(error) => tracing::debug!(%error, "handshake failed"),
            }
        })
        .detach();
    }
}

async fn serve_connection(connection: server::Connection, work: Option<Work>) {
    while let Some(Ok((send, receive))) = connection.accept_stream().await {
        let work = work.clone();
        glommio::spawn_local(async move {
            if let Err(error) = serve_stream(send, receive, work).await {
                tracing::debug!(%error, "stream ended");
            }
        })
        .detach();
    }
}

async fn serve_stream(
    mut send: server::SendStream,
    receive: server::RecvStream,
    work: Option<Work>,
) -> Result<(), BaselineError> {
    let mut requests = Reader::new(receive);
    while let Some(header) = requests.take(HEADER_BYTES).await? {
        let (request, reply) = parse_header(&header)?;
        let mut chunks = requests
            .take(request)
            .await?
            .ok_or(BaselineError::Truncated)?;
        fit(&mut chunks, reply);
        if let Some(work) = &work {
            work()?;
        }
        send.write_chunks(&mut chunks).await?;
        glommio::yield_if_needed().await;
    }
    Ok(send.finish()?)
}

/// Cuts the payload to the length of the reply, or fills it up with zeros.
fn fit(chunks: &mut Vec<Bytes>, reply: usize) {
    let mut left = reply;
    for chunk in chunks.iter_mut() {
        chunk.truncate(left);
        left -= chunk.len();
    }
    while left > 0 {
        let filling = ZEROS.slice(..left.min(ZEROS.len()));
        left -= filling.len();
        chunks.push(filling);
    }
}

fn parse_header(chunks: &[Bytes]) -> Result<(usize, usize), BaselineError> {
    let mut header = [0u8; HEADER_BYTES];
    let bytes = chunks.iter().flat_map(|chunk| chunk.iter());
    for (place, byte) in header.iter_mut().zip(bytes) {
        *place = *byte;
    }
    let length = |at: usize| {
        let bytes =
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if bytes > PAYLOAD_BYTES_MAX {
            return Err(BaselineError::TooLong { bytes });
        }
        Ok(bytes as usize)
    };
    Ok((length(0)?, length(4)?))
}

fn header(request: u32, reply: u32) -> Bytes {
    let mut header = BytesMut::with_capacity(HEADER_BYTES);
    header.extend_from_slice(&request.to_le_bytes());
    header.extend_from_slice(&reply.to_le_bytes());
    header.freeze()
}

/// A stream of either end.
trait Chunks {
    async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, ReadError>;
}

impl Chunks for client::RecvStream {
    async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        self.read_chunks(chunks).await
    }
}

impl Chunks for server::RecvStream {
    async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        self.read_chunks(chunks).await
    }
}

/// Takes exact lengths from a stream without copying.
struct Reader<S> {
    stream: S,
    chunks: [Bytes; CHUNKS_AT_A_TIME],
    pending: VecDeque<Bytes>,
    pending_bytes: usize,
}

impl<S: Chunks> Reader<S> {
    fn new(stream: S) -> Self {
        let chunks = [const { Bytes::new() }; CHUNKS_AT_A_TIME];
        Self {
            stream,
            chunks,
            pending: VecDeque::new(),
            pending_bytes: 0,
        }
    }

    /// The next `bytes` bytes; `None` if the stream has ended right before them.
    async fn take(&mut self, bytes: usize) -> Result<Option<Vec<Bytes>>, BaselineError> {
        while self.pending_bytes < bytes {
            let Some(count) = self.stream.read_chunks(&mut self.chunks).await? else {
                return if self.pending_bytes == 0 {
                    Ok(None)
                } else {
                    Err(BaselineError::Truncated)
                };
            };
            for chunk in &mut self.chunks[..count] {
                self.pending_bytes += chunk.len();
                self.pending.push_back(std::mem::take(chunk));
            }
        }
        self.pending_bytes -= bytes;
        let mut taken = Vec::new();
        let mut left = bytes;
        while left > 0
            && let Some(mut chunk) = self.pending.pop_front()
        {
            let part = chunk.split_to(chunk.len().min(left));
            left -= part.len();
            taken.push(part);
            if !chunk.is_empty() {
                self.pending.push_front(chunk);
            }
        }
        Ok(Some(taken))
    }
}

/// Sends `count` requests of `bytes` one after the other, each after the reply to the one before,
/// and gives the time of each.
pub async fn ping_pong(
    connection: &client::Connection,
    bytes: u32,
    count: usize,
) -> Result<Vec<Duration>, BaselineError> {
    round_trips(connection, bytes, bytes, count).await
}

/// As [`ping_pong`], with replies of another size than the requests.
pub async fn round_trips(
    connection: &client::Connection,
    request: u32,
    reply: u32,
    count: usize,
) -> Result<Vec<Duration>, BaselineError> {
    let (mut send, receive) = connection.open_stream().await?;
    let mut replies = Reader::new(receive);
    let payload = Bytes::from(vec![7; request as usize]);
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begin = Instant::now();
        send.write_chunks(&mut [header(request, reply), payload.clone()])
            .await?;
        replies
            .take(reply as usize)
            .await?
            .ok_or(BaselineError::Truncated)?;
        times.push(begin.elapsed());
    }
    send.finish()?;
    Ok(times)
}

/// Sends `count` requests of `request` bytes for replies of `reply` bytes, `in_flight` of them
/// unanswered at a time, on one stream, and gives the time it took.
pub async fn pump(
    connection: &client::Connection,
    request: u32,
    reply: u32,
    in_flight: usize,
    count: usize,
) -> Result<Duration, BaselineError> {
    let (mut send, receive) = connection.open_stream().await?;
    let mut replies = Reader::new(receive);
    let room = Arc::new(Semaphore::new(in_flight));
    let begin = Instant::now();
    let sender_room = Arc::clone(&room);
    let sender = tokio::spawn(async move {
        let payload = Bytes::from(vec![7; request as usize]);
        for _ in 0..count {
            match sender_room.acquire().await {
                Ok(permit) => permit.forget(),
                // The reader has given up.
                Err(_) => return Ok(()),
            }
            send.write_chunks(&mut [header(request, reply), payload.clone()])
                .await?;
        }
        send.finish()
    });
    let outcome = async {
        for _ in 0..count {
            replies
                .take(reply as usize)
                .await?
                .ok_or(BaselineError::Truncated)?;
            room.add_permits(1);
        }
        Ok(begin.elapsed())
    }
    .await;
    room.close();
    match sender.await {
        Ok(Ok(())) => outcome,
        Ok(Err(error)) => outcome.and(Err(error.into())),
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
