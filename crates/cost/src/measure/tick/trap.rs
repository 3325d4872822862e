//! The trap: kernel entry and exit, by a system call that does nothing.

use becalm_linux::clock::{Counter, MonotonicRaw};
use becalm_linux::placed::Thread;
use becalm_linux::probe::getpid;
use becalm_linux::sched::SchedError;
use becalm_units::CpuId;

use crate::documents::tick::CellResult;

/// Calls per batch: long compared with reading the clock, short compared with the time between interrupts.
const BATCH: u64 = 500;
/// Number of batches. Fewer than half are interrupted, so the median is not affected.
const BATCHES: usize = 401;

/// The mean time of a system call that does nothing, on a CPU. Fails if no thread can run there.
pub fn trap(cpu: CpuId) -> Result<CellResult, SchedError> {
    Thread { name: "becalm/trap".to_owned(), cpu, policy: None }.run(|| {
        let mut batches: Vec<u64> = (0..BATCHES).map(|_| batch()).collect();
        batches.sort_unstable();
        let call_ns = batches[BATCHES / 2] as f64 / BATCH as f64;
        CellResult::Trap { calls: BATCH * BATCHES as u64, call_ns }
    })
}

fn batch() -> u64 {
    let before = MonotonicRaw::read();
    for _ in 0..BATCH {
        std::hint::black_box(getpid());
    }
    MonotonicRaw::read() - before
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_linux::sched;

    #[test]
    fn a_system_call_takes_longer_than_a_function_and_less_than_a_detour() {
        let cpu = sched::current_cpu().unwrap();
        let CellResult::Trap { calls, call_ns } = trap(cpu).unwrap() else { panic!("it is the cell of a trap") };
        assert_eq!(calls, BATCH * BATCHES as u64);
        assert!((20.0..20_000.0).contains(&call_ns), "{call_ns}");
    }
}
