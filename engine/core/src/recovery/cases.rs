//! The total decision table of recovery: what becomes of the bytes at the place where the next
//! group of a log is expected.
//!
//! A crash leaves at most a torn end: the groups in flight, of which any sector may or may not have
//! landed. Nobody was answered from those. So a hole is torn exactly when no later group was
//! written in the knowledge that the hole's group is durable. Each group's header names the last
//! group known durable when it was written, and a seal says the same of all groups before it.
//!
//! # Invariants
//! - For each of the 64 combinations of facts exactly one row of [`CASES`] holds.
//!
//! # Not here
//! - How the facts are found: `scan`.

/// What is known of the place where the next group is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// A header of this segment begins there, and its fields are within bounds.
    pub header_ok: bool,
    /// Its checksum fits, and so every entry was read.
    pub checksum_ok: bool,
    /// Its number is the one expected.
    pub number_fits: bool,
    /// It names the checksum of the group before.
    pub chain_fits: bool,
    /// A whole group of this segment with a higher number follows, or the seal says that one did.
    pub later_follows: bool,
    /// That group, or the seal, says that the expected one was durable.
    pub later_covers: bool,
}

/// Why a log is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contradiction {
    /// A group that was durable cannot be read.
    Damaged,
    /// A whole group with another number than expected.
    Number,
    /// A whole group that continues another group than the one before it.
    Chain,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The group counts.
    Keep,
    /// The log ends here: what follows was never answered from.
    CutTorn,
    /// No crash leaves this.
    Refuse(Contradiction),
}

/// A row: facts in the order of [`Facts`], `None` where any value will do; and the decision.
pub type Case = ([Option<bool>; 6], Decision);

const T: Option<bool> = Some(true);
const F: Option<bool> = Some(false);
const ANY: Option<bool> = None;

/// All cases. The columns are header, checksum, number, chain, later follows, later covers.
pub const CASES: [Case; 9] = [
    // A whole group in its place.
    ([T, T, T, T, ANY, ANY], Decision::Keep),
    // A whole group of this segment that no sequence of writes puts there.
    (
        [T, T, T, F, ANY, ANY],
        Decision::Refuse(Contradiction::Chain),
    ),
    (
        [T, T, F, ANY, ANY, ANY],
        Decision::Refuse(Contradiction::Number),
    ),
    // No header: the end, or a group whose first sectors never landed or were lost.
    ([F, ANY, ANY, ANY, F, ANY], Decision::CutTorn),
    ([F, ANY, ANY, ANY, T, F], Decision::CutTorn),
    (
        [F, ANY, ANY, ANY, T, T],
        Decision::Refuse(Contradiction::Damaged),
    ),
    // A header without its group.
    ([T, F, ANY, ANY, F, ANY], Decision::CutTorn),
    ([T, F, ANY, ANY, T, F], Decision::CutTorn),
    (
        [T, F, ANY, ANY, T, T],
        Decision::Refuse(Contradiction::Damaged),
    ),
];

impl Facts {
    fn columns(&self) -> [bool; 6] {
        [
            self.header_ok,
            self.checksum_ok,
            self.number_fits,
            self.chain_fits,
            self.later_follows,
            self.later_covers,
        ]
    }
}

fn holds(case: &Case, facts: &Facts) -> bool {
    let pairs = case.0.iter().zip(facts.columns());
    pairs
        .into_iter()
        .all(|(wanted, is)| wanted.is_none_or(|wanted| wanted == is))
}

/// The decision for these facts.
pub fn decide(facts: &Facts) -> Decision {
    let case = CASES.iter().find(|case| holds(case, facts));
    case.expect("the table is total, which a test enumerates").1
}

#[cfg(test)]
#[path = "cases_tests.rs"]
mod tests;
