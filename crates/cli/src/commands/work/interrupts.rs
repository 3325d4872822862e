//! Timer interrupts added to those of the CPUs during the loops.

use std::path::Path;

use becalm_command::messages::say;
use becalm_linux::perf::{CpuClock, SampleLimits};
use becalm_units::CpuList;
use becalm_units::fault::{Context, Result, UsageError};

/// Refuses rates that the kernel would throttle, before the measurement. Fails if the kernel has no perf events, or its limit is below a
/// rate.
pub fn check_rates(root: &Path, rates: &[u32]) -> Result<()> {
    let Some(highest) = rates.iter().copied().max().filter(|rate| *rate > 0) else { return Ok(()) };
    let limits = limits(root)?;
    if highest > limits.max_sample_rate_hz {
        let limit = limits.max_sample_rate_hz;
        return Err(UsageError::new(format!(
            "{highest} interrupts a second exceed the kernel's limit, kernel.perf_event_max_sample_rate = {limit}: it would \
             throttle them without a word"
        ))
        .into());
    }
    Ok(())
}

fn limits(root: &Path) -> Result<SampleLimits> {
    SampleLimits::read(root)?.context("this kernel has no perf events, which becalm uses to add interrupts")
}

/// Causes interrupts until dropped.
pub struct AddedInterrupts {
    clocks: Vec<CpuClock>,
    limits: SampleLimits,
}

impl AddedInterrupts {
    /// Adds this many interrupts per second to each of the CPUs; `None` for 0.
    pub fn begin(root: &Path, cpus: Option<&CpuList>, added_hz: u32) -> Result<Option<Self>> {
        if added_hz == 0 {
            return Ok(None);
        }
        let limits = limits(root)?;
        let clocks = cpus.into_iter().flat_map(CpuList::iter).map(|cpu| CpuClock::start(cpu, added_hz));
        Ok(Some(Self { clocks: clocks.collect::<Result<_, _>>()?, limits }))
    }

    /// Stops the interrupts and restores the kernel's limit. The kernel lowers that by itself if its handler takes long; then there were
    /// fewer interrupts than requested.
    pub fn end(self, root: &Path) {
        drop(self.clocks);
        match self.limits.restore(root) {
            Ok(None) => {}
            Ok(Some(lowered_hz)) => say(format_args!(
                "the kernel lowered kernel.perf_event_max_sample_rate to {lowered_hz} meanwhile; it was put back to {}",
                self.limits.max_sample_rate_hz
            )),
            Err(error) => say(format_args!("{error}")),
        }
    }
}
