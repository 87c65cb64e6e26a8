//! The UDP socket of a core: readiness through the executor's ring, datagrams through quinn-udp.
//!
//! ```text
//! poll_receive  recvmmsg with GRO  ->  queue empty?  ->  spin  ->  1-byte peek on the ring, sleep
//! send          sendmsg with GSO   ->  buffer full?  ->  back off 50 us, again
//! ```
//! A peek on the ring completes when a datagram is there and leaves it there: that is readiness
//! without a poller. glommio's public interface has none for writing, hence the short back-off,
//! which happens only while the send buffer of several MiB is full. glommio's own datagram send is
//! not used: with a full socket it turned datagrams into such of one byte.
//!
//! # Invariants
//! - A batch to send fits one UDP payload: [`segments_at_once`].
//! - A socket that fails to receive or to peek is tried again after a pause, never in a tight loop.
//!
//! # Not here
//! - Which socket: `bind`. What the datagrams mean: `driver`.

use std::{
    future::Future,
    io::{self, IoSliceMut},
    net::{SocketAddr, UdpSocket},
    pin::Pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker, ready},
    time::{Duration, Instant},
};

use glommio::timer::Timer;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use super::spin::{Spin, Wait};
use crate::socket::{is_made_full, segments_at_once};

/// Pause before a full send buffer is tried again. At 1 GB/s it has drained by 50 KB then.
const SEND_BACK_OFF: Duration = Duration::from_micros(50);

/// Pause after a call that failed, so that a lasting failure does not become a busy loop.
const FAILURE_BACK_OFF: Duration = Duration::from_millis(1);

/// Least time between two looks at the socket while others run in between.
const LOOK_INTERVAL: Duration = Duration::from_micros(10);

/// A look that comes so soon behind the last one had nobody else between them.
const ALONE: Duration = Duration::from_nanos(700);

/// How long the executor is left alone so that it looks at its rings. A timer that is due when it
/// is first polled would be over without that.
const VISIT: Duration = Duration::from_micros(1);

/// Room for one message: as much as the kernel makes of several datagrams at most (GRO).
const MESSAGE_BYTES: usize = 64 * 1024;

type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

pub(super) struct CoreSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    segments_max: usize,
    /// What was received last: room for each message, and what is known of each.
    memory: Vec<u8>,
    metas: [RecvMeta; BATCH_SIZE],
    receive: Receive,
    /// The last send found the buffer full.
    pause: Option<LocalFuture>,
}

struct Receive {
    /// glommio's handle on the same socket, for peeking only.
    peek: Rc<glommio::net::UdpSocket>,
    /// A peek on its way.
    readiness: Option<Peek>,
    /// The last batch was short: the queue is empty, and trying it would be a wasted call.
    drained: bool,
    spin: Rc<Spin>,
    /// When a core that spins last tried the socket, and when it was last done with looking.
    tried: Option<Instant>,
    looked: Option<Instant>,
    /// A pause: the executor is looking at its rings, or a call failed.
    pause: Option<LocalFuture>,
    /// Whoever waits for a datagram, asleep; woken to spin again.
    sleeper: Option<Waker>,
}

/// A peek and what it wakes. It is polled only when it has been woken: each poll of an operation
/// in the ring leaves a waker there until the operation ends, and a core that spins polls often.
struct Peek {
    future: LocalFuture,
    wake: Arc<PeekWake>,
}

struct PeekWake {
    is_woken: AtomicBool,
    /// The one task that receives.
    task: Waker,
}

impl Wake for PeekWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

impl Peek {
    fn new(socket: Rc<glommio::net::UdpSocket>, task: Waker) -> Peek {
        Peek {
            future: Box::pin(readable(socket)),
            wake: Arc::new(PeekWake {
                is_woken: AtomicBool::new(true),
                task,
            }),
        }
    }

    fn poll(&mut self) -> Poll<()> {
        if !self.wake.is_woken.swap(false, Ordering::Acquire) {
            return Poll::Pending;
        }
        let waker = Waker::from(Arc::clone(&self.wake));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

impl CoreSocket {
    /// Makes the socket non-blocking, and switches GRO, packet info and "don't fragment" on.
    pub(super) fn new(socket: UdpSocket, mtu_max: u16, spin: Rc<Spin>) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let twin = socket2_04::Socket::from(socket.try_clone()?);
        let peek = Rc::new(glommio::net::UdpSocket::from(twin));
        let segments = segments_at_once(mtu_max);
        Ok(Self {
            segments_max: state.max_gso_segments().min(segments),
            socket,
            state,
            memory: vec![0; BATCH_SIZE * MESSAGE_BYTES],
            metas: [RecvMeta::default(); BATCH_SIZE],
            receive: Receive {
                peek,
                readiness: None,
                drained: false,
                spin,
                tried: None,
                looked: None,
                pause: None,
                sleeper: None,
            },
            pause: None,
        })
    }

    pub(super) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Whether the kernel sends datagrams whole or not at all, so that the path's datagram size
    /// can be found out.
    pub(super) fn keeps_datagrams_whole(&self) -> bool {
        !self.state.may_fragment()
    }

    /// Datagrams that one call may send.
    pub(super) fn segments_max(&self) -> usize {
        self.segments_max
    }

    /// Sends datagrams, or says that the kernel has no room for them now. What can't be sent at all
    /// is lost, as on any network.
    pub(super) fn send(&mut self, transmit: &Transmit<'_>) -> Result<(), Full> {
        let sent = match is_made_full() {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => self.state.send(UdpSockRef::from(&self.socket), transmit),
        };
        self.receive.has_sent();
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.pause = Some(sleep(SEND_BACK_OFF));
                Err(Full)
            }
            Err(error) => {
                tracing::debug!(%error, "sending failed, and goes on");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Waits until the kernel may have room again.
    pub(super) fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        Poll::Ready(())
    }

    /// Receives what is there at `now`, at least one message; their number.
    pub(super) fn poll_receive(&mut self, context: &mut Context<'_>, now: Instant) -> Poll<usize> {
        let receive = &mut self.receive;
        loop {
            ready!(receive.poll_pause(context));
            let is_asleep = receive.poll_readiness().is_pending();
            if is_asleep && !receive.spin.is_on() {
                return Poll::Pending;
            }
            if receive.may_try(now) {
                let mut rooms = self.memory.chunks_mut(MESSAGE_BYTES).map(IoSliceMut::new);
                let mut rooms: [IoSliceMut<'_>; BATCH_SIZE] =
                    std::array::from_fn(|_| rooms.next().expect("as many rooms as messages"));
                let socket = UdpSockRef::from(&self.socket);
                match self.state.recv(socket, &mut rooms, &mut self.metas) {
                    Ok(count) => {
                        receive.drained = count < BATCH_SIZE;
                        receive.spin.renew();
                        return Poll::Ready(count);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => {
                        tracing::debug!(%error, "receiving failed, and goes on");
                        receive.pause = Some(sleep(FAILURE_BACK_OFF));
                        continue;
                    }
                }
            }
            ready!(receive.wait(context, now, is_asleep));
        }
    }

    /// A message that was received last.
    pub(super) fn message(&self, at: usize) -> (&RecvMeta, &[u8]) {
        let meta = &self.metas[at];
        let begin = at * MESSAGE_BYTES;
        (meta, &self.memory[begin..begin + meta.len])
    }
}

/// The kernel has no room for a datagram.
pub(super) struct Full;

impl Receive {
    /// Something was sent, so that something may soon come back.
    fn has_sent(&mut self) {
        if self.spin.is_on() {
            self.spin.renew();
            if let Some(sleeper) = self.sleeper.take() {
                sleeper.wake();
            }
        }
    }

    /// Waits for the end of a pause.
    fn poll_pause(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        Poll::Ready(())
    }

    /// Pending while a peek is on its way.
    fn poll_readiness(&mut self) -> Poll<()> {
        if let Some(readiness) = &mut self.readiness {
            ready!(readiness.poll());
            self.readiness = None;
            self.drained = false;
            self.tried = None;
        }
        Poll::Ready(())
    }

    /// Whether a datagram may be there.
    fn may_try(&mut self, now: Instant) -> bool {
        if self.drained {
            return false;
        }
        if self.spin.is_on() {
            let is_soon = |before, time| now.duration_since(before) < time;
            let is_alone = self.looked.is_some_and(|at| is_soon(at, ALONE));
            if !is_alone && self.tried.is_some_and(|at| is_soon(at, LOOK_INTERVAL)) {
                return false;
            }
            self.tried = Some(now);
        }
        true
    }

    /// No datagram is there: what to do until one is. Ready to be polled again at once.
    fn wait(&mut self, context: &mut Context<'_>, now: Instant, is_asleep: bool) -> Poll<()> {
        let wait = match self.spin.is_on() {
            true => self.spin.wait(now),
            false => Wait::Sleep,
        };
        match wait {
            Wait::Spin => {
                self.drained = false;
                self.looked = Some(Instant::now());
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Wait::Visit => {
                self.drained = false;
                // A timer that is as good as due: the executor runs dry, looks, and goes on.
                self.pause = Some(sleep(VISIT));
            }
            Wait::Sleep => {
                if self.spin.is_on() {
                    self.sleeper = Some(context.waker().clone());
                }
                if is_asleep {
                    return Poll::Pending;
                }
                let task = context.waker().clone();
                self.readiness = Some(Peek::new(Rc::clone(&self.peek), task));
            }
        }
        Poll::Ready(())
    }
}

fn sleep(time: Duration) -> LocalFuture {
    Box::pin(async move {
        Timer::new(time).await;
    })
}

/// Completes when a datagram is there.
async fn readable(socket: Rc<glommio::net::UdpSocket>) {
    if let Err(error) = socket.peek_from(&mut [0u8; 1]).await {
        tracing::debug!(%error, "waiting for a datagram failed");
        Timer::new(FAILURE_BACK_OFF).await;
    }
}
