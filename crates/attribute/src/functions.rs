//! Functions of interrupts and softirqs. Some interrupts have no events of their own, only those of their functions.

use becalm_model::carried::Carrier;
use becalm_model::root::RAN;
use becalm_model::{Event, Label, Labels};
use becalm_units::{Nanos, NumberMap};

use super::carried::{CarriedFunction, CarrierEvent, Vehicle};
use super::frame::{Ending, SourceName, What, saturating_sub};
use super::ledger::LedgerRow;
use super::{Attributor, Context, WAY_OUT};

/// How many tasklets of one softirq are named.
const NAMED: usize = 3;
/// Stands for further tasklets.
const MORE: &str = "...";

/// Cache of the details with tasklets. A detail that occurs again is not formatted again.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// By the detail so far, whether that holds functions already, and the function.
    details: NumberMap<(Label, bool, Label), Label>,
    /// The last interrupt without events of its own.
    last: Option<UntracedInterrupt>,
}

/// An interrupt without events of its own. It may run another function.
#[derive(Clone, Copy, Debug)]
struct UntracedInterrupt {
    row: LedgerRow,
    /// The number of its detour.
    detour: u64,
    /// The root of the softirqs that it raises.
    raises: Label,
    /// When the last of them returned.
    ended: Nanos,
}

impl Functions {
    /// Adds a function to the detail of an activity that ran it; `further` if the detail names other functions already.
    fn extend_detail(&mut self, detail: Label, further: bool, function: Label, labels: &mut Labels) -> Label {
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
    /// A function starts. The first function of an interrupt or of a timer softirq has already named it, and each further function gets its
    /// own row. Another softirq lists its functions in its detail. A function of a timer that none of them runs belongs to an interrupt
    /// without events. `coming` are the next events.
    pub(super) fn enter_function<'e>(
        &mut self,
        function: CarriedFunction,
        CarrierEvent { carrier, interrupt }: CarrierEvent,
        at: Nanos,
        coming: impl Iterator<Item = &'e Event>,
        context: &mut Context<'_>,
    ) {
        if carrier == Carrier::Wheel && self.stack.last().is_some_and(|top| top.what == What::SoftirqFunction) {
            // The last one has no event at its end.
            self.leave_frame(What::SoftirqFunction, at, context);
        }
        let Some(top) = self.stack.last_mut() else {
            if carrier == Carrier::Timer {
                self.begin_untraced(interrupt, function, at, coming, context);
            }
            return;
        };
        let vehicle = Vehicle { what: top.what, source: top.source, detail: top.detail };
        if vehicle.runs(carrier, context.labels) {
            let further = std::mem::replace(&mut top.ran, true);
            self.credit(at);
            if further && function.name != Label::EMPTY {
                self.begin_further(vehicle, function, at, coming, context);
            }
        } else if carrier == Carrier::Timer {
            if vehicle.what == What::Softirq {
                self.credit(at);
            }
            self.begin_untraced(interrupt, function, at, coming, context);
        } else {
            self.credit(at);
            if (carrier, vehicle.what) == (Carrier::Tasklet, What::Softirq) {
                self.name_tasklet(function.name, context.labels);
            }
        }
    }

    /// A further function of an interrupt or a softirq starts.
    fn begin_further<'e>(
        &mut self,
        vehicle: Vehicle,
        function: CarriedFunction,
        at: Nanos,
        coming: impl Iterator<Item = &'e Event>,
        context: &mut Context<'_>,
    ) {
        let what = if vehicle.what == What::Irq { What::IrqFunction } else { What::SoftirqFunction };
        let plain = self.name(what, SourceName::plain(function.name), at, context.labels);
        let named = match self.ledger.is_open() {
            true => self.name_carried(vehicle, plain, Some(function), coming, context),
            false => plain,
        };
        self.push(what, SourceName::plain(function.name), named, at);
    }

    /// Adds a tasklet to the detail of the softirq on top of the stack.
    fn name_tasklet(&mut self, function: Label, labels: &mut Labels) {
        let Some(top) = self.stack.last_mut().filter(|_| function != Label::EMPTY) else { return };
        let further = std::mem::replace(&mut top.ran, true);
        top.named.detail = self.functions.extend_detail(top.named.detail, further, function, labels);
        if let Some(row) = top.row {
            self.ledger.rename(row, top.named.detail);
        }
    }

    /// An interrupt without events starts, or runs its next function. In that case the time between the two functions is its own.
    fn begin_untraced<'e>(
        &mut self,
        interrupt: Label,
        function: CarriedFunction,
        at: Nanos,
        coming: impl Iterator<Item = &'e Event>,
        context: &mut Context<'_>,
    ) {
        let last = self.functions.last.take().filter(|last| {
            self.ledger.is_open()
                && last.detour == self.ledger.number()
                && saturating_sub(at, last.ended) <= WAY_OUT
                && self.raised == Some(Ending { cause: last.raises, at: last.ended })
                && self.ledger.credited() == last.ended
        });
        let plain = self.name(What::Irq, SourceName::plain(interrupt), at, context.labels);
        let mut named =
            self.name_carried(Vehicle::irq(interrupt, Label::EMPTY), plain, Some(function), coming, context);
        if let Some(last) = last {
            self.ledger.credit(last.row, at);
            if function.root == Label::EMPTY {
                named.raises = last.raises;
            }
        }
        self.push(What::Irq, SourceName::plain(interrupt), named, at);
        if let Some(top) = self.stack.last_mut() {
            top.ran = true;
        }
    }

    /// The function on top of the stack ends.
    fn leave_frame(&mut self, what: What, at: Nanos, context: &mut Context<'_>) {
        self.pop(what, Label::EMPTY, Label::EMPTY, at, context);
    }

    /// A function of an interrupt returned. This may be the end of an interrupt without events.
    pub(super) fn leave_function(
        &mut self,
        CarrierEvent { carrier, interrupt }: CarrierEvent,
        at: Nanos,
        context: &mut Context<'_>,
    ) {
        self.credit(at);
        let Some(top) = self.stack.last().copied() else { return };
        match (top.what, carrier) {
            (What::IrqFunction, _) | (What::SoftirqFunction, Carrier::Timer) => self.leave_frame(top.what, at, context),
            (What::Irq, Carrier::Timer) if top.ends_with(What::Irq, interrupt, Label::EMPTY) => {
                self.pop(What::Irq, interrupt, Label::EMPTY, at, context);
                self.functions.last = top.row.map(|row| UntracedInterrupt {
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
