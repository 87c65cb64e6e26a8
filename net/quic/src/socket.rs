//! Settings of UDP sockets that both ends share.
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
