//! What a load came to, for people and programs: text, JSON, a page with plots, histograms.
//!
//! # Invariants
//! - All of them are made of the same [`crate::run::outcome::LoadResult`].

pub mod histogram_log;
pub mod page;
pub mod plot;
pub mod progress;
pub mod report;
pub mod text;
