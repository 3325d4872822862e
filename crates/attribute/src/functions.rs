//! Functions that interrupts and softirqs run: which timer, which tasklet. Of an interrupt for which the kernel has no event
//! they are all that is known.

use std::collections::HashMap;

use becalm_model::root::RAN;
use becalm_model::{Label, Labels};
use becalm_units::Nanos;

use super::frame::{What, saturating_sub};
use super::ledger::LedgerRow;
use super::{Attributor, Context, WAY_OUT};

/// How many functions of one interrupt or softirq are named.
const NAMED: usize = 3;
/// What stands for more of them.
const MORE: &str = "...";

/// The details with functions named so far, so that naming them again formats nothing.
#[derive(Debug)]
pub(super) struct Functions {
    /// By the detail so far, whether that holds functions already, and the function.
    details: HashMap<(Label, bool, Label), Label>,
    /// The softirq that runs functions of high-resolution timers.
    hrtimer: Label,
    /// The last interrupt of which only its functions were seen.
    last: Option<Untraced>,
}

/// An interrupt of which only its functions are seen, and which may run another one.
#[derive(Clone, Copy, Debug)]
struct Untraced {
    row: LedgerRow,
    /// The number of its detour.
    detour: u64,
    /// Its detail with its functions.
    functions: Label,
    cause: Label,
    /// When the last of them returned.
    ended: Nanos,
}

impl Functions {
    pub fn new(labels: &mut Labels) -> Self {
        Self { details: HashMap::new(), hrtimer: labels.intern("hrtimer"), last: None }
    }

    /// The detail of what ran a function; `further` if it names others already.
    fn with(&mut self, detail: Label, further: bool, function: Label, labels: &mut Labels) -> Label {
        *self.details.entry((detail, further, function)).or_insert_with(|| {
            let (before, name) = (labels.text(detail), labels.text(function));
            let text = if further {
                let list = before.split_once(RAN).map_or(before, |(_, list)| list);
                let named = list.split(", ").count();
                match list.split(", ").any(|known| known == name || known == MORE) {
                    true => before.to_owned(),
                    false => format!("{before}, {}", if named < NAMED { name } else { MORE }),
                }
            } else if before.is_empty() {
                name.to_owned()
            } else {
                format!("{before}{RAN}{name}")
            };
            labels.intern(&text)
        })
    }
}

impl Attributor {
    /// A function begins: the interrupt or softirq on top of the stack names it. Where that cannot be what runs it, an interrupt without
    /// an event does.
    pub(super) fn enter_function(&mut self, function: Label, interrupt: Label, at: Nanos, with: &mut Context<'_>) {
        let runs = match self.stack.last() {
            Some(top) if top.what == What::Irq => true,
            Some(top) if top.what == What::Softirq => interrupt == Label::EMPTY || top.source == self.functions.hrtimer,
            _ => false,
        };
        if !runs {
            if interrupt == Label::EMPTY {
                // A timer or a tasklet whose softirq is not in the trace.
                return;
            }
            self.begin_untraced(interrupt, at, with);
        }
        if let Some(top) = self.stack.last_mut() {
            let further = top.functions != Label::EMPTY;
            top.functions = self.functions.with(top.shown(), further, function, with.labels);
            if let Some(row) = top.row {
                self.ledger.rename(row, top.functions);
            }
        }
    }

    /// An interrupt without an event begins, or goes on with its next function: then it had the time between the two.
    fn begin_untraced(&mut self, interrupt: Label, at: Nanos, with: &mut Context<'_>) {
        let last = self.functions.last.take().filter(|last| {
            self.ledger.is_open()
                && last.detour == self.ledger.number()
                && saturating_sub(at, last.ended) <= WAY_OUT
                && self.raised == Some((last.cause, last.ended))
                && self.ledger.credited() == last.ended
        });
        if let Some(last) = last {
            self.ledger.credit(last.row, at);
            self.push_again(interrupt, last.cause, last.row, at);
            if let Some(top) = self.stack.last_mut() {
                top.functions = last.functions;
            }
        } else {
            self.push(What::Irq, interrupt, Label::EMPTY, at, with);
        }
    }

    /// A function of an interrupt returned. If it is one without an event, that may be its end.
    pub(super) fn leave_function(&mut self, interrupt: Label, at: Nanos, with: &mut Context<'_>) {
        let Some(top) = self.stack.last().copied().filter(|top| top.ends_with(What::Irq, interrupt, Label::EMPTY))
        else {
            return;
        };
        self.pop(What::Irq, interrupt, Label::EMPTY, at, with);
        self.functions.last = top.row.map(|row| Untraced {
            row,
            detour: self.ledger.number(),
            functions: top.functions,
            cause: top.cause,
            ended: at,
        });
    }
}
