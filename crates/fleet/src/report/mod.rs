//! Many nodes for a terminal, as `becalm.fleet/1` and as a page.

mod html;
pub mod jobs;

use std::borrow::Cow;
use std::io::{self, Write};

use becalm_model::Kind;
use becalm_report::Value;
use becalm_report::form::field::{Field, Object, fields};
use becalm_report::form::figure::{Ratio, Time};
use becalm_report::form::paragraph::{heading, paragraph};
use becalm_report::form::table::Table;
use becalm_report::form::value::three_digits;
use becalm_report::html::Page;
use becalm_report::{Report, Sheet};
use becalm_stats::outliers::{FALSE_ALARM, PEERS_MIN};
use becalm_units::{counted, plural, printable};
use serde::Serialize;

use crate::heat::Heat;
use crate::survey::{Fleet, FleetNode, SourceName};
use crate::together::{Struck, Together, Verdict};

/// So many nodes are shown unless all are asked for.
const SHOWN: usize = 20;

/// The shades of the map, from none to the most.
const SHADES: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A fleet, as `becalm fleet` shows it.
#[derive(Clone, Copy, Debug)]
pub struct FleetReport<'a> {
    /// What was read.
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
    /// The fields of a source that came on several nodes.
    pub(crate) STRUCK, struck: Struck {
        SOURCE = "source", "source", |struck| shown(&struck.name);
        NODES = "nodes", "nodes", |struck| struck.nodes;
        MOST = "most_at_once", "most at once", |struck| struck.most;
        CHANCE = "chance_ratio", "chance", |struck| struck.chance.map(Ratio);
        VERDICT = "verdict", "strikes nodes", |struck| struck.verdict.words();
    }
}

/// The name of a source; with its kind where that says more.
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

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        render(self.fleet, out)
    }

    fn page(&self, program: &str) -> Option<Page> {
        Some(html::page(self.fleet, program))
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
    /// How long what comes at the same time is taken to last at most, and how far the clocks may be off.
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
    /// The kind of the source that most of the difference is; `null` where no source is known, as below.
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

/// A node that was left out, or of which only a part was read, and why.
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

/// How a node differs from its equals, in a sentence.
fn sentence(node: &FleetNode) -> String {
    let Some(differs) = &node.differs else { return String::new() };
    let name = printable(&node.node);
    let times = three_digits(differs.factor);
    let reason = match &differs.reason {
        None => "no source of it is known".to_owned(),
        Some((source, part)) => format!("{}% of the difference is {}", three_digits(part * 100.0), shown(source)),
    };
    format!("{name}: {times} x the noise of its peers; {reason}")
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
        return format!(
            "{nodes}, of which {} can be compared; {PEERS_MIN} are needed to say which differs.",
            fleet.compared
        );
    }
    format!("None of {nodes} differs from its equals.")
}

fn render(fleet: &Fleet, out: &mut Sheet<'_>) -> io::Result<()> {
    paragraph(out, "  ", &conclusion(fleet))?;
    for problem in &fleet.problems {
        paragraph(out, "  ! ", &format!("{}: {}", printable(&problem.node), printable(&problem.what())))?;
    }
    let shown = if out.all() { fleet.nodes.len() } else { fleet.nodes.len().min(SHOWN) };
    heading(out, "Nodes, the noisiest first")?;
    let fields: Vec<&Field<FleetNode>> = NODE.iter().collect();
    let mut table = Table::new(&fields);
    fleet.nodes[..shown].iter().for_each(|node| table.row(&fields, node));
    table.print(out)?;
    if shown < fleet.nodes.len() {
        paragraph(out, "  ", &format!("{} more with --all", fleet.nodes.len() - shown))?;
    }
    paragraph(out, "  ", &how_named(fleet))?;
    if let Some(heat) = &fleet.heat {
        render_heat(fleet, heat, shown, out)?;
    }
    render_together(&fleet.together, out)
}

/// How the figures of nodes are to be read, and when one is named.
fn how_named(fleet: &Fleet) -> String {
    let mut note = "low and high: the noise ratio's 95 % interval; the largest source with its whole time".to_owned();
    if fleet.compared >= PEERS_MIN {
        note += &format!(
            ". A node is named when its noise differs from the median of all by more than their scatter and its own interval explain, at {} % for \
             all {} together",
            FALSE_ALARM * 100.0,
            fleet.compared
        );
    }
    note
}

fn render_heat(fleet: &Fleet, heat: &Heat, shown: usize, out: &mut Sheet<'_>) -> io::Result<()> {
    let column = Value::Time(heat.column_ns).cell();
    heading(out, &format!("Noise by node and time, {column} a column"))?;
    let most = heat.rows.iter().flatten().copied().fold(0.0, f64::max);
    let width = fleet.nodes.iter().take(shown).map(|node| printable(&node.node).chars().count()).max().unwrap_or(0);
    for (node, row) in fleet.nodes.iter().zip(&heat.rows).take(shown) {
        let shade = |ratio: &f64| {
            let steps = (SHADES.len() - 1) as f64;
            SHADES[if most > 0.0 { (ratio / most * steps).ceil().clamp(0.0, steps) as usize } else { 0 }]
        };
        let shades: String = row.iter().map(shade).collect();
        writeln!(out, "  {:<width$}  {}", printable(&node.node), shades.trim_end())?;
    }
    paragraph(out, "  ", &format!("a full block is {}% of the time of a column", three_digits(most * 100.0)))
}

fn render_together(together: &Result<Together, String>, out: &mut Sheet<'_>) -> io::Result<()> {
    let found = match together {
        Ok(found) => found,
        Err(why) => return paragraph(out, "  ", &format!("What strikes nodes at the same time cannot be told: {why}")),
    };
    if found.sources.is_empty() {
        return paragraph(out, "  ", "No source came on three nodes, so that none strikes nodes at the same time");
    }
    heading(out, "Sources on several nodes")?;
    let fields: Vec<&Field<Struck>> = STRUCK.iter().collect();
    let mut table = Table::new(&fields);
    found.sources.iter().for_each(|source| table.row(&fields, source));
    table.print(out)?;
    paragraph(out, "  ", &how_together(found))
}

/// How it was found what strikes nodes at the same time.
fn how_together(found: &Together) -> String {
    let slot = Value::Time(found.slot_ns).cell();
    let tested = found.sources.iter().filter(|source| source.verdict != Verdict::Everywhere).count() as u64;
    let clocks = match (found.clock_error_ns, found.unstated as u64) {
        (None, _) => "the nodes do not state how far their clocks may be off".to_owned(),
        (Some(error), 0) => format!("their clocks are off by at most {}, as they state", Value::Time(error).cell()),
        (Some(error), unstated) => format!(
            "their clocks are off by at most {}, as they state, but for {}",
            Value::Time(error).cell(),
            counted(unstated, "node that does not", "nodes that do not")
        ),
    };
    format!(
        "at the same time: within slots of {slot}, of {} nodes; {clocks}; most at once: in one slot; chance: of as much among independent nodes, whose times \
         are turned at random, 999 times; the verdict is at 5 % for {tested} tested {} together",
        found.nodes,
        plural(tested, "source", "sources")
    )
}
