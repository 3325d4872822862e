//! Settings that let noise onto CPUs, for a terminal and as `becalm.tune-audit/1`.

use std::path::Path;

use becalm_model::audit::FirstStep;
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
use becalm_report::form::words::{capital, quoted};
use becalm_units::{CpuList, Named, counted, cpus};
use serde::Serialize;

use super::listed;
use crate::document::{Area, Check, Chosen, Evidence, Finding, Fix, Severity, SourceCost, TickCount, TicksFrom};

/// The number of CPUs whose ticks are shown unless all are wanted: more add nothing to the findings.
const TICKS: usize = 16;

/// The title of the page.
const TITLE: &str = "Settings that let noise onto CPUs";

/// A check of one machine.
#[derive(Clone, Copy, Debug)]
pub struct TuneAuditReport<'a> {
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

impl Report for TuneAuditReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.tune-audit/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn view(&self, form: Form) -> Page {
        let fixes = Fixes::new(self.check, form.all());
        let mut sections = vec![subject(self), findings(self, &fixes, form.all())];
        sections.extend(fixes.section());
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

fn document<'a>(report: &TuneAuditReport<'a>) -> CheckDocument<'a> {
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
        Chosen::Named => "chosen with --cpus",
        Chosen::KeptApart => "the isolated ones",
        Chosen::AllButFirst => "all but the first, because none is isolated; choose with --cpus",
        Chosen::OnlyOne => "the only one",
    }
}

/// The machine, and the number of findings.
fn subject(report: &TuneAuditReport<'_>) -> Section {
    let choice = &report.check.choice;
    let others = if choice.others.is_empty() { "none".to_owned() } else { choice.others.to_string() };
    let count = |severity, one, many| counted(report.check.count(severity) as u64, one, many);
    let counts = [
        count(Severity::Error, "error", "errors"),
        count(Severity::Warning, "warning", "warnings"),
        count(Severity::Note, "note", "notes"),
    ];
    let texts = [
        format!("becalm on {}: {}", known(report.node), system(report.kernel, report.processor)),
        format!("audited: {} ({}); housekeeping CPUs: {others}", cpus(&choice.cpus), because(choice.chosen)),
        format!("{}; {} passed", counts.join(", "), count(Severity::Fine, "check", "checks")),
    ];
    let warning = report.not_counted.map(|why| Block::warning(format!("ticks were not counted: {why}")));
    let blocks = texts.into_iter().map(|text| Block::entry("", text)).chain(warning);
    Section::new("machine", "Machine", "The machine", blocks.collect())
}

/// A finding with its cost and the letter of its fix.
struct FindingRow {
    severity: Severity,
    title: String,
    /// The share of time that it cost in the recording.
    cost: Option<f64>,
    fix: Option<char>,
}

fields! {
    FINDING, finding: FindingRow {
        SEVERITY = "severity", "severity", |row| row.severity.name();
        COST = "cost", "cost", |row| row.cost.map(Ratio);
        FIX = "fix", "fix", |row| row.fix.map_or_else(|| "-".to_owned(), String::from);
        TITLE = "finding", "finding", |row| row.title.clone();
    }
}

/// The fixes of all findings, each once.
struct Fixes {
    /// The command for everything that can be changed without a reboot.
    command: String,
    /// The boot parameters that remove noise, on one line.
    boot: String,
    /// The texts of the fixes in use, by letter.
    texts: Vec<String>,
    rows: Vec<FindingRow>,
}

impl Fixes {
    fn new(check: &Check, all: bool) -> Self {
        let command = format!("becalm tune apply --cpus {}", check.choice.cpus);
        let mut boot: Vec<&str> = Vec::new();
        // A note's parameter has a price that outweighs its use for most.
        let noisy = check.findings.iter().filter(|finding| finding.severity > Severity::Note);
        for word in noisy.filter_map(|finding| finding.fix.as_ref()?.boot.as_deref()).flat_map(str::split_whitespace) {
            if !boot.contains(&word) {
                boot.push(word);
            }
        }
        let mut fixes = Self { command, boot: boot.join(" "), texts: Vec::new(), rows: Vec::new() };
        for finding in check.findings.iter().filter(|finding| all || finding.severity != Severity::Fine) {
            let fix = finding.fix.as_ref().and_then(|fix| fixes.letter(fix, finding.severity));
            let cost = finding.cost.as_ref().map(|cost| cost.ratio);
            fixes.rows.push(FindingRow { severity: finding.severity, title: finding.title.clone(), cost, fix });
        }
        fixes
    }

    /// The letter of a fix, whose text is added if it is new; `None` beyond z.
    fn letter(&mut self, fix: &Fix, severity: Severity) -> Option<char> {
        let text = match (fix.family, &fix.boot) {
            (Some(_), _) => self.command.clone(),
            (None, Some(_)) if severity > Severity::Note => format!("boot with {}", self.boot),
            (None, Some(boot)) => format!("{} ({boot})", fix.text),
            (None, None) => fix.text.clone(),
        };
        let at = self.texts.iter().position(|known| *known == text).unwrap_or_else(|| {
            self.texts.push(text);
            self.texts.len() - 1
        });
        ('a'..='z').nth(at)
    }

    /// The fixes by letter. Command and boot parameters are lines of any length, for copying.
    fn section(&self) -> Option<Section> {
        let boot = format!("boot with {}", self.boot);
        let mut blocks = Vec::new();
        for (letter, text) in ('a'..='z').zip(&self.texts) {
            let first = format!("  {letter}  ");
            let why = if *text == self.command {
                let plan = text.replacen("apply", "plan", 1);
                format!("everything that needs no reboot; {plan} only lists the changes")
            } else if *text == boot {
                "every parameter that removes noise; needs a reboot".to_owned()
            } else {
                blocks.push(Block::entry(first, capital(text)));
                continue;
            };
            let text = if *text == boot { capital(text) } else { text.clone() };
            blocks.push(Block::Lines(vec![format!("{first}{text}")]));
            blocks.push(Block::OnPage(vec![Block::entry(first, text)]));
            blocks.push(Block::entry("       ", why));
        }
        (!blocks.is_empty()).then(|| Section::named("fixes", "Fixes", blocks))
    }
}

/// The findings, the most severe first. `all` includes those that are fine, and all evidence.
fn findings(report: &TuneAuditReport<'_>, fixes: &Fixes, all: bool) -> Section {
    let has_costs = fixes.rows.iter().any(|row| row.cost.is_some());
    let mut names = vec!["severity"];
    names.extend(has_costs.then_some("cost"));
    names.extend(["fix", "finding"]);
    let cost = |row: &FindingRow| row.cost.map_or(Value::Missing, Value::Ratio).cell();
    let width = fixes.rows.iter().map(|row| cost(row).len()).max().unwrap_or_default().max("cost".len());
    let entry = |row: &FindingRow| {
        let cost = if has_costs { format!("{:<width$}  ", cost(row)) } else { String::new() };
        let fix = row.fix.unwrap_or('-');
        Block::entry(format!("  {:<8} {cost}{fix:<4} ", row.severity.name()), &row.title)
    };
    let cost = if has_costs { format!("{:<width$}  ", "cost") } else { String::new() };
    let titles = Block::Lines(vec![String::new(), format!("  {:<8} {cost}fix  finding", "")]);
    let entries = std::iter::once(titles).chain(fixes.rows.iter().map(entry)).collect();
    let mut blocks = Vec::new();
    if !fixes.rows.is_empty() {
        blocks.extend(listed(Table::filled(&columns(FINDING, &names), &fixes.rows).captioned("Findings"), entries));
    }
    if all {
        blocks.push(Block::Heading("Evidence and details".to_owned()));
        blocks.extend(report.check.findings.iter().flat_map(finding_blocks));
    }
    Section::new("findings", "Findings", "Findings", blocks)
}

fn finding_blocks(finding: &Finding) -> Vec<Block> {
    let entry = |name: &str, text: String| Block::entry(format!("           {name:<4}  "), text);
    let head = format!("{:<8} {:<10} ", finding.severity.name(), finding.area.name());
    let mut blocks = vec![Block::gap(), Block::entry(head, &finding.title)];
    for Evidence { path, value } in &finding.evidence {
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        blocks.push(entry("seen", format!("{path}: {}", if value.is_empty() { "empty" } else { &value })));
    }
    if let Some(cost) = &finding.cost {
        blocks.push(entry("cost", cost.sources.iter().map(spent).collect::<Vec<_>>().join("; ")));
    }
    if let Some(fix) = &finding.fix {
        blocks.push(entry("fix", fix.text.clone()));
        blocks.extend(fix.boot.clone().map(|boot| entry("boot", boot)));
    }
    blocks
}

/// `irq virtio1-req.0 took 0.400 % of CPU 1 (15 times)`.
fn spent(source: &SourceCost) -> String {
    let share = three_digits(source.ratio * 100.0);
    let times = if source.count == 1 { "once".to_owned() } else { format!("{} times", grouped(source.count)) };
    // Remainders are named by their kinds.
    let kind = source.kind.name();
    let name = if kind == source.source { kind.to_owned() } else { format!("{kind} {}", source.source) };
    format!("{name} took {share} % of {} ({times})", cpus(&source.cpus))
}

fn ticks(report: &TuneAuditReport<'_>) -> Option<Section> {
    let title = "Ticks or timer interrupts, counted";
    let fields = columns(TICK, &["cpu", "interrupts", "are_ticks", "duration_ns", "rate_hz", "preempted"]);
    let table = Table::filled(&fields, report.ticks).captioned(title);
    let table = table.with_most_important(TICKS, |more| format!("and {} more", counted(more as u64, "CPU", "CPUs")));
    let section = Section::new("ticks", "Ticks", title, vec![Block::Table(table)]).titled();
    (!report.ticks.is_empty()).then_some(section)
}

fn next(report: &TuneAuditReport<'_>, all: bool) -> Section {
    let cpus = &report.check.choice.cpus;
    let step = |command: String, why: &str| FirstStep { command, why: why.to_owned() };
    let mut steps = match report.run {
        Some(run) => {
            let command = format!("becalm report --sources {}", quoted(&run.to_string_lossy()));
            vec![step(command, "all sources in the recording")]
        }
        None => vec![
            step(format!("becalm record --cpus {cpus} -o before --duration 10s"), "record what the noise costs"),
            step(format!("becalm tune audit --cpus {cpus} --run before"), "audit with these costs"),
        ],
    };
    if !all {
        steps.push(step(format!("becalm tune audit --cpus {cpus} --full"), "evidence, details and passed checks"));
    }
    Section::named("next", "Next", vec![Block::Commands(steps)])
}
