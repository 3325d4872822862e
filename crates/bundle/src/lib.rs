//! The run bundle on disk: a directory of Parquet and JSON files that other programs can read directly.
//!
//! ```text
//! NAME.becalm/
//!   runs/node=HOST.json                    the node's document
//!   detours/node=HOST/0000.parquet         cpu i32, start_ns i64, duration_ns i64, incomplete bool
//!   activities/node=HOST/0000.parquet      cpu i32, detour i64, start_ns i64, self_ns i64, kind, source, detail
//!   samples/node=HOST/0000.parquet         cpu i32, start_ns i64, duration_ns i64, work i64, incomplete bool
//!   causes/node=HOST/0000.parquet          cpu i32, start_ns i64, duration_ns i64, kind, source, tid i32, owner, by, by_tid i32, context, site, delay_ns i64
//! ```
//!
//! A run consists of detours or, if the document's settings describe work, of samples. Statements about detours here then also apply to samples.
//!
//! [`BundleWriter`] writes one node's part, segment by segment. [`Bundle`] reads the parts of all nodes, in batches that keep memory use small.
//! Several nodes may write into one bundle at once, because each only touches files with its own name.
//!
//! Every file is complete and on disk before it gets its name, so named files are always readable: a killed run loses at most its current segment. A
//! segment counts once its detours have their name; its activities got theirs just before.
//!
//! A bundle may also contain recordings in summary form ([`SummaryBundle`]), imported distributions ([`store_document`]), a node's measured costs
//! ([`series`]), its tick campaign ([`node_document`]), or its part of a parallel benchmark ([`PhaseRun`]); see [`Contents`]. Each has one document
//! per node, and summaries have no tables.
//!
//! The document counts the rows of its node's tables. [`Bundle`] compares the counts when it opens a bundle, so missing parts of a copy do not
//! look like a lack of noise.
//!
//! A reader ignores unknown files and hidden ones, which are drafts. It refuses documents and tables of another version, and tables with contents
//! that contradict the schema; the error names the file.
//!
//! The crate `analyze`, not this one, checks that the accounting of recorded times is exact.

#![forbid(unsafe_code)]

mod batch;
mod bounded;
mod causes;
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
mod node_tables;
mod nodes;
mod observed;
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
pub use bounded::Bounded;
pub use causes::CauseTable;
pub use contents::Contents;
pub use decode::{fenced, is_decoding};
pub use document::Stored;
pub use documents::{load_documents, store_document};
pub use draft::Draft;
pub use error::BundleError;
pub use held::HeldFolder;
pub use layout::SUFFIX;
pub use nodes::LeftOut;
pub use observed::{ObservedHead, ObservedSegment, ObservedTables, ObservedWriter, ThreadRow};
pub use phase::Phase;
pub use phases::{PhaseRun, PhaseWriter};
pub use reader::{ActivityBatches, Bundle, DetourBatches, ReadProgress, SampleBatches};
pub use schema::{
    ACTIVITIES_SCHEMA, CAUSES_SCHEMA, COSTS_SCHEMA, DETOURS_SCHEMA, OWNED_ACTIVITIES_SCHEMA, PHASES_SCHEMA,
    SAMPLES_SCHEMA, STAYS_SCHEMA, THREAD_DETOURS_SCHEMA, THREADS_SCHEMA,
};
pub use summary::{StoredNode, StoredNodes, SummaryBundle, SummaryWriter};
pub use writer::BundleWriter;
