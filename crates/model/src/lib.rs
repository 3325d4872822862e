//! The vocabulary of becalm: detours, activities, kernel events and samples; documents of recordings, studies, parallel benchmarks, networks,
//! injected noise and predictions compared with a job; the plans that isolate CPUs; and the catalogue of fixes.
//!
//! These are plain types. Nothing here measures, stores, interprets or prints.

#![forbid(unsafe_code)]

pub mod activity;
pub mod audit;
pub mod carried;
pub mod cause;
mod clock;
pub mod digest;
mod document;
mod estimate;
pub mod event;
pub mod event_count;
mod family;
pub mod label;
pub mod network;
pub mod node;
mod node_name;
pub mod not_traced;
pub mod observed;
pub mod phases;
pub mod plain_name;
pub mod remedy;
pub mod root;
mod step;
pub mod task;
pub mod tune;
pub mod unseen;
pub mod validation;
pub mod warning;

pub use activity::{Activity, Detour, Kind, Sample};
pub use document::Document;
pub use estimate::Estimate;
pub use event::{Event, Happening, Life, Pid, ThreadState};
pub use label::{Label, Labels};
pub use node::NodeDoc;
pub use node_name::{check_node_name, node_name};
pub use step::{LoopThread, Platform, Step};
pub use task::{Task, Tasks};
