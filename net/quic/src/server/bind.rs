//! Takes a UDP port for a core, and waits a moment for a predecessor to let go of it.
//!
//! # Invariants
//! - No option that shares a port is set: two servers on one port would split its packets.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

use glommio::timer::Timer;

use crate::error::BindError;

/// Pause between two attempts: half of what a dying process usually needs.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// Binds `address`. While the port is taken it tries again for up to `patience`: the sockets of a
/// process that used io_uring stay bound for about 10 ms after its end.
pub(super) async fn bind(address: SocketAddr, patience: Duration) -> Result<UdpSocket, BindError> {
    let begin = Instant::now();
    loop {
        match UdpSocket::bind(address) {
            Ok(socket) => return Ok(socket),
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                return Err(BindError::Socket {
                    address,
                    source: error,
                });
            }
            Err(_) if begin.elapsed() >= patience => return Err(BindError::InUse { address }),
            Err(_) => {
                Timer::new(RETRY_PAUSE).await;
            }
        }
    }
}
