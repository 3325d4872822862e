//! What one event costs whoever runs where it happens: measured by an event of which becalm decides when it comes.

use std::ffi::CStr;
use std::time::Instant;

use rustix::thread;

use super::error::TracefsError;
use super::instance::Instance;

/// Enables the event that a thread makes by naming itself: once for each system call, on every kernel since 3.4.
const SWITCH: &str = "events/task/task_rename/enable";

/// System calls that are timed together, so that reading the clock does not count.
const TOGETHER: u32 = 100;
/// How often that is repeated with the event; half as often before, and again after.
const REPETITIONS: usize = 20;

impl Instance {
    /// How long the kernel takes to write one event into this instance, in nanoseconds: by how much a system call with an event takes
    /// longer than the same without, medians of many. `None` where the difference drowns in what else goes on. The calling thread
    /// should be on one of the instance's CPUs.
    ///
    /// All of it happens with the code and the buffer in the caches; after other work an event costs more. What has been recorded is
    /// gone then, and recording is off. Fails if the kernel does not have the event, or the instance cannot be
    /// switched.
    pub fn event_cost(&self) -> Result<Option<u64>, TracefsError> {
        let name =
            thread::name().map_err(|error| TracefsError::io("name the thread in", self.folder(), error.into()))?;
        let mut without = batches(&name, REPETITIONS / 2);
        self.start()?;
        let enabled = self.set(SWITCH, "1");
        let traced = batches(&name, REPETITIONS);
        let disabled = self.set(SWITCH, "0");
        self.stop()?;
        without.append(&mut batches(&name, REPETITIONS / 2));
        // Opening it for writing empties it.
        self.set("trace", "")?;
        enabled.and(disabled)?;
        Ok(median(traced)
            .checked_sub(median(without))
            .map(|difference| difference / u64::from(TOGETHER))
            .filter(|ns| *ns > 0))
    }
}

/// How long it takes to set the thread's name a hundred times to what it is, in nanoseconds, so many times.
fn batches(name: &CStr, repetitions: usize) -> Vec<u64> {
    let batch = |_| {
        let start = Instant::now();
        for _ in 0..TOGETHER {
            // Without an effect there would be nothing to measure, and the difference says so.
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
