//! The per-key queue: which inputs run together, and whose turn it is.
//!
//! ```text
//!   push(key, input) --> a: [1 2 3]  running     ready (a turn each): c, b
//!                        b: [4]      ready
//!                        c: [5 6]   ready        poll_batch() -> (c, [5 6])
//!   handle_done(a)   --> a has inputs again: behind b
//! ```
//! All that gathered under a key while its batch was running is its next batch, as far as the
//! limits of a batch allow. A key whose batch is done goes to the end of the queue of keys, so a
//! key with many inputs gets one batch in each round, as one with a single input does.
//!
//! # Invariants
//! - At most one batch of a key runs, so the inputs of a key run in the order they were pushed.
//! - At most `keys_in_flight` batches run.
//! - At most `queueing_max` inputs and `queueing_bytes_max` bytes wait, over all keys together.
//! - A key without inputs that wait or run costs nothing.
//!
//! # Not here
//! - Running a batch, and the answers of its callers: [`KeyedBatcher`](crate::KeyedBatcher).

use nova_model::Refusal;
use nova_model::limits::{
    BATCH_METERED_BYTES_MAX, CLIENT_KEYS_IN_FLIGHT_DEFAULT, CLIENT_QUEUEING_BYTES_MAX,
    CLIENT_QUEUEING_INPUTS_DEFAULT,
};
use std::collections::{BTreeMap, VecDeque};

/// The bounds of a [`KeyedQueue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyedConfig {
    /// Batches that run at once, each of another key.
    pub keys_in_flight: usize,
    /// Inputs that wait at most, not counting those of running batches; one more is rejected.
    pub queueing_max: usize,
    /// Bytes of the inputs that wait at most.
    pub queueing_bytes_max: usize,
    /// Inputs of one batch at most.
    pub batch_inputs_max: usize,
    /// Bytes of one batch at most; an input that is larger by itself runs alone.
    pub batch_bytes_max: usize,
}

impl Default for KeyedConfig {
    fn default() -> KeyedConfig {
        KeyedConfig {
            keys_in_flight: CLIENT_KEYS_IN_FLIGHT_DEFAULT,
            queueing_max: CLIENT_QUEUEING_INPUTS_DEFAULT,
            queueing_bytes_max: CLIENT_QUEUEING_BYTES_MAX,
            batch_inputs_max: usize::MAX,
            batch_bytes_max: BATCH_METERED_BYTES_MAX,
        }
    }
}

impl KeyedConfig {
    /// Refuses bounds with which nothing could ever run: `INVALID`, with the field.
    pub fn check(&self) -> Result<(), Refusal> {
        let fields = [
            ("keys_in_flight", self.keys_in_flight),
            ("queueing_max", self.queueing_max),
            ("queueing_bytes_max", self.queueing_bytes_max),
            ("batch_inputs_max", self.batch_inputs_max),
            ("batch_bytes_max", self.batch_bytes_max),
        ];
        match fields.iter().find(|(_, value)| *value == 0) {
            Some((field, _)) => {
                let message = format!("{field} is at least 1");
                Err(Refusal::invalid(field, Some(1), message))
            }
            None => Ok(()),
        }
    }
}

/// There is no room for one more input that waits; the input comes back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} inputs of {waiting_bytes} bytes wait already")]
pub struct Rejected<T> {
    /// What was not taken.
    pub input: T,
    /// Inputs that wait.
    pub waiting: usize,
    /// Their bytes.
    pub waiting_bytes: usize,
}

#[derive(Debug)]
struct Lane<T> {
    waiting: VecDeque<(T, usize)>,
    running: usize,
    is_ready: bool,
}

impl<T> Default for Lane<T> {
    fn default() -> Lane<T> {
        Lane {
            waiting: VecDeque::new(),
            running: 0,
            is_ready: false,
        }
    }
}

/// Inputs by key; see the module.
#[derive(Debug)]
pub struct KeyedQueue<K, T> {
    config: KeyedConfig,
    lanes: BTreeMap<K, Lane<T>>,
    ready: VecDeque<K>,
    running: usize,
    waiting: usize,
    waiting_bytes: usize,
    /// Variants without a safeguard, for the tests that show that it is needed: batches of a key
    /// overlap; a key keeps its turn.
    #[cfg(test)]
    pub(crate) overlaps: bool,
    #[cfg(test)]
    keeps_turn: bool,
}

impl<K: Ord + Clone, T> KeyedQueue<K, T> {
    /// A queue with nothing in it.
    pub fn new(config: KeyedConfig) -> KeyedQueue<K, T> {
        KeyedQueue {
            config,
            lanes: BTreeMap::new(),
            ready: VecDeque::new(),
            running: 0,
            waiting: 0,
            waiting_bytes: 0,
            #[cfg(test)]
            overlaps: false,
            #[cfg(test)]
            keeps_turn: false,
        }
    }

    /// Puts an input of this many bytes behind those of its key, if there is room.
    pub fn push(&mut self, key: K, input: T, bytes: usize) -> Result<(), Rejected<T>> {
        let has_room = self.waiting < self.config.queueing_max
            && bytes <= self.config.queueing_bytes_max - self.waiting_bytes;
        if !has_room {
            return Err(Rejected {
                input,
                waiting: self.waiting,
                waiting_bytes: self.waiting_bytes,
            });
        }
        self.waiting += 1;
        self.waiting_bytes += bytes;
        let lane = self.lanes.entry(key.clone()).or_default();
        lane.waiting.push_back((input, bytes));
        self.make_ready(&key);
        Ok(())
    }

    /// The next batch to run, if one may; [`KeyedQueue::handle_done`] is due after it.
    pub fn poll_batch(&mut self) -> Option<(K, Vec<T>)> {
        if self.running >= self.config.keys_in_flight {
            return None;
        }
        let key = self.ready.pop_front()?;
        let lane = self.lanes.get_mut(&key).expect("a ready key has a lane");
        let mut batch = Vec::new();
        let mut batch_bytes: usize = 0;
        while let Some((_, bytes)) = lane.waiting.front() {
            let is_full = batch.len() >= self.config.batch_inputs_max
                || batch_bytes.saturating_add(*bytes) > self.config.batch_bytes_max;
            if is_full && !batch.is_empty() {
                break;
            }
            batch_bytes += *bytes;
            batch.extend(lane.waiting.pop_front().map(|(input, _)| input));
        }
        assert!(!batch.is_empty(), "a ready key has inputs");
        lane.is_ready = false;
        lane.running += 1;
        self.running += 1;
        self.waiting -= batch.len();
        self.waiting_bytes -= batch_bytes;
        self.make_ready(&key);
        Some((key, batch))
    }

    /// The batch of this key has run.
    pub fn handle_done(&mut self, key: &K) {
        let lane = self.lanes.get_mut(key).expect("a running key has a lane");
        assert!(lane.running > 0, "no batch of the key was running");
        lane.running -= 1;
        self.running -= 1;
        if lane.waiting.is_empty() && lane.running == 0 {
            self.lanes.remove(key);
        } else {
            self.make_ready(key);
        }
    }

    /// Takes out all inputs that wait; what runs goes on.
    pub fn take_waiting(&mut self) -> Vec<T> {
        let mut taken = Vec::new();
        self.lanes.retain(|_, lane| {
            taken.extend(lane.waiting.drain(..).map(|(input, _)| input));
            lane.is_ready = false;
            lane.running > 0
        });
        self.ready.clear();
        (self.waiting, self.waiting_bytes) = (0, 0);
        taken
    }

    /// Inputs that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Batches that run.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Whether nothing waits and nothing runs.
    pub fn is_idle(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Gives the key a turn if it wants one, may have one, and has none yet.
    fn make_ready(&mut self, key: &K) {
        let may_overlap = self.may_overlap();
        let lane = self.lanes.get_mut(key).expect("the caller has looked");
        let may_run = lane.running == 0 || may_overlap;
        if may_run && !lane.is_ready && !lane.waiting.is_empty() {
            lane.is_ready = true;
            self.ready.push_back(key.clone());
            #[cfg(test)]
            if self.keeps_turn {
                self.ready.rotate_right(1);
            }
        }
    }

    #[cfg(not(test))]
    fn may_overlap(&self) -> bool {
        false
    }

    #[cfg(test)]
    fn may_overlap(&self) -> bool {
        self.overlaps
    }
}

#[cfg(test)]
#[path = "keyed_tests.rs"]
mod tests;
