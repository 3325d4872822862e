//! Bundles of samples of work with known contents: ticks and a daemon in a loop of fixed work, the same on a quieter
//! machine, fixed time on two CPUs, and one too short for a spectrum.

use std::path::Path;

use becalm_bundle::BundleWriter;
use becalm_model::node::{Ended, Fixed, Rung, Warning, WorkCount, WorkDoc, WorkLoop, WorkSession};
use becalm_model::{Activity, Kind, Labels, Sample};
use becalm_units::{CpuId, Nanos};

use super::Run;
use super::pages::Random;

/// Writes all of them into a folder.
pub fn write_all(folder: &Path) {
    work(12_000, true).write(&folder.join("work.becalm"));
    work(12_000, false).write(&folder.join("calm.becalm"));
    work(40, true).write(&folder.join("brief.becalm"));
    time().write(&folder.join("quanta.becalm"));
    let mut hostile = work(300, true);
    hostile.name("</script><img src=x onerror=alert(1)>");
    hostile.write(&folder.join("workers.becalm"));
    let mut unseen = work(300, true);
    unseen.run.doc.tracing = None;
    unseen.run.doc.rung = Rung::Proc;
    unseen.activities.clear();
    unseen.write(&folder.join("untraced.becalm"));
}

/// A run of work on the way to its bundle.
struct WorkRun {
    run: Run,
    samples: Vec<Sample>,
    activities: Vec<Activity>,
    labels: Labels,
}

impl WorkRun {
    fn new(cpus: &[u32], fixed: Fixed, iterations: u64) -> Self {
        let mut run = Run::new("node1", cpus.len() as u32, Rung::Tracepoints);
        for (doc, cpu) in run.doc.cpus.iter_mut().zip(cpus) {
            doc.cpu = CpuId::new(*cpu);
            (doc.t_min_ns, doc.median_step_ns, doc.threshold_ns) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
        }
        let of = |cpu: &u32| WorkLoop {
            cpu: CpuId::new(*cpu),
            iterations,
            calibrated_ns: Nanos::from_millis(1),
            others_iterations: 0,
        };
        run.doc.settings.work = Some(WorkDoc {
            body: "add".to_owned(),
            iteration: "512 dependent 64-bit additions, in assembly".to_owned(),
            fixed,
            grain_ns: Nanos::from_millis(1),
            copies: 1,
            samples: None,
            memory_bytes: 0,
            cache_bytes: None,
            cache_known: true,
            loops: cpus.iter().map(of).collect(),
            sessions: vec![WorkSession { start_ns: Nanos::ZERO, ended: Some(Ended::Duration) }],
            counts: Vec::new(),
            not_counted: Vec::new(),
        });
        Self { run, samples: Vec::new(), activities: Vec::new(), labels: Labels::new() }
    }

    /// Adds what a source took of the next sample.
    fn takes(&mut self, cpu: u32, number: u64, start: i64, took: i64, kind: Kind, source: &str) {
        self.activities.push(Activity {
            cpu: CpuId::new(cpu),
            detour: number,
            start: Nanos::new(start),
            self_time: Nanos::new(took),
            kind,
            source: self.labels.intern(source),
            detail: self.labels.intern(""),
        });
    }

    fn sample(&mut self, cpu: u32, start: i64, duration: i64, work: u64) {
        let (start, duration) = (Nanos::new(start), Nanos::new(duration));
        self.samples.push(Sample { cpu: CpuId::new(cpu), start, duration, work, incomplete: false });
    }

    /// Gives every source this name.
    fn name(&mut self, name: &str) {
        let label = self.labels.intern(name);
        self.activities.iter_mut().for_each(|activity| activity.source = label);
    }

    fn write(mut self, path: &Path) {
        for doc in &mut self.run.doc.cpus {
            let own = self.samples.iter().filter(|sample| sample.cpu == doc.cpu);
            doc.duration_ns = own.clone().map(|sample| sample.duration).fold(Nanos::ZERO, |a, b| a + b);
            doc.iterations = own.count() as u64;
        }
        let mut writer = BundleWriter::create(path, &self.run.doc).unwrap();
        writer.write_samples(&self.samples, &self.activities, &self.labels).unwrap();
        writer.write_doc(&self.run.doc).unwrap();
    }
}

/// Samples of fixed work of 1 ms. If it is disturbed, by a tick at 250 Hz, of which a part is indirect, by a daemon ten times
/// a second, and by rare long tasks; and what the processor counted.
fn work(count: u64, disturbed: bool) -> WorkRun {
    let mut made = WorkRun::new(&[1], Fixed::Work, 5_000);
    let mut random = Random::new(if disturbed { 5 } else { 6 });
    let mut at = 1_000;
    let (mut tick, mut daemon) = (1_300_000, 7_000_000);
    for number in 0..count {
        let mut duration = 1_000_000 + random.exponential(1_500.0);
        if disturbed {
            while tick < at + duration {
                let handler = 4_000 + random.below(1_500);
                made.takes(1, number, tick, handler, Kind::Irq, "local_timer");
                duration += handler + 1_800 + random.below(400);
                tick += 4_000_000;
            }
            while daemon < at + duration {
                made.takes(1, number, daemon, 180_000, Kind::Task, "agent");
                duration += 184_000 + random.below(3_000);
                daemon += 100_000_000;
            }
            if random.below(900) == 0 {
                let long = 200_000 + random.exponential(900_000.0);
                made.takes(1, number, at + 300_000, long, Kind::Task, "cron");
                duration += long + 9_000;
            }
        }
        made.sample(1, at, duration, 5_000);
        at += duration;
    }
    let doc = &mut made.run.doc;
    let counted = |event: &str, space: &str, value, running: i64| WorkCount {
        cpu: CpuId::new(1),
        event: event.to_owned(),
        space: space.to_owned(),
        value,
        enabled_ns: Nanos::from_secs(12),
        running_ns: Nanos::from_secs(running),
    };
    if let (Some(work), true) = (&mut doc.settings.work, disturbed) {
        work.counts = vec![
            counted("cycles", "user", 31_200_000_000, 12),
            counted("cycles", "kernel", 93_000_000, 12),
            counted("instructions", "user", 31_080_000_000, 12),
            counted("instructions", "kernel", 61_000_000, 12),
            counted("l1d_read_misses", "user", 41_000, 6),
            counted("l1d_read_misses", "kernel", 730_000, 6),
        ];
        work.not_counted = vec!["cache_misses: the processor has too few counters for it".to_owned()];
    } else if let Some(work) = &mut doc.settings.work {
        work.not_counted = vec![
            "cycles, instructions, l1d_read_misses, cache_misses: the processor, or its hypervisor, has no such counter"
                .to_owned(),
        ];
    }
    if disturbed {
        doc.warnings.push(Warning {
            code: "lost_events".to_owned(),
            message: "CPU 1: the kernel lost 3 of 9,000 trace events".to_owned(),
            advice: "give it a larger --trace-buffer".to_owned(),
        });
    }
    made
}

/// Quanta of 1 ms on two CPUs, the second of which has a tick at 100 Hz.
fn time() -> WorkRun {
    let mut made = WorkRun::new(&[0, 3], Fixed::Time, 5);
    for cpu in [0, 3] {
        let mut random = Random::new(70 + u64::from(cpu));
        for number in 0..6_000 {
            let start = 1_000 + 1_000_000 * number as i64;
            let mut lost = random.exponential(900.0);
            if cpu == 3 && number % 10 == 4 {
                made.takes(cpu, number, start + 400_000, 21_000, Kind::Irq, "local_timer");
                lost += 23_000;
            }
            made.sample(cpu, start, 1_000_000, (5_000 - lost / 200) as u64);
        }
    }
    made
}
