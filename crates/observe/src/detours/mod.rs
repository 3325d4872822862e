//! `becalm detours` of observed threads: single waits and interruptions, and who had the CPU meanwhile.

mod question;
mod report;
#[cfg(test)]
mod tests;

pub use question::answer;
#[cfg(feature = "schemas")]
pub use report::DetoursObservedDoc;
