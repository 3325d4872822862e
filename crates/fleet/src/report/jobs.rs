//! The cost of noise for the jobs of a fleet, for a terminal and as `becalm.fleet-predict/1`.

use becalm_model::Kind;
use becalm_report::form::field::{Field, fields};
use becalm_report::form::figure::{Factor, Ratio};
use becalm_report::form::table::Table;
use becalm_report::form::value::{grouped, three_digits, time};
use becalm_report::html::{AxisUnit, Block, Grade, Page, Section};
use becalm_report::predict::rounded::round;
use becalm_report::sweep::{Axes, Axis, SweepFigure};
use becalm_report::{Form, Report, Value, missed};
use becalm_scale::uncertainty::Missed;
use becalm_units::{Count, counted, plural, printable};
use serde::Serialize;

use super::{ProblemDoc, shown};
use crate::jobs::{Cause, FleetCost, JobLoss, Mending};
use crate::sacct::Accounting;

/// The number of fixes shown unless all are wanted.
const SHOWN: usize = 10;

/// The cost of noise for the jobs of a fleet, for `becalm fleet predict`.
#[derive(Clone, Copy, Debug)]
pub struct FleetCostReport<'a> {
    /// The result of the analysis.
    pub cost: &'a FleetCost,
    /// The accounted jobs, if there are any.
    pub accounting: Option<&'a Accounting>,
}

/// Node-hours, if known.
fn hours(hours: Option<f64>) -> Option<u64> {
    hours.map(|hours| hours.round() as u64)
}

fields! {
    /// The fields of a size of jobs.
    pub(crate) SIZE, size: JobLoss {
        RANKS = "ranks", "ranks", |size| Count::new(size.ranks).to_string();
        SLOWDOWN = "slowdown_ratio", "slowdown", |size| Factor(size.slowdown);
        LOST = "lost_ratio", "lost", |size| Ratio(1.0 - 1.0 / size.slowdown);
        HOURS = "node_hours", "node-hours per year", |size| hours(size.node_hours);
        LOST_HOURS = "lost_node_hours", "lost node-hours", |size| hours(size.lost_hours);
    }
}

/// The name of a cause, and its place.
fn named(cause: &Cause, cost: &FleetCost) -> String {
    match cause {
        Cause::OnNode(node, source) => format!("{} on {}", shown(source), printable(node)),
        Cause::Everywhere(source) => {
            let apart = |mending: &Mending| matches!(&mending.cause, Cause::OnNode(_, other) if other == source);
            let nodes = if cost.mendings.iter().any(apart) { "the other nodes" } else { "all nodes" };
            format!("{} on {nodes}", shown(source))
        }
    }
}

/// The relative gain for jobs of the largest size; smaller gains than shown do not matter.
fn gain(mending: &Mending) -> String {
    let percent = mending.gains.last().copied().unwrap_or(0.0) * 100.0;
    if percent < 0.001 { "less than 0.001%".to_owned() } else { format!("{}%", three_digits(percent)) }
}

fn problems(cost: &FleetCost) -> Vec<ProblemDoc<'_>> {
    cost.problems.iter().map(|(node, what)| ProblemDoc { node, what: what.into() }).collect()
}

/// The first fix, in a sentence.
fn conclusion(cost: &FleetCost) -> String {
    let Some(first) = cost.mendings.first() else {
        return "No fix helps: without any one source, the jobs take as long.".to_owned();
    };
    let named = named(&first.cause, cost);
    if let Some(saved) = first.saved_hours {
        return format!("Fix first: {named}. That saves {} node-hours per year.", grouped(saved.round() as u64));
    }
    let ranks = cost.sizes.last().map_or(0, |size| size.ranks);
    format!("Fix first: {named}. That makes jobs of {} ranks {} shorter.", Count::new(ranks), gain(first))
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct CostDocument<'a> {
    summary: String,
    nodes: usize,
    grain_ns: i64,
    recorded_ns: i64,
    jobs: Option<u64>,
    span_hours: Option<f64>,
    rows: Vec<SizeDoc>,
    mend: Vec<MendingDoc<'a>>,
    problems: Vec<ProblemDoc<'a>>,
}

/// The cost of noise for jobs of one size.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct SizeDoc {
    lost_node_hours: Option<f64>,
    lost_ratio: f64,
    /// Events rarer than once in this time per CPU may be missing in the recordings, and may hit many phases.
    missed_every_ns: Option<i64>,
    /// The share of the phases that it may hit.
    missed_phases_ratio: Option<f64>,
    node_hours: Option<f64>,
    ranks: u64,
    slowdown_ratio: f64,
}

impl SizeDoc {
    fn new(size: &JobLoss) -> Self {
        Self {
            lost_node_hours: size.lost_hours,
            lost_ratio: 1.0 - 1.0 / size.slowdown,
            missed_every_ns: size.missed.map(|missed| missed.every.get()),
            missed_phases_ratio: size.missed.map(|missed| missed.phases),
            node_hours: size.node_hours,
            ranks: size.ranks,
            slowdown_ratio: size.slowdown,
        }
    }
}

/// The gain of fixing one source.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct MendingDoc<'a> {
    /// The relative gain of jobs of each size, in the order of the sizes.
    gain_ratio: &'a [f64],
    kind: Kind,
    /// The node on which to fix it; `null` for all nodes.
    node: Option<&'a str>,
    saved_node_hours: Option<f64>,
    source: &'a str,
}

impl<'a> MendingDoc<'a> {
    fn new(mending: &'a Mending) -> Self {
        let (node, (kind, source)) = match &mending.cause {
            Cause::OnNode(node, source) => (Some(node.as_str()), source),
            Cause::Everywhere(source) => (None, source),
        };
        Self { gain_ratio: &mending.gains, kind: *kind, node, saved_node_hours: mending.saved_hours, source }
    }
}

/// The cost of noise for jobs of several grains, for `becalm fleet predict`.
#[derive(Clone, Copy, Debug)]
pub struct FleetSweepReport<'a> {
    /// The results for each grain, in the given order; at least one.
    pub costs: &'a [FleetCost],
    /// The accounted jobs, if there are any.
    pub accounting: Option<&'a Accounting>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct SweepDocument<'a> {
    nodes: usize,
    jobs: Option<u64>,
    span_hours: Option<f64>,
    cells: Vec<CellDoc>,
    grains: Vec<GrainDoc<'a>>,
    problems: Vec<ProblemDoc<'a>>,
}

/// The cost of noise for jobs of one size and one grain.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct CellDoc {
    grain_ns: i64,
    #[serde(flatten)]
    size: SizeDoc,
}

/// The fixes for jobs of one grain.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct GrainDoc<'a> {
    grain_ns: i64,
    mend: Vec<MendingDoc<'a>>,
    recorded_ns: i64,
    summary: String,
}

impl Report for FleetSweepReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.fleet-predict-sweep/1"
    }

    fn document(&self) -> impl Serialize {
        let cells = self.costs.iter().flat_map(|cost| {
            cost.sizes.iter().map(|size| CellDoc { grain_ns: cost.grain.get(), size: SizeDoc::new(size) })
        });
        let grains = self.costs.iter().map(|cost| GrainDoc {
            grain_ns: cost.grain.get(),
            mend: cost.mendings.iter().map(MendingDoc::new).collect(),
            recorded_ns: cost.recorded.get(),
            summary: conclusion(cost),
        });
        SweepDocument {
            nodes: self.costs[0].nodes,
            jobs: self.costs[0].jobs,
            span_hours: self.accounting.map(|jobs| jobs.span_hours),
            cells: cells.collect(),
            grains: grains.collect(),
            problems: problems(&self.costs[0]),
        }
    }

    fn view(&self, form: Form) -> Page {
        let first = &self.costs[0];
        let conclusions = self.costs.iter().map(|cost| format!("grain {}: {}", cost.grain, conclusion(cost)));
        let blocks = conclusions.map(Block::Text).chain(warnings(first)).collect();
        let mut sections = vec![Section::new("headline", "Summary", "What should be fixed first?", blocks)];
        let grains = self.costs.iter().map(|cost| cost.grain.to_string()).collect();
        let ranks: Vec<u64> = first.sizes.iter().map(|size| size.ranks).collect();
        let columns = ranks.iter().map(|ranks| Count::new(*ranks).to_string()).collect();
        let axes = Axes::new(vec![Axis::named("grain", grains), Axis::named("ranks", columns)]);
        let sizes = || self.costs.iter().flat_map(|cost| &cost.sizes);
        let values = sizes().map(|size| Some(size.slowdown)).collect();
        let slowdowns = SweepFigure::new(&axes, "slowdown", AxisUnit::Factor, Value::Factor, values);
        sections.push(slowdowns.section("slowdown-", "Slowdown", "Slowdown of jobs by grain and size"));
        if self.accounting.is_some() {
            let count = |hours: f64| Value::Count(hours.round() as u64);
            let lost = sizes().map(|size| size.lost_hours).collect();
            let lost = SweepFigure::new(&axes, "lost", AxisUnit::Count, count, lost);
            sections.push(lost.section("lost-", "Lost", "Node-hours lost per year"));
        }
        sections.push(slowdowns.surface_section("Surface: the slowdowns as shades", &ranks));
        let blocks: Vec<Block> = self.costs.iter().flat_map(|cost| mendings(cost, form)).collect();
        sections.extend((!blocks.is_empty()).then(|| Section::new("fixes", "Fixes", "Fixes", blocks)));
        fleet_page(first, sections)
    }
}

/// The page on the cost of noise for jobs.
fn fleet_page(cost: &FleetCost, sections: Vec<Section>) -> Page {
    let title = "What noise costs the jobs of a fleet".to_owned();
    Page { title, subtitle: format!("{} nodes", cost.nodes), sections, foot: Vec::new() }
}

impl Report for FleetCostReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.fleet-predict/1"
    }

    fn document(&self) -> impl Serialize {
        let cost = self.cost;
        CostDocument {
            summary: conclusion(cost),
            nodes: cost.nodes,
            grain_ns: cost.grain.get(),
            recorded_ns: cost.recorded.get(),
            jobs: cost.jobs,
            span_hours: self.accounting.map(|jobs| jobs.span_hours),
            rows: cost.sizes.iter().map(SizeDoc::new).collect(),
            mend: cost.mendings.iter().map(MendingDoc::new).collect(),
            problems: problems(cost),
        }
    }

    fn view(&self, form: Form) -> Page {
        let cost = self.cost;
        let verdict = Block::Verdict { tone: Grade::Plain, text: conclusion(cost), basis: String::new() };
        let blocks = [verdict].into_iter().chain(warnings(cost)).collect();
        let headline = Section::new("headline", "Summary", "What should be fixed first?", blocks);
        let blocks = mendings(cost, form);
        let fixes = (!blocks.is_empty()).then(|| Section::new("fixes", "Fixes", "Fixes", blocks));
        let sections = [headline, sizes(cost, self.accounting)].into_iter().chain(fixes).collect();
        fleet_page(cost, sections)
    }
}

fn warnings(cost: &FleetCost) -> impl Iterator<Item = Block> + '_ {
    cost.problems.iter().map(|(node, what)| Block::warning(format!("{node}: {what}")))
}

fn sizes(cost: &FleetCost, accounting: Option<&Accounting>) -> Section {
    let title = "Jobs by size";
    let fields: Vec<&Field<JobLoss>> = SIZE.iter().take(if accounting.is_some() { 5 } else { 3 }).collect();
    let nodes = cost.nodes as u64;
    let mut note = format!(
        "phases of {} of work; each rank has a random CPU of the {}, with delays from {} of recorded CPU time; no intervals, because \
         nodes are read in summary form",
        cost.grain,
        counted(nodes, "node", "nodes"),
        time(cost.recorded.get())
    );
    if let Some(jobs) = accounting {
        note += &format!(
            "; {} {} in {} hours, scaled to a year; sizes are powers of two, rounded down",
            grouped(jobs.jobs),
            plural(jobs.jobs, "job", "jobs"),
            three_digits(jobs.span_hours)
        );
    }
    let first = cost.sizes.iter().find_map(|size| Some((size.ranks, size.missed?)));
    let rare = first.map(|(ranks, Missed { every, phases })| {
        format!("from {} ranks on, the loss is a lower bound: {}", Count::new(ranks), missed(every.get(), phases))
    });
    let mut table = Table::filled(&fields, &cost.sizes).captioned(title);
    round(&mut table, 1);
    let mut blocks = vec![Block::Table(table), Block::Text(note)];
    blocks.extend(rare.map(Block::Text));
    Section::new("sizes", "Sizes", title, blocks).titled()
}

/// The sources to fix, below their title, if there are any.
fn mendings(cost: &FleetCost, form: Form) -> Vec<Block> {
    let shown = if form.all() { cost.mendings.len() } else { cost.mendings.len().min(SHOWN) };
    let ranks = Count::new(cost.sizes.last().map_or(0, |size| size.ranks));
    let entry = |(number, mending): (usize, &Mending)| {
        let saved = match mending.saved_hours {
            Some(hours) => format!("saves {} node-hours per year; ", grouped(hours.round() as u64)),
            None => String::new(),
        };
        let (named, gain) = (named(&mending.cause, cost), gain(mending));
        Block::entry(format!("{number:>3}. "), format!("{named}: {saved}jobs of {ranks} ranks become {gain} shorter"))
    };
    if shown == 0 {
        return Vec::new();
    }
    let title = format!("Fixes for phases of {}, largest gain first", cost.grain);
    let mut blocks = vec![Block::Heading(title)];
    blocks.extend((1..).zip(&cost.mendings[..shown]).map(entry));
    if shown < cost.mendings.len() {
        blocks.push(Block::Text(format!("{} more with --full", cost.mendings.len() - shown)));
    }
    let note = "each gain is that of one fix alone; a source that makes a node an outlier is listed with that node";
    blocks.push(Block::Text(note.to_owned()));
    blocks
}

#[cfg(test)]
mod tests {
    use becalm_units::Nanos;

    use super::*;

    /// Grains are rows and sizes are columns, in the table, in the surface and in the document.
    #[test]
    fn grains_are_swept() {
        let cost = |grain, slowdowns: [f64; 2]| FleetCost {
            nodes: 3,
            grain,
            recorded: Nanos::from_secs(100),
            sizes: [64, 1_024]
                .into_iter()
                .zip(slowdowns)
                .map(|(ranks, slowdown)| JobLoss { ranks, slowdown, missed: None, node_hours: None, lost_hours: None })
                .collect(),
            mendings: Vec::new(),
            jobs: None,
            problems: vec![("n1".to_owned(), "gone".to_owned())],
        };
        let costs = [cost(Nanos::from_millis(1), [1.5, 3.0]), cost(Nanos::from_millis(10), [1.05, 1.2])];
        let page = FleetCostReport { cost: &costs[0], accounting: None }.page("becalm 0.0.0").unwrap();
        assert_eq!(page.sections.iter().map(|section| section.id).collect::<Vec<_>>(), ["headline", "sizes"]);
        let report = FleetSweepReport { costs: &costs, accounting: None };
        let text = becalm_report::text(&report, becalm_report::Form::default());
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(
            rows.contains(&vec!["grain", "64", "1,024"]) && rows.contains(&vec!["10ms", "1.050", "1.20"]),
            "{text}"
        );
        assert!(
            text.contains("Surface: the slowdowns as shades; columns: ranks") && text.contains("n1: gone"),
            "{text}"
        );
        let document: serde_json::Value = serde_json::from_str(&becalm_report::json(&report)).unwrap();
        assert_eq!(document["schema"], "becalm.fleet-predict-sweep/1");
        assert_eq!(
            (&document["cells"][3]["grain_ns"], &document["cells"][3]["slowdown_ratio"]),
            (&serde_json::json!(10_000_000), &serde_json::json!(1.2))
        );
        assert_eq!(document["grains"].as_array().map(Vec::len), Some(2));
    }

    /// A gain of a billionth matters to no one, and its digits come from the sampling.
    #[test]
    fn gains_without_a_difference_have_no_digits() {
        let mending = |gains: &[f64]| Mending {
            cause: Cause::Everywhere((Kind::Irq, "local_timer".to_owned())),
            gains: gains.to_vec(),
            saved_hours: None,
        };
        let shown = [&[0.5, 0.0417][..], &[0.5, 8.8e-10], &[1e-5], &[]].map(|gains| gain(&mending(gains)));
        assert_eq!(shown, ["4.17%", "less than 0.001%", "0.00100%", "less than 0.001%"]);
    }
}
