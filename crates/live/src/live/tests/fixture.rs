//! Recordings for tests of the view.

use becalm_model::node::{ClockDoc, CpuDoc, MachineDoc, SCHEMA, SettingsDoc};
use becalm_model::{Detour, Label, Pid};

use super::super::*;

fn node(cpus: &[u32]) -> NodeDoc {
    NodeDoc {
        schema: SCHEMA.to_owned(),
        node: "node1".to_owned(),
        program: String::new(),
        origin: Some(jiff::Timestamp::UNIX_EPOCH),
        ended: None,
        machine: MachineDoc::default(),
        clock: ClockDoc::default(),
        settings: SettingsDoc { sched: "other".to_owned(), threshold: "auto".to_owned(), ..SettingsDoc::default() },
        rung: Rung::Tracepoints,
        cpus: cpus.iter().map(|cpu| CpuDoc::new(CpuId::new(*cpu))).collect(),
        tracing: None,
        stored: None,
        counters: Vec::new(),
        warnings: Vec::new(),
    }
}

pub fn thread(cpu: u32) -> LoopThread {
    LoopThread { cpu: CpuId::new(cpu), pid: Pid(1), t_min: Nanos::new(9), realtime: false }
}

/// A recording for a view: each detour is split between two sources, with this recording's own labels.
pub struct Feed {
    labels: Labels,
    sources: Vec<(Kind, Label)>,
    threads: Vec<LoopThread>,
    counts: Vec<u64>,
}

impl Feed {
    pub fn begin(live: &mut Live, cpus: &[u32], names: &[(Kind, &str)]) -> Self {
        let threads: Vec<LoopThread> = cpus.iter().map(|cpu| thread(*cpu)).collect();
        live.begin(&node(cpus), &threads);
        let mut labels = Labels::new();
        let sources = names.iter().map(|(kind, name)| (*kind, labels.intern(name))).collect();
        Self { labels, sources, threads, counts: vec![0; cpus.len()] }
    }

    /// Adds detours of `(start, duration)`; the first source has a quarter of each, the second the rest.
    pub fn give(&mut self, live: &mut Live, index: usize, detours: &[(i64, i64)], until: i64) {
        let cpu = CpuId::new(0);
        let (mut rows, mut activities) = (Vec::new(), Vec::new());
        for (start, duration) in detours {
            let start = Nanos::new(*start);
            rows.push(Detour { cpu, start, duration: Nanos::new(*duration), incomplete: false });
            for (at, part) in [(0, duration / 4), (1, duration - duration / 4)] {
                let (kind, source) = self.sources[at];
                let (detour, self_time) = (self.counts[index], Nanos::new(part));
                activities.push(Activity { cpu, detour, start, self_time, kind, source, detail: Label::EMPTY });
            }
            self.counts[index] += 1;
        }
        let part = LanePart {
            index,
            thread: self.threads[index],
            steps: &[],
            work: &[],
            detours: &rows,
            activities: &activities,
            began: Some(Nanos::ZERO),
            complete_until: Nanos::new(until),
            unstored: Unstored::default(),
        };
        live.take(part, &self.labels);
    }
}

/// Three CPUs over five seconds: the second is the noisiest, and has the longest detour.
pub fn live() -> Live {
    let mut live = Live::default();
    let names = [(Kind::Irq, "local_timer"), (Kind::Workqueue, "kworker:page_reporting_process")];
    let mut feed = Feed::begin(&mut live, &[0, 1, 2], &names);
    let second = 1_000_000_000;
    for (index, duration) in [(0, 8_000), (1, 3_000_000), (2, 40_000)] {
        let detours: Vec<(i64, i64)> = (0..20).map(|at| (at * second / 4, duration + at * 100)).collect();
        feed.give(&mut live, index, &detours, 5 * second);
    }
    live
}
