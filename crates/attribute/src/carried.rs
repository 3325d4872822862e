//! What interrupts are for, by the events that follow their beginning: the functions that they run, the threads that these wake, and where
//! the CPU goes on.

use becalm_model::carried::{BRINGING, Carrier, RESCHEDULING, SENT};
use becalm_model::{Event, Happening, Kind, Label, Labels, Pid};
use becalm_units::Nanos;

use super::frame::{Named, saturating_sub};
use super::{Attributor, Context};

/// How long after an interrupt the CPU goes to the thread that it lets run: on the way out there is little to do, but for a scheduler whose
/// memory is cold. A measuring thread leaves its CPU on the way out of interrupts alone.
pub(super) const SWITCHES_WITHIN: Nanos = Nanos::new(50_000);

/// The interrupts of which more is known than their names.
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

    /// Whether the threads that an interrupt wakes outside of functions tell what it is for.
    pub fn is_sent(&self, source: Label) -> bool {
        self.sent.contains(&source)
    }

    /// Whether it lets threads run without waking them.
    pub fn is_bringing(&self, source: Label, detail: Label) -> bool {
        detail == self.rescheduling || self.bringing.contains(&source)
    }
}

/// What the events behind the beginning of an interrupt, or of one of its functions, tell.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    /// The first function: its source and the root that it always has.
    function: Option<(Label, Label)>,
    /// The first thread that it wakes.
    woken: Option<Pid>,
    /// The root of the last function that always has one.
    raises: Option<Label>,
    /// When the interrupt, or the function, ends.
    ended: Option<Nanos>,
}

impl Attributor {
    /// What an interrupt is called that begins before these events, or a further function of it where one is `begun`.
    ///
    /// It is named by its first function. Its root is the one that this function always has, or the first thread that it wakes, or, of an
    /// interrupt that lets a thread run without waking it, the thread to which the CPU goes right behind it; else it is its own root.
    pub(super) fn name_carried<'e>(
        &mut self,
        (source, detail): (Label, Label),
        begun: Option<(Label, Label)>,
        mut coming: impl Iterator<Item = &'e Event>,
        with: &mut Context<'_>,
    ) -> Named {
        let told = match begun {
            None => self.look_ahead((source, detail), &mut coming),
            Some(function) => Self::look_ahead_of_function(function, &mut coming),
        };
        let function = told.function.filter(|(name, _)| *name != Label::EMPTY);
        let shown = function.map_or(source, |(name, _)| name);
        let own = self.causes.label(Kind::Irq, shown, with.labels);
        let always = function.map(|(_, root)| root).filter(|root| *root != Label::EMPTY);
        let cause = always
            .or_else(|| told.woken.and_then(|thread| self.root_of_thread(thread, with)))
            .or_else(|| {
                let ended = told.ended.filter(|_| self.carriers.is_bringing(shown, detail))?;
                self.root_of_thread(switches_to(ended, coming)?, with)
            })
            .unwrap_or(own);
        let detail = match function {
            _ if cause != own => cause,
            Some(_) => source,
            None => detail,
        };
        Named { source: shown, detail, cause, raises: told.raises.unwrap_or(cause) }
    }

    /// Looks until the end of the interrupt.
    fn look_ahead<'e>(&self, (source, detail): (Label, Label), coming: &mut impl Iterator<Item = &'e Event>) -> Told {
        let (mut told, mut running, mut nested) = (Told::default(), false, 0_u32);
        for event in coming {
            match event.what {
                Happening::Lost { .. } | Happening::Switch { .. } => break,
                Happening::IrqEntry { .. } => nested += 1,
                Happening::IrqExit { .. } if nested > 0 => nested -= 1,
                Happening::IrqExit { source: other, detail: also } if (other, also) == (source, detail) => {
                    told.ended = Some(event.time);
                    break;
                }
                _ if nested > 0 => {}
                Happening::FunctionEntry { source: function, root, by: Carrier::Timer | Carrier::Call, .. } => {
                    running = told.function.is_none();
                    if running {
                        told.function = Some((function, root));
                        told.woken = None;
                    }
                    told.raises = Some(root).filter(|root| *root != Label::EMPTY).or(told.raises);
                }
                Happening::FunctionExit { .. } => running = false,
                Happening::Waking { thread } if running || told.function.is_none() && self.carriers.is_sent(source) => {
                    told.woken = told.woken.or(Some(thread));
                }
                _ => {}
            }
        }
        told
    }

    /// Looks until the end of the function.
    fn look_ahead_of_function<'e>(function: (Label, Label), coming: &mut impl Iterator<Item = &'e Event>) -> Told {
        let raises = Some(function.1).filter(|root| *root != Label::EMPTY);
        let (mut told, mut nested) = (Told { function: Some(function), raises, ..Told::default() }, 0_u32);
        for event in coming {
            match event.what {
                Happening::Lost { .. } | Happening::Switch { .. } => break,
                Happening::IrqEntry { .. } => nested += 1,
                Happening::IrqExit { .. } if nested > 0 => nested -= 1,
                Happening::IrqExit { .. } => break,
                _ if nested > 0 => {}
                Happening::FunctionEntry { by: Carrier::Timer | Carrier::Call, .. } => break,
                Happening::FunctionExit { .. } => {
                    told.ended = Some(event.time);
                    break;
                }
                Happening::Waking { thread } => told.woken = told.woken.or(Some(thread)),
                _ => {}
            }
        }
        told
    }

    /// The root of what another thread does, if it has a name.
    fn root_of_thread(&mut self, thread: Pid, with: &mut Context<'_>) -> Option<Label> {
        let task = with.tasks.get(thread).filter(|_| thread != Pid::IDLE && thread != self.thread.pid)?;
        Some(self.causes.label(task.kind, task.source, with.labels))
    }
}

/// The thread to which the CPU goes on the way out of an interrupt that ended then; softirqs may come before.
fn switches_to<'e>(mut ended: Nanos, coming: impl Iterator<Item = &'e Event>) -> Option<Pid> {
    for event in coming {
        match event.what {
            Happening::Switch { prev_runnable: true, next, .. }
                if saturating_sub(event.time, ended) <= SWITCHES_WITHIN =>
            {
                return Some(next);
            }
            // Behind one of its functions, the interrupt's own end.
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
