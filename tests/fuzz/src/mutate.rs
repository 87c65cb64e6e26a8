//! Changes of a sample that follow from a seed.

/// Most changes of one sample.
const CHANGES_MAX: u64 = 3;
/// Longest run of bytes that is moved, repeated or taken out.
const RUN_MAX: u64 = 64;
/// Kinds of changes, of which the first keep the length.
const ALL: u64 = 8;
const IN_PLACE: u64 = 4;
/// What lengths and counts are set to.
const NUMBERS: [u32; 10] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xffff,
    0x0010_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
];

/// Numbers that follow from a seed (splitmix64).
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

    fn place(&mut self, length: usize) -> usize {
        self.below(length as u64 + 1) as usize
    }
}

/// A sample with some changes.
pub fn mutated(samples: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let pick = |chance: &mut Chance| chance.below(samples.len() as u64) as usize;
    let mut bytes = samples[pick(chance)].clone();
    // Half of all keep their length, so that what else says where things are stays true.
    let kinds = [IN_PLACE, ALL][chance.below(2) as usize];
    for _ in 0..1 + chance.below(CHANGES_MAX) {
        let other = pick(chance);
        change(&mut bytes, &samples[other], kinds, chance);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], kinds: u64, chance: &mut Chance) {
    let at = chance.place(bytes.len().saturating_sub(1));
    let run = 1 + chance.below(RUN_MAX) as usize;
    let end = bytes.len().min(at + run);
    match chance.below(kinds) {
        _ if bytes.is_empty() => bytes.push(0),
        0 => bytes[at] ^= 1 << chance.below(8),
        1 => bytes[at] = chance.below(256) as u8,
        2 => set(
            bytes,
            at,
            NUMBERS[chance.below(NUMBERS.len() as u64) as usize],
        ),
        3 => {
            let by = chance.below(17) as u32;
            let raw = bytes.get(at..at + 4).and_then(|raw| raw.try_into().ok());
            let now = u32::from_le_bytes(raw.unwrap_or_default());
            set(bytes, at, now.wrapping_add(by).wrapping_sub(8));
        }
        4 => drop(bytes.drain(at..end)),
        5 => {
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        6 => bytes.truncate(at),
        _ => {
            let from = chance.place(other.len());
            bytes.splice(at..at, other[from..].iter().copied());
        }
    }
}

/// Sets the number of 4 bytes at `at`, or as much of it as there is room for.
fn set(bytes: &mut [u8], at: usize, number: u32) {
    for (byte, new) in bytes[at..].iter_mut().zip(number.to_le_bytes()) {
        *byte = new;
    }
}
