//! Attribution: divides each detour among the kernel activities that ran in it. Their times add up exactly.
//!
//! # Model
//!
//! The kernel's events of one CPU at a time are replayed into a stack. Its bottom is the thread of the last switch. Above it is the work in
//! that thread (work item, softirq in a thread, page fault), then interrupts and the softirqs that follow them. The top of the stack owns
//! the time. A row of a detour is one instance of a frame, or one stay of a thread on the CPU. It has its own time only: anything nested in
//! it has its own rows. It starts at the instance's first instant in the detour. Activities below the clock's resolution have a row of 0
//! ns.
//!
//! The replay also knows that the measuring thread makes progress at both ends of every step: it is on the CPU, and nothing is above it. So
//! an error in the trace ends with its detour. A step spans `[start, end)`: an event at the instant of its end belongs to the time after
//! it. Each event names the thread on the CPU when it was written.
//!
//! # Who owns what
//!
//! - **The loop itself** on top of the stack, in a step with at least one other row: kind `edge`, by its place. `entry` is the time before
//!   the first kernel event (on a guest mostly the exit to the hypervisor and back), `between` the time between two activities, `exit` the
//!   time after the last (cache refill). `t_min` is subtracted from these first.
//! - **A step without kernel events** that starts at the end of the last kept step, is at most [`AFTERMATH_LONGEST`] long and among the
//!   first [`AFTERMATH_STEPS`] after it: kind `edge`, source `after`: caches and pipelines recover.
//! - **Any other step without kernel events**: kind `unseen`, by its length and by observations outside the trace: see
//!   [`becalm_model::unseen`] and [`Attributor::look_beside`].
//! - **Another thread**: its entry in [`Tasks`]. This includes threads that kept the CPU busy while a limit stopped the loop: without idle
//!   time, the trace does not show the limit.
//! - **Throttling**: if the CPU idles although the loop is runnable, a limit stops the loop. Other threads take nothing from it then. All
//!   time until the loop runs again is one row: kind `throttling`, source `rt_throttling` or `cfs_bandwidth` by the loop's class. The loop
//!   uses up its quota itself, so the row starts with the switch away from it, if that is in the trace. If a real-time thread preempted the
//!   loop, that thread may have reached the limit on real-time threads, so the row starts when the CPU idles.
//! - **The idle thread**, while the loop sleeps: the page fault that the loop sleeps in, or else kind `task`, source `blocked`.
//! - **A page fault** has no end event: it lasts until the next fault of the loop or the end of the step. It is suspended while the loop is
//!   switched away, except for idle time as above. Faults of other threads count as these threads' time, faults within interrupts and
//!   softirqs as theirs.
//! - **A work item** has the detail of the kworker that ran it.
//! - **A non-maskable interrupt** is known from the ends of its handlers: each takes its time from the activity that it interrupted, back
//!   to the previous event at most.
//! - **An exit without entry** (tracing started, events were lost, or a work item moved here from another CPU): its frame gets the time
//!   since the previous event. An exit that matches a frame below the top closes those above.
//! - **An interrupt** gets the name of its first function, that of a high-resolution timer or of a call from another CPU: `tick`,
//!   `timer:hrtimer_wakeup`, `ipi:flush_tlb_func` ([`becalm_model::carried`]). Each further function has its own row of kind `irq`. The
//!   `detail` of both is another root, or else the name of the interrupt: `local_timer`. If neither an interrupt nor the softirq `hrtimer`
//!   runs a timer's function, an interrupt without events does.
//! - **The softirqs `timer` and `hrtimer`** are named in the same way, by the timers that they run: `timer:process_timeout`.
//! - **A tasklet** has no row: its softirq lists it in its `detail`, after [`becalm_model::root::RAN`].
//! - **A missing switch**: if an event was written by another thread than the current one, the switch between them is not in the trace. The
//!   time since the previous event belongs to one of the two: kind `not_traced`, source `missing_switch`, and `detail` names both.
//! - **The host of a guest** also takes the CPU within activities. An activity with nothing nested that takes far longer than usual keeps
//!   the usual time; the rest is `unseen`, `preempted_by_host`: see `host`.
//! - **Lost events**: the time from the previous event to the mark is kind `not_traced`, source `lost_events`, and detours that overlap it
//!   are incomplete. Then the stack restarts with the thread that the next switch leaves, or the loop if no switch follows in the step; a
//!   loop that is off the CPU is assumed to be runnable.
//! - **The end of the trace**: a step that ends after another program changed the trace is one row: kind `not_traced`, source
//!   `trace_changed`. See [`Attributor::end_trace`].
//!
//! # Causes
//!
//! The `detail` of each row of kind `edge` is the *root* of the activity that it belongs to, as `kind:source`: `entry` and `between` belong
//! to the next activity, `exit` and `after` to the previous one. The root of a softirq is the interrupt that it follows, or else the thread
//! that it runs in; if that is not the softirq itself, its `detail` contains it. A timer that a softirq runs has the thread that it wakes
//! as its root, or the work item that a woken kworker runs, or else itself: the tick only raises that softirq. An interrupt is charged to
//! the thread that it wakes or lets run, or to the packets that it passes on, because it disappears with them. Its softirqs have the same
//! root, unless it ran the tick or passed packets on: then these are their root. Every other activity is its own root.
//! [`becalm_model::root`] parses it.
//!
//! # Left out
//!
//! Reading /proc, decoding events, choosing names: the labels of events and the entries of [`Tasks`] are used unchanged.

pub mod books;
mod carried;
pub mod causes;
mod explanations;
mod feed;
mod frame;
mod functions;
mod host;
mod ledger;
mod presence;
mod roots;
mod stack;
mod suspended;
mod tally;
mod threads;

use becalm_model::unseen::Watch;
use becalm_model::{
    Activity, Detour, Event, Happening, Kind, Label, Labels, LoopThread, Pid, Platform, Step, Tasks, not_traced, task,
};
use becalm_units::Nanos;

use self::carried::{CarriedFunction, CarrierEvent, Carriers, Vehicle};
use self::explanations::Explanations;
use self::feed::EventFeed;
use self::frame::{Ending, Frame, What, saturating_sub};
use self::functions::Functions;
pub use self::ledger::{AFTERMATH_LONGEST, AFTERMATH_STEPS};
use self::ledger::{Closed, Entry, Ledger, LedgerRow};
pub use self::presence::{Interruptions, Presence};
use self::roots::RootLabels;
use self::suspended::Suspended;
pub use self::tally::Tally;
use self::threads::Departure;

/// Attributes the detours of one CPU to the activities in them, as steps and events arrive.
///
/// Memory is bounded by the events after the end of a call's last step, plus 64 suspended threads. If steps may be far apart,
/// [`Attributor::advance`] drops the events between them.
#[derive(Debug)]
pub struct Attributor {
    thread: LoopThread,
    names: OwnLabels,
    /// What runs above the current thread.
    stack: Vec<Frame>,
    /// The thread on the CPU, if known. Within a step it always is.
    current: Option<Pid>,
    /// The owner of the time while the stack is empty. Meaningful only within a step.
    base: Base,
    /// The detail of the current thread, for the work items that it runs.
    base_detail: Label,
    /// The root of the current thread's own time; `None` for the loop, which is not noise.
    base_cause: Option<Label>,
    /// The activity that just ended on top of the current thread, if softirqs may follow it.
    raised: Option<Ending>,
    /// Whether the loop was runnable when it last left the CPU.
    loop_runnable: bool,
    /// While a limit stops the loop in a step: the row for all time until it runs again.
    throttling: Option<LedgerRow>,
    suspended: Suspended,
    ledger: Ledger,
    /// Events after the last step's end, in order of time.
    kept: Vec<Event>,
    /// The last event, or the end of the last step.
    newest: Nanos,
    /// The end of the last step.
    completed: Nanos,
    /// Events before this instant have been replayed without knowing the steps.
    advanced: Nanos,
    causes: RootLabels,
    explanations: Explanations,
    carriers: Carriers,
    functions: Functions,
    /// The end of the trace.
    traced_until: Nanos,
    /// The threads around missing switches: the `detail`s of the first such rows.
    missing: Vec<Label>,
    tally: Tally,
}

/// The owner of time with only a thread on the CPU.
#[derive(Clone, Copy, Debug)]
enum Base {
    /// The measuring thread, which is not noise.
    Loop,
    /// Another thread, or the reason why the CPU idles.
    Row(LedgerRow),
}

/// Labels of the attribution itself.
#[derive(Clone, Copy, Debug)]
struct OwnLabels {
    throttling: Label,
    blocked: Label,
    lost: Label,
    missing_switch: Label,
    trace_changed: Label,
    unknown: Label,
    unknown_work: Label,
}

/// Arguments of a call next to the state: threads and names.
struct Context<'a> {
    tasks: &'a Tasks,
    labels: &'a mut Labels,
}

/// More frames than the kernel ever nests: an interrupt on each of the ten softirqs, faults, work. Bounds the stack when exits are lost.
const DEPTH: usize = 64;

/// A softirq within this time after the end of an interrupt or softirq, in a thread's time, counts as following it: the kernel runs a few
/// instructions in between. Later softirqs belong to the thread, because its system calls run some as well.
const WAY_OUT: Nanos = Nanos::new(5_000);

/// The number of thread pairs kept for missing switches.
const MISSING_PAIRS: usize = 8;

/// An instant before every other, for events that have not happened yet.
const LONG_AGO: Nanos = Nanos::new(i64::MIN);

impl Attributor {
    /// For a CPU of this platform, from the start of its run. Interns its own names in `labels`; pass the same `labels` to all later calls.
    pub fn new(thread: LoopThread, platform: Platform, labels: &mut Labels) -> Self {
        let names = OwnLabels {
            throttling: labels.intern(if thread.realtime { "rt_throttling" } else { "cfs_bandwidth" }),
            blocked: labels.intern("blocked"),
            lost: labels.intern(not_traced::LOST_EVENTS),
            missing_switch: labels.intern(not_traced::MISSING_SWITCH),
            trace_changed: labels.intern(not_traced::TRACE_CHANGED),
            unknown: labels.intern(task::UNKNOWN),
            unknown_work: labels.intern("kworker:unknown"),
        };
        Self {
            thread,
            names,
            stack: Vec::with_capacity(DEPTH),
            current: None,
            base: Base::Loop,
            base_detail: Label::EMPTY,
            base_cause: None,
            raised: None,
            loop_runnable: true,
            throttling: None,
            suspended: Suspended::default(),
            ledger: Ledger::new(thread.cpu, platform, labels),
            kept: Vec::new(),
            newest: LONG_AGO,
            completed: LONG_AGO,
            advanced: LONG_AGO,
            causes: RootLabels::default(),
            explanations: Explanations::default(),
            carriers: Carriers::new(labels),
            functions: Functions::default(),
            traced_until: Nanos::MAX,
            missing: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Adds observations from outside the trace since the last call: counters of this CPU between reads, and the steps of its core's
    /// sibling thread. Call it before attributing the steps that they may explain.
    pub fn look_beside(&mut self, watches: &[Watch], sibling: &[Step]) {
        self.explanations.extend(watches, sibling);
    }

    /// Ends the trace at `at`. For steps that end later only the length is known, and later events are ignored.
    pub fn end_trace(&mut self, at: Nanos) {
        self.traced_until = self.traced_until.min(at);
        self.kept.retain(|event| event.time < at);
    }

    /// Takes the steps completed and the events drained since the last call, both in order of time and the steps not overlapping. Appends
    /// the steps' detours and their activities, the latter in order of detour, then of start.
    ///
    /// The events, with those of earlier calls, must be all that happened before the end of the last step: collect the steps first, then
    /// drain the events. The division into calls then makes no difference. Events beyond the last step's end are kept for the next call. An
    /// event older than its predecessor or than the time already attributed is counted as late and otherwise ignored. An empty step, or one
    /// that overlaps an earlier one, is counted as refused and makes no detour. `tasks` must already contain the threads of the switches.
    pub fn attribute(
        &mut self,
        steps: &[Step],
        events: &[Event],
        tasks: &Tasks,
        labels: &mut Labels,
        detours: &mut Vec<Detour>,
        activities: &mut Vec<Activity>,
    ) {
        let context = &mut Context { tasks, labels };
        let mut kept = std::mem::take(&mut self.kept);
        let events = &events[..events.partition_point(|event| event.time < self.traced_until)];
        let mut feed = EventFeed::new(&kept, events);
        for step in steps {
            if step.start < self.completed || step.end <= step.start || step.end.checked_sub(step.start).is_none() {
                self.tally.refused_steps += 1;
                continue;
            }
            self.replay(&mut feed, step.start, context);
            self.resynchronize(step.start);
            self.ledger.open(step.start, step.start < self.advanced);
            if step.end > self.traced_until {
                while feed.next_before(step.end).is_some() {}
                self.unknown(step.start, self.names.trace_changed, Label::EMPTY, step.end, context.labels);
            } else {
                self.own_up_to(step.end, &mut feed, context);
            }
            self.resynchronize(step.end);
            let Closed { detour, rows, preempted } =
                self.ledger.close(self.thread.t_min, &mut self.explanations, &mut self.causes, context.labels);
            self.tally.preempted_by_host += preempted;
            self.tally.incomplete += u64::from(detour.incomplete);
            detours.push(detour);
            activities.extend_from_slice(rows);
            self.completed = step.end;
            self.newest = self.newest.max(step.end);
        }
        // In place: the rest of `kept` moves to its front, the rest of `events` follows.
        let left = feed.rest().count();
        let of_kept = left.saturating_sub(events.len());
        kept.drain(..kept.len() - of_kept);
        for event in &events[events.len() - (left - of_kept)..] {
            if self.is_late(event) || kept.last().is_some_and(|last| event.time < last.time) {
                self.count_late(event);
            } else {
                kept.push(*event);
            }
        }
        self.kept = kept;
    }

    /// Credits the time of the current step to its owners, by the events until its end.
    fn own_up_to(&mut self, end: Nanos, feed: &mut EventFeed<'_>, context: &mut Context<'_>) {
        self.replay(feed, end, context);
        if self.lost_comes_next(feed) {
            self.lose(end, context);
        } else {
            self.meet(self.thread.pid, end, context);
            self.credit(end);
        }
    }

    /// Promises that no more steps start before `until`, so earlier events can be dropped. A step that breaks the promise gets what is left
    /// of its events and is marked incomplete.
    pub fn advance(&mut self, until: Nanos, tasks: &Tasks, labels: &mut Labels) {
        let mut kept = std::mem::take(&mut self.kept);
        let mut feed = EventFeed::new(&kept, &[]);
        self.replay(&mut feed, until, &mut Context { tasks, labels });
        let left = feed.rest().count();
        kept.drain(..kept.len() - left);
        self.kept = kept;
        self.advanced = self.advanced.max(until);
        self.explanations.forget(until);
    }

    /// Replays the events after the last step and returns the totals of the run.
    pub fn finish(&mut self, labels: &mut Labels) -> Tally {
        self.advance(Nanos::MAX, &Tasks::new(), labels);
        self.tally
    }

    /// The threads around missing switches in detours, the first eight pairs: `task:sshd or kthread:rcu_preempt`.
    pub fn missing_switches(&self) -> &[Label] {
        &self.missing
    }

    /// The totals so far, without events kept for the next call.
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Replays the events before `until`.
    fn replay(&mut self, feed: &mut EventFeed<'_>, until: Nanos, context: &mut Context<'_>) {
        while let Some(event) = feed.next_before(until) {
            if self.is_late(event) {
                self.count_late(event);
                continue;
            }
            if let Happening::Lost { count } = event.what {
                self.count_lost(count);
                self.lose(event.time, context);
                if self.ledger.is_open() {
                    let base = feed.thread_of_next(until).unwrap_or(self.thread.pid);
                    self.enter(base, event.time, context);
                }
            } else {
                self.tally.events += 1;
                let throttled = self.ledger.is_open() && self.throttles(event, feed, until);
                self.happen(event, throttled, || feed.coming(until), context);
            }
            self.newest = event.time;
        }
    }

    /// Whether the events between the last one and the next one were lost. Skips late events.
    fn lost_comes_next(&mut self, feed: &mut EventFeed<'_>) -> bool {
        loop {
            match feed.peek() {
                Some(event) if self.is_late(event) => self.count_late(event),
                Some(event) => return matches!(event.what, Happening::Lost { .. }),
                None => return false,
            }
            feed.skip();
        }
    }

    /// Whether the time of an event has been processed already.
    fn is_late(&self, event: &Event) -> bool {
        event.time < self.newest || event.time < self.advanced
    }

    const fn count_late(&mut self, event: &Event) {
        self.tally.late_events += 1;
        match event.what {
            Happening::Lost { count } => self.count_lost(count),
            _ => self.tally.events += 1,
        }
    }

    const fn count_lost(&mut self, count: Option<u64>) {
        self.tally.lost_gaps += 1;
        self.tally.lost_events = self.tally.lost_events.saturating_add(match count {
            Some(count) => count,
            None => 1,
        });
    }

    /// Credits the time before the event and applies it to the stack. `throttled` says whether a limit stops the loop from now on; `coming`
    /// gives the next events of the step.
    fn happen<'e, I: Iterator<Item = &'e Event>>(
        &mut self,
        event: &Event,
        throttled: bool,
        coming: impl Fn() -> I,
        context: &mut Context<'_>,
    ) {
        let at = event.time;
        match event.what {
            Happening::Switch { prev, .. } => self.meet(prev, at, context),
            Happening::Nmi { delta, .. } => self.meet(event.thread, self.nmi_start(delta, at), context),
            _ => self.meet(event.thread, at, context),
        }
        match event.what {
            Happening::IrqEntry { source, detail } => {
                self.begin_carrier(Vehicle::irq(source, detail), at, coming(), context);
            }
            Happening::IrqExit { source, detail } => self.pop(What::Irq, source, detail, at, context),
            Happening::SoftirqEntry { source } => self.begin_carrier(Vehicle::softirq(source), at, coming(), context),
            Happening::SoftirqExit { source } => self.pop(What::Softirq, source, Label::EMPTY, at, context),
            Happening::WorkStart { source, work } => {
                if let Some(stale) = self.stale_work() {
                    self.credit(at);
                    self.abandon_from(stale);
                }
                self.begin(What::Work(work), source, self.base_detail, at, context.labels);
            }
            Happening::WorkEnd { source, work } => {
                let source = if source == Label::EMPTY { self.names.unknown_work } else { source };
                self.pop(What::Work(work), source, Label::EMPTY, at, context);
            }
            Happening::Nmi { source, delta } => self.nmi(source, delta, at, context),
            Happening::FunctionEntry { source, root, carrier, interrupt, .. } => {
                self.enter_function(
                    CarriedFunction { name: source, root },
                    CarrierEvent { carrier, interrupt },
                    at,
                    coming(),
                    context,
                );
            }
            Happening::FunctionExit { carrier, interrupt } => {
                self.leave_function(CarrierEvent { carrier, interrupt }, at, context)
            }
            Happening::Fault { source, detail } => self.fault(source, detail, at, context),
            Happening::Switch { prev, prev_state, next } => {
                let left = Departure { thread: prev, is_runnable: prev_state.is_runnable() };
                self.switch(left, throttled, next, at, context);
            }
            // Already handled at the entry of the interrupt, by lookahead.
            Happening::Waking { .. }
            | Happening::Woken { .. }
            | Happening::Life(_)
            | Happening::CallQueued { .. }
            | Happening::InterruptSent { .. }
            | Happening::WorkQueued { .. }
            | Happening::SoftirqRaised { .. } => self.credit(at),
            Happening::Lost { .. } => {}
        }
    }

    /// Records the time from `start`, up to which all is credited, until `at` as not traced.
    fn unknown(&mut self, start: Nanos, source: Label, detail: Label, at: Nanos, labels: &mut Labels) {
        let cause = self.causes.label(Kind::NotTraced, source, labels);
        let row = self.ledger.row(Entry { start, kind: Kind::NotTraced, source, detail, cause });
        self.ledger.credit(row, at);
        self.ledger.end(cause);
    }

    /// Credits the time up to `at` to the top of the stack.
    fn credit(&mut self, at: Nanos) {
        if !self.ledger.is_open() || at == self.ledger.credited() {
            return;
        }
        if let Some(row) = self.throttling {
            if let Some(frame) = self.stack.last_mut() {
                frame.in_detour = true;
            }
            self.ledger.credit(row, at);
            return;
        }
        match (self.stack.last_mut(), self.base) {
            (Some(frame), _) => {
                let row = match frame.row {
                    Some(row) => row,
                    // It was restored from an earlier detour with its thread.
                    None => self.ledger.row(Entry {
                        start: self.ledger.credited(),
                        kind: frame.what.kind(),
                        source: frame.named.source,
                        detail: if let What::Work(_) = frame.what { self.base_detail } else { frame.named.detail },
                        cause: frame.named.cause,
                    }),
                };
                frame.row = Some(row);
                frame.in_detour = true;
                self.ledger.credit(row, at);
            }
            (None, Base::Row(row)) => self.ledger.credit(row, at),
            (None, Base::Loop) => self.ledger.credit_loop(at),
        }
    }

    /// The start of a non-maskable interrupt handler that took `delta` and ended now; the previous event at the earliest.
    fn nmi_start(&self, delta: Nanos, at: Nanos) -> Nanos {
        saturating_sub(at, delta.max(Nanos::ZERO)).max(self.since())
    }

    fn nmi(&mut self, source: Label, delta: Nanos, at: Nanos, context: &mut Context<'_>) {
        let start = self.nmi_start(delta, at);
        self.raised = None;
        if self.throttling.is_some() {
            self.credit(at);
        } else if self.ledger.is_open() {
            self.credit(start);
            let cause = self.causes.label(Kind::Nmi, source, context.labels);
            let entry = Entry { start, kind: Kind::Nmi, source, detail: Label::EMPTY, cause };
            let row = self.ledger.row(entry);
            self.ledger.credit(row, at);
            self.ledger.end(cause);
        } else {
            self.tally.below_threshold(saturating_sub(at, start));
        }
    }

    fn fault(&mut self, source: Label, detail: Label, at: Nanos, context: &mut Context<'_>) {
        self.credit(at);
        self.raised = None;
        let on_thread_alone = matches!(self.stack.last(), None | Some(Frame { what: What::Fault, .. }));
        if self.current == Some(self.thread.pid) && on_thread_alone {
            // The previous one has ended, or the thread could not have caused this one.
            self.stack.pop();
            self.begin(What::Fault, source, detail, at, context.labels);
        }
    }

    /// The time of the previous event, or the step's start if that is later.
    const fn since(&self) -> Nanos {
        if self.ledger.is_open() { self.ledger.credited() } else { self.newest }
    }

    /// Events were lost until `at`: discards the state.
    fn lose(&mut self, at: Nanos, context: &mut Context<'_>) {
        if self.ledger.is_open() {
            self.ledger.mark_incomplete();
            let since = self.ledger.credited();
            if at > since {
                self.unknown(since, self.names.lost, Label::EMPTY, at, context.labels);
            }
            self.ledger.end(self.causes.label(Kind::NotTraced, self.names.lost, context.labels));
        }
        self.stack.clear();
        self.suspended.clear();
        self.throttling = None;
        self.current = None;
        self.base_cause = None;
        self.raised = None;
        self.loop_runnable = true;
    }

    /// The loop read its counter: it is on the CPU, and nothing is above it.
    fn resynchronize(&mut self, at: Nanos) {
        let loop_pid = self.thread.pid;
        if let Some(current) = self.current
            && current != loop_pid
        {
            self.tally.unmatched_switches += 1;
            self.leave(current, at);
            self.suspended.resume(loop_pid, &mut self.stack, self.ledger.number());
        }
        self.abandon_from(0);
        self.throttling = None;
        self.current = Some(loop_pid);
        self.base = Base::Loop;
        self.base_detail = Label::EMPTY;
        self.base_cause = None;
        self.raised = None;
        self.loop_runnable = true;
    }
}
