//! Pages for a browser: one file each that opens offline, in the light or the dark, on paper and on a phone.
//!
//! A [`Page`] is sections of text, figures, tables and charts; it knows nothing of what they are about. Commands make
//! it in their own folders. Texts, numbers and tables are written here, by the same code as those for the terminal; the
//! page's own script (`assets/page.js`) draws the charts with Apache ECharts, which is part of the file, and sorts tables.
//!
//! Nothing that stands in a run is ever code on a page: texts are escaped, the data of charts is JSON that the script
//! reads, tooltips are drawn and not marked up, and the page's own policy lets no script run but the two that are named by
//! their hashes, and no request leave the file.

mod chart;
mod write;

pub use crate::form::section::{Block, Finding, Grade, Opening, Page, Section, Tile, foot, sentence};
pub use chart::{
    Axis, AxisScale, AxisUnit, Bar, BarPair, Bars, Chart, ChartSeries, Forest, ForestRow, Heat, HeatLabel, Lines, Mark,
    PairedBars, Points, RangeRow, Ranges, Spec, Surface,
};
