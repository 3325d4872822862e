//! The thread on the CPU: switches, switches missing from the trace, and limits that stop the loop.

use becalm_model::{Event, Happening, Kind, Label, Pid, ThreadState};
use becalm_units::Nanos;

use super::feed::EventFeed;
use super::frame::What;
use super::ledger::{Entry, LedgerRow};
use super::{Attributor, Base, Context, MISSING_PAIRS};

/// A thread that leaves the CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub thread: Pid,
    /// Whether it was runnable.
    pub is_runnable: bool,
}

impl Attributor {
    /// Notes which thread was on the CPU just before an instant: that of the event there, or the loop at the end of its step. If the
    /// switches indicated another one, a switch is missing from the trace, and the time since the previous event belongs to one of the two.
    pub(super) fn meet(&mut self, thread: Pid, at: Nanos, context: &mut Context<'_>) {
        let Some(current) = self.current else {
            self.enter(thread, at, context);
            return;
        };
        if current == thread {
            return;
        }
        self.tally.unmatched_switches += 1;
        if let Some(row) = self.throttling.filter(|_| thread != self.thread.pid) {
            self.ledger.credit(row, at);
        } else if self.ledger.is_open() && at > self.ledger.credited() {
            let names = [current, thread].map(|pid| self.thread_name(pid, context));
            let detail = context.labels.intern(&format!("{} or {}", names[0], names[1]));
            if self.missing.len() < MISSING_PAIRS && !self.missing.contains(&detail) {
                self.missing.push(detail);
            }
            self.tally.missing_switch += at - self.ledger.credited();
            let start = self.ledger.credited();
            self.unknown(start, self.names.missing_switch, detail, at, context.labels);
        }
        self.leave(current, at);
        self.enter(thread, at, context);
    }

    fn thread_name(&self, pid: Pid, context: &Context<'_>) -> String {
        if pid == self.thread.pid {
            return "the measuring thread".to_owned();
        }
        match context.tasks.get(pid) {
            _ if pid == Pid::IDLE => "the idle thread".to_owned(),
            Some(task) => format!("{}:{}", task.kind, context.labels.text(task.source)),
            None => format!("pid {}", pid.0),
        }
    }

    pub(super) fn switch(
        &mut self,
        Departure { thread: prev, is_runnable: prev_runnable }: Departure,
        throttled: bool,
        next: Pid,
        at: Nanos,
        context: &mut Context<'_>,
    ) {
        self.credit(at);
        self.leave(prev, at);
        if prev == self.thread.pid {
            self.loop_runnable = prev_runnable;
        }
        if throttled {
            self.throttle(at, context);
        }
        self.enter(next, at, context);
    }

    /// Whether this event takes the CPU from the loop for a quota: the loop is runnable, but the CPU idles before it runs again.
    pub(super) fn throttles(&self, event: &Event, feed: &EventFeed<'_>, until: Nanos) -> bool {
        match event.what {
            Happening::Switch { prev, prev_state: ThreadState::RUNNABLE, next }
                if prev == self.thread.pid && next != prev =>
            {
                next == Pid::IDLE || !self.thread.realtime && feed.idles_without(prev, until)
            }
            _ => false,
        }
    }

    /// From now on a limit stops the loop.
    fn throttle(&mut self, at: Nanos, context: &mut Context<'_>) {
        let (kind, source) = (Kind::Throttling, self.names.throttling);
        let cause = self.causes.label(kind, source, context.labels);
        self.throttling = Some(self.ledger.row(Entry { start: at, kind, source, detail: Label::EMPTY, cause }));
    }

    /// Suspends the current thread's frames.
    pub(super) fn leave(&mut self, pid: Pid, at: Nanos) {
        let frames = self.stack.len();
        self.stack.retain(|frame| !matches!(frame.what, What::Irq | What::IrqFunction));
        self.tally.unmatched_entries += (frames - self.stack.len()) as u64;
        for frame in &mut self.stack {
            frame.before = frame.extent(at);
        }
        self.tally.unmatched_entries += self.suspended.suspend(pid, &mut self.stack, self.ledger.number()) as u64;
        self.raised = None;
        if let Some(cause) = self.base_cause {
            self.ledger.end(cause);
        }
    }

    /// Makes a thread the current one, with the frames that it left with.
    pub(super) fn enter(&mut self, pid: Pid, at: Nanos, context: &mut Context<'_>) {
        self.current = Some(pid);
        self.suspended.resume(pid, &mut self.stack, self.ledger.number());
        for frame in &mut self.stack {
            frame.since = at;
        }
        self.base = Base::Loop;
        self.base_detail = Label::EMPTY;
        self.base_cause = None;
        if pid == self.thread.pid {
            if self.throttling.take().is_some() {
                self.ledger.end(self.causes.label(Kind::Throttling, self.names.throttling, context.labels));
            }
            return;
        }
        if pid == Pid::IDLE && self.loop_runnable && self.ledger.is_open() && self.throttling.is_none() {
            self.throttle(at, context);
        }
        let (kind, source, detail) = match context.tasks.get(pid) {
            _ if pid == Pid::IDLE => match self.idle() {
                Ok((kind, source)) => (kind, source, Label::EMPTY),
                Err((fault, cause)) => {
                    if let Some(row) = fault {
                        self.base = Base::Row(row);
                    }
                    self.base_cause = Some(cause);
                    return;
                }
            },
            Some(task) => (task.kind, task.source, task.detail),
            None => (Kind::Task, self.names.unknown, Label::EMPTY),
        };
        let cause = self.causes.label(kind, source, context.labels);
        self.base_cause = Some(cause);
        // Between steps nothing is credited, and at the start of a step the loop is on the CPU.
        if self.ledger.is_open() && self.throttling.is_none() {
            self.base = Base::Row(self.ledger.row(Entry { start: at, kind, source, detail, cause }));
            self.base_detail = detail;
        }
    }

    /// The reason why the CPU idles while the loop is away: a limit, the loop's sleep, or a fault of the loop that has a row.
    fn idle(&self) -> Result<(Kind, Label), (Option<LedgerRow>, Label)> {
        if self.loop_runnable {
            return Ok((Kind::Throttling, self.names.throttling));
        }
        let fault = self.suspended.frames(self.thread.pid).iter().find(|frame| frame.what == What::Fault);
        match fault {
            Some(fault) => Err((fault.row.filter(|_| self.ledger.is_open()), fault.named.cause)),
            None => Ok((Kind::Task, self.names.blocked)),
        }
    }
}
