//! What the commands that only read are asked, and the reports that answer it: `law`, `predict`, `compare`, `sources` and `report`.
//!
//! Whoever asks brings values, sees the report, and meanwhile how far it is: an [`Asker`]. The command line is one, the Python
//! package another, so that both answer with the same documents and the same words. No text is parsed here but what means a noise
//! or a network wherever it stands.

#![forbid(unsafe_code)]

mod asker;
pub mod compare;
pub mod law;
pub mod network;
pub mod noise;
pub mod open;
pub mod predict;
pub mod recording;
pub mod sources;

pub use asker::{Asker, Steps};
