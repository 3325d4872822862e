//! From what was found to what is shown.

use std::path::Path;

use becalm_report::{CheckCost, CheckFinding, CheckSource, CheckedTick, TuneCheckReport};
use becalm_tune::check::{Check, Chosen, Cost, Finding, TickCount, TicksFrom};
use becalm_units::CpuList;

/// The report of a check on a machine: its host, kernel and processor.
pub fn report(
    check: &Check,
    [node, kernel, processor]: [String; 3],
    ticks: &[TickCount],
    not_counted: Option<String>,
    run: Option<&Path>,
) -> TuneCheckReport {
    let choice = &check.choice;
    TuneCheckReport {
        node,
        kernel,
        processor,
        cpus: choice.cpus.clone(),
        chosen: choice.chosen.name(),
        because: because(choice.chosen),
        others: choice.others.clone(),
        run: run.map(|path| path.display().to_string()),
        not_counted,
        ticks: ticks.iter().map(tick).collect(),
        findings: check.findings.iter().map(|it| finding(it, &choice.cpus)).collect(),
    }
}

const fn because(chosen: Chosen) -> &'static str {
    match chosen {
        Chosen::Named => "as asked for",
        Chosen::KeptApart => "those that this machine keeps apart",
        Chosen::AllButFirst => "this machine keeps none apart, so all but the first; choose with --cpus",
        Chosen::OnlyOne => "the only one",
    }
}

fn tick(count: &TickCount) -> CheckedTick {
    CheckedTick {
        cpu: count.cpu.get(),
        interrupts: count.interrupts,
        during_ns: count.during.get(),
        rate_hz: count.rate_hz(),
        preempted: match count.from {
            TicksFrom::Measured { preempted } => Some(preempted),
            TicksFrom::Recorded => None,
        },
    }
}

fn finding(finding: &Finding, cpus: &CpuList) -> CheckFinding {
    let fix = finding.fix.clone().unwrap_or_default();
    CheckFinding {
        severity: finding.severity.name(),
        area: finding.area.name(),
        title: finding.title.clone(),
        evidence: finding.evidence.iter().map(|it| (it.path.clone(), it.value.clone())).collect(),
        cost: finding.cost.as_ref().map(cost),
        fix: fix.text,
        command: fix.family.map(|family| format!("becalm tune plan --cpus {cpus} --only {family}")),
        boot: fix.boot,
        noise: finding.noise.iter().map(|noise| (noise.kind.clone(), noise.source.clone())).collect(),
    }
}

fn cost(cost: &Cost) -> CheckCost {
    let sources = cost.sources.iter().map(|source| CheckSource {
        source: source.source.clone(),
        kind: source.kind.clone(),
        cpus: source.cpus.clone(),
        count: source.count,
        total_ns: source.total.get(),
        time_ratio: source.ratio,
    });
    CheckCost { total_ns: cost.total.get(), time_ratio: cost.ratio, sources: sources.collect() }
}
