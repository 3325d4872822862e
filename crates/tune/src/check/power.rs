//! Frequency and sleep states of the CPUs.

use std::collections::BTreeMap;

use becalm_linux::sysfs::cpu::{FrequencyPolicy, frequency_policy, idle_states};
use becalm_units::{CpuId, CpuList, Nanos};

use super::finding::Findings;
use super::subject::{COMMAND_LINE, Subject};
use super::words::cpus;
use crate::Family;
use crate::document::{Area, Severity};

const AREA: Area = Area::Power;

/// From this exit latency on, waking an idle CPU is a detour of its own.
const DEEP_SLEEP: Nanos = Nanos::from_micros(10);

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    frequency(subject, findings);
    turbo(findings);
    sleep(subject, findings);
    polling(subject, findings);
}

fn frequency(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let mut governors: BTreeMap<FrequencyPolicy, Vec<CpuId>> = BTreeMap::new();
    for cpu in subject.cpus.iter() {
        let policy = findings.read(AREA, frequency_policy(subject.root, cpu)).flatten();
        if let Some(policy) = policy {
            governors.entry(policy).or_default().push(cpu);
        }
    }
    for (FrequencyPolicy { driver, governor }, governed) in governors {
        let path = format!("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", governed[0]);
        let list: CpuList = governed.into_iter().collect();
        if governor == "performance" {
            findings
                .add(AREA, Severity::Fine, format!("the frequency of {} stays high", cpus(&list)))
                .seen(path, governor);
            continue;
        }
        let title = format!("the governor {governor} of {driver} changes the frequency of {}", cpus(&list));
        findings
            .add(AREA, Severity::Warning, title)
            .seen(path, governor)
            .fix("choose the governor performance")
            .by(Family::Frequency);
    }
}

fn turbo(findings: &mut Findings<'_>) {
    for (path, boost) in
        [("/sys/devices/system/cpu/intel_pstate/no_turbo", 0), ("/sys/devices/system/cpu/cpufreq/boost", 1)]
    {
        let Some(value) = findings.number(AREA, path) else { continue };
        if value == boost {
            findings
                .add(AREA, Severity::Note, "turbo is on: the frequency depends on heat, and on how many CPUs are busy")
                .seen(path, value.to_string())
                .fix("for the same time in every run, switch it off; it costs speed")
                .by(Family::Frequency);
        } else {
            findings.add(AREA, Severity::Fine, "turbo is off").seen(path, value.to_string());
        }
    }
}

fn sleep(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let mut deep: Vec<CpuId> = Vec::new();
    let mut deepest: Option<(Nanos, String, CpuId, usize)> = None;
    for cpu in subject.cpus.iter() {
        let Some(states) = findings.read(AREA, idle_states(subject.root, cpu)) else { continue };
        let enabled = states.iter().enumerate().filter(|(_, state)| !state.disabled);
        let Some((number, state)) = enabled.max_by_key(|(_, state)| state.exit_latency) else { continue };
        if state.exit_latency < DEEP_SLEEP {
            continue;
        }
        deep.push(cpu);
        if deepest.as_ref().is_none_or(|(latency, ..)| state.exit_latency > *latency) {
            deepest = Some((state.exit_latency, state.name.clone(), cpu, number));
        }
    }
    let Some((latency, name, cpu, number)) = deepest else { return };
    let list: CpuList = deep.into_iter().collect();
    let title = format!("an idle one of {} may sleep in {name}, and takes {latency} to wake", cpus(&list));
    findings
        .add(AREA, Severity::Note, title)
        .seen(
            format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}/latency"),
            (latency.get() / 1_000).to_string(),
        )
        .fix("no matter to a thread that never sleeps; else switch the deep states off")
        .by(Family::Idle);
}

fn polling(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    if subject.line.last("idle") == Some("poll") {
        findings
            .add(
                AREA,
                Severity::Note,
                "idle CPUs poll: they wake at once, and take power, heat and turbo from the others",
            )
            .seen(COMMAND_LINE, "idle=poll")
            .fix("switch deep states off for the CPUs that need it, instead of all")
            .by(Family::Idle);
    }
}
