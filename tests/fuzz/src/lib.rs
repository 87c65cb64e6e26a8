//! Bytes from outside against everything that decodes them: no panic, and no memory for what did
//! not come.
//!
//! ```text
//!   samples --> mutate --> repair checksums --> target     the short form, a test
//!   corpus --> libFuzzer --> repair checksums --> target   the long form, guided by coverage
//! ```
//! Checksums would keep every mutation out of what lies behind them. So each target first makes
//! those of its input right, as far as the input has the shape for it, and every fourth input is
//! left as it is.
//!
//! | target | what it is fed |
//! | --- | --- |
//! | `star` | the star's end of a lane: what clients send |
//! | `client` | the client's ends of a lane: what stars send |
//! | `segment` | recovery: one segment's file |
//! | `index` | the index of a sealed segment: each of its questions |
#![forbid(unsafe_code)]

pub mod mutate;
pub mod repair;
pub mod samples;
pub mod targets;
