//! What all handles of one client share, and how a request finds its way.
//!
//! A request goes to the holder that redirects told last, else to where the star is entered. What
//! a refusal says decides the rest: the holder's address is followed, the `retry` and `clean`
//! bits say whether to try again.
//!
//! # Invariants
//! - A request that may have been applied is sent again only if a second time changes nothing.
//!
//! # Not here
//! - What is done about the others when an answer is lost: [`crate::change`].

use crate::core::retry::Patience;
use crate::core::{Ambiguity, Moment};
use crate::driver::control::{Ask, ControlError, Controls, Reply};
use crate::driver::dialer::Dialer;
use crate::driver::holders::Holders;
use crate::driver::source::Source;
use crate::error::ClientError;
use nova_model::request::{Ack, Answer, BucketInfo, OneShotAppend, Request, StreamInfo};
use nova_model::{Code, EncodedBatch, Facts, Refusal, SequenceNumber};

/// The insides of a client.
#[derive(Debug)]
pub(crate) struct Star {
    pub(crate) address: String,
    pub(crate) retry_budget_us: u64,
    pub(crate) silence_us_max: u64,
    pub(crate) source: Source,
    pub(crate) dialer: Dialer,
    pub(crate) holders: Holders,
    pub(crate) controls: Controls,
}

/// Where a refusal says that the stream is led: `None` if it says nothing about it.
pub(crate) fn holder(refusal: &Refusal) -> Option<Option<&str>> {
    match &refusal.facts {
        Facts::Holder { address, .. } => Some(address.as_deref()),
        _ => None,
    }
}

/// How long a refusal asks to wait.
pub(crate) fn after_us(refusal: &Refusal) -> Option<u64> {
    match refusal.facts {
        Facts::After(us) => Some(us),
        _ => None,
    }
}

/// What a second application of a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// The request changes nothing: no attempt leaves a doubt.
    Asks,
    /// Nothing that the first did not do.
    Harmless,
    /// It may undo what others did since the first.
    Harmful,
}

/// The state of one call across its attempts.
struct Attempts {
    patience: Patience,
    repeat: Repeat,
    /// An attempt may have been applied.
    in_doubt: bool,
    last: Option<Refusal>,
}

impl Attempts {
    /// An attempt ended without a word, or with one that leaves it open.
    fn begin_doubt(&mut self) {
        self.in_doubt |= self.repeat != Repeat::Asks;
    }

    fn ambiguity(&self) -> Box<Ambiguity> {
        let since = SequenceNumber(0);
        Box::new(Ambiguity {
            stream_id: None,
            since,
            refusal: self.last.clone(),
        })
    }

    /// Whether there is to be another attempt; an error if not.
    fn go_on(&mut self, at: Moment) -> Result<(), ClientError> {
        self.patience.begin(at.now);
        if self.in_doubt && self.repeat == Repeat::Harmful {
            return Err(ClientError::Ambiguous(self.ambiguity()));
        }
        if self.patience.is_spent(at.now) {
            let sent = self.in_doubt.then(|| self.ambiguity());
            return Err(ClientError::Unavailable {
                sent,
                last: self.last.take().map(Box::new),
            });
        }
        Ok(())
    }

    /// How long to wait after a refusal.
    fn after_refusal(&mut self, at: Moment, after_us: Option<u64>) -> Result<u64, ClientError> {
        self.go_on(at)?;
        Ok(self.patience.next_attempt(at, after_us).since_us(at.now))
    }

    /// How long to wait for a star that did not answer.
    fn after_silence(&mut self, at: Moment) -> Result<u64, ClientError> {
        self.go_on(at)?;
        Ok(self.patience.next_dial(at).since_us(at.now))
    }
}

impl Star {
    /// Where to ask for a stream or bucket first.
    pub(crate) fn entry(&self, name: &str) -> String {
        self.holders
            .get(name)
            .unwrap_or_else(|| self.address.clone())
    }

    /// Asks whoever has the stream or bucket of this name.
    pub(crate) async fn request(
        &self,
        name: &str,
        request: Request,
        repeat: Repeat,
    ) -> Result<Answer, ClientError> {
        let patience = Patience::new(self.retry_budget_us);
        self.request_within(patience, name, request, repeat).await
    }

    /// The same, with what is left of a patience.
    pub(crate) async fn request_within(
        &self,
        patience: Patience,
        name: &str,
        request: Request,
        repeat: Repeat,
    ) -> Result<Answer, ClientError> {
        match self
            .ask(patience, name, None, (Ask::Request(request), repeat))
            .await?
        {
            Reply::Answer(answer) => Ok(answer),
            Reply::Ack(_) => Err(unfit_answer()),
        }
    }

    /// Asks something that changes nothing at one address, whatever redirects say.
    pub(crate) async fn request_at(
        &self,
        address: &str,
        request: Request,
    ) -> Result<Answer, ClientError> {
        let patience = Patience::new(self.retry_budget_us);
        let asked = (Ask::Request(request), Repeat::Asks);
        match self.ask(patience, "", Some(address), asked).await? {
            Reply::Answer(answer) => Ok(answer),
            Reply::Ack(_) => Err(unfit_answer()),
        }
    }

    /// Appends one batch outside of any session.
    pub(crate) async fn append_once(
        &self,
        append: OneShotAppend,
        batch: EncodedBatch,
    ) -> Result<Ack, ClientError> {
        let name = append.stream.to_string();
        let repeat = match append.writer {
            Some(_) => Repeat::Harmless,
            None => Repeat::Harmful,
        };
        let patience = Patience::new(self.retry_budget_us);
        let asked = (Ask::Append(append, batch), repeat);
        match self.ask(patience, &name, None, asked).await? {
            Reply::Ack(ack) => Ok(ack),
            Reply::Answer(_) => Err(unfit_answer()),
        }
    }

    async fn ask(
        &self,
        patience: Patience,
        name: &str,
        fixed: Option<&str>,
        (ask, repeat): (Ask, Repeat),
    ) -> Result<Reply, ClientError> {
        let mut attempts = Attempts {
            patience,
            repeat,
            in_doubt: false,
            last: None,
        };
        let mut address = fixed.map_or_else(|| self.entry(name), str::to_owned);
        loop {
            let asking = self.holders.asking(name);
            let outcome = self.controls.ask(self, &address, ask.clone()).await;
            asking.finish();
            let wait_us = match outcome {
                Ok(Ok(reply)) => {
                    if fixed.is_none() {
                        self.holders.remember(name, &address);
                    }
                    return Ok(reply);
                }
                Ok(Err(refusal)) => {
                    let next = self.refused(&mut attempts, refusal)?;
                    if let (Some(target), None) = (next.target, fixed) {
                        address = target.unwrap_or_else(|| self.address.clone());
                    }
                    next.wait_us
                }
                Err(error) => {
                    self.holders.forget(&address);
                    let wait_us = self.failed(&mut attempts, error)?;
                    address = fixed.map_or_else(|| self.entry(name), str::to_owned);
                    wait_us
                }
            };
            tokio::time::sleep(std::time::Duration::from_micros(wait_us)).await;
        }
    }

    fn refused(&self, attempts: &mut Attempts, refusal: Refusal) -> Result<Next, ClientError> {
        let at = self.source.moment();
        if !refusal.retry {
            if attempts.in_doubt {
                attempts.last = Some(refusal);
                return Err(ClientError::Ambiguous(attempts.ambiguity()));
            }
            return Err(ClientError::Refused(refusal));
        }
        let target = holder(&refusal).map(|address| address.map(str::to_owned));
        let after = after_us(&refusal);
        if !refusal.clean {
            attempts.begin_doubt();
        }
        attempts.last = Some(refusal);
        attempts.patience.begin(at.now);
        let is_known = matches!(target, Some(Some(_)));
        if is_known {
            self.holders.note_redirect();
        }
        if is_known && !attempts.in_doubt && attempts.patience.redirect_at_once() {
            return Ok(Next { target, wait_us: 0 });
        }
        let wait_us = attempts.after_refusal(at, after)?;
        Ok(Next { target, wait_us })
    }

    fn failed(&self, attempts: &mut Attempts, error: ControlError) -> Result<u64, ClientError> {
        match error {
            ControlError::Unresolvable { address } if !attempts.in_doubt => {
                return Err(ClientError::HolderUnresolvable { address });
            }
            ControlError::Handshake(_) if attempts.in_doubt => {
                return Err(ClientError::Ambiguous(attempts.ambiguity()));
            }
            ControlError::Handshake(failure) => return Err(ClientError::Handshake(failure)),
            ControlError::Unresolvable { .. } | ControlError::NotSent => {}
            ControlError::Unanswered => attempts.begin_doubt(),
        }
        attempts.after_silence(self.source.moment())
    }
}

struct Next {
    /// Where to go, if the refusal said something about it: `None` inside is the star's entry.
    target: Option<Option<String>>,
    wait_us: u64,
}

/// The star answered another question than was asked.
pub(crate) fn unfit_answer() -> ClientError {
    let message = "the star answered a request with an answer of another kind";
    ClientError::Refused(Refusal::new(Code::Internal, message))
}

pub(crate) fn bucket(answer: Answer) -> Result<(BucketInfo, bool), ClientError> {
    match answer {
        Answer::Bucket { info, created } => Ok((info, created)),
        _ => Err(unfit_answer()),
    }
}

pub(crate) fn stream(answer: Answer) -> Result<(StreamInfo, bool), ClientError> {
    match answer {
        Answer::Stream { info, created } => Ok((info, created)),
        _ => Err(unfit_answer()),
    }
}

pub(crate) fn deleted(answer: Answer) -> Result<(), ClientError> {
    match answer {
        Answer::Deleted => Ok(()),
        _ => Err(unfit_answer()),
    }
}
