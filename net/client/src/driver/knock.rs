//! Finding out that a star answers again, for next to nothing at either end.
//!
//! ```text
//!   handshake --x lost: nobody has the port
//!   knock ------x
//!   knock ------> star is back -- versions --> the handshake is begun once more
//! ```
//! A knock is a QUIC packet of a version that nobody speaks (RFC 9000, sections 6.3 and 15). A star
//! answers it with the versions that it does speak and keeps nothing of it, so a star that many
//! clients wait for is not kept busy with handshakes that they have given up.
//!
//! # Invariants
//! - What comes back decides only when a handshake is begun, never whom to trust.

use crate::core::retry::Probes;
use crate::driver::source::Source;
use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::UdpSocket;

/// Smallest datagram that may begin a connection (RFC 9000, section 14.1).
const KNOCK_BYTES: usize = 1_200;
/// Long header with the fixed bit.
const FIRST_BYTE: u8 = 0xc0;
const LONG_HEADER: u8 = 0x80;
/// Reserved for packets that ask for the versions (RFC 9000, section 15).
const VERSION_UNSPOKEN: [u8; 4] = [0x1a, 0x2a, 0x3a, 0x4a];
/// The version of the answer.
const VERSION_NEGOTIATION: [u8; 4] = [0; 4];
const ID_BYTES: usize = 8;

/// Waits until somebody answers knocks at this address. Knocks at the pace of `probes`, for the
/// first time after one wait.
pub(crate) async fn answered(star: SocketAddr, source: &Source, probes: &mut Probes) {
    let mut pace = || Duration::from_micros(probes.next_us(source.moment().random));
    tokio::time::sleep(pace()).await;
    let socket = match open(star).await {
        Ok(socket) => socket,
        Err(error) => {
            tracing::debug!(%star, %error, "no socket to knock with");
            return pending().await;
        }
    };
    let id = source.moment().random.to_be_bytes();
    loop {
        // Refused means that nobody is there yet.
        let _ = socket.send(&knock(id)).await;
        if tokio::time::timeout(pace(), heard(&socket, id))
            .await
            .is_ok()
        {
            return;
        }
    }
}

async fn open(star: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match star {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(star).await?;
    Ok(socket)
}

async fn heard(socket: &UdpSocket, id: [u8; ID_BYTES]) {
    let mut bytes = [0; KNOCK_BYTES];
    loop {
        match socket.recv(&mut bytes).await {
            Ok(count) if is_answer(&bytes[..count], id) => return,
            Ok(_) => {}
            Err(_) => pending().await,
        }
    }
}

/// First byte, version, then the ids of both ends, each behind its length; zeros to the end.
fn knock(id: [u8; ID_BYTES]) -> [u8; KNOCK_BYTES] {
    let mut packet = [0; KNOCK_BYTES];
    packet[0] = FIRST_BYTE;
    packet[1..5].copy_from_slice(&VERSION_UNSPOKEN);
    for at in [5, 6 + ID_BYTES] {
        packet[at] = ID_BYTES as u8;
        packet[at + 1..=at + ID_BYTES].copy_from_slice(&id);
    }
    packet
}

/// Whether these are the versions of whoever got the knock with this id.
fn is_answer(packet: &[u8], id: [u8; ID_BYTES]) -> bool {
    let (Some(first), Some(version)) = (packet.first(), packet.get(1..5)) else {
        return false;
    };
    first & LONG_HEADER != 0
        && version == VERSION_NEGOTIATION
        && packet.get(5) == Some(&(ID_BYTES as u8))
        && packet.get(6..6 + ID_BYTES) == Some(&id)
}

#[cfg(test)]
#[path = "knock_tests.rs"]
mod tests;
