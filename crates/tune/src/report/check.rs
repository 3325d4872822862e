//! What keeps CPUs from being quiet, for a terminal and as `becalm.tune-check/1`.

use std::path::Path;

use becalm_model::remedy::NoiseSource;
use becalm_report::Report;
use becalm_report::Value;
use becalm_report::catalogue;
use becalm_report::form::field::{Object, columns, fields};
use becalm_report::form::figure::{Rate, Ratio};
use becalm_report::form::known::{known, system};
use becalm_report::form::section::{Block, Page, Section};
use becalm_report::form::sheet::Form;
use becalm_report::form::table::Table;
use becalm_report::form::value::{grouped, three_digits};
use becalm_report::form::words::quoted;
use becalm_units::plural;
use becalm_units::{CpuList, Named};
use serde::Serialize;

use crate::document::{Area, Check, Chosen, Evidence, Finding, Fix, Severity, SourceCost, TickCount, TicksFrom};

/// The number of pieces of evidence shown for a finding unless all are wanted; a document has all.
const EVIDENCE: usize = 3;

/// The number of sources shown for a finding.
const SOURCES: usize = 3;

/// The number of CPUs whose ticks are shown unless all are wanted: more add nothing to the findings.
const TICKS: usize = 16;

/// The title of the page.
const TITLE: &str = "What keeps CPUs from being quiet";

/// A check of one machine.
#[derive(Clone, Copy, Debug)]
pub struct TuneCheckReport<'a> {
    /// The name of the host that was checked.
    pub node: &'a str,
    /// The release of its kernel.
    pub kernel: &'a str,
    /// The model of its processors; empty if unknown.
    pub processor: &'a str,
    /// The CPUs that should be quiet, and the findings.
    pub check: &'a Check,
    /// The recording with the costs.
    pub run: Option<&'a Path>,
    /// Why ticks were not counted; `None` if they were.
    pub not_counted: Option<&'a str>,
    /// The counted ticks or timer interrupts.
    pub ticks: &'a [TickCount],
}

fields! {
    TICK, tick: TickCount {
        CPU = catalogue::CPU, |row| row.cpu;
        INTERRUPTS = "interrupts", "interrupts", |row| row.interrupts;
        ARE_TICKS = "are_ticks", "ticks alone", |row| row.are_ticks;
        DURATION_NS = "duration_ns", "in", |row| row.during;
        RATE_HZ = catalogue::RATE_HZ, |row| Rate(row.rate_hz());
        PREEMPTED = "preempted", "preempted", preempted;
    }
}

fn preempted(row: &TickCount) -> Option<u64> {
    match row.from {
        TicksFrom::Measured { preempted } => Some(preempted),
        TicksFrom::Recorded => None,
    }
}

fields! {
    SOURCE, source: SourceCost {
        SOURCE = catalogue::SOURCE, |row| row.source.clone();
        KIND = catalogue::KIND, |row| row.kind.name();
        CPUS = catalogue::CPUS, |row| row.cpus.to_string();
        COUNT = catalogue::COUNT, |row| row.count;
        TOTAL_NS = catalogue::TOTAL_NS, |row| row.total;
        TIME_RATIO = catalogue::TIME_RATIO, |row| Ratio(row.ratio);
    }
}

impl Report for TuneCheckReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.tune-check/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn view(&self, form: Form) -> Page {
        let mut sections = vec![subject(self), findings(self, form.all())];
        sections.extend(ticks(self));
        sections.push(next(self, form.all()));
        Page { title: TITLE.to_owned(), subtitle: known(self.node).to_owned(), sections, foot: Vec::new() }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct CheckDocument<'a> {
    node: &'a str,
    kernel: &'a str,
    processor: &'a str,
    cpus: &'a CpuList,
    chosen: Chosen,
    others: &'a CpuList,
    run: Option<String>,
    errors: usize,
    warnings: usize,
    notes: usize,
    fine: usize,
    not_counted: Option<&'a str>,
    ticks: Vec<Object<TickCount>>,
    findings: Vec<FindingDocument<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct FindingDocument<'a> {
    severity: Severity,
    area: Area,
    title: &'a str,
    evidence: &'a [Evidence],
    cost: Option<CostDocument>,
    fix: Option<FixDocument<'a>>,
    noise: &'a [NoiseSource],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct CostDocument {
    total_ns: i64,
    time_ratio: Value,
    sources: Vec<Object<SourceCost>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct FixDocument<'a> {
    text: &'a str,
    command: Option<String>,
    boot: Option<&'a str>,
}

fn document<'a>(report: &TuneCheckReport<'a>) -> CheckDocument<'a> {
    let Check { choice, findings } = report.check;
    CheckDocument {
        node: report.node,
        kernel: report.kernel,
        processor: report.processor,
        cpus: &choice.cpus,
        chosen: choice.chosen,
        others: &choice.others,
        run: report.run.map(|run| run.display().to_string()),
        errors: report.check.count(Severity::Error),
        warnings: report.check.count(Severity::Warning),
        notes: report.check.count(Severity::Note),
        fine: report.check.count(Severity::Fine),
        not_counted: report.not_counted,
        ticks: report.ticks.iter().map(Object::new).collect(),
        findings: findings.iter().map(|finding| finding_document(finding, &choice.cpus)).collect(),
    }
}

fn finding_document<'a>(finding: &'a Finding, cpus: &CpuList) -> FindingDocument<'a> {
    FindingDocument {
        severity: finding.severity,
        area: finding.area,
        title: &finding.title,
        evidence: &finding.evidence,
        cost: finding.cost.as_ref().map(|cost| CostDocument {
            total_ns: cost.total.get(),
            time_ratio: Value::Ratio(cost.ratio),
            sources: cost.sources.iter().map(Object::new).collect(),
        }),
        fix: finding.fix.as_ref().map(|fix| FixDocument {
            text: &fix.text,
            command: command(fix, cpus),
            boot: fix.boot.as_deref(),
        }),
        noise: &finding.noise,
    }
}

/// The command that shows the changes; `None` if the fix needs a reboot or another step.
fn command(fix: &Fix, cpus: &CpuList) -> Option<String> {
    fix.family.map(|family| format!("becalm tune plan --cpus {cpus} --only {family}"))
}

const fn because(chosen: Chosen) -> &'static str {
    match chosen {
        Chosen::Named => "as asked for",
        Chosen::KeptApart => "those that this machine keeps apart",
        Chosen::AllButFirst => "this machine keeps none apart, so all but the first; choose with --cpus",
        Chosen::OnlyOne => "the only one",
    }
}

/// The machine, and the number of findings.
fn subject(report: &TuneCheckReport<'_>) -> Section {
    let choice = &report.check.choice;
    let others = if choice.others.is_empty() { "none".to_owned() } else { choice.others.to_string() };
    let count = |severity, one, many| {
        let number = report.check.count(severity);
        format!("{number} {}", plural(number as u64, one, many))
    };
    let counts = [
        count(Severity::Error, "error", "errors"),
        count(Severity::Warning, "warning", "warnings"),
        count(Severity::Note, "note", "notes"),
    ];
    let texts = [
        format!("becalm on {}: {}", known(report.node), system(report.kernel, report.processor)),
        format!("to be quiet: CPU {} ({}); for everything else: {others}", choice.cpus, because(choice.chosen)),
        format!("{}; {} fine", counts.join(", "), count(Severity::Fine, "check", "checks")),
    ];
    let warning = report.not_counted.map(|why| Block::warning(format!("ticks were not counted: {why}")));
    let blocks = texts.into_iter().map(|text| Block::entry("", text)).chain(warning);
    Section::new("machine", "Machine", "The machine", blocks.collect())
}

/// The findings, the most severe first. `all` includes those that are fine, and all evidence.
fn findings(report: &TuneCheckReport<'_>, all: bool) -> Section {
    let Check { choice, findings } = report.check;
    let shown = findings.iter().filter(|finding| all || finding.severity != Severity::Fine);
    let blocks = shown.flat_map(|finding| finding_blocks(finding, &choice.cpus, all)).collect();
    Section::new("findings", "Findings", "What was found", blocks)
}

fn finding_blocks(finding: &Finding, cpus: &CpuList, all: bool) -> Vec<Block> {
    let entry = |name: &str, text: String| Block::entry(format!("           {name:<4}  "), text);
    let head = format!("{:<8} {:<10} ", finding.severity.name(), finding.area.name());
    let mut blocks = vec![Block::gap(), Block::entry(head, &finding.title)];
    let shown = if all { finding.evidence.len() } else { EVIDENCE.min(finding.evidence.len()) };
    for Evidence { path, value } in &finding.evidence[..shown] {
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        blocks.push(entry("seen", format!("{path}: {}", if value.is_empty() { "empty" } else { &value })));
    }
    if shown < finding.evidence.len() {
        blocks.push(entry("seen", format!("and {} more like these", finding.evidence.len() - shown)));
    }
    if let Some(cost) = &finding.cost {
        let spent: Vec<String> = cost.sources.iter().take(SOURCES).map(spent).collect();
        let more = match cost.sources.len().saturating_sub(SOURCES) {
            0 => String::new(),
            1 => "; and 1 source more".to_owned(),
            more => format!("; and {more} sources more"),
        };
        blocks.push(entry("cost", format!("{}{more}", spent.join("; "))));
    }
    if let Some(fix) = &finding.fix {
        blocks.push(entry("fix", fix.text.clone()));
        blocks.extend(command(fix, cpus).map(|command| entry("try", command)));
        blocks.extend(fix.boot.clone().map(|boot| entry("boot", boot)));
    }
    blocks
}

/// `irq virtio1-req.0 took 0.400% of CPU 1`.
fn spent(source: &SourceCost) -> String {
    let share = three_digits(source.ratio * 100.0);
    let times = if source.count == 1 { "once".to_owned() } else { format!("{} times", grouped(source.count)) };
    // Remainders are named by their kinds.
    let kind = source.kind.name();
    let name = if kind == source.source { kind.to_owned() } else { format!("{kind} {}", source.source) };
    format!("{name} took {share}% of CPU {} ({times})", source.cpus)
}

fn ticks(report: &TuneCheckReport<'_>) -> Option<Section> {
    let title = "Ticks or timer interrupts, counted";
    let fields = columns(TICK, &["cpu", "interrupts", "are_ticks", "duration_ns", "rate_hz", "preempted"]);
    let table = Table::filled(&fields, report.ticks).captioned(title);
    let table = table.with_most_important(TICKS, |more| format!("and {more} CPUs more"));
    let section = Section::new("ticks", "Ticks", title, vec![Block::Table(table)]).titled();
    (!report.ticks.is_empty()).then_some(section)
}

fn next(report: &TuneCheckReport<'_>, all: bool) -> Section {
    let cpus = &report.check.choice.cpus;
    let mut commands = vec![(format!("becalm tune plan --cpus {cpus}"), "every change that can be made, before it is")];
    match report.run {
        Some(run) => {
            commands.push((format!("becalm sources {}", quoted(&run.to_string_lossy())), "all that the recording saw"))
        }
        None => {
            commands.push((format!("becalm record --cpus {cpus} -o before --duration 10s"), "what it costs"));
            commands.push((format!("becalm tune check --cpus {cpus} --run before"), "the same, with costs"));
        }
    }
    if !all && report.check.count(Severity::Fine) > 0 {
        commands.push((format!("becalm tune check --cpus {cpus} --full"), "what is fine, too"));
    }
    let width = commands.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    // Commands are never cut: on a narrow page the purpose is below.
    let blocks = commands.iter().map(|(command, what)| Block::entry(format!("  {command:<width$}   "), *what));
    Section::new("next", "Next", "Next", blocks.collect()).titled()
}
