//! `becalm tune audit`: settings that let noise onto CPUs, with evidence, cost and fix.

mod measured;

use std::io::Write;
use std::path::{Path, PathBuf};

use becalm_analyze::summary::{Selection, Summary, summarize};
use becalm_bundle::Bundle;
use becalm_command::Exit;
use becalm_command::arguments::{FormArgs, some_cpus};
use becalm_command::messages;
use becalm_command::output::emit;
use becalm_command::progress::ReadingProgress;
use becalm_linux::procfs::{cpuinfo::CpuInfo, kernel};
use becalm_model::Kind;
use becalm_model::carried::{TICK, TIMERS, tick_names};
use becalm_model::node::Rung;
use becalm_model::remedy::may_be_the_tick;
use becalm_units::fault::{self, UsageError};
use becalm_units::{CpuList, Named, Nanos};
use clap::{Args, ValueEnum};

use crate::check::{self, RecordedNoise, RecordedSource, choose};
use crate::document::{CpuChoice, Severity, TickCount, TicksFrom};
use crate::report::TuneAuditReport;

/// Find settings that let noise onto CPUs
///
/// Checks boot parameters, interrupts, work queues, threads, watchdogs, clock, frequency, memory management, tracing
/// and the kernel's build, and counts timer interrupts on busy CPUs. Changes nothing and needs no rights, but only root
/// can read some files.
///
/// error: a requested setting has no effect. warning: a loss of time that can be removed. note: a rare or unavoidable
/// cost, or something that could not be checked.
#[derive(Args, Debug)]
pub struct AuditArgs {
    /// CPUs to check, such as 1-3,8 [default: the isolated ones; if there are none, all but the first]
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus, allow_hyphen_values = true)]
    cpus: Option<CpuList>,

    /// Show the cost of each finding in this recording of the same machine
    #[arg(long, value_name = "RUN")]
    run: Option<PathBuf>,

    /// Time to count timer interrupts on CPUs that a thread keeps busy, at most 60s; 0s counts none
    #[arg(long, value_name = "TIME", default_value = "1s")]
    measure: Nanos,

    /// Also show passed checks, and all evidence
    #[arg(long)]
    full: bool,

    /// Exit with code 3 if there is a finding of this severity or worse
    #[arg(long, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,

    #[command(flatten)]
    form: FormArgs,

    /// Directory with the machine's files
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// The severities that `--fail-on` accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum FailOn {
    /// Any finding
    Note,
    /// Removable losses of time, and errors
    Warning,
    /// Only requested settings without effect
    Error,
}

impl FailOn {
    const fn severity(self) -> Severity {
        match self {
            Self::Note => Severity::Note,
            Self::Warning => Severity::Warning,
            Self::Error => Severity::Error,
        }
    }
}

/// The longest counting time: the result shows within seconds.
const LONGEST: Nanos = Nanos::from_secs(60);

/// Checks the machine and prints the findings. Fails if a named CPU is not online, the recording cannot be read or is of other CPUs, or `out` cannot
/// be written.
pub fn run(args: &AuditArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let output = args.form.output(args.full)?;
    if args.measure < Nanos::ZERO || args.measure > LONGEST {
        return Err(UsageError::new(format!("--measure {} is not between 0s and {LONGEST}", args.measure)).into());
    }
    let root: &Path = &args.root;
    let choice = choose(root, args.cpus.as_ref())?;
    let summary = args.run.as_deref().map(|path| recorded(path, &choice)).transpose()?;
    let (ticks, not_counted) = ticks(args, &choice, summary.as_ref());
    let mut check = check::check(root, choice, &ticks);
    if let Some(summary) = &summary {
        check::add_costs(&mut check, &costs(summary, &ticks));
    }
    let report = TuneAuditReport {
        node: &kernel::hostname(root).unwrap_or_default(),
        kernel: &kernel::release(root).unwrap_or_default(),
        processor: &CpuInfo::read(root).unwrap_or_default().model,
        check: &check,
        run: args.run.as_deref(),
        not_counted: not_counted.as_deref(),
        ticks: &ticks,
    };
    emit(&report, output, out)?;
    let Some(gate) = args.fail_on.map(FailOn::severity) else { return Ok(Exit::Done) };
    if check.worst().is_some_and(|worst| worst >= gate) {
        let count: usize = Severity::ALL.iter().filter(|it| **it >= gate).map(|it| check.count(*it)).sum();
        messages::say(format_args!("findings of severity {} or graver: {count}", gate.name()));
        return Ok(Exit::LimitExceeded);
    }
    Ok(Exit::Done)
}

/// The recording, limited to the CPUs in question.
fn recorded(path: &Path, choice: &CpuChoice) -> fault::Result<Summary> {
    let bundle = Bundle::open(path)?;
    let measured: CpuList = bundle.nodes().iter().flat_map(|doc| &doc.cpus).map(|cpu| cpu.cpu).collect();
    let cpus = measured.intersection(&choice.cpus);
    if cpus.is_empty() {
        let text = format!("{} is a recording of CPU {measured}, not of CPU {}", path.display(), choice.cpus);
        return Err(UsageError::new(text).into());
    }
    if bundle.nodes().len() > 1 {
        let text =
            format!("{} holds several nodes; a machine is checked against a recording of its own", path.display());
        return Err(UsageError::new(text).into());
    }
    let reading = ReadingProgress::begin(&bundle, 1);
    let summary = summarize(&bundle, &Selection { cpus: Some(cpus), ..Selection::default() })?;
    drop(reading);
    Ok(summary)
}

/// The ticks of the CPUs: those of the recording, if it has names, else counted now.
fn ticks(args: &AuditArgs, choice: &CpuChoice, summary: Option<&Summary>) -> (Vec<TickCount>, Option<String>) {
    // An incomplete trace would show too few.
    let counts = |summary: &&Summary| {
        summary.rung == Rung::Tracepoints && summary.nodes.iter().all(|node| node.doc.trace_change().is_none())
    };
    if let Some(summary) = summary.filter(counts) {
        return (recorded_ticks(summary), None);
    }
    if args.root != Path::new("/") {
        return (Vec::new(), Some("the files are not those of the machine that this runs on".to_owned()));
    }
    if args.measure == Nanos::ZERO {
        return (Vec::new(), Some("--measure is 0s".to_owned()));
    }
    match measured::count(&choice.cpus, args.measure) {
        Ok(ticks) => (ticks, None),
        Err(error) => (Vec::new(), Some(messages::error_line(&error))),
    }
}

/// The ticks in a recording, or all timer interrupts if its kernel does not name its ticks.
fn recorded_ticks(summary: &Summary) -> Vec<TickCount> {
    let interrupts = summary.cpu_sources.iter().filter(|source| source.kind == Kind::Irq);
    let names = tick_names(interrupts.clone().map(|source| &source.source));
    let are_ticks = names == [TICK];
    let count = |cpu| {
        let here = interrupts.clone().filter(|source| source.place.as_ref().is_some_and(|(_, at)| *at == cpu));
        here.filter(|source| names.contains(&source.source.as_str())).map(|source| source.times.count()).sum()
    };
    let observed = summary.cpus.iter().filter_map(|cpu| Some((cpu.cpu, Nanos::new(cpu.figures.duration_ns?))));
    let count = |(cpu, during)| TickCount { cpu, interrupts: count(cpu), are_ticks, during, from: TicksFrom::Recorded };
    observed.map(count).collect()
}

/// The total cost of each source on each CPU. The cost of unnamed timers is left out if they cannot be the tick, because the findings
/// charge it to the tick.
fn costs(summary: &Summary, ticks: &[TickCount]) -> RecordedNoise {
    let machines = || summary.nodes.iter().map(|node| &node.doc.machine);
    let is_tick = |count: &TickCount| !count.are_ticks && may_be_the_tick(count.rate_hz(), machines());
    let timers_tick = |cpu| ticks.iter().any(|count| count.cpu == cpu && is_tick(count));
    let observed = summary.cpus.iter().filter_map(|cpu| Some((cpu.cpu, Nanos::new(cpu.figures.duration_ns?))));
    let sources = summary.cpu_sources.iter().filter(|source| source.whole_ns > 0).filter_map(|source| {
        let (_, cpu) = source.place.as_ref()?;
        if source.kind == Kind::Irq && TIMERS.contains(&source.source.as_str()) && !timers_tick(*cpu) {
            return None;
        }
        Some(RecordedSource {
            cpu: *cpu,
            kind: source.kind,
            source: source.source.clone(),
            count: source.times.count(),
            total: Nanos::new(source.whole_ns),
        })
    });
    RecordedNoise { observed: observed.collect(), sources: sources.collect() }
}
