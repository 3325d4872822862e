//! Imported histograms and statistics: their documents, the figures that follow from them, and comparisons with each other and with
//! recordings.

mod compare;
mod document;
mod figures;
mod report;
mod run;
mod sides;
mod times;
mod verdict;

pub use compare::compare;
pub use document::{
    Above, BUCKETS, Bucket, DistributionDoc, Edges, Level, NamedCount, Quantity, SCHEMA, SERIES, Series,
};
pub use figures::{SeriesFigures, Within, level};
pub use report::{DistributionReport, SideBySideReport};
#[cfg(feature = "schemas")]
pub(crate) use report::{DistributionsDocument, sides::SideBySideDocument};
pub use sides::{AskTimes, Pair, Side, SideBySide, SidesError, side_by_side};
pub use times::times_of;
pub use verdict::{Clustering, Shown, Tested, TestedFigure, Untested};
