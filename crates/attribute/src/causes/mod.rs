//! The causes of activities: who requested an interrupt, a softirq or a work item, and who woke a thread.
//!
//! The events of all CPUs come in order of time. A request waits until the activity starts that it is for:
//!
//! - **A call** is the youngest request for this CPU with the same identification and function. Calls are counted by request, not by interrupt.
//! - **A reschedule interrupt** is the youngest one sent to this CPU.
//! - **A work item** is the youngest one queued with the same address and function, which is then used up.
//! - **A softirq** is the youngest one raised on this CPU.
//! - **A thread** that gets a CPU was woken by the youngest wake-up before it was queued. A thread that was preempted continues for the same reason. One
//!   that has been runnable since before the trace has no known cause, and says so.
//! - **A timer** has its function; who set it is not known. **A device** has its interrupt.
//!
//! A request made in an interrupt, a softirq or a work item was not made by the thread on the CPU: it has the cause of that activity. So a chain ends
//! with a thread, a device or a timer; after [`MOST_LINKS`] links its end is not known.

mod chain;
mod thread;

use becalm_model::carried::{Carrier, TIMERS, runs};
use becalm_model::cause::{Cause, Requester};
use becalm_model::{Event, Happening, Kind, Label, Labels, Life, Pid, Tasks};
use becalm_units::{CpuId, CpuList, Nanos, NumberMap};

use self::chain::{Chain, Links};
use self::thread::{OpenWork, WokenThread};

pub use self::chain::MOST_LINKS;

/// More frames than the kernel ever nests.
const DEPTH: usize = 64;

/// Requests that wait at the same time, for example calls on one CPU. More of them were never carried out, or their execution was lost.
const MOST_WAITING: usize = 1 << 14;

/// A request that waits for its execution.
#[derive(Clone, Copy, Debug)]
struct Request {
    at: Nanos,
    chain: Chain,
    site: Label,
}

/// What runs above a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FrameKind {
    Irq,
    Softirq,
    Function(Carrier),
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    what: FrameKind,
    /// Identifies the event of its end.
    source: Label,
    /// The cause of requests made in it.
    chain: Chain,
    /// Whether it ran a function, which names it.
    is_named: bool,
    /// The activity; `None` for the function that names its interrupt or softirq.
    row: Option<Row>,
}

/// An activity that has not ended.
#[derive(Clone, Copy, Debug)]
struct Row {
    start: Nanos,
    kind: Kind,
    source: Label,
    task: Pid,
    chain: Chain,
    site: Label,
    delay: Option<Nanos>,
}

impl Row {
    /// An activity that starts now because of a request.
    fn new(start: Nanos, kind: Kind, source: Label, request: Option<Request>) -> Self {
        let chain = request.map(|request| request.chain).unwrap_or_default();
        let site = request.map_or(Label::EMPTY, |request| request.site);
        let delay = request.map(|request| (start - request.at).max(Nanos::ZERO));
        Self { start, kind, source, task: Pid::IDLE, chain, site, delay }
    }

    /// An activity that is its own cause.
    const fn own(start: Nanos, kind: Kind, source: Label, chain: Chain) -> Self {
        Self { start, kind, source, task: Pid::IDLE, chain, site: Label::EMPTY, delay: None }
    }
}

/// A CPU: what runs on it, and the requests that wait for it.
#[derive(Clone, Debug, Default)]
struct CpuCauses {
    is_measured: bool,
    stack: Vec<Frame>,
    /// The thread on the CPU since its last switch; `None` if unknown.
    current: Option<Pid>,
    /// Its stay, and that of its work item.
    stay: Option<Row>,
    work: Option<Row>,
    calls: NumberMap<u64, (Label, Request)>,
    reschedule: Option<Request>,
    raised: NumberMap<Label, Request>,
}

/// Finds the causes of activities on some CPUs.
#[derive(Debug)]
pub struct CauseFinder {
    /// The CPUs whose activities are reported; `None` for all.
    measured: Option<CpuList>,
    cpus: Vec<CpuCauses>,
    threads: NumberMap<Pid, WokenThread>,
    works: NumberMap<u64, (Label, Request)>,
    links: Links,
}

impl CauseFinder {
    /// For the activities on these CPUs; `None` for those on all. `own` are the threads of becalm.
    pub fn new(measured: Option<CpuList>, own: &[Pid], labels: &mut Labels) -> Self {
        Self {
            measured,
            cpus: Vec::new(),
            threads: NumberMap::default(),
            works: NumberMap::default(),
            links: Links::new(own, labels),
        }
    }

    /// Takes an event of a CPU, in order of time over all CPUs, and passes the causes of activities that it ends. `tasks` knows the threads of the
    /// events so far.
    pub fn take(
        &mut self,
        cpu: CpuId,
        event: &Event,
        tasks: &Tasks,
        labels: &mut Labels,
        found: &mut impl FnMut(Cause),
    ) {
        let place = self.place(cpu);
        let at = event.time;
        let is_switch = matches!(event.what, Happening::Switch { .. });
        if self.cpus[place].current.is_some_and(|current| current != event.thread)
            && !is_switch
            && !matches!(event.what, Happening::Lost { .. })
        {
            // The switch is not in the trace.
            self.leave(place, at, found);
        }
        match event.what {
            Happening::IrqEntry { source, detail } => self.enter_interrupt(place, source, detail, at, labels),
            Happening::IrqExit { source, .. } => {
                self.pop(place, |frame| frame.what == FrameKind::Irq && frame.source == source, at, found);
            }
            Happening::FunctionEntry { source, carrier, request, .. } => {
                self.enter_function(place, (source, carrier), request, at, labels, found);
            }
            Happening::FunctionExit { carrier, .. } => {
                self.pop(place, |frame| frame.what == FrameKind::Function(carrier), at, found);
            }
            Happening::SoftirqEntry { source } => {
                let request = self.cpus[place].raised.remove(&source);
                let row = Row::new(at, Kind::Softirq, source, request);
                let chain = self.links.link(row.chain, Kind::Softirq, source, labels);
                self.push(place, Frame { what: FrameKind::Softirq, source, chain, is_named: false, row: Some(row) });
            }
            Happening::SoftirqExit { source } => {
                self.pop(place, |frame| frame.what == FrameKind::Softirq && frame.source == source, at, found);
            }
            Happening::WorkStart { source, work } => self.start_work(place, event.thread, (source, work), at, labels),
            Happening::WorkEnd { work, .. } => {
                let thread = self.threads.entry(event.thread).or_default();
                if thread.work.take_if(|open| open.address == work).is_some() {
                    let row = self.cpus[place].work.take();
                    self.report(place, row, at, found);
                }
            }
            Happening::Switch { prev, prev_state, next } => {
                self.leave(place, at, found);
                self.threads.entry(prev).or_default().leave(prev_state.is_runnable());
                if prev_state.is_dead() {
                    self.threads.remove(&prev);
                }
                self.cpus[place].stack.clear();
                self.arrive(place, next, at, tasks);
            }
            Happening::Waking { thread } | Happening::Woken { thread, is_new: true, .. } => {
                let request = self.request(place, event, Label::EMPTY, tasks);
                self.threads.entry(thread).or_default().wake(request);
            }
            Happening::CallQueued { cpu, function, site, request: id } => {
                let request = self.request(place, event, site, tasks);
                let target = self.place(cpu);
                insert(&mut self.cpus[target].calls, id, (function, request));
            }
            Happening::InterruptSent { cpu, site, is_call: false } => {
                let request = self.request(place, event, site, tasks);
                let target = self.place(cpu);
                self.cpus[target].reschedule = Some(request);
            }
            Happening::WorkQueued { source, work } => {
                let request = self.request(place, event, Label::EMPTY, tasks);
                insert(&mut self.works, work, (source, request));
            }
            Happening::SoftirqRaised { source } => {
                let request = self.request(place, event, Label::EMPTY, tasks);
                self.cpus[place].raised.insert(source, request);
            }
            Happening::Lost { .. } => {
                let cpu = &mut self.cpus[place];
                cpu.stack.clear();
                cpu.raised.clear();
                (cpu.current, cpu.stay, cpu.work) = (None, None, None);
            }
            Happening::Life(Life::Renamed { thread, name }) => {
                self.threads.entry(thread).or_default().name = Some(name);
            }
            Happening::Life(Life::Created { thread, name, .. }) => {
                // The number may have been another thread's. Its creator wakes it for the first time.
                let request = self.request(place, event, Label::EMPTY, tasks);
                let mut created = WokenThread::named(name);
                created.wake(request);
                self.threads.insert(thread, created);
            }
            Happening::InterruptSent { .. }
            | Happening::Woken { .. }
            | Happening::Life(_)
            | Happening::Nmi { .. }
            | Happening::Fault { .. } => {}
        }
    }

    /// The place of a CPU, which is known from now on.
    fn place(&mut self, cpu: CpuId) -> usize {
        let place = cpu.get() as usize;
        if self.cpus.len() <= place {
            let (from, measured) = (self.cpus.len(), self.measured.as_ref());
            let is_measured = |number: usize| measured.is_none_or(|cpus| cpus.contains(CpuId::new(number as u32)));
            self.cpus.extend(
                (from..=place).map(|number| CpuCauses { is_measured: is_measured(number), ..CpuCauses::default() }),
            );
        }
        place
    }

    /// The name of a thread since an event named it.
    fn name(&self, pid: Pid) -> Option<Label> {
        self.threads.get(&pid)?.name
    }

    /// A request that is made now.
    fn request(&mut self, place: usize, event: &Event, site: Label, tasks: &Tasks) -> Request {
        let chain = match self.cpus[place].stack.last() {
            Some(frame) => frame.chain,
            None if event.in_interrupt => self.links.in_interrupt(),
            None => match self.threads.get(&event.thread).and_then(|thread| thread.work.as_ref()) {
                Some(work) => work.inner,
                None => self.links.thread(event.thread, self.name(event.thread), tasks),
            },
        };
        Request { at: event.time, chain, site }
    }

    fn enter_interrupt(&mut self, place: usize, source: Label, detail: Label, at: Nanos, labels: &mut Labels) {
        let name = labels.text(source);
        let row = if labels.text(detail).starts_with("irq ") {
            Row::own(at, Kind::Irq, source, Chain::end(Requester::Device, source))
        } else if TIMERS.contains(&name) {
            Row::own(at, Kind::Irq, source, Chain::end(Requester::Timer, source))
        } else if name == RESCHEDULE {
            Row::new(at, Kind::Irq, source, self.cpus[place].reschedule.take())
        } else {
            Row::new(at, Kind::Irq, source, None)
        };
        let chain = match row.chain.requester() {
            Requester::Device | Requester::Timer => row.chain,
            _ => self.links.link(row.chain, Kind::Irq, source, labels),
        };
        self.push(place, Frame { what: FrameKind::Irq, source, chain, is_named: false, row: Some(row) });
    }

    /// A function starts. The first one names its interrupt or softirq; further ones are activities of their own.
    fn enter_function(
        &mut self,
        place: usize,
        (source, carrier): (Label, Carrier),
        id: u64,
        at: Nanos,
        labels: &mut Labels,
        found: &mut impl FnMut(Cause),
    ) {
        if carrier == Carrier::Tasklet {
            // It belongs to its softirq.
            return;
        }
        if carrier == Carrier::Wheel {
            // The last one has no event at its end.
            let is_last = |frame: &Frame| frame.what == FrameKind::Function(Carrier::Wheel);
            if self.cpus[place].stack.last().is_some_and(is_last) {
                self.pop(place, is_last, at, found);
            }
        }
        let (row, chain) = if carrier == Carrier::Call {
            let calls = &mut self.cpus[place].calls;
            let request = calls.get(&id).filter(|(function, _)| id != 0 && *function == source);
            let request = request.map(|(_, request)| *request);
            if request.is_some() {
                calls.remove(&id);
            }
            let row = Row::new(at, Kind::Irq, source, request);
            (row, self.links.link(row.chain, Kind::Irq, source, labels))
        } else {
            let chain = Chain::end(Requester::Timer, self.links.plain_function(source, labels));
            let kind = if carrier == Carrier::Wheel { Kind::Softirq } else { Kind::Irq };
            (Row::own(at, kind, source, chain), chain)
        };
        let what = FrameKind::Function(carrier);
        let mut frame = Frame { what, source, chain, is_named: true, row: None };
        let carries = |top: &&mut Frame| match top.what {
            FrameKind::Irq => runs(Kind::Irq, "", carrier),
            FrameKind::Softirq => runs(Kind::Softirq, labels.text(top.source), carrier),
            FrameKind::Function(_) => false,
        };
        match self.cpus[place].stack.last_mut().filter(carries) {
            Some(vehicle) if !vehicle.is_named => {
                vehicle.is_named = true;
                if let Some(named) = &mut vehicle.row {
                    *named = Row { start: named.start, kind: named.kind, ..row };
                }
            }
            Some(vehicle) => {
                let kind = if vehicle.what == FrameKind::Irq { Kind::Irq } else { Kind::Softirq };
                frame.row = Some(Row { kind, ..row });
            }
            // A timer interrupt without an event of its own.
            None if carrier == Carrier::Timer => frame.row = Some(row),
            None => {}
        }
        self.push(place, frame);
    }

    fn start_work(&mut self, place: usize, pid: Pid, (source, address): (Label, u64), at: Nanos, labels: &mut Labels) {
        let queued = self.works.get(&address).filter(|(function, _)| *function == source).map(|(_, request)| *request);
        if queued.is_some() {
            self.works.remove(&address);
        }
        let row = Row::new(at, Kind::Workqueue, source, queued);
        let inner = self.links.link(row.chain, Kind::Workqueue, source, labels);
        self.threads.entry(pid).or_default().work = Some(OpenWork { address, row, inner });
        self.cpus[place].work = Some(row);
    }

    /// The thread on the CPU leaves it.
    fn leave(&mut self, place: usize, at: Nanos, found: &mut impl FnMut(Cause)) {
        let cpu = &mut self.cpus[place];
        cpu.current = None;
        for row in [cpu.stay.take(), cpu.work.take()] {
            self.report(place, row, at, found);
        }
    }

    /// A thread gets the CPU.
    fn arrive(&mut self, place: usize, next: Pid, at: Nanos, tasks: &Tasks) {
        self.cpus[place].current = Some(next);
        if next == Pid::IDLE {
            return;
        }
        let thread = self.threads.entry(next).or_default();
        let is_first = thread.arrive();
        let (request, work, has_slept) = (thread.woken, thread.work, thread.has_slept);
        let cpu = &mut self.cpus[place];
        cpu.work = work.map(|open| Row { start: at, delay: None, ..open.row });
        cpu.stay = tasks.get(next).map(|task| {
            let row = Row::new(at, task.kind, task.source, request);
            let chain = if request.is_none() && !has_slept { self.links.before() } else { row.chain };
            Row { task: next, chain, delay: row.delay.filter(|_| is_first), ..row }
        });
    }

    fn push(&mut self, place: usize, frame: Frame) {
        let stack = &mut self.cpus[place].stack;
        if stack.len() >= DEPTH {
            stack.clear();
        }
        stack.push(frame);
    }

    /// Ends the innermost matching frame and all above it; without a match nothing changes.
    fn pop(&mut self, place: usize, is_it: impl Fn(&Frame) -> bool, at: Nanos, found: &mut impl FnMut(Cause)) {
        let Some(depth) = self.cpus[place].stack.iter().rposition(is_it) else { return };
        while self.cpus[place].stack.len() > depth {
            let ended = self.cpus[place].stack.pop();
            self.report(place, ended.and_then(|frame| frame.row), at, found);
        }
    }

    fn report(&self, place: usize, row: Option<Row>, at: Nanos, found: &mut impl FnMut(Cause)) {
        let Some(Row { start, kind, source, task, chain, site, delay }) = row else { return };
        if self.cpus[place].is_measured {
            let Chain { requester, by, thread, context, .. } = chain;
            let (cpu, duration) = (CpuId::new(place as u32), (at - start).max(Nanos::ZERO));
            found(Cause { cpu, start, duration, kind, source, task, requester, by, thread, context, site, delay });
        }
    }
}

/// The interrupt of x86 that makes a CPU look for another thread. Its name on Arm is the detail of `ipi`.
const RESCHEDULE: &str = "reschedule";

/// Keeps a request, and forgets all others if there are too many.
fn insert(waiting: &mut NumberMap<u64, (Label, Request)>, id: u64, request: (Label, Request)) {
    if waiting.len() >= MOST_WAITING {
        waiting.clear();
    }
    waiting.insert(id, request);
}
