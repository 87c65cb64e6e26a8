//! What a test orders of the device's process, and what it hears of it: a line each way.
//!
//! ```text
//!   7 cut 400 1234 some        order 7: the power goes with the 400th write or flush from now on
//!   7 61 unflushed, ...        it went; until then other orders are taken
//! ```
//!
//! # Invariants
//! - Each order is answered by one line that begins with its number, when it has happened.

use crate::device::{Cut, Kind, Survivors};
use std::fmt;
use std::str::FromStr;

/// One order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The power goes. Answered when it went, by what became of the cache.
    Cut(Cut),
    /// The power is back. Nothing fails, hangs or lies any more.
    On,
    /// The next requests of a kind fail.
    Fail(Kind, u64),
    /// Reads of so many bytes from a place on fail for ever.
    Spoil(u64, usize),
    /// Each request of a kind takes so many milliseconds longer.
    Delay(Kind, u64),
    /// Writes and flushes wait. Answered when the first one does.
    Hang,
    /// Nothing waits any more.
    Resume,
    /// Flushes do nothing from now on.
    Lie,
    /// What the device did. Answered by `writes flushes failed`.
    Count,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Cut(cut) => {
                let survivors = match cut.survivors {
                    Survivors::Some => "some",
                    Survivors::None => "none",
                };
                write!(f, "cut {} {} {survivors}", cut.operations, cut.seed)
            }
            Order::On => write!(f, "on"),
            Order::Fail(kind, times) => write!(f, "fail {} {times}", word(*kind)),
            Order::Spoil(offset, length) => write!(f, "spoil {offset} {length}"),
            Order::Delay(kind, milliseconds) => write!(f, "delay {} {milliseconds}", word(*kind)),
            Order::Hang => write!(f, "hang"),
            Order::Resume => write!(f, "resume"),
            Order::Lie => write!(f, "lie"),
            Order::Count => write!(f, "count"),
        }
    }
}

/// Text that is no order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoOrder(pub String);

impl FromStr for Order {
    type Err = NoOrder;

    fn from_str(text: &str) -> Result<Order, NoOrder> {
        let words: Vec<&str> = text.split(' ').collect();
        let number = |word: &str| word.parse().map_err(|_| NoOrder(text.to_owned()));
        Ok(match words[..] {
            ["cut", operations, seed, survivors] => Order::Cut(Cut {
                operations: number(operations)?,
                seed: number(seed)?,
                survivors: match survivors {
                    "some" => Survivors::Some,
                    "none" => Survivors::None,
                    _ => return Err(NoOrder(text.to_owned())),
                },
            }),
            ["on"] => Order::On,
            ["fail", kind, times] => Order::Fail(kind_of(kind, text)?, number(times)?),
            ["spoil", offset, length] => {
                let length = usize::try_from(number(length)?);
                let length = length.map_err(|_| NoOrder(text.to_owned()))?;
                Order::Spoil(number(offset)?, length)
            }
            ["delay", kind, milliseconds] => {
                Order::Delay(kind_of(kind, text)?, number(milliseconds)?)
            }
            ["hang"] => Order::Hang,
            ["resume"] => Order::Resume,
            ["lie"] => Order::Lie,
            ["count"] => Order::Count,
            _ => return Err(NoOrder(text.to_owned())),
        })
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Flush => "flush",
    }
}

fn kind_of(word: &str, text: &str) -> Result<Kind, NoOrder> {
    match word {
        "read" => Ok(Kind::Read),
        "write" => Ok(Kind::Write),
        "flush" => Ok(Kind::Flush),
        _ => Err(NoOrder(text.to_owned())),
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
