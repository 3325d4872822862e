//! What another program measured and becalm imported as a distribution: `becalm.distribution-report/1`, and as tables.

pub(super) mod sides;

use std::io;

use becalm_model::node::Warning;
use becalm_report::Value;
use becalm_report::catalogue;
use becalm_report::form::field::{Field, Object};
use becalm_report::form::figure::{Rate, Ratio, Time};
use becalm_report::form::paragraph::{heading, line, paragraph};
use becalm_report::form::sheet::Sheet;
use becalm_report::form::table::Table;
use becalm_report::{Report, fields};
use becalm_units::Named;
use serde::Serialize;

use crate::distribution::{DistributionDoc, Edges, Quantity};
use crate::distribution::{SeriesFigures, Within};

pub use sides::SideBySideReport;

/// Distributions of some nodes.
pub struct DistributionReport<'a> {
    /// Their documents.
    pub docs: &'a [DistributionDoc],
}

fn middle(row: &SeriesFigures, level: Option<Within>) -> Option<Time> {
    level.and_then(|level| Time::rounded(row.estimate_ns(level)))
}

fields! {
    ROW, row: SeriesFigures {
        SERIES = "series", "series", |row| row.series.name.clone();
        CPU = catalogue::CPU, |row| row.series.cpu;
        OBSERVED_NS = catalogue::OBSERVED_NS, |row| row.series.observed_ns.map(Time);
        ASKED_NS = "asked_ns", "asked for", |row| row.series.asked_ns.map(Time);
        THRESHOLD_NS = "threshold_ns", "threshold", |row| row.series.threshold_ns.map(Time);
        LOOP_NS = "loop_ns", "loop", |row| row.series.loop_ns.map(Time);
        COUNT = catalogue::COUNT, |row| row.series.count;
        RATE_HZ = catalogue::RATE_HZ, |row| row.rate_hz.map(Rate);
        DISTURBED = "disturbed", "longer", |row| row.disturbed;
        TOTAL_NS = catalogue::TOTAL_NS, |row| row.series.total_ns.map(Time);
        NOISE_RATIO = catalogue::NOISE_RATIO, |row| row.noise_ratio.map(Ratio);
        MIN_NS = catalogue::MIN_NS, |row| row.series.min_ns.map(Time);
        MEDIAN_NS = catalogue::MEDIAN_NS, |row| middle(row, row.median);
        MEAN_NS = catalogue::MEAN_NS, |row| row.series.mean_ns.and_then(Time::rounded);
        P99_NS = catalogue::P99_NS, |row| middle(row, row.p99);
        P999_NS = "p999_ns", "p99.9", |row| middle(row, row.p999);
        MAX_NS = "max_ns", "max", |row| row.series.max_ns.map(Time);
        ABOVE = "above", "beyond", |row| row.series.above.map(|above| above.count);
        MEDIAN_WIDTH_NS = "median_width_ns", "", |row| row.median.map(|level| Time(level.high_ns.saturating_sub(level.low_ns)));
        P99_WIDTH_NS = "p99_width_ns", "", |row| row.p99.map(|level| Time(level.high_ns.saturating_sub(level.low_ns)));
        P999_WIDTH_NS = "p999_width_ns", "", |row| row.p999.map(|level| Time(level.high_ns.saturating_sub(level.low_ns)));
    }
}

/// The figures that are put beside those of another distribution.
const COMPARED: &[&str] =
    &["count", "rate_hz", "disturbed", "noise_ratio", "min_ns", "median_ns", "mean_ns", "p99_ns", "p999_ns", "max_ns"];

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct NodeDocument<'a> {
    node: &'a str,
    format: &'a str,
    tool: &'a str,
    command: Option<&'a str>,
    kernel: Option<&'a str>,
    begun: Option<&'a str>,
    ended: Option<&'a str>,
    quantity: &'static str,
    loop_subtracted: Option<bool>,
    series: Vec<Object<SeriesFigures>>,
    warnings: &'a [Warning],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct DistributionsDocument<'a> {
    nodes: Vec<NodeDocument<'a>>,
}

impl Report for DistributionReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.distribution-report/1"
    }

    fn document(&self) -> impl Serialize {
        let node = |doc| NodeDocument {
            series: SeriesFigures::all(doc).iter().map(Object::new).collect(),
            node: &doc.node,
            format: &doc.format,
            tool: &doc.tool,
            command: doc.command.as_deref(),
            kernel: doc.kernel.as_deref(),
            begun: doc.begun.as_deref(),
            ended: doc.ended.as_deref(),
            quantity: doc.quantity.name(),
            loop_subtracted: doc.loop_subtracted,
            warnings: &doc.warnings,
        };
        DistributionsDocument { nodes: self.docs.iter().map(node).collect() }
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        self.docs.iter().try_for_each(|doc| render(doc, out))
    }
}

fn render(doc: &DistributionDoc, out: &mut Sheet<'_>) -> io::Result<()> {
    let times = match (&doc.begun, &doc.ended) {
        (Some(begun), Some(ended)) => format!(", {begun} to {ended}"),
        (Some(begun), None) => format!(", {begun}"),
        (None, Some(ended)) => format!(", until {ended}"),
        (None, None) => String::new(),
    };
    line(out, "node", &format!("{}{times}", doc.node))?;
    line(out, "tool", &format!("{}, imported from {}", doc.tool, doc.format))?;
    if let Some(command) = &doc.command {
        line(out, "command", command)?;
    }
    if let Some(kernel) = &doc.kernel {
        line(out, "kernel", kernel)?;
    }
    line(out, "lengths", &lengths(doc))?;
    for warning in &doc.warnings {
        paragraph(out, "  ! ", &warning.message)?;
        paragraph(out, "    → ", &warning.advice)?;
    }
    let rows = SeriesFigures::all(doc);
    heading(out, "Lengths")?;
    let shown: Vec<&Field<SeriesFigures>> = ROW
        .iter()
        .filter(|field| !field.title.is_empty() && field.name != "cpu")
        .filter(|field| rows.iter().any(|row| !matches!((field.get)(row), Value::Missing)))
        .collect();
    let mut table = Table::new(&shown);
    rows.iter().for_each(|row| table.row(&shown, row));
    table.print(out)?;
    notes(&rows, out)?;
    counts(doc, out)
}

/// What the lengths are of, and whether the loop's own time is in them.
fn lengths(doc: &DistributionDoc) -> String {
    let own = match doc.loop_subtracted {
        Some(true) => "; the loop's own time was subtracted",
        Some(false) => "; the loop's own time is in each",
        None => "",
    };
    let no_noise = match doc.quantity {
        Quantity::Wakeup | Quantity::Pause => {
            ". This is no stolen time: it is not compared with noise, and nothing is predicted from it"
        }
        _ => "",
    };
    format!("{}{own}{no_noise}", doc.quantity.words())
}

fn notes(rows: &[SeriesFigures], out: &mut Sheet<'_>) -> io::Result<()> {
    let widest = rows.iter().flat_map(|row| [row.median, row.p99, row.p999]).flatten();
    let widest = widest.map(|level| level.high_ns.saturating_sub(level.low_ns)).max().unwrap_or(0);
    if widest > 0 {
        let width = Value::Time(widest).cell();
        paragraph(
            out,
            "  ",
            &format!("quantiles are the middles of buckets of the histogram, which are up to {width} wide"),
        )?;
    }
    for (edges, which, off) in [
        (Edges::Lower, "min, mean and max are lower edges of buckets", "longer"),
        (Edges::Upper, "min and max are upper edges of buckets", "shorter"),
    ] {
        if rows.iter().any(|row| row.series.edges == Some(edges) && row.series.count != Some(0)) {
            paragraph(out, "  ", &format!("{which}: the real ones may be {off} by the width of a bucket"))?;
        }
    }
    if rows.iter().all(|row| row.series.count == Some(0)) {
        paragraph(out, "  ", "nothing was counted: the program saw none of these lengths")?;
    }
    if rows.iter().any(|row| row.series.above.is_some()) {
        paragraph(out, "  ", "beyond: lengths that the histogram has no bucket for")?;
    }
    if rows.iter().any(|row| row.disturbed.is_some()) {
        paragraph(out, "  ", "longer: steps that took longer than those of the bucket which has most of them")?;
    }
    let unknown = |what: fn(&SeriesFigures) -> bool| rows.iter().all(what);
    let mut lacks = Vec::new();
    if unknown(|row| row.series.observed_ns.is_none()) {
        lacks.push("how long was measured");
    }
    if unknown(|row| row.series.total_ns.is_none()) {
        lacks.push("the sum of the lengths");
    }
    if unknown(|row| row.series.buckets.is_empty()) {
        lacks.push("a histogram");
    }
    lacks.push("when each was");
    paragraph(out, "  ", &format!("the file does not say: {}", lacks.join(", ")))
}

/// What else was counted.
fn counts(doc: &DistributionDoc, out: &mut Sheet<'_>) -> io::Result<()> {
    let Some(first) = doc.series.iter().find(|series| !series.counts.is_empty()) else { return Ok(()) };
    heading(out, "Counts")?;
    let names: Vec<String> = first.counts.iter().map(|count| count.name.clone()).collect();
    let mut table = Table::matrix(&["series"], names);
    for series in &doc.series {
        let mut cells = vec![series.name.clone()];
        cells.extend(series.counts.iter().map(|count| Value::Count(count.count).cell()));
        table.cells(cells);
    }
    table.print(out)
}
