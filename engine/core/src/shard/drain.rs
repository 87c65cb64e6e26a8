//! Drains and their end, as core 0 leads them: one change of placement at a time.
//!
//! ```text
//!   Settling(1) --all settled--> Settling(2) --all settled and quiet--> Ending --all--> answered
//!        |                         |    \-- not quiet: Settling(3) ...     ^
//!        '---- a core is stuck ----'------------------------ Abort --------'
//! ```
//! Two rounds at least: a core that reports in the second one that it has sent nothing since the
//! first, while all others do, has got all that was ever sent. So when the placement changes, no
//! stream and no word of a leader is on its way.
//!
//! # Invariants
//! - A commit is told only when every core is settled and quiet.
//! - A change that was given up ends like one that was done: when every core has noted it.
//!
//! # Not here
//! - What a core does for it: `placement`.

use super::Shard;
use crate::event::{Caller, ChangeStep, Event, PeerMessage};
use nova_model::ids::CoreId;
use nova_model::limits::DRAIN_PATIENCE_US;
use nova_model::placement::Placement;
use nova_model::request::Answer;
use nova_model::star::CoreSet;
use nova_model::{Code, Facts, Instant, Refusal};
use std::collections::BTreeSet;

/// A change that core 0 has in hand.
pub(super) struct Drain {
    number: u64,
    caller: Caller,
    next: Placement,
    phase: Phase,
    /// Cores that have not answered in this phase.
    waiting: BTreeSet<CoreId>,
    moved: u64,
}

/// Where it is.
enum Phase {
    /// The cores hand over and report.
    Settling {
        round: u32,
        /// Whether all reports of the round were quiet so far.
        is_quiet: bool,
        /// When it is given up unless somebody says something.
        deadline: Instant,
    },
    /// It is done, or given up for a reason; the cores note it.
    Ending(Option<Refusal>),
}

impl Drain {
    /// When it is given up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Settling { deadline, .. } => Some(deadline),
            Phase::Ending(_) => None,
        }
    }
}

impl Shard {
    /// Drains cores, or ends that.
    pub(super) fn begin_drain(&mut self, caller: Caller, cores: CoreSet, is_drained: bool) {
        if let Err(refusal) = self.try_begin_drain(caller, cores, is_drained) {
            self.events.push_back(Event::Answered(caller, Err(refusal)));
        }
    }

    fn try_begin_drain(
        &mut self,
        caller: Caller,
        cores: CoreSet,
        is_drained: bool,
    ) -> Result<(), Refusal> {
        self.check_home(CoreId(0))?;
        self.check_nothing_in_hand()?;
        let Some(next) = self.places.current.with(cores, is_drained) else {
            let most = u64::from(self.config.cores()) - 1;
            let message = format!("the star's cores are 0 to {most}");
            return Err(Refusal::invalid("core", Some(most), message));
        };
        if next == self.places.current {
            let answer = placed(&next, 0);
            self.events.push_back(Event::Answered(caller, Ok(answer)));
            return Ok(());
        }
        let drained = next.drained();
        let number = self.questions.next_number();
        self.drain = Some(Drain {
            number,
            caller,
            next,
            phase: Phase::Settling {
                round: 1,
                is_quiet: false,
                deadline: self.seen.plus_us(DRAIN_PATIENCE_US),
            },
            waiting: self.all_cores().collect(),
            moved: 0,
        });
        self.tell_all(number, &ChangeStep::Prepare { drained });
        Ok(())
    }

    /// Leadership is moved in bulk by one command at a time, and not while a bucket goes.
    pub(super) fn check_nothing_in_hand(&self) -> Result<(), Refusal> {
        let message = match () {
            () if self.is_stopping => return self.check_open_star(),
            () if self.drain.is_some() => "cores are being drained or undrained",
            () if self.questions.is_rebalancing() => "the load is being spread",
            () if self.buckets.is_closing() => "a bucket is being deleted",
            () => return Ok(()),
        };
        Err(Refusal::new(Code::RateLimited, message).with(Facts::After(50_000)))
    }

    pub(super) fn all_cores(&self) -> impl Iterator<Item = CoreId> + use<> {
        (0..self.config.cores()).map(CoreId)
    }

    /// Tells this core last: what it says at once may end the step, and the others must have heard
    /// of it before they hear of its end.
    fn tell_all(&mut self, number: u64, step: &ChangeStep) {
        let message = PeerMessage::Change(number, step.clone());
        self.tell_peers(&message);
        self.tell(self.config.core, message);
    }

    /// A core answers, or shows that it is at work.
    pub(super) fn drain_step(&mut self, from: CoreId, number: u64, step: ChangeStep) {
        let patience = self.seen.plus_us(DRAIN_PATIENCE_US);
        let Some(drain) = self.drain.as_mut().filter(|drain| drain.number == number) else {
            return;
        };
        match (&mut drain.phase, step) {
            (Phase::Settling { deadline, .. }, ChangeStep::Progress) => *deadline = patience,
            (Phase::Settling { .. }, ChangeStep::Stuck(refusal)) => self.give_up(refusal),
            (
                Phase::Settling {
                    round,
                    is_quiet,
                    deadline,
                },
                ChangeStep::Settled {
                    round: reported,
                    is_quiet: was_quiet,
                },
            ) if *round == reported => {
                *deadline = patience;
                *is_quiet &= was_quiet;
                drain.waiting.remove(&from);
                self.end_round();
            }
            (Phase::Ending(_), ChangeStep::Ended { moved }) => {
                drain.moved += moved;
                drain.waiting.remove(&from);
                self.end_drain();
            }
            // What was on its way when the drain was given up.
            (Phase::Ending(_) | Phase::Settling { .. }, _) => {}
        }
    }

    fn end_round(&mut self) {
        let cores = self.all_cores().collect();
        let drain = self.drain.as_mut().expect("a drain in hand");
        let Phase::Settling {
            round, is_quiet, ..
        } = &mut drain.phase
        else {
            unreachable!("a round ends while the cores settle");
        };
        if !drain.waiting.is_empty() {
            return;
        }
        drain.waiting = cores;
        let number = drain.number;
        if *is_quiet {
            drain.phase = Phase::Ending(None);
            return self.tell_all(number, &ChangeStep::Commit);
        }
        *is_quiet = true;
        *round += 1;
        let round = *round;
        self.tell_all(number, &ChangeStep::Again { round });
    }

    fn give_up(&mut self, refusal: Refusal) {
        let cores = self.all_cores().collect();
        let drain = self.drain.as_mut().expect("a drain in hand");
        drain.waiting = cores;
        drain.phase = Phase::Ending(Some(refusal));
        let number = drain.number;
        self.tell_all(number, &ChangeStep::Abort);
    }

    /// Gives up what no core makes progress with.
    pub(super) fn give_up_stuck(&mut self, now: Instant) {
        self.answer_overdue(now);
        let Some(drain) = &self.drain else { return };
        if drain.deadline().is_none_or(|at| at > now) {
            return;
        }
        let names: Vec<String> = drain.waiting.iter().map(ToString::to_string).collect();
        let message = format!(
            "{} made no progress for {} s; no core was drained or undrained, some streams may be \
             led elsewhere than before",
            names.join(", "),
            DRAIN_PATIENCE_US / 1_000_000
        );
        self.give_up(Refusal::new(Code::Unavailable, message));
    }

    fn end_drain(&mut self) {
        if !self
            .drain
            .as_ref()
            .is_some_and(|drain| drain.waiting.is_empty())
        {
            return;
        }
        let drain = self.drain.take().expect("a drain in hand");
        let answer = match drain.phase {
            Phase::Ending(Some(refusal)) => Err(refusal),
            Phase::Ending(None) => Ok(placed(&drain.next, drain.moved)),
            Phase::Settling { .. } => unreachable!("it ended"),
        };
        self.events.push_back(Event::Answered(drain.caller, answer));
    }
}

fn placed(placement: &Placement, moved: u64) -> Answer {
    let drained = placement.drained();
    Answer::Placement { drained, moved }
}
