//! Functions of softirqs, and functions of interrupts. Some interrupts have no events of their own, only those of their functions.

use std::collections::HashMap;

use becalm_model::carried::Carrier;
use becalm_model::root::RAN;
use becalm_model::{Event, Label, Labels};
use becalm_units::Nanos;

use super::frame::{What, saturating_sub};
use super::ledger::LedgerRow;
use super::{Attributor, Context, WAY_OUT};

/// How many functions of one softirq are named.
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
    /// The last interrupt without events of its own.
    last: Option<Untraced>,
}

/// An interrupt without events of its own. It may run another function.
#[derive(Clone, Copy, Debug)]
struct Untraced {
    row: LedgerRow,
    /// The number of its detour.
    detour: u64,
    /// The root of the softirqs that it raises.
    raises: Label,
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
    /// A function starts. The first function of an interrupt has already named it, and each further function gets its own row. A softirq
    /// lists its functions in its detail. If neither runs a timer's function, an interrupt without events does. `coming` are the next events.
    pub(super) fn enter_function<'e>(
        &mut self,
        (source, root): (Label, Label),
        (by, interrupt): (Carrier, Label),
        at: Nanos,
        coming: impl Iterator<Item = &'e Event>,
        with: &mut Context<'_>,
    ) {
        let what = self.stack.last().map(|top| top.what);
        if by != Carrier::Timer || matches!(what, Some(What::Irq | What::Softirq)) {
            self.credit(at);
        }
        let top = self.stack.last_mut();
        match (by, what) {
            (Carrier::Timer | Carrier::Call, Some(What::Irq)) => {
                let Some(top) = top else { return };
                let vehicle = (top.source, top.detail);
                if std::mem::replace(&mut top.ran, true) && source != Label::EMPTY {
                    let named = self.name_carried(vehicle, Some((source, root)), coming, with);
                    self.push(What::Function, (source, Label::EMPTY), named, at);
                }
            }
            (Carrier::Softirq, Some(What::Softirq)) => self.name_function(source, with.labels),
            (Carrier::Timer, Some(What::Softirq)) if top.is_some_and(|top| top.source == self.functions.hrtimer) => {
                self.name_function(source, with.labels);
            }
            (Carrier::Timer, _) => self.begin_untraced(interrupt, (source, root), at, coming, with),
            // A thread called a function on its own CPU, or the trace lacks the softirq.
            (Carrier::Call | Carrier::Softirq, _) => {}
        }
    }

    /// Adds a function to the detail of the softirq on top of the stack.
    fn name_function(&mut self, function: Label, labels: &mut Labels) {
        let Some(top) = self.stack.last_mut().filter(|_| function != Label::EMPTY) else { return };
        let further = std::mem::replace(&mut top.ran, true);
        top.named.detail = self.functions.with(top.named.detail, further, function, labels);
        if let Some(row) = top.row {
            self.ledger.rename(row, top.named.detail);
        }
    }

    /// An interrupt without events starts, or runs its next function. In that case the time between the two functions is its own.
    fn begin_untraced<'e>(
        &mut self,
        interrupt: Label,
        function: (Label, Label),
        at: Nanos,
        coming: impl Iterator<Item = &'e Event>,
        with: &mut Context<'_>,
    ) {
        let last = self.functions.last.take().filter(|last| {
            self.ledger.is_open()
                && last.detour == self.ledger.number()
                && saturating_sub(at, last.ended) <= WAY_OUT
                && self.raised == Some((last.raises, last.ended))
                && self.ledger.credited() == last.ended
        });
        let vehicle = (interrupt, Label::EMPTY);
        let mut named = self.name_carried(vehicle, Some(function), coming, with);
        if let Some(last) = last {
            self.ledger.credit(last.row, at);
            if function.1 == Label::EMPTY {
                named.raises = last.raises;
            }
        }
        self.push(What::Irq, vehicle, named, at);
        if let Some(top) = self.stack.last_mut() {
            top.ran = true;
        }
    }

    /// A function of an interrupt returned. This may be the end of an interrupt without events.
    pub(super) fn leave_function(&mut self, (by, interrupt): (Carrier, Label), at: Nanos, with: &mut Context<'_>) {
        self.credit(at);
        let Some(top) = self.stack.last().copied() else { return };
        match (top.what, by) {
            (What::Function, _) => self.pop(What::Function, top.source, Label::EMPTY, at, with),
            (What::Irq, Carrier::Timer) if top.ends_with(What::Irq, interrupt, Label::EMPTY) => {
                self.pop(What::Irq, interrupt, Label::EMPTY, at, with);
                self.functions.last = top.row.map(|row| Untraced {
                    row,
                    detour: self.ledger.number(),
                    raises: top.named.raises,
                    ended: at,
                });
            }
            _ => {}
        }
    }
}
