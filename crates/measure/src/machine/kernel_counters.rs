//! Growth of the kernel's own counters over a run: interrupts, softirqs, context switches, and the time that the
//! hypervisor says it took. They bound the sources where the trace cannot be had, and check it where it can.

use std::path::Path;

use becalm_linux::procfs::interrupts::Interrupts;
use becalm_linux::procfs::softirqs::Softirqs;
use becalm_linux::procfs::stat::Stat;
use becalm_model::node::CounterGrowth;
use becalm_units::CpuList;

/// The counters at one instant, as far as they could be read.
#[derive(Clone, Debug, Default)]
pub struct KernelCounters {
    interrupts: Option<Interrupts>,
    softirqs: Option<Softirqs>,
    stat: Option<Stat>,
}

impl KernelCounters {
    /// Reads them below a root.
    #[must_use]
    pub fn take(root: &Path) -> Self {
        Self {
            interrupts: Interrupts::read(root).ok(),
            softirqs: Softirqs::read(root).ok(),
            stat: Stat::read(root).ok(),
        }
    }

    /// Whether any of them could be read.
    #[must_use]
    pub const fn is_some(&self) -> bool {
        self.interrupts.is_some() || self.softirqs.is_some() || self.stat.is_some()
    }

    /// What grew on these CPUs since an earlier snapshot.
    #[must_use]
    pub fn since(&self, earlier: &Self, cpus: &CpuList) -> Vec<CounterGrowth> {
        let mut counters = Vec::new();
        let mut add = |cpu, name: String, growth: u64| {
            if growth > 0 && cpus.contains(cpu) {
                counters.push(CounterGrowth { cpu, name, growth });
            }
        };
        if let (Some(now), Some(then)) = (&self.interrupts, &earlier.interrupts) {
            let grown = now.since(then);
            for line in &grown.lines {
                // A device's line is known to its users by its handlers' names.
                let name = match &line.device {
                    Some(device) if !device.names.is_empty() => device.names.join("+"),
                    _ => line.id.clone(),
                };
                for (cpu, count) in grown.cpus.iter().zip(&line.counts) {
                    add(*cpu, format!("interrupts/{name}"), *count);
                }
            }
        }
        if let (Some(now), Some(then)) = (&self.softirqs, &earlier.softirqs) {
            let grown = now.since(then);
            for (name, counts) in &grown.lines {
                for (cpu, count) in grown.cpus.iter().zip(counts) {
                    add(*cpu, format!("softirqs/{name}"), *count);
                }
            }
        }
        if let (Some(now), Some(then)) = (&self.stat, &earlier.stat) {
            for (cpu, times) in &now.cpus {
                let Some(before) = then.cpu(*cpu) else { continue };
                for (name, time) in times.since(before).fields() {
                    add(*cpu, format!("stat/{name}"), time.get().max(0) as u64);
                }
            }
        }
        counters.sort_by(|a, b| (a.cpu, &a.name).cmp(&(b.cpu, &b.name)));
        counters
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
        let grown = KernelCounters::take(root.path()).since(&before, &"1".parse().unwrap());
        let grown: Vec<_> = grown.iter().map(|counter| (counter.name.as_str(), counter.growth)).collect();
        assert_eq!(grown[..2], [("interrupts/LOC", 1000), ("interrupts/virtio1-req.0", 2)]);
        assert_eq!(grown[2].0, "stat/steal");
        assert_eq!(grown[2].1 % 2, 0);
    }
}
