//! A recording's setup before its loops start.

use std::marker::PhantomData;
use std::sync::Arc;

use becalm_linux::clock::{self, Calibration, Counter};
use becalm_linux::ftrace::Faults;
use becalm_linux::janitor::Janitor;
use becalm_linux::memory;
use becalm_linux::rights::Need;
use becalm_linux::sched::{self, AffinityGuard};
use becalm_model::node::{ClockDoc, Warning};
use becalm_model::warning;
use becalm_units::{CpuList, Nanos};

use super::unchanged::Unchanged;
use super::{Outside, Recording};
use crate::error::RecordError;
use crate::loops::{LOOP_NAME, Loop, StepRing};
use crate::machine::{self, Lookout};
use crate::plan::RecordPlan;
use crate::sink::Sink;
use crate::trace::{Names, RequestTrace, TraceRequest, Tracing, name_all_threads};

/// How long the counter's rate is measured before the start.
const CALIBRATION: Nanos = Nanos::from_millis(100);

/// The highest real-time priority.
const HIGHEST: u8 = 99;

/// A recording that is ready to start.
pub struct Prepared<C, L: Loop> {
    pub(super) plan: RecordPlan,
    pub(super) kind: Arc<L>,
    pub(super) cpus: CpuList,
    pub(super) calibration: Calibration,
    pub(super) clock: ClockDoc,
    /// `None` if the kernel is not traced.
    pub(super) tracing: Option<Tracing>,
    /// The trace of requests, if the causes of activities are recorded.
    pub(super) requests: Option<RequestTrace>,
    /// Whether the trace is still as it was set up.
    pub(super) unchanged: Unchanged,
    /// One per CPU, in ascending order.
    pub(super) rings: Vec<Arc<L::Ring>>,
    /// The guard process, or why there is none.
    pub(super) guard: Result<Arc<Janitor>, String>,
    /// Counters read from outside of the loops.
    pub(super) lookout: Lookout,
    pub(super) names: Names,
    pub(super) warnings: Vec<Warning>,
    /// The CPUs that the process may use and that have no loop.
    pub(super) free: CpuList,
    /// The process's original CPUs.
    pub(super) allowed: CpuList,
    counter: PhantomData<C>,
}

impl<C: Counter, L: Loop> Prepared<C, L> {
    /// Selects the CPUs, measures the counter, allocates the rings and sets up the trace.
    pub fn prepare<E>(
        kind: L,
        plan: RecordPlan,
        guard: Result<Arc<Janitor>, String>,
        why_not_native: Option<String>,
    ) -> Result<Self, RecordError<E>> {
        let mut warnings = Vec::new();
        warnings.extend(why_not_native.map(|why| warning::slow_clock(&why)));
        kind.check()?;
        let selection = machine::select_cpus(&plan.root, plan.cpus.as_ref())?;
        if !selection.left_out.is_empty() {
            warnings.push(warning::left_out(&selection.left_out));
        }
        let cpus = selection.cpus;
        let allowed = sched::allowed_cpus()?;
        let free = allowed.without(&cpus);
        if free.is_empty() {
            if plan.policy.is_realtime() && plan.policy.priority() >= HIGHEST {
                return Err(RecordError::NothingAbove);
            }
            warnings.push(warning::no_free_cpu());
        }
        let calibration = clock::calibrate::<C>(CALIBRATION)?;
        let clock = clock_document::<C>(&cpus, calibration, &mut warnings);
        let near = |cpu| becalm_linux::sysfs::cpu::node(&plan.root, cpu);
        let rings = cpus.iter().map(|cpu| L::Ring::with_bytes(plan.ring_bytes, near(cpu)).map(Arc::new));
        let rings = rings.collect::<Result<Vec<_>, _>>()?;
        let mut names = Names::new(&plan.root);
        let platform = machine::describe(&plan.root).platform();
        let (lookout, no_smis) = Lookout::open(&plan.root, &cpus, &free, platform);
        let mut tracing = match plan.sources {
            true => {
                let request = TraceRequest::for_loops(&plan, &cpus, C::NAME, Faults::Of(LOOP_NAME));
                Tracing::set_up(&request, &guard, &mut warnings)
            }
            false => None,
        };
        if let (Some(tracing), Some(why)) = (&mut tracing, no_smis) {
            tracing
                .doc
                .missing
                .push(format!("system management interrupts ({why}): they count as unseen, source long"));
        }
        let requests = plan.causes.as_ref().zip(tracing.as_mut()).and_then(|(directory, tracing)| {
            let symbols = tracing.symbols.clone();
            let main = TraceRequest { symbols, ..TraceRequest::for_loops(&plan, &cpus, C::NAME, Faults::None) };
            let requests = RequestTrace::set_up(&main, directory, &guard, &mut warnings)?;
            tracing.doc.causes = Some(requests.doc());
            name_all_threads(&plan.root, &mut names);
            Some(requests)
        });
        let kind = Arc::new(kind);
        let counter = PhantomData;
        Ok(Self {
            plan,
            kind,
            cpus,
            calibration,
            clock,
            tracing,
            requests,
            unchanged: Unchanged::since(Nanos::ZERO),
            rings,
            guard,
            lookout,
            names,
            warnings,
            free,
            allowed,
            counter,
        })
    }

    /// Runs the loops and collects from them until the recording ends.
    pub fn run<S: Sink>(mut self, outside: Outside<'_, S>) -> Result<Recording, RecordError<S::Error>> {
        if self.rings.iter().any(|ring| !ring.is_locked()) | !memory::lock_current_pages() {
            self.warnings.push(warning::not_locked(Need::LockedMemory.advice()));
        }
        // Moves away before the loops exist, to leave their calibration undisturbed.
        let apart = AffinityGuard::keep_on(&self.free)?;
        let result = self.run_loops(outside);
        memory::unlock_pages();
        drop(apart);
        result
    }
}

/// The counter's part of the document. Warns if the counters of CPUs differ.
fn clock_document<C: Counter>(cpus: &CpuList, calibration: Calibration, warnings: &mut Vec<Warning>) -> ClockDoc {
    let agreement = clock::compare_cpus::<C>(cpus, calibration.rate);
    let resolution = clock::resolution::<C>(calibration.rate);
    // Counters that advance in jumps may differ by one jump at any instant without being wrong.
    if agreement.proven > resolution {
        warnings.push(warning::counters_differ(agreement.proven));
    }
    ClockDoc {
        counter: C::NAME.to_owned(),
        rate_hz: calibration.rate.hz(),
        rate_error_ratio: calibration.error_ratio,
        resolution_ns: resolution,
        cross_cpu_ns: (agreement.compared > 0).then_some(agreement.offset),
        ..ClockDoc::default()
    }
}
