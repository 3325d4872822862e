//! Who the threads are that the kernel's events know by number only: part of the vocabulary, so that the recorder, which
//! fills the table, need not know of attribution.

pub use becalm_model::task::{Task, Tasks, UNKNOWN};
