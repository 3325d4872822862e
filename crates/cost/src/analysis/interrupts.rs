//! The cost of ticks and of other interrupts, from the attributed detours of a recording.

use std::collections::BTreeMap;

use becalm_model::{Activity, Detour, Kind, Labels};

/// Times of one source's interrupts, in nanoseconds and in order of time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Interruptions {
    /// The handler's own time, of each interrupt.
    pub handlers: Vec<i64>,
    /// The detours with this as the only interrupt and without another thread on the CPU: entry, handler, softirqs that it raised, exit,
    /// cache refill.
    pub detours: Vec<i64>,
}

/// Groups the interrupts of a CPU's recording by source. Skips detours with lost events.
pub fn interruptions(detours: &[Detour], activities: &[Activity], labels: &Labels) -> BTreeMap<String, Interruptions> {
    let mut sources: BTreeMap<String, Interruptions> = BTreeMap::new();
    let mut rest = activities;
    for (number, detour) in detours.iter().enumerate() {
        let start = rest.partition_point(|row| row.detour < number as u64);
        let rows = &rest[start..];
        let end = rows.partition_point(|row| row.detour <= number as u64);
        let rows = {
            rest = &rows[end..];
            &rows[..end]
        };
        if detour.incomplete {
            continue;
        }
        let interrupts: Vec<&Activity> = rows.iter().filter(|row| row.kind == Kind::Irq).collect();
        for row in &interrupts {
            let source = sources.entry(labels.text(row.source).to_owned()).or_default();
            source.handlers.push(row.self_time.get());
        }
        let away = |row: &Activity| !matches!(row.kind, Kind::Irq | Kind::Softirq | Kind::Edge);
        if let [only] = interrupts[..]
            && !rows.iter().any(away)
            && let Some(source) = sources.get_mut(labels.text(only.source))
        {
            source.detours.push(detour.duration.get());
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_units::{CpuId, Nanos};

    #[test]
    fn lone_interrupts_give_their_detour_and_crowded_ones_only_their_handler() {
        let mut labels = Labels::default();
        let cpu = CpuId::new(0);
        let detour =
            |duration, incomplete| Detour { cpu, start: Nanos::ZERO, duration: Nanos::new(duration), incomplete };
        let mut row = |detour, kind, source, ns| Activity {
            cpu,
            detour,
            start: Nanos::ZERO,
            self_time: Nanos::new(ns),
            kind,
            source: labels.intern(source),
            detail: labels.intern(""),
        };
        let activities = [
            row(0, Kind::Irq, "local_timer", 2_000),
            row(0, Kind::Softirq, "sched", 500),
            row(0, Kind::Edge, "edge", 700),
            row(1, Kind::Irq, "local_timer", 2_100),
            row(1, Kind::Irq, "virtio1-req.0", 900),
            row(3, Kind::Irq, "local_timer", 2_200),
            row(3, Kind::Kthread, "ksoftirqd", 9_000),
            row(4, Kind::Irq, "local_timer", 1),
            row(5, Kind::Irq, "virtio1-req.0", 800),
        ];
        let detours = [(3_200, false), (4_000, false), (50, false), (12_000, false), (9, true), (1_000, false)]
            .map(|(d, i)| detour(d, i));
        let sources = interruptions(&detours, &activities, &labels);
        let timer = Interruptions { handlers: vec![2_000, 2_100, 2_200], detours: vec![3_200] };
        let disk = Interruptions { handlers: vec![900, 800], detours: vec![1_000] };
        assert_eq!(sources["local_timer"], timer);
        assert_eq!(sources["virtio1-req.0"], disk);
        assert_eq!(sources.len(), 2);
        assert!(interruptions(&[], &[], &labels).is_empty());
    }
}
