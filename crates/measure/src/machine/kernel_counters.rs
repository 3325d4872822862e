//! Growth of the kernel's own counters during a run: interrupts, softirqs, context switches and steal time. They bound the sources if there is no
//! trace, and verify the trace if there is one.

use std::ops::RangeInclusive;
use std::path::Path;

use becalm_linux::procfs::interrupts::{InterruptLine, Interrupts};
use becalm_linux::procfs::softirqs::Softirqs;
use becalm_linux::procfs::stat::Stat;
use becalm_model::node::{CounterGrowth, TracedCount};
use becalm_units::{CpuId, CpuList, Nanos};

/// The counters at one instant; those that could not be read are missing.
#[derive(Clone, Debug, Default)]
pub struct KernelCounters {
    interrupts: Option<Reading<Interrupts>>,
    softirqs: Option<Reading<Softirqs>>,
    stat: Option<Stat>,
    /// The error if `/proc/stat` could not be read.
    stat_unread: Option<String>,
    /// The counters of each file that could not be read, and the error.
    unread: Vec<(&'static str, String)>,
}

/// The contents of a file, with the start and end of the read, on the caller's clock.
#[derive(Clone, Debug)]
struct Reading<T> {
    content: T,
    when: RangeInclusive<Nanos>,
}

/// Kinds of counters whose events may also be in the trace.
#[derive(Clone, Copy, Debug)]
pub enum CounterKind<'a> {
    /// The interrupt of this line of `/proc/interrupts`.
    Interrupt(&'a InterruptLine),
    /// The softirq with this name in `/proc/softirqs`.
    Softirq(&'a str),
}

impl KernelCounters {
    /// Reads them below a root.
    pub fn take(root: &Path) -> Self {
        Self::take_timed(root, || Nanos::ZERO)
    }

    /// Reads them below a root, with times from this clock.
    pub fn take_timed(root: &Path, now: impl Fn() -> Nanos) -> Self {
        let began = now();
        let mut unread = Vec::new();
        let interrupts = Interrupts::read(root).map_err(|error| unread.push(("interrupts", error.to_string()))).ok();
        let between = now();
        let softirqs = Softirqs::read(root).map_err(|error| unread.push(("softirqs", error.to_string()))).ok();
        let ended = now();
        let (stat, stat_unread) = match Stat::read(root) {
            Ok(stat) => (Some(stat), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self {
            unread,
            interrupts: interrupts.map(|content| Reading { content, when: began..=between }),
            softirqs: softirqs.map(|content| Reading { content, when: between..=ended }),
            stat,
            stat_unread,
        }
    }

    /// Whether any counter could be read.
    pub const fn is_some(&self) -> bool {
        self.interrupts.is_some() || self.softirqs.is_some() || self.stat.is_some()
    }

    /// The counters of interrupts and softirqs that could not be read, and the error.
    pub fn unread(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.unread.iter().map(|(what, why)| (*what, why.as_str()))
    }

    /// Why the CPU times, including steal time, could not be read; `None` if they could.
    pub fn stat_unread(&self) -> Option<&str> {
        self.stat_unread.as_deref()
    }

    /// When interrupts and softirqs were read; `None` for a file that could not be read.
    pub fn when(&self) -> [Option<RangeInclusive<Nanos>>; 2] {
        let time = |when: Option<&RangeInclusive<Nanos>>| when.cloned();
        [time(self.interrupts.as_ref().map(|it| &it.when)), time(self.softirqs.as_ref().map(|it| &it.when))]
    }

    /// The kernel's descriptions of interrupt lines: `LOC`, `Local timer interrupts`. Device lines are named by their handlers.
    pub fn descriptions(&self) -> impl Iterator<Item = (String, &str)> {
        let lines = self.interrupts.iter().flat_map(|reading| &reading.content.lines);
        lines.map(|line| (name_of(line), if line.device.is_some() { "" } else { line.description.as_str() }))
    }

    /// Counters of these CPUs that grew since an earlier snapshot, plus the timer count of traced CPUs. `traced` returns how often the trace contains
    /// the counted event on a CPU.
    pub fn since(
        &self,
        earlier: &Self,
        cpus: &CpuList,
        traced: impl Fn(CpuId, CounterKind<'_>) -> Option<TracedCount>,
    ) -> Vec<CounterGrowth> {
        let mut counters = Vec::new();
        let mut add = |cpu, name: String, growth: u64, counted: Option<CounterKind<'_>>| {
            if !cpus.contains(cpu) || growth == 0 && !CounterGrowth::is_of_timer(&name) {
                return;
            }
            let traced = counted.and_then(|counted| traced(cpu, counted));
            // Even if a CPU had no activity, its timer count shows that the trace was compared.
            if growth > 0 || traced.is_some() {
                counters.push(CounterGrowth { cpu, name, growth, traced });
            }
        };
        if let (Some(now), Some(then)) = (&self.interrupts, &earlier.interrupts) {
            let grown = now.content.since(&then.content);
            for line in &grown.lines {
                let name = name_of(line);
                for (cpu, count) in grown.cpus.iter().zip(&line.counts) {
                    add(*cpu, format!("interrupts/{name}"), *count, Some(CounterKind::Interrupt(line)));
                }
            }
        }
        if let (Some(now), Some(then)) = (&self.softirqs, &earlier.softirqs) {
            let grown = now.content.since(&then.content);
            for (name, counts) in &grown.lines {
                for (cpu, count) in grown.cpus.iter().zip(counts) {
                    add(*cpu, format!("softirqs/{name}"), *count, Some(CounterKind::Softirq(name)));
                }
            }
        }
        if let (Some(now), Some(then)) = (&self.stat, &earlier.stat) {
            for (cpu, times) in &now.cpus {
                let Some(before) = then.cpu(*cpu) else { continue };
                for (name, time) in times.since(before).fields() {
                    add(*cpu, format!("stat/{name}"), time.get().max(0) as u64, None);
                }
            }
        }
        counters.sort_by(|a, b| (a.cpu, &a.name).cmp(&(b.cpu, &b.name)));
        counters
    }
}

/// Users know a device's line by the names of its handlers.
fn name_of(line: &InterruptLine) -> String {
    match &line.device {
        Some(device) if !device.names.is_empty() => device.names.join("+"),
        _ => line.id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_of_the_measured_cpus_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path().join("proc");
        std::fs::create_dir_all(&proc).unwrap();
        let write = |loc: u64, virtio: u64, steal: u64| {
            let interrupts = format!(
                "           CPU0       CPU1\n 36:  5  {virtio}  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n\
                 LOC:  100  {loc}   Local timer interrupts\n"
            );
            std::fs::write(proc.join("interrupts"), interrupts).unwrap();
            let stat = format!(
                "cpu  1 1 1 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1 1 1\ncpu1 1 1 1 1 1 1 1 {steal} 1 1\nctxt 9\nbtime 1\nprocesses 3\n"
            );
            std::fs::write(proc.join("stat"), stat).unwrap();
        };
        write(200, 7, 10);
        let before = KernelCounters::take(root.path());
        write(1200, 9, 12);
        let grown =
            KernelCounters::take(root.path()).since(&before, &"1".parse().unwrap(), |cpu, counted| match counted {
                CounterKind::Interrupt(line) if line.id == "LOC" && cpu == CpuId::new(1) => {
                    Some(TracedCount { least: 998, most: 999 })
                }
                _ => None,
            });
        assert_eq!(grown[0].traced, Some(TracedCount { least: 998, most: 999 }));
        assert_eq!(grown[1].traced, None);
        let grown: Vec<_> = grown.iter().map(|counter| (counter.name.as_str(), counter.growth)).collect();
        assert_eq!(grown[..2], [("interrupts/LOC", 1000), ("interrupts/virtio1-req.0", 2)]);
        assert_eq!(grown[2].0, "stat/steal");
        assert_eq!(grown[2].1 % 2, 0);

        // A CPU without its tick has no growth, and reports whether it was compared.
        let (before, cpus) = (KernelCounters::take(root.path()), "1".parse().unwrap());
        let grown = |traced| KernelCounters::take(root.path()).since(&before, &cpus, |_, _| traced);
        assert_eq!(grown(None), []);
        let timer = CounterGrowth {
            cpu: CpuId::new(1),
            name: "interrupts/LOC".to_owned(),
            growth: 0,
            traced: Some(TracedCount::default()),
        };
        assert_eq!(grown(Some(TracedCount::default())), [timer]);
    }
}
