//! The run bundle: the vocabulary of a recording (detours, activities, kernel events, the node's document), and its
//! storage as a folder of Parquet and JSON files.
//!
//! Nothing here measures, interprets or prints.

#![forbid(unsafe_code)]

pub mod activity;
pub mod bundle;
pub mod campaign;
pub mod cost;
pub mod event;
pub mod event_count;
pub mod exchange;
pub mod label;
pub mod node;
pub mod phases;
pub mod study;
pub mod task;

pub use activity::{Activity, Detour, Kind, Sample};
pub use bundle::{
    ActivityBatch, ActivityBatches, Bundle, BundleError, BundleWriter, Contents, CostRun, CostWriter, DetourBatch,
    DetourBatches, Phase, PhaseRun, PhaseWriter, SampleBatch, SampleBatches,
};
pub use event::{Event, Happening, Pid};
pub use label::{Label, Labels};
pub use node::NodeDoc;
pub use task::{Task, Tasks};
