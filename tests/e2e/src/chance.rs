//! Numbers that follow from a seed.

/// The next numbers of a seed (splitmix64).
#[derive(Debug)]
pub struct Chance(pub u64);

impl Chance {
    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    /// Whether one of `hits` in `of` comes.
    pub fn hits(&mut self, hits: u64, of: u64) -> bool {
        hits > 0 && self.below(of) < hits
    }
}
