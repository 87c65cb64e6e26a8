//! The task of one producer: moves facts between the rules, the lane and the callers.
//!
//! # Invariants
//! - All events of the lane are handed to the rules before the rules are asked what to do.
//! - Whatever way the task ends, every ticket gets its result.
//! - The clock is read once for each event, and the lock of the staged records is taken as seldom
//!   as can be: both are a good part of what an append costs here.

use crate::core::producer::{Action, Producer, Target};
use crate::core::{AppendError, BatchNumber, Moment};
use crate::driver::dialer::DialError;
use crate::driver::pipe::{Lost, Pipe};
use crate::driver::staging::{Phase, Staged, Staging};
use crate::error::ClientError;
use crate::star::{Star, holder};
use nova_model::limits::LANE_OUTPUT_BYTES_MAX;
use nova_model::request::{Ack, AppendOpen};
use nova_model::{Instant, Refusal, StreamName};
use nova_proto::client::{AppendEvent, AppendLane};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// How long the end of a session may take.
const GOODBYE: Duration = Duration::from_secs(1);

type Opened = Result<Box<Pipe<AppendLane>>, DialError>;

enum Link {
    Down,
    Opening(Pin<Box<dyn Future<Output = Opened> + Send>>),
    Up(Box<Pipe<AppendLane>>),
}

enum Event {
    Opened(Opened),
    Turned(Result<(), Lost>),
    Work,
    Tick,
}

/// What is left when there is nothing to do.
enum Rest {
    /// Nothing: the task ends.
    Over,
    /// To wait, no longer than until then.
    Until(Option<Instant>),
}

pub(crate) struct ProducerTask {
    star: Arc<Star>,
    staging: Arc<Staging>,
    rules: Producer,
    link: Link,
    stream: StreamName,
    address: String,
    /// When the last event came.
    now: Instant,
}

impl ProducerTask {
    pub(crate) fn new(
        star: Arc<Star>,
        staging: Arc<Staging>,
        rules: Producer,
        stream: StreamName,
    ) -> ProducerTask {
        let now = star.source.now();
        ProducerTask {
            star,
            staging,
            rules,
            link: Link::Down,
            stream,
            address: String::new(),
            now,
        }
    }

    /// Runs until the producer is closed, dropped or broken.
    pub(crate) async fn run(mut self) {
        self.rules.start();
        while let Rest::Until(deadline) = self.act() {
            let event = self.wait(deadline).await;
            self.now = self.star.source.now();
            self.handle(event);
        }
        self.say_goodbye().await;
    }

    /// Does what there is to do.
    fn act(&mut self) -> Rest {
        loop {
            let (freed, rest) = {
                let mut staged = self.staging.lock();
                let before = staged.batcher.staged_bytes();
                if staged.phase == Phase::Abandoned {
                    self.rules.abandon(&mut staged.batcher);
                } else {
                    self.rules.pump(self.now, &mut staged.batcher);
                }
                (before - staged.batcher.staged_bytes(), self.rest(&staged))
            };
            self.staging.release(freed);
            let mut has_acted = false;
            while self.output_bytes() < LANE_OUTPUT_BYTES_MAX
                && let Some(action) = self.rules.poll_action()
            {
                has_acted = true;
                self.perform(action);
            }
            if !has_acted {
                return rest;
            }
        }
    }

    /// What is left if nothing is to be done now.
    fn rest(&self, staged: &Staged) -> Rest {
        let is_over = match staged.phase {
            Phase::Taking => self.rules.broken().is_some(),
            Phase::Draining => staged.batcher.is_empty() && self.rules.is_quiet(),
            Phase::Abandoned | Phase::Over(_) => true,
        };
        if is_over {
            Rest::Over
        } else {
            Rest::Until(self.rules.next_deadline(&staged.batcher))
        }
    }

    fn output_bytes(&self) -> usize {
        match &self.link {
            Link::Up(pipe) => pipe.lane.output_bytes(),
            Link::Down | Link::Opening(_) => 0,
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Connect { target, open } => self.connect(target, open),
            Action::Disconnect => self.link = Link::Down,
            Action::Send { append, batch, .. } => {
                if let Link::Up(pipe) = &mut self.link {
                    pipe.lane.send(append, &batch);
                }
            }
            Action::Resume => {
                if let Link::Up(pipe) = &mut self.link {
                    pipe.lane.resume();
                }
            }
            Action::NeedWriter => {
                let writer = self.star.source.writer_id();
                self.rules.set_writer(self.star.source.moment(), writer);
            }
            Action::Resolve { batch, result } => self.resolve(batch, result),
        }
    }

    fn connect(&mut self, target: Target, open: AppendOpen) {
        let name = self.stream.to_string();
        self.address = match target {
            Target::Star => self.star.entry(&name),
            Target::Address(address) => address,
        };
        let (star, address) = (Arc::clone(&self.star), self.address.clone());
        self.link = Link::Opening(Box::pin(async move {
            let connection = star.dialer.connection(&star.source, &address).await?;
            let pipe = Pipe::append(connection, open).await;
            pipe.map(Box::new).map_err(|Lost| DialError::Unreachable)
        }));
    }

    fn resolve(&self, batch: BatchNumber, result: Result<Ack, AppendError>) {
        let cell = {
            let mut staged = self.staging.lock();
            if let Err(error) = &result
                && staged.first_failure.is_none()
            {
                staged.first_failure = Some(error.clone().into());
            }
            staged.settle(batch)
        };
        if let Some(cell) = cell {
            cell.set(result);
        }
        self.staging.settling.notify_waiters();
    }

    async fn wait(&mut self, deadline: Option<Instant>) -> Event {
        let until = deadline.map(|deadline| self.star.source.time_of(deadline));
        let link = async {
            match &mut self.link {
                Link::Down => std::future::pending().await,
                Link::Opening(opening) => Event::Opened(opening.await),
                Link::Up(pipe) => Event::Turned(pipe.turn().await),
            }
        };
        let tick = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // What was heard first: an answer that came in time counts, however late it is read.
            biased;
            event = link => event,
            () = self.staging.work.notified() => Event::Work,
            () = tick => Event::Tick,
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Work => {}
            Event::Tick => self.rules.handle_tick(self.moment()),
            Event::Opened(Ok(pipe)) => {
                self.link = Link::Up(pipe);
                self.rules.handle_asked(self.now);
                self.take_events();
            }
            Event::Opened(Err(error)) => {
                self.link = Link::Down;
                self.star.holders.forget(&self.address);
                match error {
                    DialError::Unresolvable { address } => self.rules.handle_unresolvable(address),
                    DialError::Handshake(failure) => self.rules.handle_handshake_failed(failure),
                    DialError::Unreachable => self.rules.handle_lost(self.moment()),
                }
            }
            Event::Turned(turned) => {
                self.take_events();
                if turned == Err(Lost) && matches!(self.link, Link::Up(_)) {
                    self.link = Link::Down;
                    self.rules.handle_lost(self.moment());
                }
            }
        }
    }

    fn take_events(&mut self) {
        while let Link::Up(pipe) = &mut self.link
            && let Some(event) = pipe.lane.poll_event()
        {
            let at = self.moment();
            match event {
                AppendEvent::Opened(opened) => {
                    self.star
                        .holders
                        .remember(&self.stream.to_string(), &self.address);
                    self.rules.handle_opened(opened);
                }
                AppendEvent::OpenRefused(refusal) => {
                    self.count_redirect(&refusal);
                    self.rules.handle_open_refused(at, refusal);
                }
                AppendEvent::Acked(ack) => self.rules.handle_acked(at, ack),
                AppendEvent::Rejected(refusal) => self.rules.handle_rejected(at, refusal),
                AppendEvent::Broken(refusal) => {
                    self.link = Link::Down;
                    self.count_redirect(&refusal);
                    self.rules.handle_broken(at, refusal);
                }
                AppendEvent::Ended => {
                    self.link = Link::Down;
                    self.rules.handle_lost(at);
                }
            }
        }
    }

    /// The time of the last event, with a random number.
    fn moment(&self) -> Moment {
        self.star.source.moment_at(self.now)
    }

    fn count_redirect(&self, refusal: &Refusal) {
        if matches!(holder(refusal), Some(Some(_))) {
            self.star.holders.note_redirect();
        }
    }

    /// Ends the session in order, so that a stream with the `fenced` policy is free at once.
    async fn say_goodbye(&mut self) {
        if let Link::Up(pipe) = &mut self.link {
            pipe.lane.finish();
            // The finish goes out with the first turn that has nothing to write; the star's end
            // of the stream, or the loss of the connection, ends the loop.
            let ended =
                async { while pipe.turn().await.is_ok() && pipe.lane.poll_event().is_none() {} };
            if tokio::time::timeout(GOODBYE, ended).await.is_err() {
                tracing::debug!(stream = %self.stream, "the star did not end a session in time");
            }
        }
    }
}

impl Drop for ProducerTask {
    fn drop(&mut self) {
        let freed = {
            let mut staged = self.staging.lock();
            let before = staged.batcher.staged_bytes();
            self.rules.abandon(&mut staged.batcher);
            before - staged.batcher.staged_bytes()
        };
        self.staging.release(freed);
        while let Some(action) = self.rules.poll_action() {
            if let Action::Resolve { batch, result } = action {
                self.resolve(batch, result);
            }
        }
        let error = match self.rules.broken() {
            Some(AppendError::Closed) | None => ClientError::Closed,
            Some(error) => error.clone().into(),
        };
        self.staging.end(error);
    }
}
