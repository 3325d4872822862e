//! A large stored run: many detours of two CPUs, each with its activities.

use std::path::Path;

use becalm_bundle::{BundleError, BundleWriter};
use becalm_model::node::{ClockDoc, CpuDoc, Ended, MachineDoc, NodeDoc, Rung, SCHEMA, SettingsDoc, TracingDoc};
use becalm_model::{Activity, Detour, Kind, Label, Labels};
use becalm_units::{CpuId, Nanos};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const SEGMENT_DETOURS: u64 = 250_000;

/// Sources of different kinds, with random frequencies.
const SOURCES: [(Kind, &str, &str); 10] = [
    (Kind::Irq, "tick", "local_timer"),
    (Kind::Edge, "edge", ""),
    (Kind::Softirq, "timer", ""),
    (Kind::Softirq, "net_rx", ""),
    (Kind::Softirq, "rcu", ""),
    (Kind::Irq, "virtio1-req.0", "irq 27"),
    (Kind::Workqueue, "kworker:vmstat_update", "kworker/1:2 pid 77"),
    (Kind::Kthread, "ksoftirqd", "ksoftirqd/1 pid 23"),
    (Kind::Task, "chronyd", "pid 912"),
    (Kind::Nmi, "perf_event_nmi_handler", ""),
];

/// Writes this many detours of two CPUs, in whole segments, and returns the number of activities.
pub fn write(path: &Path, detours: u64) -> Result<u64, BundleError> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut labels = Labels::new();
    let names: Vec<(Kind, Label, Label)> =
        SOURCES.iter().map(|(kind, source, detail)| (*kind, labels.intern(source), labels.intern(detail))).collect();
    let mut doc = document();
    let mut writer = BundleWriter::create(path, &doc)?;
    let cpus = doc.cpus.len() as u64;
    let mut next = vec![(0_u64, 1_000_i64); doc.cpus.len()];
    let mut written = 0;
    for _ in 0..detours / SEGMENT_DETOURS {
        let (mut detours, mut activities) = (Vec::new(), Vec::new());
        for (cpu, (number, time)) in doc.cpus.iter_mut().zip(&mut next) {
            for _ in 0..SEGMENT_DETOURS / cpus {
                let bits = random.next_u64();
                // Lengths from 1 to 64 us, with rarer long ones.
                let parts = 1 + (bits & 1) + u64::from(bits & 14 == 0);
                let start = Nanos::new(*time);
                let mut duration = Nanos::ZERO;
                for part in 0..parts {
                    let bits = random.next_u64();
                    let (kind, source, detail) = names[(bits % (part + 2) + bits % 5) as usize];
                    let self_time = Nanos::new((1_000 << (bits >> 61)) + (bits >> 32 & 1023) as i64);
                    let activity = Activity {
                        cpu: cpu.cpu,
                        detour: *number,
                        start: start + duration,
                        self_time,
                        kind,
                        source,
                        detail,
                    };
                    activities.push(activity);
                    duration += self_time;
                }
                detours.push(Detour { cpu: cpu.cpu, start, duration, incomplete: false });
                cpu.detours += 1;
                cpu.total_ns += duration;
                cpu.max_ns = cpu.max_ns.max(duration);
                *number += 1;
                *time = (start + duration).get() + 100_000 + (bits >> 44) as i64;
            }
            cpu.duration_ns = Nanos::new(*time);
        }
        written += activities.len() as u64;
        writer.write_segment(&detours, &activities, &labels)?;
    }
    for cpu in &mut doc.cpus {
        cpu.iterations = cpu.duration_ns.get() as u64 / 9;
        cpu.below_threshold_ns = cpu.duration_ns - cpu.total_ns;
    }
    doc.ended = Some(Ended::Duration);
    writer.write_doc(&doc)?;
    Ok(written)
}

fn document() -> NodeDoc {
    let cpus = [0, 1].map(|cpu| {
        let mut doc = CpuDoc::new(CpuId::new(cpu));
        (doc.t_min_ns, doc.median_step_ns, doc.threshold_ns) = (Nanos::new(9), Nanos::new(9), Nanos::new(60));
        doc
    });
    NodeDoc {
        schema: SCHEMA.to_owned(),
        node: "large".to_owned(),
        program: "becalm-bench".to_owned(),
        origin: Some(jiff::Timestamp::UNIX_EPOCH),
        ended: None,
        machine: MachineDoc::default(),
        clock: ClockDoc { counter: "tsc".to_owned(), rate_hz: 2.6e9, ..ClockDoc::default() },
        settings: SettingsDoc { sched: "other".to_owned(), threshold: "auto".to_owned(), ..SettingsDoc::default() },
        rung: Rung::Tracepoints,
        cpus: cpus.to_vec(),
        tracing: Some(TracingDoc::default()),
        stored: None,
        counters: Vec::new(),
        warnings: Vec::new(),
    }
}
