//! A thread, as far as its wake-ups and its work items are concerned.

use becalm_model::Label;

use super::chain::Chain;
use super::{Request, Row};

/// The work item that a kworker executes.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenWork {
    pub address: u64,
    pub row: Row,
    /// The cause of requests made in it.
    pub inner: Chain,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WokenThread {
    /// Its name since an event named it. Other events are decoded ahead of their time.
    pub name: Option<Label>,
    /// The wake-up that made it run or wait.
    pub woken: Option<Request>,
    /// A wake-up while it has the CPU, which counts only if it then sleeps.
    pending: Option<Request>,
    has_cpu: bool,
    /// Whether it has had the CPU since it was woken.
    has_run: bool,
    /// Whether it waits for a CPU because it was preempted.
    is_preempted: bool,
    /// Whether it has slept or was woken since the trace started.
    pub has_slept: bool,
    pub work: Option<OpenWork>,
}

impl WokenThread {
    /// A new thread.
    pub fn named(name: Label) -> Self {
        Self { name: Some(name), ..Self::default() }
    }

    pub fn wake(&mut self, request: Request) {
        self.has_slept = true;
        if self.has_cpu {
            self.pending = Some(request);
        } else if !self.is_preempted {
            (self.woken, self.has_run) = (Some(request), false);
        }
    }

    /// It gets a CPU. Returns whether that is the first time since it was woken.
    pub const fn arrive(&mut self) -> bool {
        (self.has_cpu, self.is_preempted, self.pending) = (true, false, None);
        !std::mem::replace(&mut self.has_run, true)
    }

    /// It leaves the CPU.
    pub const fn leave(&mut self, is_runnable: bool) {
        (self.has_cpu, self.is_preempted) = (false, is_runnable);
        let pending = self.pending.take();
        self.has_slept |= !is_runnable;
        if !is_runnable {
            (self.woken, self.has_run) = (pending, false);
        }
    }
}
