//! What keeps CPUs from being quiet, for a terminal and as `becalm.tune-check/1`.

use std::io::{self, Write};
use std::path::Path;

use becalm_model::remedy::NoiseSource;
use becalm_report::Report;
use becalm_report::Value;
use becalm_report::catalogue;
use becalm_report::form::field::{Object, columns, fields};
use becalm_report::form::figure::{Rate, Ratio};
use becalm_report::form::known::{known, system};
use becalm_report::form::paragraph::{heading, paragraph};
use becalm_report::form::sheet::Sheet;
use becalm_report::form::table::Table;
use becalm_report::form::value::{grouped, three_digits};
use becalm_report::form::words::quoted;
use becalm_units::plural;
use becalm_units::{CpuList, Named};
use serde::Serialize;

use crate::document::{Area, Check, Chosen, Evidence, Finding, Fix, Severity, SourceCost, TickCount, TicksFrom};

/// How many pieces of evidence are shown of a finding unless all are asked for; a document has all.
const EVIDENCE: usize = 3;

/// How many sources are shown beside a finding.
const SOURCES: usize = 3;

/// A check of one machine.
#[derive(Clone, Copy, Debug)]
pub struct TuneCheckReport<'a> {
    /// The name of the host that was checked.
    pub node: &'a str,
    /// The release of its kernel.
    pub kernel: &'a str,
    /// The model of its processors; empty if the kernel does not tell.
    pub processor: &'a str,
    /// The CPUs that are to be quiet, and the findings about them.
    pub check: &'a Check,
    /// The recording that the costs are from.
    pub run: Option<&'a Path>,
    /// Why ticks were not counted; `None` if they were.
    pub not_counted: Option<&'a str>,
    /// The ticks that were counted, or the timer interrupts.
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

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        render(self, out)
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

/// The command that shows what would be changed; `None` where a reboot or another step is needed.
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

/// As a text: the gravest first. `all` also shows what is fine, and all evidence.
fn render(report: &TuneCheckReport<'_>, out: &mut Sheet<'_>) -> io::Result<()> {
    let all = out.all();
    paragraph(out, "", &format!("becalm on {}: {}", known(report.node), system(report.kernel, report.processor)))?;
    let Check { choice, findings } = report.check;
    let others = if choice.others.is_empty() { "none".to_owned() } else { choice.others.to_string() };
    let (cpus, because) = (&choice.cpus, because(choice.chosen));
    let subject = format!("to be quiet: CPU {cpus} ({because}); for everything else: {others}");
    paragraph(out, "", &subject)?;
    let count = |severity, one, many| {
        let number = report.check.count(severity);
        format!("{number} {}", plural(number as u64, one, many))
    };
    let counts = [
        count(Severity::Error, "error", "errors"),
        count(Severity::Warning, "warning", "warnings"),
        count(Severity::Note, "note", "notes"),
    ];
    let fine = count(Severity::Fine, "check", "checks");
    paragraph(out, "", &format!("{}; {fine} fine", counts.join(", ")))?;
    if let Some(why) = report.not_counted {
        paragraph(out, "  ! ", &format!("ticks were not counted: {why}"))?;
    }
    for finding in findings.iter().filter(|finding| all || finding.severity != Severity::Fine) {
        print_finding(finding, cpus, out)?;
    }
    print_ticks(report, out)?;
    print_next(report, out)
}

fn print_finding(finding: &Finding, cpus: &CpuList, out: &mut Sheet<'_>) -> io::Result<()> {
    writeln!(out)?;
    paragraph(out, &format!("{:<8} {:<10} ", finding.severity.name(), finding.area.name()), &finding.title)?;
    let shown = if out.all() { finding.evidence.len() } else { EVIDENCE.min(finding.evidence.len()) };
    for Evidence { path, value } in &finding.evidence[..shown] {
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        paragraph(out, "           seen  ", &format!("{path}: {}", if value.is_empty() { "empty" } else { &value }))?;
    }
    if shown < finding.evidence.len() {
        paragraph(out, "           seen  ", &format!("and {} more like these", finding.evidence.len() - shown))?;
    }
    if let Some(cost) = &finding.cost {
        let dear: Vec<String> = cost.sources.iter().take(SOURCES).map(spent).collect();
        let more = match cost.sources.len().saturating_sub(SOURCES) {
            0 => String::new(),
            1 => "; and 1 source more".to_owned(),
            more => format!("; and {more} sources more"),
        };
        paragraph(out, "           cost  ", &format!("{}{more}", dear.join("; ")))?;
    }
    let Some(fix) = &finding.fix else { return Ok(()) };
    paragraph(out, "           fix   ", &fix.text)?;
    if let Some(command) = command(fix, cpus) {
        paragraph(out, "           try   ", &command)?;
    }
    if let Some(boot) = &fix.boot {
        paragraph(out, "           boot  ", boot)?;
    }
    Ok(())
}

/// `irq virtio1-req.0 took 0.400% of CPU 1`.
fn spent(source: &SourceCost) -> String {
    let share = three_digits(source.ratio * 100.0);
    let times = if source.count == 1 { "once".to_owned() } else { format!("{} times", grouped(source.count)) };
    // The rests are named by their kinds.
    let kind = source.kind.name();
    let name = if kind == source.source { kind.to_owned() } else { format!("{kind} {}", source.source) };
    format!("{name} took {share}% of CPU {} ({times})", source.cpus)
}

fn print_ticks(report: &TuneCheckReport<'_>, out: &mut Sheet<'_>) -> io::Result<()> {
    /// More rows than these say nothing that the findings do not.
    const SHOWN: usize = 16;
    if report.ticks.is_empty() {
        return Ok(());
    }
    heading(out, "Ticks or timer interrupts, counted")?;
    let fields = columns(TICK, &["cpu", "interrupts", "are_ticks", "duration_ns", "rate_hz", "preempted"]);
    let mut table = Table::new(&fields);
    report.ticks.iter().take(SHOWN).for_each(|row| table.row(&fields, row));
    table.print(out)?;
    if report.ticks.len() > SHOWN {
        paragraph(out, "  ", &format!("and {} CPUs more; --json has all", report.ticks.len() - SHOWN))?;
    }
    Ok(())
}

fn print_next(report: &TuneCheckReport<'_>, out: &mut Sheet<'_>) -> io::Result<()> {
    heading(out, "Next")?;
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
    if !out.all() && report.check.count(Severity::Fine) > 0 {
        commands.push((format!("becalm tune check --cpus {cpus} --all"), "what is fine, too"));
    }
    let width = commands.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    // A command is never cut: on a narrow page what it is for stands below.
    commands.iter().try_for_each(|(command, what)| paragraph(out, &format!("  {command:<width$}   "), what))
}
