//! A line that says what goes on while it is measured.
//!
//! On a terminal the line is written anew each interval; elsewhere there is one now and then.

use crate::run::conductor::Interval;
use crate::show::text::{count, micros};
use crate::workload::{Pace, Workload};
use std::cell::Cell;
use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

/// Where there is no terminal, one line for so many intervals.
const INTERVALS_PER_LINE: u32 = 10;

/// Says what goes on.
#[derive(Debug)]
pub struct Progress {
    title: String,
    duration: Duration,
    is_counted: bool,
    is_terminal: bool,
    is_silent: bool,
    told: Cell<u32>,
}

impl Progress {
    /// For a load.
    pub fn new(workload: &Workload) -> Progress {
        let progress = Progress {
            title: workload.title(),
            duration: workload.duration,
            is_counted: matches!(workload.pace, Pace::Closed { .. })
                && workload.records_max.is_some(),
            is_terminal: stderr().is_terminal(),
            is_silent: false,
            told: Cell::default(),
        };
        progress.says("begins");
        progress
    }

    /// The same, which says nothing unless it shall.
    pub fn silent_unless(&self, shall_speak: bool) -> Progress {
        Progress {
            title: self.title.clone(),
            told: Cell::default(),
            is_silent: !shall_speak,
            ..*self
        }
    }

    /// Says a word about the load.
    pub fn says(&self, word: &str) {
        self.line(&format!("{}: {word}", self.title), true);
    }

    /// Says what the last interval came to; `None`: it warms up.
    pub fn tell(&self, interval: Option<&Interval>) {
        let told = self.told.get();
        self.told.set(told + 1);
        if self.is_silent {
            return;
        }
        let is_line = self.is_terminal || told.is_multiple_of(INTERVALS_PER_LINE);
        match interval {
            None => self.line("  warmed up", !self.is_terminal),
            Some(interval) if is_line => {
                let text = self.text(interval);
                self.line(&text, !self.is_terminal);
            }
            Some(_) => {}
        }
    }

    fn text(&self, interval: &Interval) -> String {
        let at = interval.at + interval.seconds;
        let rate = |number: u64| number as f64 / interval.seconds.max(1e-9);
        let mut text = match self.is_counted {
            true => format!("  {at:.0} s"),
            false => format!("  {at:.0} of {:.0} s", self.duration.as_secs_f64()),
        };
        if interval.acked > 0 {
            text += &format!(
                "  {}/s  {:.1} MB/s  p50 {}  p99 {}  max {}",
                count(rate(interval.acked) as u64),
                rate(interval.acked_bytes) / 1e6,
                micros(interval.p50_us),
                micros(interval.p99_us),
                micros(interval.max_us)
            );
        }
        if interval.read_bytes > 0 {
            text += &format!("  read {:.1} MB/s", rate(interval.read_bytes) / 1e6);
        }
        if interval.behind_max > 1 {
            text += &format!("  behind {}", count(interval.behind_max));
        }
        if interval.lost > 0 {
            text += &format!("  LOST {}", count(interval.lost));
        }
        if let Some(cpu) = interval.star_cpu_percent {
            text += &format!("  star {cpu:.0} %");
        }
        text
    }

    fn line(&self, text: &str, is_final: bool) {
        let mut stderr = stderr().lock();
        let (clear, end) = match (self.is_terminal, is_final) {
            (true, true) => ("\r\x1b[2K", "\n"),
            (true, false) => ("\r\x1b[2K", ""),
            (false, _) => ("", "\n"),
        };
        // That nobody listens is no reason to stop.
        let _unheard = write!(stderr, "{clear}{text}{end}").and_then(|()| stderr.flush());
    }
}
