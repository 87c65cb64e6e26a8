//! The UDP socket of a client's connection on tokio's reactor, with as few system calls as a
//! datagram needs.
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
//! - A send does not exceed one UDP payload: [`segments_at_once`].
//!
//! # Not here
//! - Where datagrams are received: `slots`. What they mean: `driver`.

use std::{
    io::{self, IoSliceMut},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    os::fd::{AsRawFd, OwnedFd},
    task::{Context, Poll, ready},
};

use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use tokio::io::{Interest, unix::AsyncFd};

use crate::{
    params::Transport,
    socket::{is_made_full, raise_buffers, segments_at_once},
};

/// The socket of one connection.
pub(super) struct ClientSocket {
    io: AsyncFd<UdpSocket>,
    state: UdpSocketState,
    segments_max: usize,
    /// The kernel had no room for a datagram, and nobody has seen room since.
    is_full: bool,
    /// Watches for room.
    room: Option<AsyncFd<OwnedFd>>,
}

/// The kernel has no room for a datagram.
#[derive(Debug)]
pub(super) struct Full;

impl ClientSocket {
    /// Opens a socket on a port that the system chooses. To be called inside a tokio runtime with
    /// IO switched on.
    pub(super) fn open(transport: &Transport) -> io::Result<Self> {
        let socket = open()?;
        raise_buffers(&socket, transport.socket_buffer_bytes);
        Self::new(socket, transport.mtu_max)
    }

    fn new(socket: UdpSocket, mtu_max: u16) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        let segments = segments_at_once(mtu_max);
        Ok(Self {
            io: watch(socket, Interest::READABLE)?,
            segments_max: segments,
            state,
            is_full: false,
            room: None,
        })
    }

    pub(super) fn local_address(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().local_addr()
    }

    /// Whether the kernel sends datagrams whole or not at all, so that the path's datagram size
    /// can be found out.
    pub(super) fn keeps_datagrams_whole(&self) -> bool {
        !self.state.may_fragment()
    }

    /// Datagrams that one call may send. The kernel may turn out to take one only.
    pub(super) fn segments_max(&self) -> usize {
        self.segments_max.min(self.state.max_gso_segments())
    }

    /// Sends datagrams, or says that the kernel has no room for them now. What can't be sent at all
    /// is lost, as on any network.
    pub(super) fn send(&mut self, transmit: &Transmit<'_>) -> Result<(), Full> {
        let sent = match is_made_full() {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => self.state.send(self.io.get_ref().into(), transmit),
        };
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.is_full = true;
                Err(Full)
            }
            Err(error) => {
                tracing::debug!(%error, "sending failed, and goes on");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Waits until the kernel may have room again, if it had none.
    pub(super) fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.is_full {
            return Poll::Ready(());
        }
        if self.room.is_none() {
            match self.watch_room() {
                Ok(room) => self.room = Some(room),
                Err(error) => {
                    // Out of descriptors: the connection is not lost for that, it asks again.
                    tracing::debug!(%error, "room to send can't be watched");
                    self.is_full = false;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
        if let Some(room) = &self.room {
            // It is given up as it is, with nothing to take back. The same if the reactor ends.
            let _seen = ready!(room.poll_write_ready(context));
        }
        self.room = None;
        self.is_full = false;
        Poll::Ready(())
    }

    /// A descriptor of its own, since the reactor takes one descriptor only once.
    fn watch_room(&self) -> io::Result<AsyncFd<OwnedFd>> {
        let socket = self.io.get_ref().try_clone()?;
        watch(OwnedFd::from(socket), Interest::WRITABLE)
    }

    /// Receives what is there, at least one message; their number. To be called again after each
    /// time that it was ready: until then nobody is woken.
    pub(super) fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        rooms: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<usize> {
        let whole = rooms.len().min(BATCH_SIZE);
        loop {
            let Ok(mut readable) = ready!(self.io.poll_read_ready(context)) else {
                // The reactor has ended, and so will whoever asks.
                return Poll::Pending;
            };
            match self.state.recv(self.io.get_ref().into(), rooms, metas) {
                Ok(received) => {
                    if received < whole {
                        readable.clear_ready();
                    }
                    return Poll::Ready(received);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => readable.clear_ready(),
                Err(error) => {
                    // An error of one datagram that was sent (ICMP), told once.
                    tracing::debug!(%error, "receiving failed, and goes on");
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    }

    /// Waits until something may be there, as far as is known without asking the kernel.
    pub(super) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<()> {
        match ready!(self.io.poll_read_ready(context)) {
            Ok(_) => Poll::Ready(()),
            Err(_) => Poll::Pending,
        }
    }
}

/// For IPv6 and IPv4, or IPv4 alone on hosts without IPv6.
fn open() -> io::Result<UdpSocket> {
    let six = socket_with(
        AddressFamily::INET6,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    );
    match six {
        Ok(socket) => {
            sockopt::set_ipv6_v6only(&socket, false)?;
            bind(&socket, &SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))?;
            Ok(UdpSocket::from(socket))
        }
        Err(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
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
