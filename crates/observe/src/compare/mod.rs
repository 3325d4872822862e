//! `becalm compare` of two sides of observed threads: whether a program got its CPU better or worse, and because of whom.
//!
//! Threads are joined by name. Only names on both sides are compared, so a helper that one side lacks does not change the answer.

mod document;
mod question;
mod report;
mod series;
mod sides;
#[cfg(test)]
mod tests;

#[cfg(feature = "schemas")]
pub use document::CompareObservedDoc;
pub use question::{CompareQuestion, are_observed, not_for_threads};
