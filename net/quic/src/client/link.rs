//! One connection as its handles and its driver share it: the state machine of QUIC and who waits.
//!
//! ```text
//!   streams, connection ---> Link ---> driver ---> datagrams
//!            ^--- calls ------ |  <--- datagrams, deadlines
//! ```
//! Whoever looks at the state from a thread of the runtime holds its lock for as long. Those that
//! are to be woken for it are called behind the lock, so that they do not run into it.
//!
//! # Invariants
//! - A link that may have something to send is due, and its driver awake or woken.
//! - Whoever waits is woken when what it waits for may be there, and by the end of the connection.
//! - The lock is not held while anything is waited for, nor by a system call.
//!
//! # Not here
//! - Sockets and timers: `driver`.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
    time::Instant,
};

use bytes::Bytes;
use quinn_proto::{ConnectionError, Dir, Event, StreamEvent, StreamId, Transmit, VarInt};
use rustc_hash::FxBuildHasher;
use tokio::sync::{Notify, futures::OwnedNotified};

/// A connection.
pub(super) struct Link {
    state: Mutex<State>,
    /// The handshake is through, a stream may be opened, or the connection has ended.
    news: Notify,
}

/// What the handles and the driver share.
pub(super) struct State {
    pub(super) quic: quinn_proto::Connection,
    is_connected: bool,
    /// Why it has ended.
    pub(super) error: Option<ConnectionError>,
    pub(super) readers: Wakers,
    pub(super) writers: Wakers,
    /// Who wants to know the end of a sending half.
    enders: HashMap<StreamId, Arc<Notify>, FxBuildHasher>,
    /// There is, or may be, something to send.
    is_due: bool,
    driver: Option<Waker>,
    /// The driver waits for something to happen.
    is_driver_asleep: bool,
    calls: Calls,
}

/// Who waits for a stream; one for each.
pub(super) type Wakers = HashMap<StreamId, Waker, FxBuildHasher>;

/// Who is to be woken behind the lock.
#[derive(Default)]
struct Calls {
    driver: Option<Waker>,
    streams: Vec<Waker>,
    enders: Vec<Arc<Notify>>,
    has_news: bool,
}

impl Calls {
    fn make(self, news: &Notify) {
        self.streams.into_iter().for_each(Waker::wake);
        self.enders.iter().for_each(|ender| ender.notify_waiters());
        if self.has_news {
            news.notify_waiters();
        }
        if let Some(driver) = self.driver {
            driver.wake();
        }
    }
}

impl Link {
    pub(super) fn new(quic: quinn_proto::Connection) -> Link {
        Link {
            state: Mutex::new(State {
                quic,
                is_connected: false,
                error: None,
                readers: Wakers::default(),
                writers: Wakers::default(),
                enders: HashMap::default(),
                is_due: true,
                driver: None,
                is_driver_asleep: false,
                calls: Calls::default(),
            }),
            news: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the state, and wakes whoever has a reason since.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let seen = look(&mut state);
        let calls = std::mem::take(&mut state.calls);
        drop(state);
        calls.make(&self.news);
        seen
    }

    /// Looks at the state until there is something to see, whenever there is news.
    async fn until<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let news = self.news.notified();
            if let Some(seen) = self.with(&mut look) {
                return seen;
            }
            news.await;
        }
    }

    /// Waits for the handshake. One that is through counts although the connection may have ended
    /// since, which is told to whoever uses it.
    pub(super) async fn connected(&self) -> Result<(), ConnectionError> {
        self.until(|state| match &state.error {
            _ if state.is_connected => Some(Ok(())),
            error => error.clone().map(Err),
        })
        .await
    }

    /// Opens a stream; waits while as many are open as the peer allows.
    pub(super) async fn open(&self) -> Result<StreamId, ConnectionError> {
        self.until(|state| match &state.error {
            Some(error) => Some(Err(error.clone())),
            None => state.quic.streams().open(Dir::Bi).map(Ok),
        })
        .await
    }

    /// Waits for the end of the connection.
    pub(super) async fn closed(&self) -> ConnectionError {
        self.until(|state| state.error.clone()).await
    }

    /// Closes the connection on purpose, if it is open.
    pub(super) fn close(&self, code: VarInt, reason: Bytes) {
        self.with(|state| {
            if state.error.is_none() {
                state.quic.close(Instant::now(), code, reason);
                state.end(ConnectionError::LocallyClosed);
                state.due();
            }
        });
    }
}

impl State {
    /// There is, or may be, something to send.
    pub(super) fn due(&mut self) {
        self.is_due = true;
        if std::mem::take(&mut self.is_driver_asleep) {
            self.calls.driver.clone_from(&self.driver);
        }
    }

    /// Waits for the end of a sending half. To be looked at again then.
    pub(super) fn end_of(&mut self, id: StreamId) -> OwnedNotified {
        Arc::clone(self.enders.entry(id).or_default()).notified_owned()
    }

    /// The driver is awake; deadlines that are over by `now` are met. Whether there were any.
    pub(super) fn wake_up(&mut self, now: Instant) -> bool {
        self.is_driver_asleep = false;
        let is_late = self.quic.poll_timeout().is_some_and(|at| at <= now);
        if is_late {
            self.quic.handle_timeout(now);
            self.is_due = true;
        }
        is_late
    }

    /// The next datagrams to be sent, at most so many.
    pub(super) fn next(
        &mut self,
        now: Instant,
        datagrams_max: usize,
        bytes: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if !self.is_due {
            return None;
        }
        let transmit = self.quic.poll_transmit(now, datagrams_max, bytes);
        self.is_due = transmit.is_some();
        transmit
    }

    /// The driver has nothing to do but what is due, for which it `may_send`. Unless it goes on for
    /// that it is asleep, until the deadline at the latest.
    pub(super) fn fall_asleep(&mut self, context: &Context<'_>, may_send: bool) -> Option<Sleep> {
        if self.is_due && may_send {
            return None;
        }
        self.is_driver_asleep = true;
        match &mut self.driver {
            Some(driver) => driver.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Some(Sleep {
            deadline: self.quic.poll_timeout(),
        })
    }

    /// Tells those that wait what has happened.
    pub(super) fn tell(&mut self) {
        while let Some(event) = self.quic.poll() {
            match event {
                Event::Stream(StreamEvent::Readable { id }) => {
                    self.calls.streams.extend(self.readers.remove(&id));
                }
                Event::Stream(StreamEvent::Writable { id }) => {
                    self.calls.streams.extend(self.writers.remove(&id));
                }
                Event::Stream(StreamEvent::Finished { id }) => {
                    self.calls.enders.extend(self.enders.remove(&id));
                }
                Event::Stream(StreamEvent::Stopped { id, .. }) => {
                    self.calls.enders.extend(self.enders.remove(&id));
                    self.calls.streams.extend(self.writers.remove(&id));
                }
                Event::Stream(StreamEvent::Available { .. }) => self.calls.has_news = true,
                Event::Connected => {
                    self.is_connected = true;
                    self.calls.has_news = true;
                }
                Event::ConnectionLost { reason } => self.end(reason),
                // Datagrams are off, and streams are opened by clients only.
                Event::HandshakeDataReady
                | Event::Stream(StreamEvent::Opened { .. })
                | Event::DatagramReceived
                | Event::DatagramsUnblocked => {}
            }
        }
    }

    /// The connection has ended.
    pub(super) fn end(&mut self, error: ConnectionError) {
        self.error.get_or_insert(error);
        let streams = self.readers.drain().chain(self.writers.drain());
        self.calls.streams.extend(streams.map(|(_, waker)| waker));
        let enders = self.enders.drain();
        self.calls.enders.extend(enders.map(|(_, ender)| ender));
        self.calls.has_news = true;
    }
}

/// What a driver that sleeps waits for besides.
pub(super) struct Sleep {
    pub(super) deadline: Option<Instant>,
}
