//! A stored run in numbers: per CPU, per source, and single detours.
//!
//! [`summarize`] reads a bundle once, batch after batch, and keeps only sums: see [`Scan`], which does the counting and knows no files. [`timelines`]
//! and [`longest`] extract single detours. The crate `report` shows the numbers.

mod anatomy;
mod books;
mod category;
mod checked;
mod digest;
mod error;
mod figures;
mod findings;
mod nodes;
mod peers;
mod pieces;
mod pooled;
mod recurring;
mod run;
mod scale;
mod scan;
mod tails;
mod timeline;

pub use anatomy::{Anatomy, Part, PartFigures};
pub use books::{Books, OpenBook};
pub use category::{Category, CategoryTotal, categories};
pub use checked::{Checked, Found, Measuring};
pub(crate) use digest::{middles, moments};
pub use digest::{node_noise, observed, select, summarize_digests};
pub use error::SummaryError;
pub use figures::{
    CpuSummary, Figures, LongTail, NodeSummary, Observed, Origin, OutlierSummary, PeersSummary, PeriodSummary,
    SourceSummary, Summary,
};
pub use nodes::NodeNoise;
pub use pooled::Pooled;
pub use run::{Detail, Selection, summarize};
pub(crate) use run::{keep_cpus, spans};
pub use scale::{CostAtScale, NoScale, RANKS, SampledPhases};
pub(crate) use scan::runs;
pub use scan::{ActivityColumns, DetourColumns, Scan};
pub(crate) use timeline::nest;
pub use timeline::{DetourId, Timeline, TimelineEntry, longest, timelines};
