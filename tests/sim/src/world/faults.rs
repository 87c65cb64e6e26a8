//! What goes wrong in a run, and what a crash leaves behind.
//!
//! # Not here
//! - Which faults there are, and when: [`crate::plan`].

use super::World;
use crate::agenda::Happening;
use crate::disk::Background;
use crate::node::TurnEnd;
use crate::plan::Fault;
use crate::rng::Rng;

impl World {
    pub(super) fn fault(&mut self, fault: Fault) {
        if self.is_calm {
            return;
        }
        let now = self.agenda.now();
        self.trace.note(now, "FAULT", 0, || format!("{fault:?}"));
        match fault {
            Fault::Stop => self.crash(fault),
            Fault::Kill | Fault::PowerCut if self.rng.chance(70) => {
                self.armed = Some((fault, self.plan.crash_waits_for(&mut self.rng)));
            }
            Fault::Kill | Fault::PowerCut => self.crash(fault),
            Fault::CutLink => {
                let links = self.network.unbroken();
                if !links.is_empty() {
                    let link = *self.rng.pick(&links);
                    self.network.cut(&mut self.agenda, link);
                }
            }
            Fault::Slowness(times) => self.disk_slowness = times,
            Fault::FullDisk(us) => {
                self.disk.is_full = true;
                self.agenda.after(us, Happening::SpaceAgain);
            }
            Fault::LittleSpace(us, segments) => {
                self.disk.free_bytes = segments * self.plan.boot.segment_bytes;
                self.agenda.after(us, Happening::SpaceAgain);
            }
            Fault::FailBackground(us, seed) => {
                self.disk.background = Background::Flaky(Rng::new(seed));
                self.agenda.after(us, Happening::BackgroundAgain);
            }
            Fault::ClockBack(us, seconds) => {
                self.set_clock(seconds * 1_000_000);
                self.agenda.after(us, Happening::ClockAgain);
            }
            Fault::FailWrite => self.disk.fails_next_write = true,
            Fault::OldSpares => self.disk.leave_old_spares(&mut self.rng),
        }
    }

    pub(super) fn set_clock(&mut self, behind_us: u64) {
        self.agenda.set_clock(behind_us);
        self.oracle.history.clock_is_set(behind_us > 0);
    }

    pub(super) fn crash(&mut self, fault: Fault) {
        if fault == Fault::Stop {
            match self.with_star(|star, ground| star.finish(ground)) {
                Some(TurnEnd::Wrong(text)) => self.oracle.found(text),
                Some(TurnEnd::Fatal(_) | TurnEnd::Done) | None => {}
            }
        }
        let Some(star) = self.star.take() else { return };
        let flights = star.end();
        match fault {
            Fault::PowerCut => self.disk.cut_power(flights, &mut self.rng),
            _ => self.disk.kill(flights, self.agenda.now(), &mut self.rng),
        }
        self.plan_late();
        self.network.star_is_gone(&mut self.agenda);
        let wait = self.rng.between(500, 150_000);
        self.agenda.after(wait, Happening::Boot);
    }

    fn plan_late(&mut self) {
        if let Some(due) = self.disk.next_late() {
            self.agenda.at(due, Happening::Late);
        }
    }

    pub(super) fn land_late(&mut self) {
        let now = self.agenda.now();
        let landed = self.disk.land_late(now) as u64;
        self.trace.note(now, "late", landed, || {
            format!("{landed} writes of a killed process land")
        });
        self.plan_late();
    }
}
