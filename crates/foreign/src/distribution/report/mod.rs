//! An imported distribution as `becalm.distribution-report/1`, and as tables.

pub(super) mod sides;

use becalm_model::node::Warning;
use becalm_report::Value;
use becalm_report::catalogue;
use becalm_report::form::field::{Field, Object};
use becalm_report::form::figure::{Rate, Ratio, Time};
use becalm_report::form::table::Table;
use becalm_report::html::{Block, Page, Section};
use becalm_report::{Form, Report, fields};
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

/// The figures that are compared with those of another distribution.
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

    fn view(&self, _form: Form) -> Page {
        let nodes: Vec<&str> = self.docs.iter().map(|doc| doc.node.as_str()).collect();
        let blocks = self.docs.iter().flat_map(blocks).collect();
        Page {
            title: "Lengths that another program measured".to_owned(),
            subtitle: nodes.join(", "),
            sections: vec![Section::new("lengths", "Lengths", "Lengths by node", blocks)],
            foot: Vec::new(),
        }
    }
}

fn blocks(doc: &DistributionDoc) -> Vec<Block> {
    let rows = SeriesFigures::all(doc);
    let shown: Vec<&Field<SeriesFigures>> = ROW
        .iter()
        .filter(|field| !field.title.is_empty() && field.name != "cpu")
        .filter(|field| rows.iter().any(|row| !matches!((field.get)(row), Value::Missing)))
        .collect();
    let table = Table::filled(&shown, &rows).captioned("Lengths");
    let mut blocks = vec![facts(doc)];
    blocks.extend(doc.warnings.iter().map(Block::from));
    blocks.extend([Block::Heading("Lengths".to_owned()), Block::Table(table)]);
    blocks.extend(Block::texts(notes(&rows)));
    blocks.extend(counts(doc));
    blocks
}

fn facts(doc: &DistributionDoc) -> Block {
    let times = match (&doc.begun, &doc.ended) {
        (Some(begun), Some(ended)) => format!(", {begun} to {ended}"),
        (Some(begun), None) => format!(", {begun}"),
        (None, Some(ended)) => format!(", until {ended}"),
        (None, None) => String::new(),
    };
    let facts = [
        ("node", Some(format!("{}{times}", doc.node))),
        ("tool", Some(format!("{}, imported from {}", doc.tool, doc.format))),
        ("command", doc.command.clone()),
        ("kernel", doc.kernel.clone()),
        ("lengths", Some(lengths(doc))),
    ];
    Block::Facts(facts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect())
}

/// The quantity of the lengths, and the loop's own time in them.
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

fn notes(rows: &[SeriesFigures]) -> Vec<String> {
    let mut notes = Vec::new();
    let widest = rows.iter().flat_map(|row| [row.median, row.p99, row.p999]).flatten();
    let widest = widest.map(|level| level.high_ns.saturating_sub(level.low_ns)).max().unwrap_or(0);
    if widest > 0 {
        let width = Value::Time(widest).cell();
        notes.push(format!("quantiles are the middles of buckets of the histogram, which are up to {width} wide"));
    }
    for (edges, which, off) in [
        (Edges::Lower, "min, mean and max are lower edges of buckets", "longer"),
        (Edges::Upper, "min and max are upper edges of buckets", "shorter"),
    ] {
        if rows.iter().any(|row| row.series.edges == Some(edges) && row.series.count != Some(0)) {
            notes.push(format!("{which}: the real ones may be {off} by the width of a bucket"));
        }
    }
    let every = |is_so: fn(&SeriesFigures) -> bool| rows.iter().all(is_so);
    let remarks = [
        (every(|row| row.series.count == Some(0)), "nothing was counted: the program saw none of these lengths"),
        (!every(|row| row.series.above.is_none()), "beyond: lengths that the histogram has no bucket for"),
        (
            !every(|row| row.disturbed.is_none()),
            "longer: steps that took longer than those of the bucket which has most of them",
        ),
    ];
    notes.extend(remarks.into_iter().filter(|remark| remark.0).map(|remark| remark.1.to_owned()));
    let lacks = [
        (every(|row| row.series.observed_ns.is_none()), "how long was measured"),
        (every(|row| row.series.total_ns.is_none()), "the sum of the lengths"),
        (every(|row| row.series.buckets.is_empty()), "a histogram"),
        (true, "when each was"),
    ];
    let lacks: Vec<&str> = lacks.into_iter().filter(|lack| lack.0).map(|lack| lack.1).collect();
    notes.push(format!("the file does not say: {}", lacks.join(", ")));
    notes
}

/// Other counts of the program, if it has any.
fn counts(doc: &DistributionDoc) -> Vec<Block> {
    let Some(first) = doc.series.iter().find(|series| !series.counts.is_empty()) else { return Vec::new() };
    let names: Vec<String> = first.counts.iter().map(|count| count.name.clone()).collect();
    let mut table = Table::matrix(&["series"], names).captioned("Counts");
    for series in &doc.series {
        let counts = series.counts.iter().map(|count| Value::Count(count.count).cell());
        table.cells([series.name.clone()].into_iter().chain(counts));
    }
    vec![Block::Heading("Counts".to_owned()), Block::Table(table)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::{NamedCount, SCHEMA, Series};

    #[test]
    fn a_page_shows_the_series_and_what_else_was_counted() {
        let series = Series {
            name: "thread 0".to_owned(),
            count: Some(7),
            counts: vec![NamedCount { name: "overflows".to_owned(), count: 3 }],
            ..Series::default()
        };
        let doc = DistributionDoc {
            schema: SCHEMA.to_owned(),
            node: "node1".to_owned(),
            program: "becalm 0.0.0".to_owned(),
            format: "cyclictest".to_owned(),
            tool: "cyclictest 2.40".to_owned(),
            command: None,
            kernel: None,
            begun: None,
            ended: None,
            quantity: Quantity::Wakeup,
            loop_subtracted: None,
            series: vec![series],
            warnings: Vec::new(),
        };
        let page = DistributionReport { docs: &[doc] }.page("becalm 0.0.0").unwrap();
        let [section] = page.sections.as_slice() else { panic!("{page:?}") };
        let tables = section.blocks.iter().filter(|block| matches!(block, Block::Table(table) if table.len() == 1));
        assert_eq!((page.subtitle.as_str(), tables.count()), ("node1", 2), "{page:?}");
    }
}
