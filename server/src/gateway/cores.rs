//! The gateway's end of the cores: asks one, and follows a stream to whoever leads it.
//!
//! # Invariants
//! - A request ends within its time, also when a core does not answer.
//! - Neither `NOT_OWNER` nor a move is shown to whoever asked over HTTP: the gateway goes where the
//!   stream is, a bounded number of times.

use crate::core::desk::{Ask, AskSender, LineNumber, ReaderItem, line};
use nova_model::limits::HTTP_PATIENCE_US;
use nova_model::names::StreamName;
use nova_model::placement::stream_home;
use nova_model::request::{Ack, Answer, OneShotAppend, ReadOpen, ReadOpened, Request};
use nova_model::{Code, CoreId, EncodedBatch, Facts, Refusal};
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

/// How often a request goes to a core. With the pauses below this is some three seconds; a move
/// takes milliseconds.
const TRIES_MAX: u32 = 36;
/// The first pause between two tries, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// All cores of the star.
pub(crate) struct Cores {
    asks: Vec<AskSender>,
    /// The advertised address of each, once the star serves.
    addresses: OnceLock<Vec<String>>,
    last_line: AtomicU64,
}

impl Cores {
    pub(crate) fn new(asks: Vec<AskSender>) -> Cores {
        Cores {
            asks,
            addresses: OnceLock::new(),
            last_line: AtomicU64::new(0),
        }
    }

    /// The cores answer from now on.
    pub(crate) fn serve(&self, addresses: Vec<String>) {
        assert_eq!(addresses.len(), self.asks.len(), "a core has an address");
        self.addresses.get_or_init(|| addresses);
    }

    /// Whether they answer.
    pub(crate) fn are_serving(&self) -> bool {
        self.addresses.get().is_some()
    }

    /// Every core.
    pub(crate) fn all(&self) -> impl Iterator<Item = CoreId> + use<> {
        (0..self.asks.len()).map(|core| CoreId(core as u16))
    }

    /// A one-shot append, at whichever core leads the stream.
    pub(crate) async fn append(
        &self,
        append: OneShotAppend,
        batch: EncodedBatch,
    ) -> Result<Ack, Refusal> {
        let home = self.home(&append.stream);
        self.follow(home, until(), |core, until| {
            let (reply, answer) = oneshot::channel();
            let ask = Ask::Append(Box::new(append.clone()), batch.clone(), reply);
            self.ask(core, ask, answer, until)
        })
        .await
    }

    /// A request about a stream, at whichever core leads it.
    pub(crate) async fn request(
        &self,
        stream: &StreamName,
        request: Request,
    ) -> Result<Answer, Refusal> {
        self.request_at(self.home(stream), request).await
    }

    /// A request that goes to this core first.
    pub(crate) async fn request_at(
        &self,
        first: CoreId,
        request: Request,
    ) -> Result<Answer, Refusal> {
        self.follow(first, until(), |core, until| {
            let (reply, answer) = oneshot::channel();
            let ask = Ask::Request(Box::new(request.clone()), reply);
            self.ask(core, ask, answer, until)
        })
        .await
    }

    /// Opens a reader at whichever core leads the stream.
    pub(crate) async fn open(
        self: &Arc<Cores>,
        open: &ReadOpen,
    ) -> Result<(Line, ReadOpened), Refusal> {
        let home = self.home(&open.stream);
        self.follow(home, until(), |core, until| {
            let (cores, open) = (Arc::clone(self), open.clone());
            async move { cores.open_at(core, open, until).await }
        })
        .await
    }

    async fn open_at(
        self: Arc<Cores>,
        core: CoreId,
        open: ReadOpen,
        until: Instant,
    ) -> Result<(Line, ReadOpened), Refusal> {
        let number = LineNumber(self.last_line.fetch_add(1, Ordering::Relaxed) + 1);
        let (items_in, items) = line();
        self.send(core, Ask::Open(number, Box::new(open), items_in), until)
            .await?;
        let cores = self;
        let mut line = Line {
            cores,
            core,
            number,
            items,
        };
        match timeout_at(until, line.items.recv()).await {
            Ok(Some(ReaderItem::Opened(opened))) => Ok((line, opened)),
            Ok(Some(ReaderItem::Failed(refusal))) => Err(refusal),
            Ok(Some(_)) => Err(Refusal::new(
                Code::Internal,
                "a reader was not opened first",
            )),
            Ok(None) => Err(core_gone(core)),
            Err(_) => Err(too_late(core)),
        }
    }

    fn home(&self, stream: &StreamName) -> CoreId {
        stream_home(stream, self.asks.len() as u16)
    }

    async fn send(&self, core: CoreId, ask: Ask, until: Instant) -> Result<(), Refusal> {
        if !self.are_serving() {
            let mut refusal = Refusal::new(Code::Unavailable, "the star is starting");
            refusal.clean = true;
            return Err(refusal);
        }
        let sender = &self.asks[usize::from(core.0)];
        match timeout_at(until, sender.send_async(ask)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(core_gone(core)),
            Err(_) => Err(Refusal::new(
                Code::RateLimited,
                format!("{core} has more requests than it takes"),
            )),
        }
    }

    async fn ask<T>(
        &self,
        core: CoreId,
        ask: Ask,
        answer: oneshot::Receiver<Result<T, Refusal>>,
        until: Instant,
    ) -> Result<T, Refusal> {
        self.send(core, ask, until).await?;
        match timeout_at(until, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(core_gone(core)),
            Err(_) => Err(too_late(core)),
        }
    }

    /// Asks `first`, and whoever it names, until somebody answers.
    async fn follow<T, F>(
        &self,
        first: CoreId,
        until: Instant,
        ask: impl Fn(CoreId, Instant) -> F,
    ) -> Result<T, Refusal>
    where
        F: Future<Output = Result<T, Refusal>>,
    {
        let (mut core, mut pause) = (first, PAUSE_FIRST);
        for tried in 1.. {
            let refusal = match ask(core, until).await {
                Err(refusal) if is_passing(&refusal) => refusal,
                result => return result,
            };
            let named = self.named(&refusal);
            if tried == TRIES_MAX || Instant::now() + pause >= until {
                return Err(given_up(refusal));
            }
            // The first hop is the usual one and waits for nothing.
            if tried > 1 || named.is_none() {
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            core = named.unwrap_or(core);
        }
        unreachable!("the last try returns")
    }

    /// The core whose address a refusal names.
    fn named(&self, refusal: &Refusal) -> Option<CoreId> {
        let Facts::Holder { address, .. } = &refusal.facts else {
            return None;
        };
        let known = self.addresses.get()?;
        let at = known
            .iter()
            .position(|known| Some(known) == address.as_ref());
        at.map(|at| CoreId(at as u16))
    }
}

/// A reader at a core. Dropped, it is closed there.
pub(crate) struct Line {
    cores: Arc<Cores>,
    core: CoreId,
    number: LineNumber,
    items: mpsc::Receiver<ReaderItem>,
}

impl Line {
    /// Takes the next 256 KiB.
    pub(crate) async fn credit(&self) -> Result<(), Refusal> {
        let ask = Ask::Credit(self.number);
        self.cores.send(self.core, ask, until()).await
    }

    /// What the core tells next.
    pub(crate) async fn next(&mut self) -> Result<ReaderItem, Refusal> {
        let item = self.items.recv().await;
        item.ok_or_else(|| core_gone(self.core))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let (ask, sender) = (
            Ask::Close(self.number),
            self.cores.asks[usize::from(self.core.0)].clone(),
        );
        let Err(flume::TrySendError::Full(ask)) = sender.try_send(ask) else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // A core that is gone has no readers.
                let _gone = sender.send_async(ask).await;
            });
        }
    }
}

/// Whether another try, there or elsewhere, is the gateway's own business.
pub(crate) fn is_passing(refusal: &Refusal) -> bool {
    match refusal.code {
        Code::NotOwner | Code::Draining => true,
        // Appends that wait for the disk; the bound on readers is for whoever asks.
        Code::RateLimited => matches!(refusal.facts, Facts::After(us) if us < 1_000_000),
        _ => false,
    }
}

fn given_up(refusal: Refusal) -> Refusal {
    match refusal.code {
        Code::NotOwner => Refusal::new(Code::Draining, "the stream is moving between cores"),
        _ => refusal,
    }
}

fn until() -> Instant {
    Instant::now() + Duration::from_micros(HTTP_PATIENCE_US)
}

fn too_late(core: CoreId) -> Refusal {
    let seconds = HTTP_PATIENCE_US / 1_000_000;
    let message = format!("{core} did not answer within {seconds} s");
    Refusal::new(Code::Unavailable, message)
}

fn core_gone(core: CoreId) -> Refusal {
    Refusal::new(Code::Unavailable, format!("{core} has stopped"))
}
