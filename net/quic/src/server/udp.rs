//! The UDP socket of a core: readiness through the executor's ring, datagrams through quinn-udp.
//!
//! ```text
//! poll_recv   recvmmsg with GRO  ->  queue empty?  ->  spin  ->  1-byte peek on the ring, sleep
//! try_send    sendmsg with GSO   ->  buffer full?  ->  back off 50 us, again
//! ```
//! A peek on the ring completes when a datagram is there and leaves it there: that is readiness
//! without a poller. glommio's public interface has none for writing, hence the short back-off,
//! which happens only while the send buffer of several MiB is full. glommio's own datagram send is
//! not used: with a full socket it turned datagrams into such of one byte.
//!
//! # Invariants
//! - A batch to send fits one UDP payload: [`segments_max`].
//! - A socket that fails to peek is retried after a pause, never in a tight loop.
//!
//! # Not here
//! - Which socket: `bind`.

use std::{
    cell::RefCell,
    fmt,
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
use quinn::{AsyncUdpSocket, UdpPoller};
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use super::{
    local::Local,
    spin::{Spin, Wait},
};
use crate::params::{receive_segments_max, segments_max};

/// Pause before a full send buffer is tried again. At 1 GB/s it has drained by 50 KB then.
const SEND_BACK_OFF: Duration = Duration::from_micros(50);

/// Pause after a peek that failed, so that a lasting failure does not become a busy loop.
const PEEK_BACK_OFF: Duration = Duration::from_millis(1);

/// Least time between two looks at the socket while others run in between.
const LOOK_INTERVAL: Duration = Duration::from_micros(2);

/// How long the executor is left alone so that it looks at its rings. A timer that is due when it
/// is first polled would be over without that.
const VISIT: Duration = Duration::from_micros(1);

type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

pub(super) struct CoreSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    send_segments_max: usize,
    receive_segments_max: usize,
    /// The last send found the buffer full.
    send_blocked: AtomicBool,
    receive: Local<RefCell<Receive>>,
}

struct Receive {
    /// glommio's handle on the same socket, for peeking only.
    peek: Rc<glommio::net::UdpSocket>,
    /// A peek on its way.
    readiness: Option<Peek>,
    /// The last batch was short: the queue is empty, and trying it would be a wasted call.
    drained: bool,
    spin: Rc<Spin>,
    /// When the socket was last tried, by a core that spins.
    tried: Option<Instant>,
    /// The executor is looking at its rings.
    visit: Option<LocalFuture>,
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
        Ok(Self {
            socket,
            state,
            send_segments_max: segments_max(mtu_max),
            receive_segments_max: receive_segments_max(mtu_max),
            send_blocked: AtomicBool::new(false),
            receive: Local::new(RefCell::new(Receive {
                peek,
                readiness: None,
                drained: false,
                spin,
                tried: None,
                visit: None,
                sleeper: None,
            })),
        })
    }
}

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

    /// Waits for the end of a look at the rings.
    fn poll_visit(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(visit) = &mut self.visit {
            ready!(visit.as_mut().poll(context));
            self.visit = None;
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
    fn may_try(&mut self) -> bool {
        if self.drained {
            return false;
        }
        if self.spin.is_on() {
            let now = Instant::now();
            let is_soon = |tried| now.duration_since(tried) < LOOK_INTERVAL;
            if self.tried.is_some_and(is_soon) {
                return false;
            }
            self.tried = Some(now);
        }
        true
    }

    /// No datagram is there: what to do until one is. Ready to be polled again at once.
    fn wait(&mut self, context: &mut Context<'_>, is_asleep: bool) -> Poll<()> {
        let wait = match self.spin.is_on() {
            true => self.spin.wait(Instant::now()),
            false => Wait::Sleep,
        };
        match wait {
            Wait::Spin => {
                self.drained = false;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Wait::Visit => {
                self.drained = false;
                // A timer that is as good as due: the executor runs dry, looks, and goes on.
                self.visit = Some(Box::pin(async {
                    Timer::new(VISIT).await;
                }));
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

impl fmt::Debug for CoreSocket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CoreSocket")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

impl AsyncUdpSocket for CoreSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(SendPoller {
            socket: self,
            pause: Local::new(RefCell::new(None)),
        })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let sent = self.state.send(UdpSockRef::from(&self.socket), transmit);
        if let Err(error) = &sent
            && error.kind() == io::ErrorKind::WouldBlock
        {
            self.send_blocked.store(true, Ordering::Relaxed);
        }
        self.receive.get().borrow_mut().has_sent();
        sent
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let receive = &mut *self.receive.get().borrow_mut();
        loop {
            ready!(receive.poll_visit(context));
            let is_asleep = receive.poll_readiness().is_pending();
            if is_asleep && !receive.spin.is_on() {
                return Poll::Pending;
            }
            if receive.may_try() {
                match self
                    .state
                    .recv(UdpSockRef::from(&self.socket), buffers, metas)
                {
                    Ok(count) => {
                        receive.drained = count < buffers.len();
                        receive.spin.renew();
                        return Poll::Ready(Ok(count));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            ready!(receive.wait(context, is_asleep));
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
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

/// Completes when a datagram is there.
async fn readable(socket: Rc<glommio::net::UdpSocket>) {
    if let Err(error) = socket.peek_from(&mut [0u8; 1]).await {
        tracing::debug!(%error, "waiting for a datagram failed");
        Timer::new(PEEK_BACK_OFF).await;
    }
}

struct SendPoller {
    socket: Arc<CoreSocket>,
    pause: Local<RefCell<Option<LocalFuture>>>,
}

impl fmt::Debug for SendPoller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SendPoller")
    }
}

impl UdpPoller for SendPoller {
    /// quinn asks before every send, so that the common case must cost nothing.
    fn poll_writable(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let pause = &mut *self.pause.get().borrow_mut();
        if !self.socket.send_blocked.load(Ordering::Relaxed) {
            *pause = None;
            return Poll::Ready(Ok(()));
        }
        let waiting = pause.get_or_insert_with(|| {
            Box::pin(async {
                Timer::new(SEND_BACK_OFF).await;
            })
        });
        ready!(waiting.as_mut().poll(context));
        *pause = None;
        self.socket.send_blocked.store(false, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}
