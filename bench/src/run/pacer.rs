//! Waits until a moment, to some ten microseconds: the clock of an open loop.
//!
//! tokio's own timers go in steps of a millisecond, ten times what an append takes. Here one
//! `timerfd` of a thread, which the reactor of its runtime watches, is armed for the earliest
//! moment that a task of the thread waits for.
//!
//! ```text
//!   tasks -> waiting: moment, task     +-- armed for the first --> timerfd --> reactor
//!               ^                      |                                          |
//!               +--- removed, woken <--+------------------- tick <----------------+
//! ```
//! # Invariants
//! - The timer is armed for the first moment that is waited for, or one before it.
//! - At most one entry for each task that waits.

use crate::error::BenchError;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;

#[derive(Debug, Default)]
struct Waiting {
    tasks: BTreeMap<(Instant, u64), Waker>,
    next_id: u64,
    armed_for: Option<Instant>,
}

/// The clock of the tasks of one thread.
#[derive(Debug, Clone)]
pub struct Pacer {
    timer: Rc<AsyncFd<OwnedFd>>,
    waiting: Rc<RefCell<Waiting>>,
}

impl Pacer {
    /// Makes one, from within the thread's runtime, which takes local tasks: one of it goes on.
    pub fn start() -> Result<Pacer, BenchError> {
        let failed = |error: io::Error| BenchError::io("making a timer")(error);
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags);
        let timer = timer.map_err(|error| failed(error.into()))?;
        // SAFETY: the descriptor is open, and it stays so for as long as it is registered: nobody
        // else has it, and `AsyncFd` gives it up before it closes it.
        #[allow(unsafe_code, reason = "the only way to watch a descriptor of ours")]
        let timer = unsafe { AsyncFd::register(timer) };
        let pacer = Pacer {
            timer: Rc::new(timer.map_err(|error| failed(error.into()))?),
            waiting: Rc::default(),
        };
        tokio::task::spawn_local(pacer.clone().tick());
        Ok(pacer)
    }

    /// Resolves at a moment, at once if it has passed.
    pub fn until(&self, moment: Instant) -> Until {
        Until {
            pacer: self.clone(),
            moment,
            id: None,
        }
    }

    /// Wakes whose moment has come, for ever. Ends with the thread's tasks.
    async fn tick(self) {
        loop {
            let Ok(mut ready) = self.timer.readable().await else {
                return;
            };
            let read = ready.try_io(|timer| {
                let mut expirations = [0; 8];
                Ok(rustix::io::read(timer.get_ref(), &mut expirations)?)
            });
            if matches!(read, Ok(Err(_))) {
                return;
            }
            let now = Instant::now();
            let mut waiting = self.waiting.borrow_mut();
            waiting.armed_for = None;
            while let Some(first) = waiting.tasks.first_entry() {
                if first.key().0 > now {
                    let moment = first.key().0;
                    self.arm(&mut waiting, moment, now);
                    break;
                }
                first.remove().wake();
            }
        }
    }

    fn arm(&self, waiting: &mut Waiting, moment: Instant, now: Instant) {
        // Zero would disarm the timer.
        let time = (moment - now).max(Duration::from_nanos(1));
        let value = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        let spec = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: value,
        };
        let set = timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &spec);
        set.expect("the times of a timer are in range");
        waiting.armed_for = Some(moment);
    }
}

/// Waits for a moment.
#[derive(Debug)]
pub struct Until {
    pacer: Pacer,
    moment: Instant,
    id: Option<u64>,
}

impl Future for Until {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let now = Instant::now();
        if now >= this.moment {
            return Poll::Ready(());
        }
        let mut waiting = this.pacer.waiting.borrow_mut();
        let id = *this.id.get_or_insert_with(|| {
            waiting.next_id += 1;
            waiting.next_id
        });
        let place = (this.moment, id);
        waiting.tasks.insert(place, context.waker().clone());
        if waiting.armed_for.is_none_or(|armed| armed > this.moment) {
            this.pacer.arm(&mut waiting, this.moment, now);
        }
        Poll::Pending
    }
}

impl Drop for Until {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let mut waiting = self.pacer.waiting.borrow_mut();
            waiting.tasks.remove(&(self.moment, id));
        }
    }
}

#[cfg(test)]
#[path = "pacer_tests.rs"]
mod tests;
