//! Detours in the text formats of other programs, in and out. Bytes come in and go out; files are the caller's.

pub mod loggopsim;
pub mod selfish;
