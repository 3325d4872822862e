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
pub(crate) use document::{Above, BUCKETS, SERIES};
pub use document::{Bucket, DistributionDoc, Edges, Level, NamedCount, Quantity, SCHEMA, Series};
use figures::{SeriesFigures, Within};
pub use report::DistributionReport;
use report::SideBySideReport;
#[cfg(feature = "schemas")]
pub(crate) use report::{DistributionsDocument, sides::SideBySideDocument};
use sides::{Pair, Side, SideBySide, side_by_side};
use times::times_of;
use verdict::{Shown, Tested, TestedFigure, Untested};
