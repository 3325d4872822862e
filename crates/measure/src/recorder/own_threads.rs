//! becalm's own threads among those in the kernel's events.

use std::collections::BTreeMap;
use std::sync::Arc;

use becalm_linux::clock::Counter;
use becalm_linux::ftrace::Marks;
use becalm_linux::procfs::namespace;
use becalm_linux::sched::{self, AffinityGuard};
use becalm_model::{Pid, warning};

use super::prepared::Prepared;
use crate::loops::{Lanes, Loop};

/// Advice if the threads' numbers in the trace cannot be found.
const ADVICE: &str = "let becalm share the host's PID namespace (hostPID: true, --pid=host)";

impl<C: Counter, L: Loop> Prepared<C, L> {
    /// The marks that our threads leave in the kernel's trace; `None` if the trace uses the same thread numbers as this process, or if nothing is
    /// traced. If marks are impossible, this gives up the trace with a warning, because the trace would list becalm among the causes.
    pub(super) fn open_marks(&mut self) -> Option<Arc<Marks>> {
        if !namespace::has_own_numbers(&self.plan.root) {
            return None;
        }
        let opened = self.tracing.as_ref()?.instance.open_marks();
        match opened {
            Ok(marks) => Some(Arc::new(marks)),
            Err(error) => self.give_trace_up(&error.to_string()),
        }
    }

    /// Names becalm's own threads. Other threads of this process are not becalm's: a benchmark or an MPI rank may record itself.
    pub(super) fn name_own_threads(&mut self, lanes: &mut Lanes<L>, marks: Option<&Marks>) {
        let numbers = marks.and_then(|marks| match self.numbers(marks) {
            Ok(numbers) if lanes.iter().all(|lane| numbers.contains_key(&lane.pid().0)) => Some(numbers),
            Ok(_) => self.give_trace_up("not every thread that made itself known is in the trace"),
            Err(why) => self.give_trace_up(&why),
        });
        if let Some(numbers) = &numbers {
            self.names.translate_own(numbers.clone());
        }
        self.names.set_own(Pid(sched::current_tid()));
        for lane in lanes.iter() {
            self.names.set_own(lane.pid());
        }
        if let Ok(janitor) = &self.guard {
            self.names.set_own(Pid(janitor.pid()));
        }
        if let Some(numbers) = &numbers {
            lanes.renumber(numbers);
        }
    }

    /// The kernel's numbers of the threads that left a mark, including this one.
    fn numbers(&self, marks: &Marks) -> Result<BTreeMap<i32, i32>, String> {
        let Some(tracing) = &self.tracing else { return Ok(BTreeMap::new()) };
        // The trace does not cover other CPUs.
        let there = AffinityGuard::keep_on(&self.cpus).map_err(|error| error.to_string())?;
        marks.mark().map_err(|error| format!("cannot write a mark into the trace: {error}"))?;
        drop(there);
        tracing.instance.numbers().map_err(|error| error.to_string())
    }

    fn give_trace_up<T>(&mut self, why: &str) -> Option<T> {
        self.tracing = None;
        let why = format!(
            "in this PID namespace threads have other numbers than in the kernel's events, and becalm cannot find its own: {why}; {ADVICE}"
        );
        self.warnings.push(warning::no_tracing(&why));
        None
    }
}
