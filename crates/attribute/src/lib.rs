//! Attribution: splits each detour over the kernel activities that ran in it, so that the books close.
//!
//! # Model
//!
//! One CPU at a time, the kernel's events are replayed into a stack. At its bottom is the thread that the last switch
//! brought in, above it what runs in that thread (work item, softirq in a thread, page fault), above that interrupts
//! and the softirqs that follow them. At each instant the top of the stack owns the time. A row of a detour is one
//! instance of a frame, or one stay of a thread on the CPU, with its own time only: what was nested in it has its own
//! rows. It starts at the instance's first instant in the detour. Something that happened but took less than the
//! clock resolves has a row of 0 ns.
//!
//! What the replay knows beside the events: at both ends of every step the measuring thread makes progress, so that
//! there it is the thread on the CPU and nothing is above it. An error in the trace ends with the detour it fell in.
//! A step spans `[start, end)`: an event at the instant of its end belongs to what follows.
//!
//! # Who owns what
//!
//! - **The loop itself** on top of the stack, in a step with at least one row: `edge` (entry, exit, cache refill, and
//!   what a hypervisor took *beside* kernel events, which cannot be told from these), minus `t_min`.
//! - **A step without kernel events**: one row `unseen`.
//! - **Another thread**: what [`Tasks`] says of it. So also a thread of lower class that a bandwidth limit let in
//!   while a real-time loop was runnable: the limit shows as the idle time beside it.
//! - **The idle thread**, while the loop is runnable: `throttling`, source `rt_throttling` or `cfs_bandwidth` by the
//!   loop's class. While the loop sleeps: the page fault in which it sleeps, or else kind `task`, source `blocked`.
//! - **A page fault** has no event at its end: it lasts until the next fault of the loop or the end of the step. While
//!   the loop is switched away it is suspended, but for idle time as above. Faults of other threads are part of these
//!   threads' time, faults within interrupts and softirqs part of theirs.
//! - **A work item** has the detail of the kworker that ran it.
//! - **A non-maskable interrupt** is known from its handlers' ends: each takes its time from what it interrupted, back
//!   to the event before at most.
//! - **An exit without entry** (tracing began, or events were lost, or a work item came from another CPU): its frame
//!   gets the time since the event before. An exit that matches a frame below the top closes those above. A switch
//!   from another thread than the one that should run gives the time since the event before to that thread.
//! - **Lost events**: from the event before until the mark, nobody can know: kind `unseen`, source `lost_events`, and
//!   the detours that overlap are incomplete. Then the stack starts afresh, on the thread that the next switch leaves,
//!   or the loop if no switch follows in the step; a loop that is away is taken to be runnable.
//!
//! # Left out
//!
//! Reading /proc, decoding events, choosing names: the labels of events and the entries of [`Tasks`] are taken as
//! they come.

mod feed;
mod frame;
mod ledger;
mod suspended;
mod tally;

use becalm_model::{Activity, Detour, Event, Happening, Kind, Label, Labels, LoopThread, Pid, Step, Tasks, task};
use becalm_units::Nanos;

use self::feed::EventFeed;
use self::frame::{Frame, What, saturating_sub};
use self::ledger::{Ledger, LedgerRow, RestNames};
use self::suspended::Suspended;
pub use self::tally::Tally;

/// Attributes the detours of one CPU, as steps and events come in.
///
/// Memory is bounded by the events that a call gives after the end of its last step, plus 64 suspended threads; where
/// steps may be far apart, [`Attributor::advance`] lets go of the events between them.
#[derive(Debug)]
pub struct Attributor {
    thread: LoopThread,
    names: OwnLabels,
    /// What runs above the current thread.
    stack: Vec<Frame>,
    /// Who is on the CPU, where that is known. Within a step it always is.
    current: Option<Pid>,
    /// Whose time it is while the stack is empty. Only of meaning within a step.
    base: Base,
    /// The detail of the current thread, for the work items that it runs.
    base_detail: Label,
    /// Whether the loop could go on when it last left the CPU.
    loop_runnable: bool,
    suspended: Suspended,
    ledger: Ledger,
    /// Events after the last step's end, in order of time.
    kept: Vec<Event>,
    /// The last event, or the end of the last step.
    newest: Nanos,
    /// The end of the last step.
    completed: Nanos,
    /// Before this instant events have been replayed without knowing the steps.
    advanced: Nanos,
    tally: Tally,
}

/// The owner of the time in which only a thread runs.
#[derive(Clone, Copy, Debug)]
enum Base {
    /// The measuring thread itself, whose time is no noise.
    Loop,
    /// Another thread, or what the CPU idles for.
    Row(LedgerRow),
}

/// What the attribution itself names.
#[derive(Clone, Copy, Debug)]
struct OwnLabels {
    throttling: Label,
    blocked: Label,
    lost: Label,
    unknown: Label,
    unknown_work: Label,
}

/// More frames than the kernel ever nests: an interrupt on each of the ten softirqs, faults, work. Entries whose exits
/// got lost may not pile up forever.
const DEPTH: usize = 64;

/// An instant before every other, for what has not happened yet.
const LONG_AGO: Nanos = Nanos::new(i64::MIN);

impl Attributor {
    /// For one CPU from the start of its run; names its rests in `labels`.
    #[must_use]
    pub fn new(thread: LoopThread, labels: &mut Labels) -> Self {
        let rests = RestNames { edge: labels.intern("edge"), unseen: labels.intern("unseen") };
        let names = OwnLabels {
            throttling: labels.intern(if thread.realtime { "rt_throttling" } else { "cfs_bandwidth" }),
            blocked: labels.intern("blocked"),
            lost: labels.intern("lost_events"),
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
            loop_runnable: true,
            suspended: Suspended::default(),
            ledger: Ledger::new(thread.cpu, rests),
            kept: Vec::new(),
            newest: LONG_AGO,
            completed: LONG_AGO,
            advanced: LONG_AGO,
            tally: Tally::default(),
        }
    }

    /// Takes the steps completed since the last call, in order and not overlapping, and the events drained since, in
    /// order of time, and appends the steps' detours and their activities, these in order of detour, then of start.
    ///
    /// The events, with those of earlier calls, must be all that happened before the end of the last step: so first
    /// collect the steps, then drain the events. How both are cut into calls then makes no difference. Events beyond
    /// the last step's end are kept for the next call. An event that is older than its predecessor or than what has
    /// been attributed is counted as late and otherwise ignored; an empty step, or one that overlaps an earlier one, is
    /// counted as refused and becomes no detour. `tasks` must know the threads of the switches by now.
    pub fn attribute(
        &mut self,
        steps: &[Step],
        events: &[Event],
        tasks: &Tasks,
        detours: &mut Vec<Detour>,
        activities: &mut Vec<Activity>,
    ) {
        let mut kept = std::mem::take(&mut self.kept);
        let mut feed = EventFeed::new(&kept, events);
        for step in steps {
            if step.start < self.completed || step.end <= step.start || step.end.checked_sub(step.start).is_none() {
                self.tally.refused_steps += 1;
                continue;
            }
            self.replay(&mut feed, step.start, tasks);
            self.resynchronize(step.start);
            self.ledger.open(step.start, step.start < self.advanced);
            self.replay(&mut feed, step.end, tasks);
            if self.lost_comes_next(&mut feed) {
                self.lose(step.end);
            } else {
                self.credit(step.end);
            }
            self.resynchronize(step.end);
            let (detour, rows) = self.ledger.close(self.thread.t_min);
            self.tally.incomplete += u64::from(detour.incomplete);
            detours.push(detour);
            activities.extend_from_slice(rows);
            self.completed = step.end;
            self.newest = self.newest.max(step.end);
        }
        // In place: what is left of `kept` moves to its front, the rest of `events` follows.
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

    /// Promises that no step that starts before `until` will come any more, so that the events before it need not be
    /// kept. A step that breaks the promise is attributed to what is left of its events, and marked incomplete.
    pub fn advance(&mut self, until: Nanos) {
        let mut kept = std::mem::take(&mut self.kept);
        let mut feed = EventFeed::new(&kept, &[]);
        self.replay(&mut feed, until, &Tasks::new());
        let left = feed.rest().count();
        kept.drain(..kept.len() - left);
        self.kept = kept;
        self.advanced = self.advanced.max(until);
    }

    /// Replays what is left after the last step, and returns the totals of the run.
    pub fn finish(&mut self) -> Tally {
        self.advance(Nanos::MAX);
        self.tally
    }

    /// The totals so far. Events that are kept for the next call are not yet in them.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Replays the events before `until`.
    fn replay(&mut self, feed: &mut EventFeed<'_>, until: Nanos, tasks: &Tasks) {
        while let Some(event) = feed.next_before(until) {
            if self.is_late(event) {
                self.count_late(event);
                continue;
            }
            if let Happening::Lost { count } = event.what {
                self.count_lost(count);
                self.lose(event.time);
                if self.ledger.is_open() {
                    let base = feed.thread_before_next_switch(until).unwrap_or(self.thread.pid);
                    self.enter(base, event.time, tasks);
                }
            } else {
                self.tally.events += 1;
                self.happen(event, tasks);
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

    /// Credits the time before the event, and changes the stack by it.
    fn happen(&mut self, event: &Event, tasks: &Tasks) {
        let at = event.time;
        match event.what {
            Happening::IrqEntry { source, detail } => self.push(What::Irq, source, detail, at),
            Happening::IrqExit { source, detail } => self.pop(What::Irq, source, detail, at),
            Happening::SoftirqEntry { source } => self.push(What::Softirq, source, Label::EMPTY, at),
            Happening::SoftirqExit { source } => self.pop(What::Softirq, source, Label::EMPTY, at),
            Happening::WorkStart { source, work } => {
                // A kworker runs one item at a time: one that is still there ended unseen, on another CPU perhaps.
                if let Some(stale) = self.stack.iter().position(|frame| matches!(frame.what, What::Work(_))) {
                    self.credit(at);
                    self.abandon_from(stale);
                }
                self.push(What::Work(work), source, Label::EMPTY, at);
            }
            Happening::WorkEnd { source, work } => {
                let source = if source == Label::EMPTY { self.names.unknown_work } else { source };
                self.pop(What::Work(work), source, Label::EMPTY, at);
            }
            Happening::Nmi { source, delta } => self.nmi(source, delta, at),
            Happening::Fault { source, detail } => self.fault(source, detail, at),
            Happening::Switch { prev, prev_runnable, next } => self.switch(prev, prev_runnable, next, at, tasks),
            Happening::Lost { .. } => {}
        }
    }

    /// Credits the time up to `at` to the top of the stack.
    fn credit(&mut self, at: Nanos) {
        if !self.ledger.is_open() || at == self.ledger.credited() {
            return;
        }
        match (self.stack.last_mut(), self.base) {
            (Some(frame), _) => {
                let row = match frame.row {
                    Some(row) => row,
                    // It came back from an earlier detour with its thread.
                    None => {
                        let detail = if let What::Work(_) = frame.what { self.base_detail } else { frame.detail };
                        self.ledger.row(self.ledger.credited(), frame.what.kind(), frame.source, detail)
                    }
                };
                frame.row = Some(row);
                frame.in_detour = true;
                self.ledger.credit(row, at);
            }
            (None, Base::Row(row)) => self.ledger.credit(row, at),
            (None, Base::Loop) => self.ledger.credit_loop(at),
        }
    }

    /// A row for a frame that begins, if a detour is open. A work item's detail is its kworker.
    fn row(&mut self, start: Nanos, what: What, source: Label, detail: Label) -> Option<LedgerRow> {
        let detail = if let What::Work(_) = what { self.base_detail } else { detail };
        self.ledger.is_open().then(|| self.ledger.row(start, what.kind(), source, detail))
    }

    fn push(&mut self, what: What, source: Label, detail: Label, at: Nanos) {
        self.credit(at);
        if self.stack.len() >= DEPTH {
            self.abandon_from(0);
        }
        let row = self.row(at, what, source, detail);
        let in_detour = row.is_some();
        self.stack.push(Frame { what, source, detail, row, in_detour, since: at, before: Nanos::ZERO });
    }

    fn pop(&mut self, what: What, source: Label, detail: Label, at: Nanos) {
        match self.stack.iter().rposition(|frame| frame.ends_with(what, source, detail)) {
            Some(depth) => {
                self.credit(at);
                self.abandon_from(depth + 1);
                if let Some(frame) = self.stack.pop()
                    && !frame.in_detour
                    && matches!(frame.what, What::Irq | What::Softirq)
                {
                    self.tally.below_threshold(frame.extent(at));
                }
            }
            None => {
                self.tally.unmatched_exits += 1;
                if let Some(row) = self.row(self.ledger.credited(), what, source, detail) {
                    self.ledger.credit(row, at);
                }
            }
        }
    }

    /// Closes the frames from `depth` on, whose ends were not seen.
    fn abandon_from(&mut self, depth: usize) {
        let ended_unseen = self.stack.drain(depth..).filter(|frame| frame.what != What::Fault).count();
        self.tally.unmatched_entries += ended_unseen as u64;
    }

    fn nmi(&mut self, source: Label, delta: Nanos, at: Nanos) {
        let start = saturating_sub(at, delta.max(Nanos::ZERO)).max(self.since());
        if self.ledger.is_open() {
            self.credit(start);
            let row = self.ledger.row(start, Kind::Nmi, source, Label::EMPTY);
            self.ledger.credit(row, at);
        } else {
            self.tally.below_threshold(saturating_sub(at, start));
        }
    }

    fn fault(&mut self, source: Label, detail: Label, at: Nanos) {
        self.credit(at);
        let on_thread_alone = matches!(self.stack.last(), None | Some(Frame { what: What::Fault, .. }));
        if self.current == Some(self.thread.pid) && on_thread_alone {
            // The one before is over, or the thread could not have met this one.
            self.stack.pop();
            self.push(What::Fault, source, detail, at);
        }
    }

    fn switch(&mut self, prev: Pid, prev_runnable: bool, next: Pid, at: Nanos, tasks: &Tasks) {
        if let Some(current) = self.current
            && current != prev
        {
            // A switch went unseen; when, nobody knows but that it was not before the last event.
            self.tally.unmatched_switches += 1;
            let since = self.since();
            self.leave(current, since);
            self.enter(prev, since, tasks);
        }
        self.credit(at);
        self.leave(prev, at);
        if prev == self.thread.pid {
            self.loop_runnable = prev_runnable;
        }
        self.enter(next, at, tasks);
    }

    /// The event before, or the step's start if that is later.
    const fn since(&self) -> Nanos {
        if self.ledger.is_open() { self.ledger.credited() } else { self.newest }
    }

    /// Puts the current thread's frames aside.
    fn leave(&mut self, pid: Pid, at: Nanos) {
        let frames = self.stack.len();
        self.stack.retain(|frame| frame.what != What::Irq);
        self.tally.unmatched_entries += (frames - self.stack.len()) as u64;
        for frame in &mut self.stack {
            frame.before = frame.extent(at);
        }
        self.tally.unmatched_entries += self.suspended.suspend(pid, &mut self.stack, self.ledger.number()) as u64;
    }

    /// Makes a thread the current one, with the frames that it left with.
    fn enter(&mut self, pid: Pid, at: Nanos, tasks: &Tasks) {
        self.current = Some(pid);
        self.suspended.resume(pid, &mut self.stack, self.ledger.number());
        for frame in &mut self.stack {
            frame.since = at;
        }
        self.base = Base::Loop;
        self.base_detail = Label::EMPTY;
        // Between steps nothing is credited, and the start of a step finds the loop on the CPU.
        if self.ledger.is_open() && pid != self.thread.pid {
            let (kind, source, detail) = match tasks.get(pid) {
                _ if pid == Pid::IDLE => match self.idle() {
                    Ok((kind, source)) => (kind, source, Label::EMPTY),
                    Err(fault) => {
                        self.base = Base::Row(fault);
                        return;
                    }
                },
                Some(task) => (task.kind, task.source, task.detail),
                None => (Kind::Task, self.names.unknown, Label::EMPTY),
            };
            self.base = Base::Row(self.ledger.row(at, kind, source, detail));
            self.base_detail = detail;
        }
    }

    /// What the CPU idles for while the loop is away: a limit, the loop's sleep, or a fault of the loop that has a row.
    fn idle(&self) -> Result<(Kind, Label), LedgerRow> {
        if self.loop_runnable {
            return Ok((Kind::Throttling, self.names.throttling));
        }
        let fault = self.suspended.frames(self.thread.pid).iter().find(|frame| frame.what == What::Fault);
        match fault.and_then(|fault| fault.row) {
            Some(row) => Err(row),
            None => Ok((Kind::Task, self.names.blocked)),
        }
    }

    /// Events were lost until `at`: nothing that was known holds any more.
    fn lose(&mut self, at: Nanos) {
        if self.ledger.is_open() {
            self.ledger.mark_incomplete();
            if at > self.ledger.credited() {
                let row = self.ledger.row(self.ledger.credited(), Kind::Unseen, self.names.lost, Label::EMPTY);
                self.ledger.credit(row, at);
            }
        }
        self.stack.clear();
        self.suspended.clear();
        self.current = None;
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
        self.current = Some(loop_pid);
        self.base = Base::Loop;
        self.base_detail = Label::EMPTY;
        self.loop_runnable = true;
    }
}
