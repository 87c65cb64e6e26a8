//! The client's UDP socket on tokio's reactor, with as few system calls as a datagram needs.
//!
//! ```text
//!   epoll (edges) -> readable -> recvmmsg -> less than a whole batch: readable no more
//!                                         -> a whole batch: again at once
//!   sendmsg -> done                       nothing is watched
//!           -> would block -> watch a second descriptor until it is writable, then give it up
//! ```
//! tokio's own socket reads until it is told that nothing is left, and watches for room to send all
//! the time: then the kernel reports room after each datagram that left, which wakes the thread
//! for nothing. Either is a system call for each append.
//!
//! A batch that is not whole means that the queue of the socket was empty after it: `recvmmsg`
//! goes on until nothing is left. What comes later makes a new edge, and tokio does not take the
//! readiness back if that edge was seen meanwhile (it compares a tick). A datagram merged of
//! several (GRO) counts as one here as it does in the queue. An error cuts a batch short, too:
//! the kernel keeps it for the next call and has raised an edge of its own for it.
//!
//! # Invariants
//! - The readiness to read is given up only if the socket's queue was seen empty since.
//! - A send does not exceed one UDP payload: [`segments_max`].
//!
//! # Not here
//! - Making the socket and its buffers: [`super`].

use std::{
    io::{self, IoSliceMut},
    net::{SocketAddr, UdpSocket},
    os::fd::{AsRawFd, OwnedFd},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use quinn::{AsyncUdpSocket, UdpPoller};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use tokio::io::{Interest, unix::AsyncFd};

use crate::params::{receive_segments_max, segments_max};

/// The socket of one endpoint.
#[derive(Debug)]
pub(super) struct ClientSocket {
    io: AsyncFd<UdpSocket>,
    state: UdpSocketState,
    send_segments_max: usize,
    receive_segments_max: usize,
    /// The kernel had no room for a datagram, and nobody has seen room since.
    is_full: AtomicBool,
}

impl ClientSocket {
    /// Takes a socket over. To be called inside a tokio runtime with IO switched on.
    pub(super) fn new(socket: UdpSocket, mtu_max: u16) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self {
            io: watch(socket, Interest::READABLE)?,
            state,
            send_segments_max: segments_max(mtu_max),
            receive_segments_max: receive_segments_max(mtu_max),
            is_full: AtomicBool::new(false),
        })
    }
}

impl AsyncUdpSocket for ClientSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Room {
            socket: self,
            watched: None,
        })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let sent = self.state.send(self.io.get_ref().into(), transmit);
        if sent.is_err() {
            self.is_full.store(true, Ordering::Relaxed);
        }
        sent
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let whole = buffers.len().min(BATCH_SIZE);
        loop {
            let mut readable = ready!(self.io.poll_read_ready(context))?;
            match self.state.recv(self.io.get_ref().into(), buffers, metas) {
                Ok(received) => {
                    if received < whole {
                        readable.clear_ready();
                    }
                    return Poll::Ready(Ok(received));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => readable.clear_ready(),
                Err(error) => {
                    // An error of one datagram that was sent (ICMP), told once. quinn would end
                    // the endpoint for it, and with it the connections to all others.
                    tracing::debug!(%error, "receiving failed, and goes on");
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments().min(self.send_segments_max)
    }

    fn max_receive_segments(&self) -> usize {
        self.state.gro_segments().min(self.receive_segments_max)
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }
}

/// Waits, for one connection, until the kernel has room for a datagram.
#[derive(Debug)]
struct Room {
    socket: Arc<ClientSocket>,
    watched: Option<AsyncFd<OwnedFd>>,
}

impl Room {
    /// A descriptor of its own, since the reactor takes one descriptor only once.
    fn watch(&self) -> io::Result<AsyncFd<OwnedFd>> {
        let socket = self.socket.io.get_ref().try_clone()?;
        watch(OwnedFd::from(socket), Interest::WRITABLE)
    }
}

impl UdpPoller for Room {
    fn poll_writable(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.watched.is_none() {
            if !self.socket.is_full.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
            match self.watch() {
                Ok(watched) => self.watched = Some(watched),
                Err(error) => {
                    // Out of descriptors: the connection is not lost for that, it asks again.
                    tracing::debug!(%error, "room to send can't be watched");
                    self.socket.is_full.store(false, Ordering::Relaxed);
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
        if let Some(watched) = &self.watched {
            // It is given up as it is, with nothing to take back.
            let _seen = ready!(watched.poll_write_ready(context))?;
        }
        self.watched = None;
        self.socket.is_full.store(false, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

/// Registers a descriptor with the reactor.
#[allow(
    unsafe_code,
    reason = "the only way to watch a descriptor for one interest"
)]
fn watch<T: AsRawFd + Owned>(descriptor: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // SAFETY: the type owns its descriptor, gives always the same one, and closes it when it is
    // dropped: `AsyncFd` takes it off the reactor before, and nothing here takes it out.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, interest) };
    Ok(watched?)
}

/// Types that own the one descriptor they give.
trait Owned {}
impl Owned for UdpSocket {}
impl Owned for OwnedFd {}

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
