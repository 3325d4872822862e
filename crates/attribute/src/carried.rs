//! Why an interrupt came, read from the events after its entry: the functions that it runs, the threads that these functions wake, and
//! the thread that the CPU switches to.

use becalm_model::carried::{BRINGING, Carrier, RESCHEDULING, SENT};
use becalm_model::{Event, Happening, Kind, Label, Labels, Pid};
use becalm_units::Nanos;

use super::frame::{Named, saturating_sub};
use super::{Attributor, Context};

/// The longest time between an interrupt and the switch that it causes. A scheduler with cold caches needs some of it. A measuring thread
/// makes no system call, so it leaves its CPU only on the way out of an interrupt.
pub(super) const SWITCHES_WITHIN: Nanos = Nanos::new(50_000);

/// Interrupts with rules of their own, by their labels.
#[derive(Debug)]
pub(super) struct Carriers {
    sent: Vec<Label>,
    bringing: Vec<Label>,
    rescheduling: Label,
}

impl Carriers {
    pub fn new(labels: &mut Labels) -> Self {
        let mut labels_of = |names: &[&str]| names.iter().map(|name| labels.intern(name)).collect();
        Self { sent: labels_of(&SENT), bringing: labels_of(&BRINGING), rescheduling: labels.intern(RESCHEDULING) }
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

/// The events of one interrupt, or of one of its functions.
#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    /// The first function: its source and its fixed root.
    function: Option<(Label, Label)>,
    /// The first thread that this function wakes.
    woken: Option<Pid>,
    /// The fixed root of the last function with one.
    raises: Option<Label>,
    /// When the interrupt or the function ends.
    ended: Option<Nanos>,
}

impl Attributor {
    /// Names an interrupt that starts before the `coming` events, or one of its further functions if `begun` gives one.
    ///
    /// The first function gives the name. The root is, in this order: the fixed root of the function, the first thread that it wakes, the
    /// thread that the CPU switches to if the interrupt can let one run without waking it, or the interrupt itself.
    pub(super) fn name_carried<'e>(
        &mut self,
        (source, detail): (Label, Label),
        begun: Option<(Label, Label)>,
        mut coming: impl Iterator<Item = &'e Event>,
        with: &mut Context<'_>,
    ) -> Named {
        let ahead = self.look_ahead((source, detail), begun, &mut coming);
        let function = ahead.function.filter(|(name, _)| *name != Label::EMPTY);
        let shown = function.map_or(source, |(name, _)| name);
        let own = self.causes.label(Kind::Irq, shown, with.labels);
        let fixed = function.map(|(_, root)| root).filter(|root| *root != Label::EMPTY);
        let cause = fixed
            .or_else(|| ahead.woken.and_then(|thread| self.root_of_thread(thread, with)))
            .or_else(|| {
                let ended = ahead.ended.filter(|_| self.carriers.is_bringing(shown, detail))?;
                self.root_of_thread(switches_to(ended, coming)?, with)
            })
            .unwrap_or(own);
        let detail = match function {
            _ if cause != own => cause,
            Some(_) => source,
            None => detail,
        };
        Named { source: shown, detail, cause, raises: ahead.raises.unwrap_or(cause) }
    }

    /// Reads the events up to the end of the interrupt, or of the function that has `begun`.
    fn look_ahead<'e>(
        &self,
        vehicle: (Label, Label),
        begun: Option<(Label, Label)>,
        coming: &mut impl Iterator<Item = &'e Event>,
    ) -> Ahead {
        let fixed = |root: Label| Some(root).filter(|root| *root != Label::EMPTY);
        let raises = begun.and_then(|(_, root)| fixed(root));
        let mut ahead = Ahead { function: begun, raises, ..Ahead::default() };
        let (mut running, mut nested) = (begun.is_some(), 0_u32);
        for event in coming {
            match event.what {
                Happening::Lost { .. } | Happening::Switch { .. } => break,
                Happening::IrqEntry { .. } => nested += 1,
                Happening::IrqExit { .. } if nested > 0 => nested -= 1,
                Happening::IrqExit { .. } if begun.is_some() => break,
                Happening::IrqExit { source, detail } if (source, detail) == vehicle => {
                    ahead.ended = Some(event.time);
                    break;
                }
                _ if nested > 0 => {}
                Happening::FunctionEntry { by: Carrier::Timer | Carrier::Call, .. } if begun.is_some() => break,
                Happening::FunctionEntry { source, root, by: Carrier::Timer | Carrier::Call, .. } => {
                    running = ahead.function.is_none();
                    if running {
                        (ahead.function, ahead.woken) = (Some((source, root)), None);
                    }
                    ahead.raises = fixed(root).or(ahead.raises);
                }
                Happening::FunctionExit { .. } if begun.is_some() => {
                    ahead.ended = Some(event.time);
                    break;
                }
                Happening::FunctionExit { .. } => running = false,
                Happening::Waking { thread }
                    if running || ahead.function.is_none() && self.carriers.is_sent(vehicle.0) =>
                {
                    ahead.woken = ahead.woken.or(Some(thread));
                }
                _ => {}
            }
        }
        ahead
    }

    /// The root of the work of another thread, if that thread has a name.
    fn root_of_thread(&mut self, thread: Pid, with: &mut Context<'_>) -> Option<Label> {
        let task = with.tasks.get(thread).filter(|_| thread != Pid::IDLE && thread != self.thread.pid)?;
        Some(self.causes.label(task.kind, task.source, with.labels))
    }
}

/// The thread that the CPU switches to on the way out of an interrupt that `ended` then. Softirqs may run before the switch.
fn switches_to<'e>(mut ended: Nanos, coming: impl Iterator<Item = &'e Event>) -> Option<Pid> {
    for event in coming {
        match event.what {
            Happening::Switch { prev_runnable: true, next, .. }
                if saturating_sub(event.time, ended) <= SWITCHES_WITHIN =>
            {
                return Some(next);
            }
            // The exit of the interrupt itself follows the end of its functions.
            Happening::IrqExit { .. } | Happening::SoftirqExit { .. } => ended = event.time,
            Happening::SoftirqEntry { .. }
            | Happening::FunctionEntry { .. }
            | Happening::FunctionExit { .. }
            | Happening::Waking { .. } => {}
            _ => return None,
        }
    }
    None
}
