//! The run bundle on disk: a folder of Parquet and JSON files that other programs read as they are.
//!
//! ```text
//! NAME.becalm/
//!   runs/node=HOST.json                    the node's document
//!   detours/node=HOST/0000.parquet         cpu i32, start_ns i64, duration_ns i64, incomplete bool
//!   activities/node=HOST/0000.parquet      cpu i32, detour i64, start_ns i64, self_ns i64, kind, source, detail
//!   samples/node=HOST/0000.parquet         cpu i32, start_ns i64, duration_ns i64, work i64, incomplete bool
//! ```
//!
//! A run is either of detours or, where the document's settings tell of work, of samples; what is said here of detours
//! then holds for samples.
//!
//! [`BundleWriter`] writes one node's part, segment after segment; [`Bundle`] reads the parts of all nodes, in batches
//! that keep the memory small. Several nodes may write into one bundle at once, since each touches only the files
//! that bear its own name.
//!
//! Every file is complete and on the disk before it gets its name, so whatever happens, what has a name can be read:
//! a killed run loses at most the segment that it was writing. A segment counts from the moment its detours have
//! their name; its activities got theirs just before.
//!
//! A bundle may also hold recordings in summary form, one document a node and no tables ([`SummaryBundle`]), distributions
//! that were imported ([`store_document`]), the costs that a node measured ([`series`]), its tick campaign
//! ([`node_document`]), or its part of a parallel benchmark ([`PhaseRun`]), one document a node as well;
//! see [`Contents`].
//!
//! The document counts the rows of its node's tables. [`Bundle`] compares them whenever it opens a bundle, so that what is missing of a copy is
//! not taken for quiet.
//!
//! A reader ignores files that it does not know and hidden ones, which are drafts; it refuses documents and tables of
//! another version, and tables whose contents contradict the schema, naming the file.
//!
//! The sums of what is recorded are not checked here: whether the books close is for the crate `analyze` to say.

#![forbid(unsafe_code)]

mod batch;
mod bounded;
mod contents;
mod decode;
mod density;
mod document;
mod documents;
mod draft;
mod encode;
mod error;
mod held;
mod hybrid;
mod layout;
mod names;
pub mod node_document;
mod node_part;
mod nodes;
mod order;
mod pages;
mod phase;
mod phases;
mod place;
mod reader;
mod rows;
mod schema;
pub mod series;
mod summary;
mod whole;
mod writer;

pub use batch::{ActivityBatch, DetourBatch, SampleBatch};
pub use contents::Contents;
pub use decode::is_decoding;
pub use document::Stored;
pub use documents::{load_documents, store_document};
pub use draft::Draft;
pub use error::BundleError;
pub use held::HeldFolder;
pub use layout::SUFFIX;
pub use nodes::LeftOut;
pub use phase::Phase;
pub use phases::{PhaseRun, PhaseWriter};
pub use reader::{ActivityBatches, Bundle, DetourBatches, ReadProgress, SampleBatches};
pub use schema::{ACTIVITIES_SCHEMA, COSTS_SCHEMA, DETOURS_SCHEMA, PHASES_SCHEMA, SAMPLES_SCHEMA};
pub use summary::{StoredNode, StoredNodes, SummaryBundle, SummaryWriter};
pub use writer::BundleWriter;
