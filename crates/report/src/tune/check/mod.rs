//! What keeps CPUs from being quiet, for a terminal and as `becalm.tune-check/1`.

use std::io::{self, Write};

use becalm_units::CpuList;
use serde::Serialize;

use crate::Value;
use crate::form::field::{Field, Object, columns};
use crate::form::paragraph::heading;
use crate::form::paragraph::paragraph;
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::form::value::{grouped, three_digits};
use crate::form::words::quoted;
use crate::report::Report;

/// How many pieces of evidence are shown of a finding unless all are asked for; a document has all.
const EVIDENCE: usize = 3;

/// How many sources are shown beside a finding.
const SOURCES: usize = 3;

/// The findings of one machine.
#[derive(Clone, PartialEq, Debug)]
pub struct TuneCheckReport {
    /// The host's name.
    pub node: String,
    /// The kernel's release.
    pub kernel: String,
    /// The processor's model.
    pub processor: String,
    /// The CPUs that are to be quiet.
    pub cpus: CpuList,
    /// Why these: in one word for documents.
    pub chosen: &'static str,
    /// Why these: for people.
    pub because: &'static str,
    /// The CPUs that are left for everything else.
    pub others: CpuList,
    /// The recording that the costs are from.
    pub run: Option<String>,
    /// Why ticks were not counted; nothing if they were.
    pub not_counted: Option<String>,
    /// The timer interrupts that were counted.
    pub ticks: Vec<CheckedTick>,
    /// What was found, the gravest first.
    pub findings: Vec<CheckFinding>,
}

/// Timer interrupts of one CPU.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckedTick {
    /// Where.
    pub cpu: u32,
    /// How many.
    pub interrupts: u64,
    /// In this time, in nanoseconds.
    pub during_ns: i64,
    /// How many a second.
    pub rate_hz: f64,
    /// How often other threads took the CPU meanwhile; nothing of a recording.
    pub preempted: Option<u64>,
}

/// One finding.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckFinding {
    /// `error`, `warning`, `note` or `fine`.
    pub severity: &'static str,
    /// What it is about.
    pub area: &'static str,
    /// What was seen.
    pub title: String,
    /// Files with what stands in them.
    pub evidence: Vec<(String, String)>,
    /// What it let through in the recording.
    pub cost: Option<CheckCost>,
    /// What to do, in words; empty if nothing.
    pub fix: String,
    /// The command that shows what would be changed; none where a reboot or another step is needed.
    pub command: Option<String>,
    /// The parameter to boot with.
    pub boot: Option<String>,
    /// The sources that it lets through, as kinds with names; a final `*` stands for any ending.
    pub noise: Vec<(String, String)>,
}

/// What the sources of a finding took.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckCost {
    /// All together, in nanoseconds.
    pub total_ns: i64,
    /// That by the time for which the CPUs were observed.
    pub time_ratio: f64,
    /// Each source, the dearest first.
    pub sources: Vec<CheckSource>,
}

/// What one source took.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckSource {
    /// Its stable name.
    pub source: String,
    /// What kind of thing it is.
    pub kind: String,
    /// The CPUs on which it was seen.
    pub cpus: CpuList,
    /// How often it ran inside of detours.
    pub count: u64,
    /// What it took, in nanoseconds.
    pub total_ns: i64,
    /// That by the time for which these CPUs were observed.
    pub time_ratio: f64,
}

const TICK: &[Field<CheckedTick>] = &[
    Field { name: "cpu", title: "cpu", get: |row| Value::Number(row.cpu.into()) },
    Field { name: "interrupts", title: "interrupts", get: |row| Value::Count(row.interrupts) },
    Field { name: "duration_ns", title: "in", get: |row| Value::Time(row.during_ns) },
    Field { name: "rate_hz", title: "rate", get: |row| Value::Rate(row.rate_hz) },
    Field { name: "preempted", title: "preempted", get: |row| row.preempted.map_or(Value::Missing, Value::Count) },
];

const SOURCE: &[Field<CheckSource>] = &[
    Field { name: "source", title: "source", get: |row| Value::Text(row.source.clone()) },
    Field { name: "kind", title: "kind", get: |row| Value::Text(row.kind.clone()) },
    Field { name: "cpus", title: "cpus", get: |row| Value::Text(row.cpus.to_string()) },
    Field { name: "count", title: "count", get: |row| Value::Count(row.count) },
    Field { name: "total_ns", title: "total", get: |row| Value::Time(row.total_ns) },
    Field { name: "time_ratio", title: "of time", get: |row| Value::Ratio(row.time_ratio) },
];

impl Report for TuneCheckReport {
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
struct Document<'a> {
    node: &'a str,
    kernel: &'a str,
    processor: &'a str,
    cpus: &'a CpuList,
    chosen: &'static str,
    others: &'a CpuList,
    run: Option<&'a str>,
    errors: usize,
    warnings: usize,
    notes: usize,
    fine: usize,
    not_counted: Option<&'a str>,
    ticks: Vec<Object>,
    findings: Vec<FindingDocument<'a>>,
}

#[derive(Serialize)]
struct FindingDocument<'a> {
    severity: &'static str,
    area: &'static str,
    title: &'a str,
    evidence: Vec<EvidenceDocument<'a>>,
    cost: Option<CostDocument>,
    fix: Option<FixDocument<'a>>,
    noise: Vec<NoiseDocument<'a>>,
}

#[derive(Serialize)]
struct EvidenceDocument<'a> {
    path: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct CostDocument {
    total_ns: i64,
    time_ratio: Value,
    sources: Vec<Object>,
}

#[derive(Serialize)]
struct FixDocument<'a> {
    text: &'a str,
    command: Option<&'a str>,
    boot: Option<&'a str>,
}

#[derive(Serialize)]
struct NoiseDocument<'a> {
    kind: &'a str,
    source: &'a str,
}

impl TuneCheckReport {
    fn count(&self, severity: &str) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// As `becalm.tune-check/1`.
fn document(report: &TuneCheckReport) -> Document<'_> {
    Document {
        node: &report.node,
        kernel: &report.kernel,
        processor: &report.processor,
        cpus: &report.cpus,
        chosen: report.chosen,
        others: &report.others,
        run: report.run.as_deref(),
        errors: report.count("error"),
        warnings: report.count("warning"),
        notes: report.count("note"),
        fine: report.count("fine"),
        not_counted: report.not_counted.as_deref(),
        ticks: report.ticks.iter().map(|row| Object::new(TICK, row)).collect(),
        findings: report.findings.iter().map(finding_document).collect(),
    }
}

fn finding_document(finding: &CheckFinding) -> FindingDocument<'_> {
    let fix = FixDocument { text: &finding.fix, command: finding.command.as_deref(), boot: finding.boot.as_deref() };
    let any = !fix.text.is_empty() || fix.command.is_some() || fix.boot.is_some();
    FindingDocument {
        severity: finding.severity,
        area: finding.area,
        title: &finding.title,
        evidence: finding.evidence.iter().map(|(path, value)| EvidenceDocument { path, value }).collect(),
        cost: finding.cost.as_ref().map(|cost| CostDocument {
            total_ns: cost.total_ns,
            time_ratio: Value::Ratio(cost.time_ratio),
            sources: cost.sources.iter().map(|source| Object::new(SOURCE, source)).collect(),
        }),
        fix: any.then_some(fix),
        noise: finding.noise.iter().map(|(kind, source)| NoiseDocument { kind, source }).collect(),
    }
}

/// As a text: the gravest first. `all` also shows what is fine, and all evidence.
fn render(report: &TuneCheckReport, out: &mut Sheet<'_>) -> io::Result<()> {
    let all = out.all();
    paragraph(out, "", &format!("becalm on {}: Linux {}, {}", report.node, report.kernel, report.processor))?;
    let others = if report.others.is_empty() { "none".to_owned() } else { report.others.to_string() };
    let subject = format!("to be quiet: CPU {} ({}); for everything else: {others}", report.cpus, report.because);
    paragraph(out, "", &subject)?;
    let count = |number: usize, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    let counts = [("error", "error"), ("warning", "warning"), ("note", "note")];
    let counts = counts.map(|(severity, name)| count(report.count(severity), name));
    paragraph(out, "", &format!("{}; {} fine", counts.join(", "), count(report.count("fine"), "check")))?;
    if let Some(why) = &report.not_counted {
        paragraph(out, "  ! ", &format!("ticks were not counted: {why}"))?;
    }
    for finding in report.findings.iter().filter(|finding| all || finding.severity != "fine") {
        print_finding(finding, out)?;
    }
    print_ticks(report, out)?;
    print_next(report, out)
}

fn print_finding(finding: &CheckFinding, out: &mut Sheet<'_>) -> io::Result<()> {
    writeln!(out)?;
    paragraph(out, &format!("{:<8} {:<10} ", finding.severity, finding.area), &finding.title)?;
    let shown = if out.all() { finding.evidence.len() } else { EVIDENCE.min(finding.evidence.len()) };
    for (path, value) in &finding.evidence[..shown] {
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
    if !finding.fix.is_empty() {
        paragraph(out, "           fix   ", &finding.fix)?;
    }
    if let Some(command) = &finding.command {
        paragraph(out, "           try   ", command)?;
    }
    if let Some(boot) = &finding.boot {
        paragraph(out, "           boot  ", boot)?;
    }
    Ok(())
}

/// `irq virtio1-req.0 took 0.400% of CPU 1`.
fn spent(source: &CheckSource) -> String {
    let share = three_digits(source.time_ratio * 100.0);
    let times = if source.count == 1 { "once".to_owned() } else { format!("{} times", grouped(source.count)) };
    // The rests are named by their kinds.
    let name =
        if source.kind == source.source { source.kind.clone() } else { format!("{} {}", source.kind, source.source) };
    format!("{name} took {share}% of CPU {} ({times})", source.cpus)
}

fn print_ticks(report: &TuneCheckReport, out: &mut Sheet<'_>) -> io::Result<()> {
    /// More rows than these say nothing that the findings do not.
    const SHOWN: usize = 16;
    if report.ticks.is_empty() {
        return Ok(());
    }
    heading(out, "Timer interrupts, counted")?;
    let fields = columns(TICK, &["cpu", "interrupts", "duration_ns", "rate_hz", "preempted"]);
    let mut table = Table::new(&fields);
    report.ticks.iter().take(SHOWN).for_each(|row| table.row(&fields, row));
    table.print(out)?;
    if report.ticks.len() > SHOWN {
        paragraph(out, "  ", &format!("and {} CPUs more; --json has all", report.ticks.len() - SHOWN))?;
    }
    Ok(())
}

fn print_next(report: &TuneCheckReport, out: &mut Sheet<'_>) -> io::Result<()> {
    heading(out, "Next")?;
    let cpus = report.cpus.to_string();
    let mut commands = vec![(format!("becalm tune plan --cpus {cpus}"), "every change that can be made, before it is")];
    match &report.run {
        Some(run) => commands.push((format!("becalm sources {}", quoted(run)), "all that the recording saw")),
        None => {
            commands.push((format!("becalm record --cpus {cpus} -o before --duration 10s"), "what it costs"));
            commands.push((format!("becalm tune check --cpus {cpus} --run before"), "the same, with costs"));
        }
    }
    if !out.all() && report.count("fine") > 0 {
        commands.push((format!("becalm tune check --cpus {cpus} --all"), "what is fine, too"));
    }
    let width = commands.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    // A command is never cut: on a narrow page what it is for stands below.
    commands.iter().try_for_each(|(command, what)| paragraph(out, &format!("  {command:<width$}   "), what))
}
