//! Events from text, named like those of the kernel's own records.

use std::collections::{BTreeMap, HashMap, HashSet};

use becalm_measure::{Names, SOFTIRQS, UNTRACED_TIMER, function_source};
use becalm_model::{Event, Happening, Label, Life, Pid};
use becalm_units::{CpuId, Nanos};

use super::clock::Axis;
use super::{HeldTrace, ThreadLog};
use crate::read::ReadError;
use crate::read::kernel_text::{TextEvent, TextHappening, VectorDetail};
use crate::read::perfetto::PerfettoTaker;

/// Takes the events of a text, in the order of the text.
#[derive(Debug, Default)]
pub struct TextNamer {
    cpus: BTreeMap<CpuId, TextCpu>,
    irqs: HashMap<i32, (Label, Label)>,
    first: Option<Nanos>,
    log: ThreadLog,
    /// Threads with an event of their creation. A second event of the same creation adds nothing.
    created: HashSet<i32>,
}

/// The events of a CPU, with the times of the text.
#[derive(Debug, Default)]
struct TextCpu {
    events: Vec<Event>,
    /// Names in events, each with the place of its event.
    named: Vec<(usize, Pid, Label)>,
    /// The thread on the CPU after the last event.
    current: Pid,
}

impl TextNamer {
    /// Takes the next event.
    pub fn take(&mut self, event: &TextEvent<'_>, names: &mut Names) {
        if let TextHappening::Created { thread: (pid, _), in_process } = event.what {
            match in_process {
                Some(_) => self.created.insert(pid),
                None if self.created.remove(&pid) => return,
                None => false,
            };
        }
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
        if let (Some(process), true) = (event.process, event.thread.is_some()) {
            self.log.set_process(thread, Pid(process));
        }
        for (pid, name) in event.what.named().into_iter().flatten().filter(|(pid, name)| *pid != 0 && !name.is_empty())
        {
            names.see(Pid(pid), name.as_bytes());
            if !matches!(event.what, TextHappening::Created { .. }) {
                cpu.named.push((cpu.events.len(), Pid(pid), names.labels.intern(name)));
            }
        }
        cpu.current = if let Happening::Switch { next, .. } = what { next } else { thread };
        cpu.events.push(Event { time: event.time, thread, in_interrupt: false, what });
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
                Happening::FunctionEntry { source, root, carrier, interrupt: labels.intern(UNTRACED_TIMER), request: 0 }
            }
            TextHappening::FunctionExit { carrier } => {
                Happening::FunctionExit { carrier, interrupt: labels.intern(UNTRACED_TIMER) }
            }
            TextHappening::Waking { thread: (pid, _) } => Happening::Waking { thread: Pid(pid) },
            TextHappening::Woken { thread: (pid, _), cpu, is_new } => {
                Happening::Woken { thread: Pid(pid), cpu: CpuId::new(cpu), is_new }
            }
            TextHappening::Moved { thread, cpu } => {
                Happening::Life(Life::Moved { thread: Pid(thread), cpu: CpuId::new(cpu) })
            }
            TextHappening::Created { thread: (pid, name), in_process } => {
                let (name, in_process) = (labels.intern(name), in_process.unwrap_or(false));
                Happening::Life(Life::Created { thread: Pid(pid), name, in_process })
            }
            TextHappening::Renamed { thread: (pid, name) } => {
                Happening::Life(Life::Renamed { thread: Pid(pid), name: labels.intern(name) })
            }
            TextHappening::Accounted { thread, ran } => Happening::Life(Life::Accounted { thread: Pid(thread), ran }),
            TextHappening::Lost { count } => Happening::Lost { count },
        }
    }

    /// Takes the process of a thread, and its name if that is known.
    fn know(&mut self, thread: Pid, process: Pid, name: &str, names: &mut Names) {
        self.log.set_process(thread, process);
        if !name.is_empty() && names.name_of(thread).is_none() {
            names.see(thread, name.as_bytes());
        }
    }

    /// The trace, on an axis that starts with the first event, and the start of that axis by the clock of the recording. Fails if there is
    /// no event, or the times are too far apart.
    pub fn finish(self) -> Result<(HeldTrace, Nanos), ReadError> {
        let first = self
            .first
            .ok_or_else(|| ReadError::new("it holds no interrupt, softirq, switch of threads or work item"))?;
        let (mut cpus, mut backwards, mut log) = (Vec::new(), 0, self.log);
        for (cpu, TextCpu { mut events, named, .. }) in self.cpus {
            let mut axis = Axis::new(first.get().into());
            for event in &mut events {
                event.time = axis.place(event.time.get().into(), 0)?;
                log.settle(event);
            }
            backwards += axis.backwards;
            named.into_iter().for_each(|(place, pid, name)| log.name(cpu, events[place].time, pid, name));
            cpus.push((cpu, events));
        }
        Ok((HeldTrace::new(cpus, backwards).with_threads(log), first))
    }
}

impl PerfettoTaker for (&mut TextNamer, &mut Names) {
    fn event(&mut self, event: &TextEvent<'_>) {
        self.0.take(event, self.1);
    }

    fn thread(&mut self, tid: i32, process: i32, name: &str) {
        self.0.know(Pid(tid), Pid(process), name, self.1);
    }

    fn process(&mut self, pid: i32, is_kernel: bool) {
        self.0.know(Pid(pid), Pid(pid), "", self.1);
        self.1.set_kernel(Pid(pid), is_kernel);
    }
}
