//! Chooses the quietest CPU by a short look at the kernel's counters, which disturbs none.

use std::path::Path;
use std::thread;
use std::time::Duration;

use becalm_linux::procfs::interrupts::Interrupts;
use becalm_linux::procfs::stat::{CpuTimes, Stat};
use becalm_linux::sched::allowed_cpus;
use becalm_units::fault::{Context, Result};
use becalm_units::{CpuId, CpuList, Nanos};

/// The duration of the look.
const LOOK: Duration = Duration::from_millis(500);

/// The allowed CPU that was busy for the least time; among equal ones the one with the fewest interrupts, then the last one, because the first has
/// most unbound work. Fails if the kernel does not report the CPUs' times.
pub fn quietest(root: &Path) -> Result<CpuList> {
    let allowed = allowed_cpus().context("cannot tell which CPUs may be used")?;
    let look = || -> Result<(Stat, Interrupts)> { Ok((Stat::read(root)?, Interrupts::read(root)?)) };
    let before = look()?;
    thread::sleep(LOOK);
    let after = look()?;
    let grown = after.1.since(&before.1);
    let of_cpu = |cpu: CpuId| {
        let times = after.0.cpu(cpu)?.since(before.0.cpu(cpu)?);
        let interrupts = grown.lines.iter().filter_map(|line| grown.count(&line.id, cpu)).sum::<u64>();
        Some((busy(&times), interrupts, std::cmp::Reverse(cpu)))
    };
    let quietest =
        allowed.iter().filter_map(of_cpu).min().context("the kernel tells nothing of the CPUs that may be used")?;
    Ok([quietest.2.0].into_iter().collect())
}

/// All time that is not idle.
fn busy(times: &CpuTimes) -> Nanos {
    times.user + times.nice + times.system + times.irq + times.softirq + times.steal
}
