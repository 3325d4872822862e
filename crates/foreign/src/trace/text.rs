//! Events from text, named like those of the kernel's own records.

use std::collections::{BTreeMap, HashMap};

use becalm_measure::{Names, SOFTIRQS, UNTRACED_TIMER, function_source};
use becalm_model::{Event, Happening, Label, Pid};
use becalm_units::{CpuId, Nanos};

use super::HeldTrace;
use super::clock::Axis;
use crate::read::ReadError;
use crate::read::kernel_text::{TextEvent, TextHappening, VectorDetail};

/// Takes the events of a text, in the order of the text.
#[derive(Debug, Default)]
pub struct TextNamer {
    cpus: BTreeMap<CpuId, TextCpu>,
    irqs: HashMap<i32, (Label, Label)>,
    first: Option<Nanos>,
}

/// The events of a CPU, with the times of the text.
#[derive(Debug, Default)]
struct TextCpu {
    events: Vec<Event>,
    /// The thread on the CPU after the last event.
    current: Pid,
}

impl TextNamer {
    /// Takes the next event.
    pub fn take(&mut self, event: &TextEvent<'_>, names: &mut Names) {
        let what = self.named(event.what, names);
        let cpu = self.cpus.entry(event.cpu).or_default();
        let thread = match event.what {
            TextHappening::Switch { prev, .. } => Pid(prev.0),
            _ => event.thread.map_or(cpu.current, Pid),
        };
        // A colon and a number is perf's name for a thread that it does not know.
        if event.thread.is_some() && thread != Pid::IDLE && !event.name.is_empty() && !event.name.starts_with(':') {
            names.see(thread, event.name.as_bytes());
        }
        if let TextHappening::Switch { prev, next, .. } = event.what {
            for (pid, name) in [prev, next].into_iter().filter(|(pid, _)| *pid != 0) {
                names.see(Pid(pid), name.as_bytes());
            }
        }
        if let TextHappening::Waking { thread: (pid, name) } = event.what {
            names.see(Pid(pid), name.as_bytes());
        }
        cpu.current = if let Happening::Switch { next, .. } = what { next } else { thread };
        cpu.events.push(Event { time: event.time, thread, what });
        self.first = Some(self.first.map_or(event.time, |first| first.min(event.time)));
    }

    fn named(&mut self, what: TextHappening<'_>, names: &mut Names) -> Happening {
        let labels = &mut names.labels;
        match what {
            TextHappening::IrqEntry { irq, name } => {
                let detail = labels.intern(&format!("irq {irq}"));
                let source = if name.is_empty() { detail } else { labels.intern(name) };
                self.irqs.insert(irq, (source, detail));
                Happening::IrqEntry { source, detail }
            }
            TextHappening::IrqExit { irq } => {
                let unknown = labels.intern("irq");
                let (source, detail) = self.irqs.get(&irq).copied().unwrap_or((unknown, unknown));
                Happening::IrqExit { source, detail }
            }
            TextHappening::VectorEntry { name, detail } | TextHappening::VectorExit { name, detail } => {
                let source = labels.intern(name);
                let detail = match detail {
                    VectorDetail::Number(number) => labels.intern(&format!("vector {number}")),
                    VectorDetail::Reason(reason) => labels.intern(reason),
                };
                match what {
                    TextHappening::VectorEntry { .. } => Happening::IrqEntry { source, detail },
                    _ => Happening::IrqExit { source, detail },
                }
            }
            TextHappening::SoftirqEntry { vec } | TextHappening::SoftirqExit { vec } => {
                let known = SOFTIRQS.get(vec as usize).map(|name| labels.intern(name));
                let source = known.unwrap_or_else(|| labels.intern(&format!("softirq {vec}")));
                match what {
                    TextHappening::SoftirqEntry { .. } => Happening::SoftirqEntry { source },
                    _ => Happening::SoftirqExit { source },
                }
            }
            TextHappening::Nmi { handler, delta } => Happening::Nmi { source: labels.intern(handler), delta },
            TextHappening::Switch { prev, prev_state, next } => {
                Happening::Switch { prev: Pid(prev.0), prev_state, next: Pid(next.0) }
            }
            TextHappening::WorkStart { work, function } => {
                Happening::WorkStart { source: labels.intern(&format!("kworker:{function}")), work }
            }
            TextHappening::WorkEnd { work, function } => {
                let source = function.map_or(Label::EMPTY, |function| labels.intern(&format!("kworker:{function}")));
                Happening::WorkEnd { source, work }
            }
            TextHappening::FunctionEntry { carrier, function } => {
                // The text has an address if its writer did not know the name.
                let (source, root) =
                    function_source(carrier, Some(function).filter(|name| !name.starts_with("0x")), labels);
                Happening::FunctionEntry { source, root, carrier, interrupt: labels.intern(UNTRACED_TIMER) }
            }
            TextHappening::FunctionExit { carrier } => {
                Happening::FunctionExit { carrier, interrupt: labels.intern(UNTRACED_TIMER) }
            }
            TextHappening::Waking { thread: (pid, _) } => Happening::Waking { thread: Pid(pid) },
            TextHappening::Lost { count } => Happening::Lost { count },
        }
    }

    /// The trace, on an axis that starts with the first event, and the start of that axis by the clock of the recording. Fails if there is
    /// no event, or the times are too far apart.
    pub fn finish(self) -> Result<(HeldTrace, Nanos), ReadError> {
        let first = self
            .first
            .ok_or_else(|| ReadError::new("it holds no interrupt, softirq, switch of threads or work item"))?;
        let (mut cpus, mut backwards) = (Vec::new(), 0);
        for (cpu, TextCpu { mut events, .. }) in self.cpus {
            let mut axis = Axis::new(first.get().into());
            for event in &mut events {
                event.time = axis.place(event.time.get().into(), 0)?;
            }
            backwards += axis.backwards;
            cpus.push((cpu, events));
        }
        Ok((HeldTrace::new(cpus, backwards), first))
    }
}
