//! Noise makers of the root tests: each makes one known kind of noise and logs what it did with the counter that the
//! acquisition loop reads. Every maker ends and restores what it changed when it is stopped or dropped.

pub mod deadline;
pub mod faults;
pub mod flood;
pub mod gremlin;
pub mod hotplug;
pub mod ipi;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use becalm_linux::clock::{Counter, Native};
use becalm_linux::sched::pin_current_thread;
use becalm_units::{CpuId, Ticks};

/// Reads the processor's counter.
pub fn now() -> Ticks {
    Ticks::new(Native::read())
}

/// Waits, without sleeping, until the counter has reached a value.
pub fn burn_until(end: u64) -> Ticks {
    loop {
        let now = Native::read();
        if now >= end {
            return Ticks::new(now);
        }
    }
}

/// The limit of real-time threads, lifted until this is dropped. While it holds them back, the CPU idles, and does not tick.
pub struct Unlimited(String);

impl Unlimited {
    const FILE: &str = "/proc/sys/kernel/sched_rt_runtime_us";

    pub fn begin() -> Self {
        let before = fs::read_to_string(Self::FILE).expect("the limit can be read").trim().to_owned();
        fs::write(Self::FILE, "-1").expect("root can lift the limit");
        Self(before)
    }
}

impl Drop for Unlimited {
    fn drop(&mut self) {
        // A failure to restore must be seen, but not hide why the test failed.
        if let Err(error) = fs::write(Self::FILE, &self.0) {
            eprintln!("cannot restore {}: {error}", Self::FILE);
        }
    }
}

/// A thread that does one thing until it is stopped, and hands back its log.
pub struct Maker<L> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<L>>,
}

impl<L: Send + 'static> Maker<L> {
    /// Starts a named thread pinned to a CPU. `body` is told when to stop through the flag.
    pub fn start(name: &str, cpu: CpuId, body: impl FnOnce(&AtomicBool) -> L + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            pin_current_thread(cpu).expect("a maker can be pinned");
            body(&flag)
        });
        Self { stop, thread: Some(thread.expect("a maker's thread starts")) }
    }

    /// Stops the thread and returns its log.
    pub fn stop(mut self) -> L {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("a maker is stopped once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl<L> Drop for Maker<L> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The test is failing already; a second panic would hide why.
            let _ = thread.join();
        }
    }
}
