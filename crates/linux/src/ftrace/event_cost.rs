//! Measures the cost of one event for the thread that causes it, with an event that becalm can trigger.

use std::ffi::CStr;
use std::time::Instant;

use rustix::thread;

use super::error::TracefsError;
use super::instance::Instance;

/// The event of a thread renaming itself: one per system call, on every kernel since 3.4.
const EVENT: &str = "task_rename";
/// Enables it.
const SWITCH: &str = "events/task/task_rename/enable";

/// System calls timed together, which makes the cost of reading the clock negligible.
const TOGETHER: u32 = 100;
/// The number of repetitions with the event; half as many before, and again after.
const REPETITIONS: usize = 20;

impl Instance {
    /// The time that the kernel takes to write one event into this instance, in nanoseconds: the extra time of a system call with an event, compared
    /// with one without, medians of many. `None` if other activity hides the difference. The calling thread should be on one of the instance's CPUs.
    ///
    /// Code and buffer are in the caches here; after other work, an event costs more. Earlier recorded events are lost, and recording is off
    /// afterwards. Fails if the kernel does not have the event, or the instance cannot be switched.
    pub fn event_cost(&self) -> Result<Option<u64>, TracefsError> {
        let name =
            thread::name().map_err(|error| TracefsError::io("name the thread in", self.folder(), error.into()))?;
        // An instance may record this event anyway.
        let records = self.enabled().iter().any(|event| event.name == EVENT);
        self.set(SWITCH, "0")?;
        let mut without = batches(&name, REPETITIONS / 2);
        self.start()?;
        let enabled = self.set(SWITCH, "1");
        let traced = batches(&name, REPETITIONS);
        let disabled = self.set(SWITCH, "0");
        self.stop()?;
        without.append(&mut batches(&name, REPETITIONS / 2));
        if records {
            self.set(SWITCH, "1")?;
        }
        // Opening it for writing empties it.
        self.set("trace", "")?;
        enabled.and(disabled)?;
        Ok(median(traced)
            .checked_sub(median(without))
            .map(|difference| difference / u64::from(TOGETHER))
            .filter(|ns| *ns > 0))
    }
}

/// The times to set the thread's name to its current value a hundred times, in nanoseconds, for this many repetitions.
fn batches(name: &CStr, repetitions: usize) -> Vec<u64> {
    let batch = |_| {
        let start = Instant::now();
        for _ in 0..TOGETHER {
            // A failure shows as no difference.
            let _ = thread::set_name(name);
        }
        start.elapsed().as_nanos() as u64
    };
    (0..repetitions).map(batch).collect()
}

fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}
