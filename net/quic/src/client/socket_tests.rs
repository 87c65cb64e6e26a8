//! The client's socket against another of this machine: nothing is missed, nothing asked twice.

use super::*;

use std::future::poll_fn;

/// Runs a test on a runtime of its own.
fn on_tokio<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test)
}

fn client_socket() -> ClientSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    ClientSocket::new(socket, 1_200).unwrap()
}

/// One call of [`ClientSocket::poll_receive`] with room for `room` datagrams: what came, each its
/// first byte.
async fn receive(socket: &mut ClientSocket, room: usize) -> Vec<u8> {
    let mut memory = vec![[0; 2_048]; room];
    let mut buffers: Vec<_> = memory
        .iter_mut()
        .map(|buffer| IoSliceMut::new(buffer))
        .collect();
    let mut metas = vec![RecvMeta::default(); room];
    let count = poll_fn(|context| socket.poll_receive(context, &mut buffers, &mut metas)).await;
    memory[..count].iter().map(|buffer| buffer[0]).collect()
}

/// Whether nothing is there, as far as is known without asking the kernel.
async fn is_drained(socket: &ClientSocket) -> bool {
    let known = poll_fn(|context| Poll::Ready(socket.poll_readable(context).is_pending()));
    known.await
}

#[test]
fn what_comes_between_two_batches_is_not_missed() {
    on_tokio(async {
        let mut socket = client_socket();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(socket.local_address().unwrap()).unwrap();
        let mut next = 0;
        // Fewer than a call takes, as many, more, and the same with less room than the most.
        for (room, burst) in [
            (32, 1),
            (32, 31),
            (32, 32),
            (32, 33),
            (32, 100),
            (3, 3),
            (3, 8),
        ] {
            for number in next..next + burst {
                sender.send(&[number; 8]).unwrap();
            }
            let mut came = Vec::new();
            while came.len() < usize::from(burst) {
                came.extend(receive(&mut socket, room).await);
            }
            assert_eq!(came, (next..next + burst).collect::<Vec<_>>());
            next += burst;
        }
    });
}

#[test]
fn a_batch_that_is_not_whole_is_not_asked_for_twice() {
    on_tokio(async {
        let mut socket = client_socket();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(socket.local_address().unwrap()).unwrap();
        for number in 0..4 {
            sender.send(&[number; 8]).unwrap();
        }
        assert_eq!(receive(&mut socket, 2).await, [0, 1]);
        assert!(!is_drained(&socket).await);
        assert_eq!(receive(&mut socket, 3).await, [2, 3]);
        assert!(is_drained(&socket).await);
        sender.send(&[4; 8]).unwrap();
        assert_eq!(receive(&mut socket, 3).await, [4]);
    });
}

#[test]
fn room_is_watched_only_after_a_send_found_none() {
    on_tokio(async {
        let mut socket = client_socket();
        let polled = poll_fn(|context| Poll::Ready(socket.poll_room(context))).await;
        assert!(polled.is_ready());
        assert!(socket.room.is_none());
        // Loopback takes a datagram out of the sender's buffer at once, so none is ever refused.
        socket.is_full = true;
        let polled = poll_fn(|context| Poll::Ready(socket.poll_room(context))).await;
        assert!(polled.is_pending());
        assert!(socket.room.is_some());
        poll_fn(|context| socket.poll_room(context)).await;
        assert!(socket.room.is_none());
        assert!(!socket.is_full);
    });
}
