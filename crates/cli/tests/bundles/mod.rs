//! Small bundles with known contents, the same each time; in `pages` those whose pages are looked at.

#![allow(dead_code, reason = "every user takes its own of them")]

pub mod costs;
pub mod pages;
pub mod phases;
pub mod work;

use std::fs;
use std::path::Path;

use becalm_bundle::BundleWriter;
use becalm_model::node::{
    ClockDoc, Counter, CpuDoc, Ended, Fixed, Machine, NodeDoc, Rung, SCHEMA, Settings, TracingDoc, Warning, WorkDoc,
    WorkLoop, WorkSession,
};
use becalm_model::study::{ConfigurationDoc, Outcome, StudyDoc};
use becalm_model::{Activity, Detour, Kind, Labels, Sample};
use becalm_units::{CpuId, CpuList, Nanos};

/// Writes all of them into a folder.
pub fn write_all(folder: &Path) {
    busy("node1").write(&folder.join("busy.becalm"), true);
    quiet().write(&folder.join("quiet.becalm"), true);
    counters_only().write(&folder.join("plain.becalm"), true);
    quieter().write(&folder.join("quieter.becalm"), true);
    right().write(&folder.join("right.becalm"), true);
    many().write(&folder.join("many.becalm"), true);
    write_samples(&folder.join("samples.becalm"));

    let mut killed = busy("node1");
    killed.doc.warnings.clear();
    killed.write(&folder.join("killed.becalm"), false);

    let mut open = busy("node1");
    open.activities[7].self_time += Nanos::new(1);
    open.write(&folder.join("open.becalm"), true);

    let pair = folder.join("pair.becalm");
    busy("node1").write(&pair, true);
    busy("node2").write(&pair, true);

    let truncated = folder.join("truncated.becalm");
    busy("node1").write(&truncated, true);
    let table = truncated.join("detours/node=node1/0000.parquet");
    let bytes = fs::read(&table).unwrap();
    fs::write(&table, &bytes[..bytes.len() / 2]).unwrap();

    let document = folder.join("newer.becalm");
    busy("node1").write(&document, true);
    let path = document.join("runs/node=node1.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(SCHEMA, "becalm.run/99")).unwrap();

    fs::create_dir(folder.join("foreign")).unwrap();
    fs::write(folder.join("foreign/data.csv"), "1,2,3\n").unwrap();
}

/// Writes a study: two configurations recorded, one skipped, one not reached.
pub fn write_study(folder: &Path) {
    fs::create_dir(folder).unwrap();
    busy("node1").write(&folder.join("baseline.becalm"), true);
    quiet().write(&folder.join("isolated.becalm"), true);
    let of = |name: &str, what: &str, cpus: &str, sched: &str, outcome| ConfigurationDoc {
        name: name.to_owned(),
        what: what.to_owned(),
        cpus: cpus.parse().unwrap(),
        idle: CpuList::default(),
        sched: sched.to_owned(),
        command: vec!["becalm".to_owned(), "record".to_owned()],
        outcome,
    };
    let recorded = |run: &str| Outcome::Recorded { run: run.to_owned() };
    let skipped = Outcome::Skipped { why: "no core here runs two hardware threads".to_owned() };
    let doc = StudyDoc {
        schema: becalm_model::study::SCHEMA.to_owned(),
        program: "becalm 0.1.0".to_owned(),
        node: "node1".to_owned(),
        begun: "2026-01-02T03:04:05Z".parse().unwrap(),
        machine: Machine { kernel: "6.18.0".to_owned(), processor: "A processor".to_owned(), ..Machine::default() },
        duration_ns: 10_000_000_000,
        configurations: vec![
            of("baseline", "ordinary processes on every CPU", "0-1", "other", recorded("baseline.becalm")),
            of("isolated", "everything else moved off the CPUs", "1", "other", recorded("isolated.becalm")),
            of("sibling-idle", "one hardware thread of each core", "", "other", skipped),
            of("combined", "all of it", "1", "rr:80", Outcome::Planned),
        ],
    };
    becalm_bundle::study::store(&doc, folder).unwrap();
}

/// A run of one node on the way to its bundle.
struct Run {
    doc: NodeDoc,
    detours: Vec<Detour>,
    activities: Vec<Activity>,
    labels: Labels,
    /// How many detours each CPU has, by its number.
    counts: Vec<u64>,
}

/// An activity of a detour: where it begins in the detour, how long it takes, and what it is.
type Part = (i64, i64, Kind, &'static str, &'static str);

impl Run {
    fn new(node: &str, cpus: u32, rung: Rung) -> Self {
        let cpus = (0..cpus).map(|cpu| CpuDoc {
            start_ns: Nanos::new(1_000),
            duration_ns: Nanos::from_secs(10),
            iterations: 400_000_000,
            t_min_ns: Nanos::new(22),
            median_step_ns: Nanos::new(24),
            threshold_ns: Nanos::new(105),
            ..CpuDoc::of(CpuId::new(cpu))
        });
        let cpus: Vec<CpuDoc> = cpus.collect();
        let online = cpus.iter().map(|cpu| cpu.cpu).collect();
        let doc = NodeDoc {
            schema: SCHEMA.to_owned(),
            node: node.to_owned(),
            program: "becalm 0.1.0".to_owned(),
            origin: "2026-03-04T05:06:07.123456Z".parse().unwrap(),
            ended: Some(Ended::Duration),
            machine: Machine {
                kernel: "6.12.9".to_owned(),
                processor: "Example CPU at 2.6 GHz".to_owned(),
                hypervisor: Some("kvm".to_owned()),
                architecture: "x86_64".to_owned(),
                online,
                command_line: "quiet".to_owned(),
                ..Machine::default()
            },
            clock: ClockDoc {
                counter: "tsc".to_owned(),
                rate_hz: 2.6e9,
                rate_error_ratio: 2.5e-7,
                resolution_ns: Nanos::new(8),
                cross_cpu_ns: Some(Nanos::new(40)),
                ..ClockDoc::default()
            },
            settings: Settings {
                sched: "other".to_owned(),
                threshold: "auto".to_owned(),
                duration_ns: Some(Nanos::from_secs(10)),
                ..Settings::default()
            },
            rung,
            tracing: (rung == Rung::Tracepoints).then(|| TracingDoc {
                clock: "x86-tsc".to_owned(),
                events: vec!["irq/irq_handler_entry".to_owned()],
                missing: Vec::new(),
                buffer_bytes: 1 << 24,
            }),
            cpus,
            counters: Vec::new(),
            warnings: Vec::new(),
        };
        let counts = vec![0; doc.cpus.len()];
        Self { doc, detours: Vec::new(), activities: Vec::new(), labels: Labels::new(), counts }
    }

    /// Adds a detour that is the sum of its parts.
    fn detour(&mut self, cpu: u32, start: i64, parts: &[Part]) {
        let at = cpu as usize;
        for (offset, self_time, kind, source, detail) in parts {
            self.activities.push(Activity {
                cpu: CpuId::new(cpu),
                detour: self.counts[at],
                start: Nanos::new(start + offset),
                self_time: Nanos::new(*self_time),
                kind: *kind,
                source: self.labels.intern(source),
                detail: self.labels.intern(detail),
            });
        }
        self.bare_detour(cpu, start, parts.iter().map(|part| part.1).sum());
    }

    /// Adds a detour of which nothing is known.
    fn bare_detour(&mut self, cpu: u32, start: i64, duration: i64) {
        let duration = Nanos::new(duration);
        self.detours.push(Detour { cpu: CpuId::new(cpu), start: Nanos::new(start), duration, incomplete: false });
        let at = cpu as usize;
        self.counts[at] += 1;
        let doc = &mut self.doc.cpus[at];
        doc.detours += 1;
        doc.total_ns += duration;
        doc.max_ns = doc.max_ns.max(duration);
    }

    fn count(&mut self, cpu: u32, name: &str, growth: u64) {
        self.doc.counters.push(Counter { cpu: CpuId::new(cpu), name: name.to_owned(), growth });
    }

    fn write(mut self, path: &Path, ended: bool) {
        if !ended {
            // As a killed run leaves it: the document of the start.
            self.doc.ended = None;
            self.doc.counters.clear();
            for cpu in &mut self.doc.cpus {
                (cpu.duration_ns, cpu.iterations, cpu.detours) = (Nanos::ZERO, 0, 0);
                (cpu.total_ns, cpu.max_ns, cpu.incomplete, cpu.lost_events) = (Nanos::ZERO, Nanos::ZERO, 0, 0);
            }
        }
        let mut writer = BundleWriter::create(path, &self.doc).unwrap();
        writer.write_segment(&self.detours, &self.activities, &self.labels).unwrap();
        writer.write_doc(&self.doc).unwrap();
    }
}

/// Two CPUs with a tick; on the second also the network, a thread that burns 700 us, and a hypervisor.
fn busy(node: &str) -> Run {
    let mut run = Run::new(node, 2, Rung::Tracepoints);
    for tick in 0..2_500 {
        let start = 4_000_000 * tick + 1_000_000;
        let handler = 1_500 + 10 * (tick % 50);
        let parts = [(0, 700, Kind::Edge, "edge", ""), (300, handler, Kind::Irq, "local_timer", "236")];
        run.detour(0, start, &parts);
    }
    for tick in 0..2_500 {
        let start = 4_000_000 * tick + 3_000_000;
        let handler = 1_500 + 10 * (tick % 50);
        match tick % 50 {
            7 => run.detour(1, start, &[(0, 40_000 + 100 * (tick % 300), Kind::Unseen, "unseen", "")]),
            // A softirq that is interrupted by the tick, and the tick by a watchdog.
            20 => run.detour(
                1,
                start,
                &[
                    (0, 900, Kind::Edge, "edge", ""),
                    (200, 2_000, Kind::Irq, "virtio1-req.0", "27"),
                    (2_300, 12_000, Kind::Softirq, "net_rx", ""),
                    (6_000, handler, Kind::Irq, "local_timer", "236"),
                    (6_500, 400, Kind::Nmi, "perf_event_nmi_handler", ""),
                ],
            ),
            40 => run.detour(
                1,
                start,
                &[
                    (0, 1_800, Kind::Edge, "edge", ""),
                    (500, handler, Kind::Irq, "local_timer", "236"),
                    (4_000, 700_000, Kind::Task, "gremlin", "4711"),
                    (705_000, 3_000, Kind::Workqueue, "kworker:vmstat_update", "kworker/1:0-78"),
                ],
            ),
            _ => run.detour(
                1,
                start,
                &[(0, 700, Kind::Edge, "edge", ""), (300, handler, Kind::Irq, "local_timer", "236")],
            ),
        }
    }
    let last = run.detours.len() - 1;
    run.detours[last].incomplete = true;
    run.doc.cpus[1].incomplete = 1;
    run.doc.cpus[1].lost_events = 12;
    run.count(0, "stat/steal", 0);
    run.count(1, "stat/steal", 1_700_000);
    run.count(0, "interrupts/LOC", 2_503);
    run.doc.warnings.push(Warning {
        code: "lost_events".to_owned(),
        message: "CPU 1: the kernel lost 12 of 12,412 trace events".to_owned(),
        advice: "give it a larger --trace-buffer".to_owned(),
    });
    run
}

/// An isolated CPU that nothing disturbs.
fn quiet() -> Run {
    let mut run = Run::new("rt", 1, Rung::Tracepoints);
    run.doc.machine.isolated = "0".parse().unwrap();
    run.doc.machine.nohz_full = "0".parse().unwrap();
    run.doc.machine.hypervisor = None;
    run.doc.settings.sched = "fifo:80".to_owned();
    run.doc.tracing.as_mut().unwrap().missing = vec!["nmi/nmi_handler: NMIs appear as unseen".to_owned()];
    run
}

/// The node of `busy` after it was tuned: no thread that burns time and half of the ticks, with a higher threshold.
fn quieter() -> Run {
    let mut run = Run::new("node1", 2, Rung::Tracepoints);
    for cpu in &mut run.doc.cpus {
        cpu.threshold_ns = Nanos::new(2_500);
        cpu.t_min_ns = Nanos::new(40);
    }
    for cpu in 0..2 {
        for tick in 0..1_250 {
            let handler = 1_500 + 10 * (tick % 50);
            let parts = [(0, 700, Kind::Edge, "edge", ""), (300, handler, Kind::Irq, "local_timer", "236")];
            let start = 8_000_000 * tick + 1_000_000;
            match tick % 25 {
                10 => {
                    run.detour(cpu, start, &[(0, 900, Kind::Edge, "edge", ""), (200, 9_000, Kind::Softirq, "rcu", "")])
                }
                _ => run.detour(cpu, start, &parts),
            }
        }
    }
    run
}

/// Another CPU than the others measured.
fn right() -> Run {
    let mut run = Run::new("node1", 4, Rung::Tracepoints);
    run.doc.cpus.retain(|cpu| cpu.cpu == CpuId::new(3));
    run
}

/// Without root: detours and counters.
fn counters_only() -> Run {
    let mut run = Run::new("laptop", 1, Rung::Proc);
    for detour in 0..15 {
        run.bare_detour(0, 600_000_000 * detour + 5_000, 9_000 + detour);
    }
    run.count(0, "interrupts/LOC", 2_512);
    run.count(0, "interrupts/RES", 0);
    run.count(0, "softirqs/TIMER", 1_801);
    run.count(0, "status/involuntary_switches", 31);
    run.count(0, "stat/steal", 20_000_000);
    run.doc.ended = Some(Ended::Command);
    run.doc.settings.command = vec!["make".to_owned(), "-j4".to_owned()];
    run.doc.warnings.push(Warning {
        code: "no_tracing".to_owned(),
        message: "the kernel's trace cannot be read: /sys/kernel/tracing is for root only".to_owned(),
        advice: "run it as root".to_owned(),
    });
    run
}

/// Samples of a millisecond of work on one CPU, as `becalm work` leaves them: another kind of run.
fn write_samples(path: &Path) {
    let Run { mut doc, labels, .. } = Run::new("node1", 1, Rung::Loop);
    let cpu = doc.cpus[0].cpu;
    doc.settings.work = Some(WorkDoc {
        body: "empty".to_owned(),
        iteration: "nothing".to_owned(),
        fixed: Fixed::Work,
        grain_ns: Nanos::from_millis(1),
        copies: 1,
        samples: Some(500),
        memory_bytes: 0,
        cache_bytes: None,
        cache_known: true,
        loops: vec![WorkLoop { cpu, iterations: 400_000, calibrated_ns: Nanos::from_millis(1), others_iterations: 0 }],
        counts: Vec::new(),
        not_counted: Vec::new(),
        sessions: vec![WorkSession { start_ns: Nanos::ZERO, ended: Some(Ended::Duration) }],
    });
    let mut start = Nanos::new(1_000);
    let mut samples = Vec::new();
    for number in 0..500 {
        // A tick in every fourth.
        let duration = Nanos::new(1_000_000 + 10 * (number % 7) + if number % 4 == 0 { 2_000 } else { 0 });
        samples.push(Sample { cpu, start, duration, work: 400_000, incomplete: false });
        start += duration;
    }
    let mut writer = BundleWriter::create(path, &doc).unwrap();
    writer.write_samples(&samples, &[], &labels).unwrap();
    writer.write_doc(&doc).unwrap();
}

/// A thousand CPUs, each as noisy as its number is high.
fn many() -> Run {
    let mut run = Run::new("large", 1_024, Rung::Tracepoints);
    for cpu in 0..1_024 {
        for tick in 0..30 {
            let handler = 2_000 + i64::from(cpu);
            run.detour(cpu, 300_000_000 * tick + 7_000, &[(0, handler, Kind::Irq, "local_timer", "236")]);
        }
    }
    run
}
