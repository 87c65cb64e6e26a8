//! How a star of a scenario starts and ends.

use super::Script;
use crate::agenda::Life;
use crate::node::{BootEnd, boot};
use crate::rng::Rng;
use crate::words::number;

impl Script {
    pub(super) fn start(&mut self, options: &[&str]) {
        for pair in options.chunks(2) {
            match pair {
                ["cores", n] => self.plan.cores = number(n) as u16,
                ["segment", n] => self.plan.segment_bytes = number(n),
                ["idle", n] => self.plan.idle_us = number(n),
                ["ingress", n] => self.plan.ingress_bytes = number(n) as usize,
                ["recent", n] => self.plan.recent_bytes = number(n) as usize,
                ["dies", call] => self.plan.dies_at_call = Some(number(call)),
                ["corrupt", yes] => self.plan.allow_corrupt = *yes == "yes",
                other => panic!("{other:?} is no option of a star"),
            }
        }
        self.life += 1;
        match boot(
            &mut self.disk,
            &self.plan,
            Life(self.life),
            Rng::new(self.life),
        ) {
            BootEnd::Running(star, _) => self.shards = star.into_shards(),
            BootEnd::Died => self.start_again(),
            BootEnd::Refused(_) => self.answers.push("start refused".to_owned()),
        }
    }

    /// A start that died on the way is followed by one that does not.
    fn start_again(&mut self) {
        self.plan.dies_at_call = None;
        self.start(&[]);
    }

    pub(super) fn end(&mut self, lands: bool) {
        self.fall(lands);
        self.start(&[]);
    }

    pub(super) fn fall(&mut self, lands: bool) {
        let flights = std::mem::take(&mut self.flights);
        if lands {
            for (_, _, flight) in flights {
                self.disk.complete(flight);
            }
        }
        self.shards.clear();
        self.sessions.clear();
        self.readers.clear();
        self.is_held = false;
        self.late_way = None;
        self.late_mail.clear();
    }
}
