//! Several runs of work compared: bodies, grains, copies, rates of added interrupts (Tsafrir 2007, figures 11 to 13 and 16).

use becalm_analyze::work::{CpuWork, EventTotal, Spread, WorkSummary};
use becalm_model::Kind;
use becalm_model::carried::is_timer;
use becalm_model::node::WorkDoc;
use becalm_units::{Nanos, printable};

use super::fields::a_sample;
use crate::Value;
use crate::catalogue;
use crate::form::field::{Field, fields};
use crate::form::figure::{Fine, Number, Rate, Ratio, Time};
use crate::form::section::{Block, Section};
use crate::form::table::Table;
use crate::form::value::grouped;
use crate::html::AxisUnit;
use crate::sweep::{Axes, Axis, SweepFigure};

/// A CPU of one of several runs.
#[derive(Clone)]
pub(super) struct Compared {
    body: String,
    grain_ns: i64,
    copies: u32,
    added_hz: u32,
    node: String,
    cpu: u32,
    spread: Spread,
    fasties: u64,
    /// Timer interrupts per second in the kernel's trace; `None` without a trace.
    interrupts_hz: Option<f64>,
}

/// A counted processor event of one of the runs.
pub(super) struct ComparedCount {
    of: Compared,
    count: EventTotal,
}

impl Compared {
    fn new(work: &WorkDoc, cpu: &CpuWork) -> Self {
        let timer = cpu.subtraction.iter().filter(|step| step.kind == Some(Kind::Irq) && is_timer(&step.source));
        let count: u64 = timer.map(|step| step.count).sum();
        let is_known = !cpu.subtraction.is_empty() && cpu.duration_ns > 0;
        Self {
            body: work.body_on(cpu.cpu).to_owned(),
            grain_ns: work.grain_ns.get(),
            copies: work.copies,
            added_hz: work.added_hz,
            node: cpu.node.clone(),
            cpu: cpu.cpu.get(),
            spread: cpu.spread,
            fasties: cpu.body.fasties,
            interrupts_hz: is_known.then(|| count as f64 * 1e9 / cpu.duration_ns as f64),
        }
    }

    /// The excess of the mean over the shortest sample, relative to it.
    fn delay_ratio(&self) -> Option<f64> {
        let shortest = self.spread.min_ns;
        (shortest > 0).then(|| self.spread.mean_ns / shortest as f64 - 1.0)
    }
}

fields! {
    /// The fields of a CPU of one of several runs.
    pub(super) COMPARED, compared: Compared {
        BODY = "body", "body", |row| row.body.clone();
        GRAIN_NS = "grain_ns", "grain", |row| Fine(row.grain_ns);
        COPIES = "copies", "copies", |row| row.copies;
        ADDED_HZ = "added_hz", "added", |row| Rate(f64::from(row.added_hz));
        INTERRUPTS_HZ = "interrupts_hz", "interrupts", |row| row.interrupts_hz.map(Rate);
        NODE = catalogue::NODE, |row| row.node.clone();
        CPU = catalogue::CPU, |row| Number(row.cpu.into());
        SAMPLES = catalogue::SAMPLES, |row| row.spread.count;
        MIN_NS = catalogue::MIN_NS, |row| Fine(row.spread.min_ns);
        MEAN_NS = catalogue::MEAN_NS, |row| Fine::rounded(row.spread.mean_ns);
        MEDIAN_NS = catalogue::MEDIAN_NS, |row| Fine(row.spread.median_ns());
        P95_NS = catalogue::P95_NS, |row| Fine(row.spread.quantiles_ns[5]);
        P99_NS = catalogue::P99_NS, |row| Fine(row.spread.quantiles_ns[6]);
        MAX_NS = catalogue::MAX_NS, |row| Fine(row.spread.max_ns);
        STDDEV_NS = catalogue::STDDEV_NS, |row| Time::rounded(row.spread.stddev_ns);
        DELAY_RATIO = "delay_ratio", "over the shortest", |row| row.delay_ratio().map(Ratio);
        FASTIES = "fasties", "short outliers", |row| row.fasties;
        SLOWIES = "slowies", "long outliers", |row| row.spread.slowies;
    }
}

fields! {
    /// The fields of a counted event of one of several runs.
    pub(super) COUNTED, counted: ComparedCount {
        BODY = compared::BODY => |row| &row.of;
        GRAIN_NS = compared::GRAIN_NS => |row| &row.of;
        COPIES = compared::COPIES => |row| &row.of;
        ADDED_HZ = compared::ADDED_HZ => |row| &row.of;
        CPU = compared::CPU => |row| &row.of;
        EVENT = catalogue::EVENT, |row| row.count.event.clone();
        USER_PER_SAMPLE = "user_per_sample", "user, a sample", |row| a_sample(row.count.user_a_sample());
        KERNEL_PER_SAMPLE = "kernel_per_sample", "kernel, a sample", |row| a_sample(row.count.kernel_a_sample());
    }
}

/// The CPUs of all runs, run by run.
pub(super) fn rows(summaries: &[WorkSummary]) -> Vec<Compared> {
    pairs(summaries).map(|(work, cpu)| Compared::new(work, cpu)).collect()
}

/// The processor's counts in all runs, run by run.
pub(super) fn counts(summaries: &[WorkSummary]) -> Vec<ComparedCount> {
    let of_cpu = |(work, cpu): (&WorkDoc, &CpuWork)| {
        let of = Compared::new(work, cpu);
        let count = |count: &EventTotal| ComparedCount { of: of.clone(), count: count.clone() };
        cpu.counts.iter().map(count).collect::<Vec<_>>()
    };
    pairs(summaries).flat_map(of_cpu).collect()
}

fn pairs(summaries: &[WorkSummary]) -> impl Iterator<Item = (&WorkDoc, &CpuWork)> {
    summaries.iter().flat_map(|summary| {
        summary.cpus.iter().filter_map(|cpu| {
            let doc = summary.nodes.iter().find(|doc| doc.node == cpu.node)?;
            Some((doc.settings.work.as_ref()?, cpu))
        })
    })
}

/// The distinct values of a parameter in order of appearance.
fn values_of<T: PartialEq>(rows: &[Compared], value: impl Fn(&Compared) -> T) -> Vec<T> {
    let mut values = Vec::new();
    for row in rows {
        let value = value(row);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// The delays of all runs as shades, if at least two parameters vary and no run is missing.
fn surface(rows: &[Compared]) -> Vec<Block> {
    let texts = |value: fn(&Compared) -> String| values_of(rows, value);
    let parameters = [
        ("node", texts(|row| printable(&row.node).into_owned())),
        ("body", texts(|row| row.body.clone())),
        ("grain", texts(|row| Nanos::new(row.grain_ns).to_string())),
        ("copies", texts(|row| row.copies.to_string())),
        ("added", texts(|row| format!("{}/s", grouped(row.added_hz.into())))),
        ("cpu", texts(|row| row.cpu.to_string())),
    ];
    let is_whole = parameters.iter().map(|(_, values)| values.len()).product::<usize>() == rows.len();
    if !is_whole || parameters.iter().filter(|(_, values)| values.len() > 1).count() < 2 {
        return Vec::new();
    }
    let axes = Axes::new(parameters.into_iter().map(|(title, values)| Axis::named(title, values)).collect());
    let delays = rows.iter().map(Compared::delay_ratio).collect();
    let delays = SweepFigure::new(&axes, "over the shortest", AxisUnit::Ratio, Value::Ratio, delays);
    delays.shades("Surface: the excess of the mean over the shortest sample, as shades")
}

/// The runs side by side, by their differences.
pub(super) fn section(summaries: &[WorkSummary]) -> Option<Section> {
    let rows = rows(summaries);
    let first = rows.first()?;
    let differs = |same: fn(&Compared, &Compared) -> bool| rows.iter().any(|row| !same(first, row));
    let (bodies, copies) = (differs(|a, b| a.body == b.body), differs(|a, b| a.copies == b.copies));
    let grains = differs(|a, b| a.grain_ns == b.grain_ns);
    let (rates, cpus) = (differs(|a, b| a.added_hz == b.added_hz), differs(|a, b| a.cpu == b.cpu));
    let named: [(bool, &Field<Compared>); 7] = [
        (bodies, &compared::BODY),
        (grains, &compared::GRAIN_NS),
        (copies, &compared::COPIES),
        (rates, &compared::ADDED_HZ),
        (rates, &compared::INTERRUPTS_HZ),
        (differs(|a, b| a.node == b.node), &compared::NODE),
        (cpus, &compared::CPU),
    ];
    let mut fields: Vec<&Field<Compared>> =
        named.into_iter().filter_map(|(shown, field)| shown.then_some(field)).collect();
    fields.extend([
        &compared::MIN_NS,
        &compared::MEAN_NS,
        &compared::MEDIAN_NS,
        &compared::P99_NS,
        &compared::MAX_NS,
        &compared::STDDEV_NS,
        &compared::DELAY_RATIO,
        &compared::FASTIES,
        &compared::SLOWIES,
    ]);
    let note = "over the shortest: the excess of the mean over the shortest sample";
    let mut blocks = vec![Block::Table(Table::filled(&fields, &rows)), Block::Text(note.to_owned())];
    blocks.extend(surface(&rows));
    let counts = counts(summaries);
    let named: [(bool, &Field<ComparedCount>); 8] = [
        (bodies, &counted::BODY),
        (grains, &counted::GRAIN_NS),
        (copies, &counted::COPIES),
        (rates, &counted::ADDED_HZ),
        (cpus, &counted::CPU),
        (true, &counted::EVENT),
        (true, &counted::USER_PER_SAMPLE),
        (true, &counted::KERNEL_PER_SAMPLE),
    ];
    let fields: Vec<&Field<ComparedCount>> =
        named.into_iter().filter_map(|(shown, field)| shown.then_some(field)).collect();
    if !counts.is_empty() {
        let title = "Processor events per sample, in the loop (user) and in interruptions (kernel)";
        blocks.extend([Block::Heading(title.to_owned()), Block::Table(Table::filled(&fields, &counts))]);
    }
    Some(Section::named("comparison", "The recordings compared", blocks))
}
