//! quinn's runtime on a glommio executor: tasks and timers. The socket is in `udp`.
//!
//! # Invariants
//! - Everything lives on the executor's thread; [`Local`] checks it.
//! - A timer is armed anew only when its deadline moves to an earlier time. quinn moves it later
//!   with almost every packet: then the armed one fires early, and is armed for the rest.
//!
//! # Not here
//! - The executor itself. How long a core spins: `spin`.

use std::{
    future::Future,
    io,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use glommio::{TaskQueueHandle, timer::Timer};
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime};

use super::{local::Local, spin::Spin, udp::CoreSocket};

/// The runtime of one core. Made inside its executor.
#[derive(Debug)]
pub(super) struct CoreRuntime {
    task_queue: Local<TaskQueueHandle>,
    mtu_max: u16,
    spin: Local<Rc<Spin>>,
}

impl CoreRuntime {
    /// Tasks go into `task_queue`; no datagram is larger than `mtu_max` bytes.
    pub(super) fn new(task_queue: TaskQueueHandle, mtu_max: u16, spin: Rc<Spin>) -> Self {
        Self {
            task_queue: Local::new(task_queue),
            mtu_max,
            spin: Local::new(spin),
        }
    }
}

impl Runtime for CoreRuntime {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(CoreTimer(Local::new(TimerState {
            deadline,
            armed: None,
        })))
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        glommio::spawn_local_into(future, *self.task_queue.get())
            .expect("the endpoint's task queue lives as long as its executor")
            .detach();
    }

    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Ok(Arc::new(CoreSocket::new(
            socket,
            self.mtu_max,
            Rc::clone(self.spin.get()),
        )?))
    }
}

#[derive(Debug)]
struct CoreTimer(Local<TimerState>);

#[derive(Debug)]
struct TimerState {
    deadline: Instant,
    /// A timer in the reactor, and when it fires.
    armed: Option<(Timer, Instant)>,
}

impl AsyncTimer for CoreTimer {
    fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
        self.0.get_mut().deadline = deadline;
    }

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let state = self.0.get_mut();
        let now = Instant::now();
        if now >= state.deadline {
            state.armed = None;
            return Poll::Ready(());
        }
        // The same task polls the timer always, so that the waker it was armed with is right.
        let still_armed = state
            .armed
            .as_ref()
            .is_some_and(|(_, at)| *at > now && *at <= state.deadline);
        if still_armed {
            return Poll::Pending;
        }
        let mut timer = Timer::new(state.deadline - now);
        match Pin::new(&mut timer).poll(context) {
            Poll::Ready(_) => {
                state.armed = None;
                Poll::Ready(())
            }
            Poll::Pending => {
                state.armed = Some((timer, state.deadline));
                Poll::Pending
            }
        }
    }
}
