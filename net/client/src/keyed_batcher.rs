//! The keyed batcher: runs a caller's function on batches of inputs, one batch of a key at a time.
//!
//! # Invariants
//! - Each caller gets the output of its own input, or the error of its batch.
//! - Whatever the function does (fail, panic, return too few outputs), its callers are told, and
//!   the key gets its next batch.
//!
//! # Not here
//! - Which inputs run together, turns and bounds: [`KeyedQueue`].

use crate::core::keyed::{KeyedConfig, KeyedQueue};
use crate::error::ClientError;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

/// Why an input has no output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError<E> {
    /// `queueing_max` inputs, or too many bytes, wait already: submit again later.
    #[error("too many inputs wait already")]
    Rejected,
    /// The function returned an error for the whole batch.
    #[error("{0}")]
    Failed(E),
    /// The function panicked.
    #[error("the batch function panicked")]
    Panicked,
    /// The function returned another number of outputs than it got inputs.
    #[error("the batch function returned {outputs} outputs for {inputs} inputs")]
    Miscounted {
        /// Inputs it got.
        inputs: usize,
        /// Outputs it returned.
        outputs: usize,
    },
    /// The batcher is closed.
    #[error("the batcher is closed")]
    Closed,
}

type Outcome<O, E> = Result<O, BatchError<E>>;
type Running<O, E> = Pin<Box<dyn Future<Output = Result<Vec<O>, E>> + Send>>;
type BatchFunction<K, I, O, E> = Box<dyn Fn(K, Vec<I>) -> Running<O, E> + Send + Sync>;
type Queue<K, I, O, E> = KeyedQueue<K, (I, oneshot::Sender<Outcome<O, E>>)>;

/// Runs a function on batches of inputs by key. Share it between tasks behind an `Arc`.
///
/// Inputs of one key run in the order they were submitted, those of different keys side by side
/// and in turns; see [`KeyedConfig`] for the bounds. Dropped without [`KeyedBatcher::close`], it
/// begins no further batch: inputs that wait resolve as [`BatchError::Closed`].
pub struct KeyedBatcher<K: Ord + Clone, I, O, E> {
    shared: Arc<Shared<K, I, O, E>>,
}

struct Shared<K: Ord + Clone, I, O, E> {
    state: Mutex<State<K, I, O, E>>,
    run: BatchFunction<K, I, O, E>,
    done: Notify,
    runtime: Handle,
}

struct State<K: Ord + Clone, I, O, E> {
    queue: Queue<K, I, O, E>,
    is_closed: bool,
}

impl<K, I, O, E> KeyedBatcher<K, I, O, E>
where
    K: Ord + Clone + Send + 'static,
    I: Send + 'static,
    O: Send + 'static,
    E: Clone + Send + 'static,
{
    /// A batcher of this function, which gets a key with some of its inputs and returns an output
    /// for each of them, in order. To be called inside a tokio runtime.
    pub fn new<F, B>(config: KeyedConfig, run: F) -> Result<KeyedBatcher<K, I, O, E>, ClientError>
    where
        F: Fn(K, Vec<I>) -> B + Send + Sync + 'static,
        B: Future<Output = Result<Vec<O>, E>> + Send + 'static,
    {
        config.check()?;
        Ok(KeyedBatcher {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    queue: KeyedQueue::new(config),
                    is_closed: false,
                }),
                run: Box::new(move |key, inputs| Box::pin(run(key, inputs))),
                done: Notify::new(),
                runtime: Handle::current(),
            }),
        })
    }

    /// Submits an input and waits for its output.
    pub async fn submit(&self, key: K, input: I) -> Result<O, BatchError<E>> {
        self.submit_async(key, input, 0)?.await
    }

    /// Submits an input that counts as this many bytes. Its place behind what was submitted before
    /// is taken at once; what comes back waits for the output.
    pub fn submit_async(
        &self,
        key: K,
        input: I,
        bytes: usize,
    ) -> Result<Submitted<O, E>, BatchError<E>> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.shared.lock();
            if state.is_closed {
                return Err(BatchError::Closed);
            }
            let pushed = state.queue.push(key, (input, sender), bytes);
            pushed.map_err(|_| BatchError::Rejected)?;
        }
        Shared::pump(&self.shared);
        Ok(Submitted { receiver })
    }

    /// Takes no more inputs, and waits until all that were submitted have run.
    pub async fn close(&self) {
        self.shared.lock().is_closed = true;
        loop {
            let done = self.shared.done.notified();
            tokio::pin!(done);
            done.as_mut().enable();
            if self.shared.lock().queue.is_idle() {
                return;
            }
            done.await;
        }
    }

    /// Inputs that wait for their batch to begin.
    pub fn waiting(&self) -> usize {
        self.shared.lock().queue.waiting()
    }
}

impl<K: Ord + Clone, I, O, E> Drop for KeyedBatcher<K, I, O, E> {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.shared.lock();
            state.is_closed = true;
            state.queue.take_waiting()
        };
        drop(waiting);
    }
}

impl<K: Ord + Clone, I, O, E> fmt::Debug for KeyedBatcher<K, I, O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        f.debug_struct("KeyedBatcher")
            .field("waiting", &state.queue.waiting())
            .field("running", &state.queue.running())
            .field("is_closed", &state.is_closed)
            .finish()
    }
}

impl<K: Ord + Clone, I, O, E> Shared<K, I, O, E> {
    fn lock(&self) -> MutexGuard<'_, State<K, I, O, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, I, O, E> Shared<K, I, O, E>
where
    K: Ord + Clone + Send + 'static,
    I: Send + 'static,
    O: Send + 'static,
    E: Clone + Send + 'static,
{
    /// Begins the batches that may run.
    fn pump(shared: &Arc<Self>) {
        loop {
            let Some((key, batch)) = shared.lock().queue.poll_batch() else {
                return;
            };
            let task = Shared::run(Arc::clone(shared), key, batch);
            shared.runtime.spawn(task);
        }
    }

    async fn run(shared: Arc<Self>, key: K, batch: Vec<(I, oneshot::Sender<Outcome<O, E>>)>) {
        let (inputs, callers): (Vec<I>, Vec<_>) = batch.into_iter().unzip();
        let count = inputs.len();
        let begin = AssertUnwindSafe(|| (shared.run)(key.clone(), inputs));
        let outcome = match catch_unwind(begin) {
            Ok(running) => CatchPanic(running).await,
            Err(_) => Err(BatchError::Panicked),
        };
        let outputs = outcome.and_then(|outputs| match outputs.len() {
            outputs if outputs != count => Err(BatchError::Miscounted {
                inputs: count,
                outputs,
            }),
            _ => Ok(outputs),
        });
        // The key is free before its callers hear, so that what they submit next finds it so.
        shared.lock().queue.handle_done(&key);
        match outputs {
            Ok(outputs) => {
                for (caller, output) in callers.into_iter().zip(outputs) {
                    // A caller may have stopped waiting.
                    let _ = caller.send(Ok(output));
                }
            }
            Err(error) => {
                for caller in callers {
                    let _ = caller.send(Err(error.clone()));
                }
            }
        }
        Shared::pump(&shared);
        shared.done.notify_waiters();
    }
}

/// Turns a panic of the caller's function into an error.
struct CatchPanic<O, E>(Running<O, E>);

impl<O, E> Future for CatchPanic<O, E> {
    type Output = Result<Vec<O>, BatchError<E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let poll = AssertUnwindSafe(|| self.0.as_mut().poll(context));
        match catch_unwind(poll) {
            Ok(Poll::Ready(result)) => Poll::Ready(result.map_err(BatchError::Failed)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(_) => Poll::Ready(Err(BatchError::Panicked)),
        }
    }
}

/// The output of an input that was submitted: a future. Dropping it does not take the input back.
#[derive(Debug)]
#[must_use = "an input that nobody waits for may fail unseen"]
pub struct Submitted<O, E> {
    receiver: oneshot::Receiver<Outcome<O, E>>,
}

impl<O, E> Future for Submitted<O, E> {
    type Output = Result<O, BatchError<E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let received = Pin::new(&mut self.receiver).poll(context);
        received.map(|received| received.unwrap_or(Err(BatchError::Closed)))
    }
}
