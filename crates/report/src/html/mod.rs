//! Self-contained HTML pages: they open offline, in light or dark mode, on paper and on a phone.
//!
//! A [`Page`] consists of sections of text, figures, tables and charts, and knows nothing about their subject; each command builds its own. Texts,
//! numbers and tables are written here, by the code that writes those for the terminal. The page's script (`assets/page.js`) draws the charts with
//! Apache ECharts, which is part of the file, and sorts tables.
//!
//! Nothing in a recording is ever run as code: texts are escaped, chart data is JSON that the script reads, tooltips are drawn instead of marked up,
//! and the page's content security policy allows only the two scripts with known hashes, and no requests.

mod chart;
mod write;

pub use crate::form::section::{Block, Finding, Grade, Opening, Page, Section, Tile, foot, sentence};
pub use chart::{
    Axis, AxisScale, AxisUnit, Bar, BarPair, Bars, Chart, ChartSeries, Forest, ForestRow, Heat, HeatLabel, Lane,
    LaneSort, Lanes, Lines, Mark, PairedBars, Points, RangeRow, Ranges, Spec, Surface,
};
