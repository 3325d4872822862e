//! Bundles whose pages are looked at in a browser: like real runs, hostile ones, and very large ones.

use std::path::Path;

use becalm_bundle::BundleWriter;
use becalm_model::node::{Counter, Ended, Rung, Warning};
use becalm_model::{Activity, Detour, Kind, Labels, NodeDoc};
use becalm_stats::splitmix::SplitMix64;
use becalm_units::{CpuId, Nanos};

use super::Run;

/// Writes all but the huge one into a folder.
pub fn write_all(folder: &Path) {
    lively("node1", 4, 7).write(&folder.join("lively.becalm"), true);
    ordinary("node1", 4, 8, true).write(&folder.join("livelier.becalm"), true);
    hostile().write(&folder.join("hostile.becalm"), true);
    wide().write(&folder.join("wide.becalm"), true);
    let cluster = folder.join("cluster.becalm");
    for (node, seed) in [("rack1-node01", 11), ("rack1-node02", 12), ("rack2-node17", 13)] {
        lively(node, 2, seed).write(&cluster, true);
    }
    imported().write(&folder.join("imported.becalm"), true);
}

/// Random numbers that are the same everywhere: SplitMix64.
pub(super) struct Random(SplitMix64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub(super) fn below(&mut self, limit: i64) -> i64 {
        (self.next() % limit.max(1) as u64) as i64
    }

    /// Exponential with this mean.
    pub(super) fn exponential(&mut self, mean: f64) -> i64 {
        let uniform = ((self.next() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        (-uniform.ln() * mean) as i64
    }
}

/// Ten seconds of an ordinary server: ticks at 250 Hz, softirqs in them, the network in bursts, work items, a daemon once a
/// second, page faults, a throttled stretch, and a hypervisor.
fn lively(node: &str, cpus: u32, seed: u64) -> Run {
    ordinary(node, cpus, seed, false)
}

/// The same, if asked for after somebody left a chatty agent on its first two CPUs.
fn ordinary(node: &str, cpus: u32, seed: u64, agent: bool) -> Run {
    let mut run = Run::new(node, cpus, Rung::Tracepoints);
    for cpu in 0..cpus {
        let mut random = Random::new(seed * 1_000 + u64::from(cpu));
        let mut happenings: Vec<(i64, u8)> = Vec::new();
        happenings.extend((0..2_500).map(|tick| (4_000_000 * tick + 1_000_000, 0)));
        let mut at = 0;
        while at < 9_900_000_000 {
            at += random.exponential(6e6);
            happenings.push((at, 1));
        }
        for burst in 0..30 {
            let begin = random.below(9_500_000_000);
            happenings.extend((0..20 + burst).map(|packet| (begin + packet * 90_000, 2)));
        }
        happenings.extend((0..10).map(|second| (1_000_000_000 * second + 400_000_000 + random.below(3_000_000), 3)));
        happenings.extend((0..40).map(|_| (random.below(9_900_000_000), 4)));
        happenings.extend((0..60).map(|_| (random.below(9_900_000_000), 5)));
        if cpu == 1 {
            happenings.extend([(3_000_000_000, 6), (7_200_000_000, 6)]);
        }
        if agent && cpu < 2 {
            happenings.extend((0..500).map(|call| (20_000_000 * call + random.below(9_000_000), 7)));
        }
        happenings.sort_unstable();
        let mut free = 0;
        for (wanted, what) in happenings {
            let start = wanted.max(free);
            let parts = parts(what, &mut random);
            run.detour(cpu, start, &parts);
            free = start + parts.iter().map(|part| part.1).sum::<i64>() + 200;
        }
        run.count(cpu, "stat/steal", 4_000_000 + 1_000_000 * u64::from(cpu));
    }
    if node == "node1" {
        run.doc.cpus[0].lost_events = 12;
        run.doc.warnings.push(Warning {
            code: "lost_events".to_owned(),
            message: "CPU 0: the kernel lost 12 of 48,310 trace events".to_owned(),
            advice: "give it a larger --trace-buffer".to_owned(),
        });
    }
    run
}

fn parts(what: u8, random: &mut Random) -> Vec<super::Part> {
    let handler = 1_400 + random.exponential(500.0);
    let tick = (300, handler, Kind::Irq, "local_timer", "236");
    match what {
        0 if random.below(8) == 0 => {
            let softirq = 800 + random.exponential(3_000.0);
            vec![
                (0, 900, Kind::Edge, "edge", ""),
                tick,
                (handler + 400, softirq, Kind::Softirq, ["timer", "sched", "rcu"][random.below(3) as usize], ""),
            ]
        }
        0 => vec![(0, 700, Kind::Edge, "edge", ""), tick],
        1 => vec![(0, 60 + random.exponential(2_500.0), Kind::Unseen, "unseen", "")],
        2 => {
            let work = 6_000 + random.exponential(9_000.0);
            let mut parts = vec![
                (0, 1_100, Kind::Edge, "edge", ""),
                (200, 1_900, Kind::Irq, "virtio1-req.0", "27"),
                (2_300, work, Kind::Softirq, "net_rx", ""),
            ];
            if work > 20_000 {
                parts.push((9_000, handler, Kind::Irq, "local_timer", "236"));
                parts.push((9_500, 420, Kind::Nmi, "perf_event_nmi_handler", ""));
            }
            parts
        }
        3 => vec![
            (0, 2_300, Kind::Edge, "edge", ""),
            (500, handler, Kind::Irq, "local_timer", "236"),
            (4_000, 420_000 + random.exponential(600_000.0), Kind::Task, "backup-daemon", "pid 4711"),
            (9_000, 6_000, Kind::Kthread, "migration", "migration/1 pid 21"),
        ],
        4 => vec![
            (0, 1_500, Kind::Edge, "edge", ""),
            (400, 5_000 + random.exponential(60_000.0), Kind::Workqueue, "kworker:vmstat_update", "kworker/1:0-78"),
        ],
        5 => vec![
            (0, 300, Kind::Edge, "edge", ""),
            (100, 700 + random.exponential(400.0), Kind::Fault, "page_fault", "user"),
        ],
        7 => vec![
            (0, 1_800, Kind::Edge, "edge", ""),
            (600, 30_000 + random.exponential(40_000.0), Kind::Task, "metrics-agent", "pid 815"),
        ],
        _ => vec![
            (0, 3_000, Kind::Edge, "edge", ""),
            (1_000, 50_000_000, Kind::Throttling, "rt_throttling", "0.95 s of 1 s"),
        ],
    }
}

/// Names as an enemy would choose them.
fn hostile() -> Run {
    const ENEMIES: [&str; 4] = [
        "</script><img src=x onerror=alert(1)>",
        "\"><svg onload=alert(2)>",
        "{{title}} ${7*7} '\u{2028}'",
        "<!--<script>",
    ];
    // A node's name is checked where bundles are read; everything else in a document is any text.
    let mut run = Run::new("enemy", 1, Rung::Tracepoints);
    for at in 0..400 {
        let name = ENEMIES[at as usize % ENEMIES.len()];
        run.detour(0, 20_000_000 * at + 5_000, &[(0, 2_000 + 37 * at, Kind::Task, name, ENEMIES[3])]);
    }
    run.doc.settings.command = vec!["sh".to_owned(), "-c".to_owned(), ENEMIES[0].to_owned()];
    run.doc.machine.processor = ENEMIES[1].to_owned();
    run.doc.machine.kernel = "<b onmouseover=alert(3)>6.12</b>".to_owned();
    run.doc.warnings.push(Warning {
        code: "enemy".to_owned(),
        message: format!("a process named itself {}", ENEMIES[0]),
        advice: ENEMIES[1].to_owned(),
    });
    run
}

/// 4,096 CPUs, one of which is worse than the others.
fn wide() -> Run {
    let mut run = Run::new("large", 4_096, Rung::Tracepoints);
    for cpu in 0..4_096 {
        let mut random = Random::new(u64::from(cpu));
        for tick in 0..24 {
            let handler = 2_000 + random.exponential(700.0) + i64::from(cpu % 64) * 20;
            let start = 400_000_000 * tick + 7_000 + random.below(3_000_000);
            run.detour(cpu, start, &[(0, handler, Kind::Irq, "local_timer", "236")]);
        }
        if cpu == 1_234 {
            run.detour(cpu, 9_700_000_000, &[(0, 9_000_000, Kind::Task, "runaway", "pid 99")]);
        }
    }
    run
}

/// As `becalm import` leaves it: detours, and nothing of the machine.
fn imported() -> Run {
    let mut run = Run::new("unknown", 1, Rung::Loop);
    let mut random = Random::new(3);
    let mut at = 0;
    while at < 9_000_000_000 {
        at += 100_000 + random.exponential(9e6);
        let length = 150 + random.exponential(4_000.0);
        run.bare_detour(0, at, length);
        at += length;
    }
    run.doc.ended = Some(Ended::Duration);
    run.doc.cpus[0].iterations = 0;
    run.doc.warnings.push(Warning {
        code: "imported".to_owned(),
        message: "the detours were imported: nothing is known of the machine, the clock and the threshold".to_owned(),
        advice: String::new(),
    });
    run
}

/// Ten million detours on 8 CPUs, written segment by segment.
pub struct Huge;

pub const fn huge() -> Huge {
    Huge
}

impl Huge {
    /// Writes it, in place of one that is there.
    pub fn write(&self, path: &Path) {
        const CPUS: u32 = 8;
        const SEGMENTS: i64 = 25;
        const PER_SEGMENT: i64 = 50_000;
        let _ = std::fs::remove_dir_all(path);
        let Run { mut doc, .. } = Run::new("busy", CPUS, Rung::Tracepoints);
        let mut labels = Labels::new();
        let names = ["local_timer", "net_rx", "unseen", "backup-daemon"].map(|name| labels.intern(name));
        let detail = labels.intern("");
        let mut writer = BundleWriter::create(path, &doc).unwrap();
        let mut random = Random::new(5);
        let mut numbers = [0_u64; CPUS as usize];
        // When the last detour of each CPU ended: what would begin in it begins after it.
        let mut ends = [0_i64; CPUS as usize];
        for segment in 0..SEGMENTS {
            let mut detours = Vec::with_capacity((PER_SEGMENT * i64::from(CPUS)) as usize);
            let mut activities = Vec::with_capacity(detours.capacity());
            for cpu in 0..CPUS {
                for at in 0..PER_SEGMENT {
                    let wanted = (segment * PER_SEGMENT + at) * 7_900 + 1_000;
                    let (kind, name, mean) = match random.below(100_000) {
                        0 => (Kind::Task, 3, 400_000.0),
                        1..20_000 => (Kind::Softirq, 1, 900.0),
                        20_000..40_000 => (Kind::Unseen, 2, 250.0),
                        _ => (Kind::Irq, 0, 500.0),
                    };
                    let duration = 120 + random.exponential(mean);
                    let at = cpu as usize;
                    let start = wanted.max(ends[at] + 60);
                    ends[at] = start + duration;
                    let (start, duration) = (Nanos::new(start), Nanos::new(duration));
                    let cpu = CpuId::new(cpu);
                    let number = numbers[at];
                    numbers[at] += 1;
                    detours.push(Detour { cpu, start, duration, incomplete: false });
                    activities.push(Activity {
                        cpu,
                        detour: number,
                        start,
                        self_time: duration,
                        kind,
                        source: names[name],
                        detail,
                    });
                    count(&mut doc, at, duration);
                }
            }
            writer.write_segment(&detours, &activities, &labels).unwrap();
        }
        doc.counters.push(Counter { cpu: CpuId::new(0), name: "stat/steal".to_owned(), growth: 5 });
        writer.write_doc(&doc).unwrap();
    }
}

fn count(doc: &mut NodeDoc, at: usize, duration: Nanos) {
    let cpu = &mut doc.cpus[at];
    cpu.detours += 1;
    cpu.total_ns += duration;
    cpu.max_ns = cpu.max_ns.max(duration);
}
