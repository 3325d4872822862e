//! Many nodes for people and as `becalm.fleet/1`.

pub mod jobs;
mod view;

use std::borrow::Cow;

use becalm_model::Kind;
use becalm_report::form::field::{Field, Object, fields};
use becalm_report::form::figure::{Ratio, Time, interval};
use becalm_report::form::value::three_digits;
use becalm_report::html::Page;
use becalm_report::{Form, Report};
use becalm_stats::outliers::PEERS_MIN;
use becalm_units::{plural, printable};
use serde::Serialize;

use crate::heat::Heat;
use crate::survey::{Fleet, FleetNode, SourceName};
use crate::together::Struck;

/// A fleet, for `becalm fleet`.
#[derive(Clone, Copy, Debug)]
pub struct FleetReport<'a> {
    /// The result of the survey.
    pub fleet: &'a Fleet,
}

fields! {
    /// The fields of a node.
    pub(crate) NODE, node: FleetNode {
        NAME = "node", "node", |node| printable(&node.node).into_owned();
        CPUS = "cpus", "CPUs", |node| node.cpus;
        RATIO = "noise_ratio", "noise", |node| Ratio(node.ratio);
        LOW = "noise_ratio_low", "low", |node| node.interval.low().map(Ratio);
        HIGH = "noise_ratio_high", "high", |node| node.interval.high().map(Ratio);
        MAX = "max_ns", "max", |node| Time(node.longest_ns);
        SOURCE = "source", "largest source",
            |node| node.largest.as_ref().map(|(name, _)| shown(name));
        SOURCE_RATIO = "source_ratio", "of time",
            |node| node.largest.as_ref().map(|(_, ratio)| Ratio(*ratio));
    }
}

fields! {
    /// Fields only of tables.
    pub(crate) node_columns: FleetNode {
        INTERVAL = "interval", "95 % CI", |node| interval(node.interval.low().map(Ratio), node.interval.high().map(Ratio));
    }
}

/// The columns of a node in a table.
const NODE_COLUMNS: [&Field<FleetNode>; 7] =
    [&node::NAME, &node::CPUS, &node::RATIO, &node_columns::INTERVAL, &node::MAX, &node::SOURCE, &node::SOURCE_RATIO];

fields! {
    /// The fields of a source that occurred on several nodes.
    pub(crate) STRUCK, struck: Struck {
        SOURCE = "source", "source", |struck| shown(&struck.name);
        NODES = "nodes", "nodes", |struck| struck.nodes;
        MOST = "most_at_once", "most at once", |struck| struck.most;
        CHANCE = "chance_ratio", "chance", |struck| struck.chance.map(Ratio);
        VERDICT = "verdict", "hits nodes", |struck| struck.verdict.words();
    }
}

/// The name of a source; with its kind if that is informative.
fn shown((kind, source): &SourceName) -> String {
    if kind.is_rest() { format!("{kind} {}", printable(source)) } else { printable(source).into_owned() }
}

impl Report for FleetReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.fleet/1"
    }

    fn document(&self) -> impl Serialize {
        document(self.fleet)
    }

    fn view(&self, form: Form) -> Page {
        view::page(self.fleet, form)
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct FleetDocument<'a> {
    summary: String,
    nodes: Vec<Object<FleetNode>>,
    compared: usize,
    median_noise_ratio: f64,
    outliers: Vec<OutlierDoc<'a>>,
    heat: Option<HeatDoc<'a>>,
    together: Option<Vec<Object<Struck>>>,
    /// The length of a slot, and the largest clock error. Events in one slot are simultaneous.
    together_slot_ns: Option<i64>,
    together_clock_error_ns: Option<i64>,
    together_missing: Option<String>,
    problems: Vec<ProblemDoc<'a>>,
}

/// A node that is noisier than its peers.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct OutlierDoc<'a> {
    chance_ratio: f64,
    factor_ratio: f64,
    /// The kind of the source that makes most of the difference; `null` if no source is known, like the figures below.
    kind: Option<Kind>,
    node: &'a str,
    sentence: String,
    source: Option<&'a str>,
    source_share_ratio: Option<f64>,
}

impl<'a> OutlierDoc<'a> {
    fn new(node: &'a FleetNode) -> Option<Self> {
        let differs = node.differs.as_ref()?;
        let reason = differs.reason.as_ref();
        Some(Self {
            chance_ratio: differs.chance,
            factor_ratio: differs.factor,
            kind: reason.map(|((kind, _), _)| *kind),
            node: &node.node,
            sentence: sentence(node),
            source: reason.map(|((_, source), _)| source.as_str()),
            source_share_ratio: reason.map(|(_, part)| *part),
        })
    }
}

/// The noise of all nodes over time.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct HeatDoc<'a> {
    begin_unix_ns: i64,
    column_ns: i64,
    rows: Vec<HeatRowDoc<'a>>,
}

/// The noise of a node, column by column.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct HeatRowDoc<'a> {
    node: &'a str,
    noise_ratio: &'a [f64],
}

/// A node that was left out, or only read in part, and why.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct ProblemDoc<'a> {
    node: &'a str,
    what: Cow<'a, str>,
}

fn document<'a>(fleet: &'a Fleet) -> FleetDocument<'a> {
    let heat = |heat: &'a Heat| {
        let rows = fleet.nodes.iter().zip(&heat.rows);
        HeatDoc {
            begin_unix_ns: heat.begin_ns,
            column_ns: heat.column_ns,
            rows: rows.map(|(node, row)| HeatRowDoc { node: &node.node, noise_ratio: row }).collect(),
        }
    };
    FleetDocument {
        summary: conclusion(fleet),
        nodes: fleet.nodes.iter().map(Object::new).collect(),
        compared: fleet.compared,
        median_noise_ratio: fleet.median_ratio,
        outliers: fleet.nodes.iter().filter_map(OutlierDoc::new).collect(),
        heat: fleet.heat.as_ref().map(heat),
        together: fleet.together.as_ref().ok().map(|together| together.sources.iter().map(Object::new).collect()),
        together_slot_ns: fleet.together.as_ref().ok().map(|together| together.slot_ns),
        together_clock_error_ns: fleet.together.as_ref().ok().and_then(|together| together.clock_error_ns),
        together_missing: fleet.together.as_ref().err().cloned(),
        problems: fleet
            .problems
            .iter()
            .map(|problem| ProblemDoc { node: &problem.node, what: problem.what().into() })
            .collect(),
    }
}

/// The difference of a node from its peers, in a sentence.
fn sentence(node: &FleetNode) -> String {
    let Some(differs) = &node.differs else { return String::new() };
    let name = printable(&node.node);
    let times = three_digits(differs.factor);
    let reason = match &differs.reason {
        None => "its source is unknown".to_owned(),
        Some((source, part)) => format!("{}% of the difference is {}", three_digits(part * 100.0), shown(source)),
    };
    format!("{name}: {times}x the noise of its peers; {reason}")
}

/// The answer in a sentence or two.
fn conclusion(fleet: &Fleet) -> String {
    let named: Vec<String> = fleet.nodes.iter().filter(|node| node.differs.is_some()).take(3).map(sentence).collect();
    let all = fleet.nodes.len() as u64;
    let nodes = format!("{all} {}", plural(all, "node", "nodes"));
    if !named.is_empty() {
        return format!("{}.", named.join(". "));
    }
    if fleet.compared < PEERS_MIN {
        return format!("{nodes}, {} of them comparable; it takes {PEERS_MIN} to find outliers.", fleet.compared);
    }
    format!("None of {nodes} is an outlier.")
}
