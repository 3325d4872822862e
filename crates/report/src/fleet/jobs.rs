//! What noise costs the jobs of a fleet, for a terminal and as `becalm.fleet-predict/1`.

use std::io;

use becalm_analyze::fleet::jobs::{Cause, FleetCost, JobLoss, Mending};
use becalm_analyze::fleet::sacct::Accounting;
use becalm_units::{Count, Nanos, plural, printable};
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::shown;
use crate::Value;
use crate::form::field::{Field, fields};
use crate::form::paragraph::{heading, paragraph};
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::form::value::{grouped, three_digits};
use crate::report::Report;

/// So many things to mend are shown unless all are asked for.
const SHOWN: usize = 10;

/// What noise costs the jobs of a fleet, as `becalm fleet predict` shows it.
#[derive(Clone, Copy, Debug)]
pub struct FleetCostReport<'a> {
    /// What was found.
    pub cost: &'a FleetCost,
    /// The jobs that were read, where there are any.
    pub accounting: Option<&'a Accounting>,
}

/// Node-hours, where they are known.
fn hours(hours: Option<f64>) -> Value {
    hours.map_or(Value::Missing, |hours| Value::Count(hours.round() as u64))
}

fields! {
    /// The fields of a size of jobs.
    pub(crate) SIZE, size: JobLoss {
        RANKS = "ranks", "ranks", |size| Value::Text(Count::new(size.ranks).to_string());
        SLOWDOWN = "slowdown_ratio", "slowdown", |size| Value::Factor(size.slowdown);
        LOST = "lost_ratio", "lost", |size| Value::Ratio(1.0 - 1.0 / size.slowdown);
        HOURS = "node_hours", "node-hours a year", |size| hours(size.node_hours);
        LOST_HOURS = "lost_node_hours", "of which lost", |size| hours(size.lost_hours);
    }
}

/// What a cause is called, and where it is.
fn named(cause: &Cause, cost: &FleetCost) -> String {
    match cause {
        Cause::OnNode(node, source) => format!("{} on {}", shown(source), printable(node)),
        Cause::Everywhere(source) => {
            let apart = |of: &Mending| matches!(&of.cause, Cause::OnNode(_, other) if other == source);
            let nodes = if cost.mendings.iter().any(apart) { "the other nodes" } else { "all nodes" };
            format!("{} on {nodes}", shown(source))
        }
    }
}

/// By how much jobs of the largest size become shorter. Less than is told makes no difference to anybody.
fn gain(of: &Mending) -> String {
    let percent = of.gains.last().copied().unwrap_or(0.0) * 100.0;
    if percent < 0.001 { "less than 0.001%".to_owned() } else { format!("{}%", three_digits(percent)) }
}

/// The first thing to mend, in a sentence.
fn conclusion(cost: &FleetCost) -> String {
    let Some(first) = cost.mendings.first() else {
        return "Nothing is to be mended: without any one source the jobs are as long.".to_owned();
    };
    let named = named(&first.cause, cost);
    if let Some(saved) = first.saved_hours {
        return format!("Mend first: {named}. That saves {} node-hours a year.", grouped(saved.round() as u64));
    }
    let ranks = cost.sizes.last().map_or(0, |size| size.ranks);
    format!("Mend first: {named}. That makes jobs of {} ranks {} shorter.", Count::new(ranks), gain(first))
}

#[derive(Serialize)]
struct CostDocument {
    summary: String,
    nodes: usize,
    grain_ns: i64,
    drawn_ns: i64,
    jobs: Option<u64>,
    span_hours: Option<f64>,
    rows: Vec<Json>,
    mend: Vec<Json>,
    problems: Vec<Json>,
}

impl Report for FleetCostReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.fleet-predict/1"
    }

    fn document(&self) -> impl Serialize {
        let cost = self.cost;
        let row = |size: &JobLoss| {
            json!({
                "ranks": size.ranks,
                "slowdown_ratio": size.slowdown,
                "lost_ratio": 1.0 - 1.0 / size.slowdown,
                "at_least": size.at_least,
                "node_hours": size.node_hours,
                "lost_node_hours": size.lost_hours,
            })
        };
        let mending = |of: &Mending| {
            let (node, (kind, source)) = match &of.cause {
                Cause::OnNode(node, source) => (Some(node), source),
                Cause::Everywhere(source) => (None, source),
            };
            json!({
                "node": node,
                "kind": kind.name(),
                "source": source,
                "gain_ratio": of.gains,
                "saved_node_hours": of.saved_hours,
            })
        };
        CostDocument {
            summary: conclusion(cost),
            nodes: cost.nodes,
            grain_ns: cost.grain.get(),
            drawn_ns: cost.drawn.get(),
            jobs: cost.jobs,
            span_hours: self.accounting.map(|of| of.span_hours),
            rows: cost.sizes.iter().map(row).collect(),
            mend: cost.mendings.iter().map(mending).collect(),
            problems: cost.problems.iter().map(|(node, what)| json!({"node": node, "what": what})).collect(),
        }
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        let cost = self.cost;
        paragraph(out, "  ", &conclusion(cost))?;
        for (node, what) in &cost.problems {
            paragraph(out, "  ! ", &format!("{}: {}", printable(node), printable(what)))?;
        }
        render_sizes(cost, self.accounting, out)?;
        render_mendings(cost, out)
    }
}

fn render_sizes(cost: &FleetCost, accounting: Option<&Accounting>, out: &mut Sheet<'_>) -> io::Result<()> {
    heading(out, "Jobs by size")?;
    let fields: Vec<&Field<JobLoss>> = SIZE.iter().take(if accounting.is_some() { 5 } else { 3 }).collect();
    let mut table = Table::new(&fields);
    cost.sizes.iter().for_each(|size| table.row(&fields, size));
    table.print(out)?;
    let nodes = cost.nodes as u64;
    let mut note = format!(
        "phases of {:.3} of work; each rank has a CPU of the {nodes} {}, drawn at random, under noise that is drawn from the summary form for {:.1} \
         of CPU time",
        cost.grain,
        plural(nodes, "node", "nodes"),
        cost.drawn
    );
    if let Some(of) = accounting {
        note += &format!(
            "; {} {} of {} hours, and so for a year; sizes are powers of two, rounded down",
            grouped(of.jobs),
            plural(of.jobs, "job", "jobs"),
            three_digits(of.span_hours)
        );
    }
    paragraph(out, "  ", &note)?;
    if let Some(size) = cost.sizes.iter().find(|size| size.at_least) {
        let ranks = Count::new(size.ranks);
        let told = format!(
            "from {ranks} ranks on a phase takes more CPU time than was drawn: these jobs lose at least as much"
        );
        paragraph(out, "  ", &told)?;
    }
    Ok(())
}

fn render_mendings(cost: &FleetCost, out: &mut Sheet<'_>) -> io::Result<()> {
    let shown = if out.all() { cost.mendings.len() } else { cost.mendings.len().min(SHOWN) };
    if shown == 0 {
        return Ok(());
    }
    heading(out, "What to mend, the most rewarding first")?;
    let with_hours = cost.mendings.iter().any(|of| of.saved_hours.is_some());
    let ranks = cost.sizes.last().map_or(0, |size| size.ranks);
    for (number, of) in (1..).zip(&cost.mendings[..shown]) {
        let saved = match of.saved_hours.filter(|_| with_hours) {
            Some(hours) => format!("saves {} node-hours a year; ", grouped(hours.round() as u64)),
            None => String::new(),
        };
        let (named, gain, ranks) = (named(&of.cause, cost), gain(of), Count::new(ranks));
        let text = format!("{named}: {saved}jobs of {ranks} ranks become {gain} shorter");
        paragraph(out, &format!("{number:>3}. "), &text)?;
    }
    let note = "each alone, with all that goes with it; a source of a node stands alone where the node differs from its equals by it";
    if shown < cost.mendings.len() {
        paragraph(out, "  ", &format!("{} more with --all", cost.mendings.len() - shown))?;
    }
    let grain: Nanos = cost.grain;
    paragraph(out, "  ", &format!("{note}; at a grain of {grain:.3}"))
}

#[cfg(test)]
mod tests {
    use becalm_model::Kind;

    use super::*;

    /// A billionth is no figure that anybody mends for, and its digits are those of the sampling.
    #[test]
    fn gains_without_a_difference_have_no_digits() {
        let of = |gains: &[f64]| Mending {
            cause: Cause::Everywhere((Kind::Irq, "local_timer".to_owned())),
            gains: gains.to_vec(),
            saved_hours: None,
        };
        let shown = [&[0.5, 0.0417][..], &[0.5, 8.8e-10], &[1e-5], &[]].map(|gains| gain(&of(gains)));
        assert_eq!(shown, ["4.17%", "less than 0.001%", "0.00100%", "less than 0.001%"]);
    }
}
