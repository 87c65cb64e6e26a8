//! The file `star`: who this data directory belongs to and in which format it is.
//!
//! It is text, so that an operator can read it, and never empty: the first file that a core opens
//! through glommio must have content (see [`crate::driver`]).
//!
//! ```text
//! nova star
//! format 1
//! star 0123456789abcdef0123456789abcdef
//! checksum 89abcdef
//! ```
//!
//! # Invariants
//! - The first two lines never change their form, so that every version can name a format that it
//!   does not know. The checksum covers all lines before it.
//!
//! # Not here
//! - When the file is made or refused: [`crate::directory`].

use nova_model::{Checksum, StarId};

/// The format of data directories that this version writes and reads.
pub const FORMAT_VERSION: u32 = 1;
/// Longest identity file that is read.
pub(crate) const IDENTITY_BYTES_MAX: usize = 4096;

const MAGIC_LINE: &str = "nova star";

/// Identity of a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Format of everything in the directory.
    pub format: u32,
    /// The star that the directory belongs to.
    pub star: StarId,
}

/// Why a file is no identity that this version can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IdentityFault {
    /// It does not begin as an identity does.
    Foreign,
    /// It is of a format that this version does not know.
    Format(u32),
    /// It is damaged.
    Damaged(&'static str),
}

impl Identity {
    /// The file's content.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Identity { format, star } = self;
        let mut text = format!("{MAGIC_LINE}\nformat {format}\nstar {star}\n");
        let checksum = Checksum::of(text.as_bytes());
        text.push_str(&format!("checksum {checksum}\n"));
        text.into_bytes()
    }

    /// Reads the file's content.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Identity, IdentityFault> {
        let text = std::str::from_utf8(bytes).map_err(|_| IdentityFault::Foreign)?;
        let mut lines = text.lines();
        if lines.next() != Some(MAGIC_LINE) {
            return Err(IdentityFault::Foreign);
        }
        let format = field(lines.next(), "format ")
            .and_then(|value| value.parse().ok())
            .ok_or(IdentityFault::Damaged("it has no format line"))?;
        if format != FORMAT_VERSION {
            return Err(IdentityFault::Format(format));
        }
        let star = field(lines.next(), "star ")
            .and_then(|value| u128::from_str_radix(value, 16).ok())
            .map(StarId)
            .ok_or(IdentityFault::Damaged("it has no star line"))?;
        let identity = Identity { format, star };
        // The encoding is unique, so comparing it whole checks the checksum and every byte.
        if identity.encode() != bytes {
            return Err(IdentityFault::Damaged("its checksum does not fit"));
        }
        Ok(identity)
    }
}

fn field<'a>(line: Option<&'a str>, name: &str) -> Option<&'a str> {
    line?.strip_prefix(name)
}
