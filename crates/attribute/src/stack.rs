//! The stack of frames above the current thread: entries, exits, and exits missing from the trace.

use becalm_model::{Kind, Label, Labels};
use becalm_units::Nanos;

use super::frame::{Ending, Frame, FrameName, SourceName, What, saturating_sub};
use super::ledger::Entry;
use super::{Attributor, Context, DEPTH, WAY_OUT};

impl Attributor {
    /// The work item on the stack that must have ended unseen, perhaps on another CPU, if another one starts: a thread runs one at a time.
    /// One below a softirq was only interrupted: since Linux 6.9 softirqs run work items as well.
    pub(super) fn stale_work(&self) -> Option<usize> {
        let interrupted = |frame: &Frame| matches!(frame.what, What::Irq | What::Softirq);
        let floor = self.stack.iter().rposition(interrupted).map_or(0, |place| place + 1);
        let work = self.stack[floor..].iter().position(|frame| matches!(frame.what, What::Work(_)));
        work.map(|place| floor + place)
    }

    /// The root of a frame that starts now.
    fn root(&mut self, what: What, source: Label, at: Nanos, labels: &mut Labels) -> Label {
        let own = (what.kind(), source);
        match what {
            What::Softirq => {
                let on_the_way_out =
                    |ending: &Ending| self.base_cause.is_none() || saturating_sub(at, ending.at) <= WAY_OUT;
                let root = self.raised.filter(on_the_way_out).map(|ending| ending.cause).or(self.base_cause);
                root.unwrap_or_else(|| self.causes.label(own.0, own.1, labels))
            }
            What::Irq | What::IrqFunction | What::SoftirqFunction | What::Work(_) | What::Fault => {
                self.causes.label(own.0, own.1, labels)
            }
        }
    }

    /// The name of a frame that starts now, without a look at its functions.
    pub(super) fn name(
        &mut self,
        what: What,
        SourceName { source, detail }: SourceName,
        at: Nanos,
        labels: &mut Labels,
    ) -> FrameName {
        let cause = self.root(what, source, at, labels);
        let detail = match what {
            // The detail of a softirq is its root.
            What::Softirq if cause != self.causes.label(Kind::Softirq, source, labels) => cause,
            _ => detail,
        };
        FrameName { source, detail, cause, raises: cause }
    }

    /// Starts a frame under its own name.
    pub(super) fn begin(&mut self, what: What, source: Label, detail: Label, at: Nanos, labels: &mut Labels) {
        let name = SourceName { source, detail };
        let named = self.name(what, name, at, labels);
        self.push(what, name, named, at);
    }

    pub(super) fn push(&mut self, what: What, SourceName { source, detail }: SourceName, named: FrameName, at: Nanos) {
        self.credit(at);
        if self.stack.len() >= DEPTH {
            self.abandon_from(0);
        }
        self.raised = None;
        let FrameName { source: shown, detail: told, cause, .. } = named;
        let entry = Entry { start: at, kind: what.kind(), source: shown, detail: told, cause };
        let in_detour = self.ledger.is_open();
        let row = (in_detour && self.throttling.is_none()).then(|| self.ledger.row(entry));
        let (ran, before) = (false, Nanos::ZERO);
        self.stack.push(Frame { what, source, detail, named, ran, row, in_detour, since: at, before });
    }

    pub(super) fn pop(&mut self, what: What, source: Label, detail: Label, at: Nanos, context: &mut Context<'_>) {
        match self.stack.iter().rposition(|frame| frame.ends_with(what, source, detail)) {
            Some(depth) => {
                self.credit(at);
                self.abandon_from(depth + 1);
                if let Some(frame) = self.stack.pop() {
                    self.ledger.end(frame.named.cause);
                    let outermost = !self.stack.iter().any(|below| matches!(below.what, What::Irq | What::Softirq));
                    let raises = matches!(what, What::Irq | What::Softirq) && outermost;
                    self.raised = raises.then_some(Ending { cause: frame.named.raises, at });
                    if !frame.in_detour && matches!(what, What::Irq | What::Softirq) {
                        self.tally.below_threshold(frame.extent(at));
                    }
                }
            }
            None => {
                self.tally.unmatched_exits += 1;
                let cause = self.root(what, source, at, context.labels);
                self.raised = matches!(what, What::Irq | What::Softirq).then_some(Ending { cause, at });
                if self.throttling.is_some() {
                    self.credit(at);
                } else if self.ledger.is_open() {
                    let detail = if let What::Work(_) = what { self.base_detail } else { detail };
                    let start = self.ledger.credited();
                    let row = self.ledger.row(Entry { start, kind: what.kind(), source, detail, cause });
                    self.ledger.credit(row, at);
                    self.ledger.end(cause);
                }
            }
        }
    }

    /// Closes the frames from `depth` on, without having seen their ends.
    pub(super) fn abandon_from(&mut self, depth: usize) {
        if let Some(outermost) = self.stack.get(depth) {
            self.ledger.end(outermost.named.cause);
        }
        let has_end = |frame: &Frame| !matches!(frame.what, What::Fault | What::SoftirqFunction);
        let ended_unseen = self.stack.drain(depth..).filter(has_end).count();
        self.tally.unmatched_entries += ended_unseen as u64;
    }
}
