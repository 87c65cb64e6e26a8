//! What the UDP sockets of both ends share.
//!
//! # Not here
//! - Reading and writing datagrams: the socket of each end.

use std::os::fd::AsFd;

use rustix::{
    io,
    net::sockopt::{
        set_socket_recv_buffer_size, set_socket_recv_buffer_size_force,
        set_socket_send_buffer_size, set_socket_send_buffer_size_force, socket_recv_buffer_size,
    },
};

use crate::params::segments_max;

/// Raises both buffers of a socket towards `bytes`, best effort: beyond the system's limit
/// (`net.core.rmem_max`, `wmem_max`) only with CAP_NET_ADMIN.
pub(crate) fn raise_buffers(socket: impl AsFd, bytes: usize) {
    let socket = socket.as_fd();
    let raised = set_socket_recv_buffer_size_force(socket, bytes)
        .or_else(|_| set_socket_recv_buffer_size(socket, bytes))
        .and_then(|()| {
            set_socket_send_buffer_size_force(socket, bytes)
                .or_else(|_| set_socket_send_buffer_size(socket, bytes))
        });
    report(raised, socket_recv_buffer_size(socket).unwrap_or(0), bytes);
}

fn report(raised: io::Result<()>, got: usize, wanted: usize) {
    match raised {
        // The kernel gives twice what was asked for, to pay for its own bookkeeping.
        Ok(()) if got >= wanted => {}
        Ok(()) => tracing::info!(
            got,
            wanted,
            "UDP buffers are smaller than wanted; raise net.core.rmem_max and wmem_max"
        ),
        Err(error) => tracing::info!(%error, wanted, "UDP buffers keep their size"),
    }
}

/// Datagrams given to the kernel at once at most: more are hardly faster, and what is to be sent
/// takes this much memory.
const SEGMENTS_MAX: usize = 10;

/// Datagrams of `mtu_max` bytes that one call may send, where the kernel takes several.
pub(crate) fn segments_at_once(mtu_max: u16) -> usize {
    segments_max(mtu_max).min(SEGMENTS_MAX)
}

/// What QUIC wants to be sent, in the words of the socket.
pub(crate) fn datagrams<'b>(
    transmit: &quinn_proto::Transmit,
    bytes: &'b [u8],
) -> quinn_udp::Transmit<'b> {
    quinn_udp::Transmit {
        destination: transmit.destination,
        ecn: transmit
            .ecn
            .and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
        contents: bytes,
        segment_size: transmit.segment_size,
        src_ip: transmit.src_ip,
    }
}

#[cfg(test)]
thread_local! {
    /// On a thread of a test: every so many sends find no room, which loopback always has; 0 is
    /// none.
    pub(crate) static FULL_EVERY: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    static SENDS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Whether a test wants this send to find no room.
#[cfg(test)]
pub(crate) fn is_made_full() -> bool {
    let sends = SENDS.get() + 1;
    SENDS.set(sends);
    sends.is_multiple_of(FULL_EVERY.get())
}

#[cfg(not(test))]
pub(crate) fn is_made_full() -> bool {
    false
}
