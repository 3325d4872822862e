//! The cause of an interrupt or softirq, from the events after its entry: the functions that it runs, the threads that these functions
//! wake, and the thread that the CPU switches to.

use becalm_model::carried::{BRINGING, Carrier, RESCHEDULING, SENT, runs};
use becalm_model::{Event, Happening, Kind, Label, Labels, Pid, ThreadState};
use becalm_units::Nanos;

use super::frame::{FrameName, SourceName, What, saturating_sub};
use super::{Attributor, Context};

/// The longest time between an interrupt and the switch that it causes. A scheduler with cold caches needs some of it. A measuring thread
/// makes no system call, so it leaves its CPU only on the way out of an interrupt.
pub(super) const SWITCHES_WITHIN: Nanos = Nanos::new(50_000);

/// Interrupts, softirqs and threads with rules of their own, by their labels.
#[derive(Debug)]
pub(super) struct Carriers {
    sent: Vec<Label>,
    bringing: Vec<Label>,
    rescheduling: Label,
    kworker: Label,
}

/// An interrupt or a softirq, by the names of its events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vehicle {
    pub what: What,
    pub source: Label,
    pub detail: Label,
}

impl Vehicle {
    pub const fn irq(source: Label, detail: Label) -> Self {
        Self { what: What::Irq, source, detail }
    }

    pub const fn softirq(source: Label) -> Self {
        Self { what: What::Softirq, source, detail: Label::EMPTY }
    }

    /// Whether it runs the functions of a carrier, and is named by them.
    pub fn runs(self, carrier: Carrier, labels: &Labels) -> bool {
        matches!(self.what, What::Irq | What::Softirq) && runs(self.what.kind(), labels.text(self.source), carrier)
    }

    fn ends_with(self, event: &Happening) -> bool {
        match *event {
            Happening::IrqExit { source, detail } => {
                self.what == What::Irq && (source, detail) == (self.source, self.detail)
            }
            Happening::SoftirqExit { source } => self.what == What::Softirq && source == self.source,
            _ => false,
        }
    }
}

impl Carriers {
    pub fn new(labels: &mut Labels) -> Self {
        let mut labels_of = |names: &[&str]| names.iter().map(|name| labels.intern(name)).collect();
        Self {
            sent: labels_of(&SENT),
            bringing: labels_of(&BRINGING),
            rescheduling: labels.intern(RESCHEDULING),
            kworker: labels.intern("kworker"),
        }
    }

    /// Whether an interrupt belongs to the thread that it wakes even if it runs no function.
    pub fn is_sent(&self, source: Label) -> bool {
        self.sent.contains(&source)
    }

    /// Whether an interrupt can let a thread run without waking it.
    pub fn is_bringing(&self, source: Label, detail: Label) -> bool {
        detail == self.rescheduling || self.bringing.contains(&source)
    }
}

/// A function that an interrupt or a softirq runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct CarriedFunction {
    /// Empty for a function without a name.
    pub name: Label,
    /// Its fixed root; empty if it has none.
    pub root: Label,
}

/// The start or the end of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct CarrierEvent {
    pub carrier: Carrier,
    /// The interrupt that it belongs to if no event shows one.
    pub interrupt: Label,
}

/// The events of one interrupt or softirq, or of one of its functions.
#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    /// The first function.
    function: Option<CarriedFunction>,
    /// The first thread that this function wakes.
    woken: Option<Pid>,
    /// The fixed root of the last function with one.
    raises: Option<Label>,
    /// When the interrupt, the softirq or the function ends.
    ended: Option<Nanos>,
}

impl Attributor {
    /// An interrupt or a softirq starts. Outside of detours it keeps its plain name.
    pub(super) fn begin_carrier<'e>(
        &mut self,
        vehicle: Vehicle,
        at: Nanos,
        coming: impl Iterator<Item = &'e Event>,
        context: &mut Context<'_>,
    ) {
        let Vehicle { what, source, detail } = vehicle;
        let plain = self.name(what, SourceName { source, detail }, at, context.labels);
        let named =
            if self.ledger.is_open() { self.name_carried(vehicle, plain, None, coming, context) } else { plain };
        self.push(what, SourceName { source, detail }, named, at);
    }

    /// Names an interrupt or a softirq that starts before the `coming` events, or one of its further functions if `begun` gives one.
    /// `plain` is its name without functions.
    ///
    /// The first function gives the name. The root is, in this order: the fixed root of the function, the first thread that it wakes, the
    /// thread that the CPU switches to if the interrupt can let one run without waking it, or the function itself. The root of what a
    /// softirq raises is that of the softirq without functions.
    pub(super) fn name_carried<'e>(
        &mut self,
        vehicle: Vehicle,
        plain: FrameName,
        begun: Option<CarriedFunction>,
        mut coming: impl Iterator<Item = &'e Event>,
        context: &mut Context<'_>,
    ) -> FrameName {
        let ahead = self.look_ahead(vehicle, begun, &mut coming, context.labels);
        let function = ahead.function.filter(|function| function.name != Label::EMPTY);
        let shown = function.map_or(plain.source, |function| function.name);
        let own = self.causes.label(vehicle.what.kind(), shown, context.labels);
        let fixed = function.map(|function| function.root).filter(|root| *root != Label::EMPTY);
        let brings = self.carriers.is_bringing(shown, vehicle.detail);
        let cause = fixed
            .or_else(|| ahead.woken.and_then(|thread| self.root_of_woken(thread, &mut coming, context)))
            .or_else(|| self.root_of_thread(switches_to(ahead.ended.filter(|_| brings)?, coming)?, context))
            .unwrap_or(if function.is_some() { own } else { plain.cause });
        let detail = match function {
            _ if cause != own => cause,
            Some(_) => vehicle.source,
            None => plain.detail,
        };
        let raises = match vehicle.what {
            What::Softirq => plain.raises,
            _ => ahead.raises.unwrap_or(cause),
        };
        FrameName { source: shown, detail, cause, raises }
    }

    /// Reads the events up to the end of the interrupt or softirq, or of the function that has `begun`.
    fn look_ahead<'e>(
        &self,
        vehicle: Vehicle,
        begun: Option<CarriedFunction>,
        coming: &mut impl Iterator<Item = &'e Event>,
        labels: &Labels,
    ) -> Ahead {
        let fixed = |root: Label| Some(root).filter(|root| *root != Label::EMPTY);
        let raises = begun.and_then(|function| fixed(function.root));
        let mut ahead = Ahead { function: begun, raises, ..Ahead::default() };
        let mut running = begun.is_some();
        // Frames within it, and functions that others run within it.
        let (mut nested, mut foreign) = (0_u32, 0_u32);
        for event in coming {
            match event.what {
                Happening::Lost { .. } | Happening::Switch { .. } => break,
                // The trace lacks a switch.
                _ if Some(event.thread) != self.current => break,
                Happening::IrqEntry { .. } | Happening::SoftirqEntry { .. } | Happening::WorkStart { .. } => {
                    nested += 1
                }
                Happening::IrqExit { .. } | Happening::SoftirqExit { .. } | Happening::WorkEnd { .. } if nested > 0 => {
                    nested -= 1;
                }
                what if vehicle.ends_with(&what) => {
                    ahead.ended = begun.is_none().then_some(event.time);
                    break;
                }
                Happening::IrqExit { .. } | Happening::SoftirqExit { .. } if begun.is_some() => break,
                _ if nested > 0 => {}
                Happening::FunctionEntry { carrier, .. } if !vehicle.runs(carrier, labels) => {
                    foreign += u32::from(matches!(carrier, Carrier::Timer | Carrier::Call));
                }
                Happening::FunctionExit { .. } if foreign > 0 => foreign -= 1,
                _ if foreign > 0 => {}
                Happening::FunctionEntry { .. } if begun.is_some() => break,
                Happening::FunctionEntry { source, root, .. } => {
                    running = ahead.function.is_none();
                    if running {
                        (ahead.function, ahead.woken) = (Some(CarriedFunction { name: source, root }), None);
                    }
                    ahead.raises = fixed(root).or(ahead.raises);
                }
                Happening::FunctionExit { .. } if begun.is_some() => {
                    ahead.ended = Some(event.time);
                    break;
                }
                Happening::FunctionExit { .. } => running = false,
                Happening::Waking { thread } | Happening::Woken { thread, .. }
                    if running || ahead.function.is_none() && self.carriers.is_sent(vehicle.source) =>
                {
                    ahead.woken = ahead.woken.or(Some(thread));
                }
                _ => {}
            }
        }
        ahead
    }

    /// The root of a thread that is woken before the `coming` events. A kworker is woken for the work item that it runs next.
    fn root_of_woken<'e>(
        &mut self,
        thread: Pid,
        coming: &mut impl Iterator<Item = &'e Event>,
        context: &mut Context<'_>,
    ) -> Option<Label> {
        if context.tasks.get(thread)?.source == self.carriers.kworker
            && let Some(work) = coming.find_map(|event| work_begun_by(thread, event))
        {
            return Some(self.causes.label(Kind::Workqueue, work, context.labels));
        }
        self.root_of_thread(thread, context)
    }

    /// The root of the work of another thread, if that thread has a name.
    fn root_of_thread(&mut self, thread: Pid, context: &mut Context<'_>) -> Option<Label> {
        let task = context.tasks.get(thread).filter(|_| thread != Pid::IDLE && thread != self.thread.pid)?;
        Some(self.causes.label(task.kind, task.source, context.labels))
    }
}

/// The work item that a thread starts with that event.
fn work_begun_by(thread: Pid, event: &Event) -> Option<Label> {
    match event.what {
        Happening::WorkStart { source, .. } if event.thread == thread => Some(source),
        _ => None,
    }
}

/// The thread that the CPU switches to on the way out of an interrupt that `ended` then. Softirqs may run before the switch.
fn switches_to<'e>(mut ended: Nanos, coming: impl Iterator<Item = &'e Event>) -> Option<Pid> {
    for event in coming {
        match event.what {
            Happening::Switch { prev_state: ThreadState::RUNNABLE, next, .. }
                if saturating_sub(event.time, ended) <= SWITCHES_WITHIN =>
            {
                return Some(next);
            }
            // The exit of the interrupt itself follows the end of its functions.
            Happening::IrqExit { .. } | Happening::SoftirqExit { .. } => ended = event.time,
            Happening::SoftirqEntry { .. }
            | Happening::FunctionEntry { .. }
            | Happening::FunctionExit { .. }
            | Happening::Waking { .. }
            | Happening::Woken { .. }
            | Happening::Life(_) => {}
            _ => return None,
        }
    }
    None
}
