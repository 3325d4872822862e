//! Probes from a short recording: the tick and device interrupts, which cannot be caused on purpose.

use std::collections::BTreeMap;

use becalm_model::node::{CounterGrowth, NodeDoc};
use becalm_model::{Activity, Detour, Labels, carried};
use becalm_units::{CpuId, Nanos};

use super::interrupts::{Interruptions, interruptions};
use crate::documents::{Probe, ProbeSamples, into_rounds};

/// The samples of a probe in rounds, or the reason why there are none.
type ProbeOutcome = Result<Vec<Vec<i64>>, String>;

/// The probes of the tick and of device interrupts, from a recording of one CPU over `length`.
pub fn recorded(
    cpu: CpuId,
    length: Nanos,
    node: &NodeDoc,
    detours: &[Detour],
    activities: &[Activity],
    labels: &Labels,
) -> Vec<Probe> {
    match node.tracing {
        Some(_) => traced(cpu, length, interruptions(detours, activities, labels)),
        None => untraced(cpu, length, detours, &node.counters),
    }
}

fn probe(name: &str, what: &str, method: String, outcome: ProbeOutcome) -> Probe {
    let samples = outcome.map(|rounds| {
        let mut samples = ProbeSamples::new(1, rounds);
        samples.series.interruptions = true;
        samples
    });
    Probe::new(name, what, method, samples)
}

fn tick_rows(handler: ProbeOutcome, whole: ProbeOutcome, how: &str) -> [Probe; 2] {
    let whole_by =
        format!("{how}: detours with one interrupt of the timer and no switch in them, less the shortest step");
    let handler_by = format!("{how}: from the entry of each timer interrupt to its exit, without what interrupted it");
    [
        probe("tick", "timer update: the tick, whole detour", whole_by, whole),
        probe("tick_handler", "timer update: the tick's handler", handler_by, handler),
    ]
}

fn device_row(what: &str, how: &str, outcome: ProbeOutcome) -> Probe {
    let method =
        format!("{how}: detours with one interrupt of this source and no switch in them, less the shortest step");
    probe("device_interrupt", what, method, outcome)
}

/// The probes for a recording that failed, each with the reason.
pub fn not_recorded(why: &str) -> Vec<Probe> {
    let why = || Err(format!("no recording could be made: {why}"));
    let mut rows = tick_rows(why(), why(), "a recording").to_vec();
    rows.push(device_row("interrupt of a device", "a recording", why()));
    rows
}

/// Times in nanoseconds and in order of time, as rounds of picoseconds; `None` for no times.
fn rounds(times: &[i64]) -> Option<Vec<Vec<i64>>> {
    let picos: Vec<i64> = times.iter().map(|ns| ns.saturating_mul(1_000)).collect();
    (!picos.is_empty()).then(|| into_rounds(&picos))
}

fn traced(cpu: CpuId, length: Nanos, mut sources: BTreeMap<String, Interruptions>) -> Vec<Probe> {
    let how = format!("a traced recording of CPU {cpu} for {length}");
    let mut timer = Interruptions::default();
    for name in carried::tick_names(sources.keys()) {
        let source = sources.remove(*name).unwrap_or_default();
        timer.handlers.extend(source.handlers);
        timer.detours.extend(source.detours);
    }
    sources.retain(|name, _| !carried::is_timer(name));
    let none = || format!("no interrupt of the timer came to CPU {cpu} in {length}");
    let handler = rounds(&timer.handlers).ok_or_else(none);
    let alone = || format!("none of the {} interrupts of the timer came alone", timer.handlers.len());
    let whole = rounds(&timer.detours).ok_or_else(|| if timer.handlers.is_empty() { none() } else { alone() });
    let mut rows = tick_rows(handler, whole, &how).to_vec();
    // The most frequent source; the others are in `becalm record`.
    let most = sources.into_iter().max_by_key(|(_, times)| times.detours.len());
    let device = most.and_then(|(name, times)| Some((name, rounds(&times.detours)?)));
    rows.push(match device {
        Some((name, rounds)) => device_row(&format!("interrupt: {name}, whole detour"), &how, Ok(rounds)),
        None => {
            let why =
                format!("no interrupt but the timer's came to CPU {cpu} in {length}; measure another CPU to find one");
            device_row("interrupt of a device", &how, Err(why))
        }
    });
    rows
}

/// Without tracing no detour is known to be a tick. But if there are as many detours as timer interrupts counted by the kernel, most of
/// them are ticks, and so is the median.
fn untraced(cpu: CpuId, length: Nanos, detours: &[Detour], counters: &[CounterGrowth]) -> Vec<Probe> {
    let ticks = counters
        .iter()
        .filter(|counter| ["interrupts/LOC", "interrupts/arch_timer"].contains(&counter.name.as_str()))
        .map(|counter| counter.growth)
        .sum::<u64>();
    let seen = detours.len() as u64;
    let needs = "telling the interrupts apart needs the kernel's trace (root, tracefs)";
    let how = format!(
        "an untraced recording of CPU {cpu} for {length}: its {seen} detours, for {ticks} timer interrupts that the kernel counted"
    );
    let whole = match ticks {
        0 => Err(format!("{needs}, and the kernel counted no interrupt of the timer on CPU {cpu}")),
        _ if mostly_ticks(seen, ticks) => {
            let times: Vec<i64> = detours.iter().map(|detour| detour.duration.get()).collect();
            rounds(&times).ok_or_else(|| needs.to_owned())
        }
        _ => Err(format!("{needs}: the loop saw {seen} detours while the kernel counted {ticks} timer interrupts")),
    };
    let [mut tick, handler] = tick_rows(Err(needs.to_owned()), whole, &how);
    tick.doc.method.clone_from(&how);
    vec![tick, handler, device_row("interrupt of a device", &how, Err(needs.to_owned()))]
}

/// Checks whether most detours are ticks: within a quarter of their number.
const fn mostly_ticks(seen: u64, ticks: u64) -> bool {
    seen * 4 >= ticks * 3 && seen * 4 <= ticks * 5
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: CpuId = CpuId::new(3);
    const LENGTH: Nanos = Nanos::from_secs(2);

    fn source(times: &[i64]) -> Interruptions {
        Interruptions { handlers: times.to_vec(), detours: times.iter().map(|ns| ns + 500).collect() }
    }

    #[test]
    fn the_timer_is_told_from_devices() {
        let sources =
            [("local_timer", source(&[2_000; 40])), ("virtio1-req.0", source(&[900; 7])), ("eth0", source(&[800]))];
        let rows = traced(CPU, LENGTH, sources.map(|(name, times)| (name.to_owned(), times)).into());
        let first = |row: &Probe| {
            (row.rounds[0][0], row.doc.series.as_ref().map(|series| (series.samples, series.interruptions)))
        };
        let found: Vec<_> = rows.iter().map(first).collect();
        let all = |samples| Some((samples, true));
        assert_eq!(found, [(2_500_000, all(40)), (2_000_000, all(40)), (1_400_000, all(7))]);
        assert_eq!(rows[2].doc.what, "interrupt: virtio1-req.0, whole detour");
    }

    #[test]
    fn what_did_not_come_is_said() {
        let rows = traced(CPU, LENGTH, BTreeMap::new());
        assert!(rows.iter().all(|row| row.doc.not_measured.as_ref().is_some_and(|why| why.contains("came to CPU"))));
        assert!(
            not_recorded("x").iter().all(|row| row.doc.not_measured.as_ref().is_some_and(|why| why.ends_with(": x")))
        );
    }

    #[test]
    fn as_many_detours_as_ticks_are_ticks() {
        assert!(mostly_ticks(500, 500) && mostly_ticks(600, 500) && mostly_ticks(400, 500));
        assert!(!mostly_ticks(700, 500) && !mostly_ticks(300, 500));
    }
}
