//! Event streams as a kernel could write them: made from a list of choices by a small model of a CPU, so that every
//! list gives a legal stream and shrinks to a shorter one.

use becalm_model::Step;
use becalm_model::carried::Carrier;
use becalm_model::{Event, Happening, Pid, ThreadState};
use becalm_units::Nanos;
use proptest::prelude::*;

use crate::scene::{COLLECTOR, KSOFTIRQD, KWORKERS, LOOP, SSHD, STRANGER, Scene, at, event_of_thread, step, wake};

/// One choice: what to do, with which variant, after how long.
type Choice = (u8, u8, i64);

/// Steps and all the events of a run.
#[derive(Debug)]
pub struct Stream {
    pub steps: Vec<Step>,
    pub events: Vec<Event>,
}

const THREADS: [Pid; 8] = [LOOP, KSOFTIRQD, KWORKERS[0], SSHD, Pid::IDLE, KWORKERS[1], COLLECTOR, STRANGER];
const IRQS: [&str; 3] = ["local_timer", "eth0", "reschedule"];
const SOFTIRQS: [&str; 4] = ["timer", "net_rx", "rcu", "hrtimer"];
/// Functions of interrupts, the last one without a name.
const FUNCTIONS: [(Carrier, &str); 5] = [
    (Carrier::Timer, "tick"),
    (Carrier::Timer, "timer:hrtimer_wakeup"),
    (Carrier::Call, "ipi:rps_trigger_softirq"),
    (Carrier::Timer, "timer:dl_task_timer"),
    (Carrier::Call, ""),
];
/// Functions of the softirqs `timer` and `hrtimer`, the last one without a name.
const TIMERS: [&str; 3] = ["timer:process_timeout", "timer:delayed_work_timer_fn", ""];
const WORKS: [&str; 2] = ["kworker:vmstat_update", "kworker:flush"];

/// The random choices from which [`stream`] makes a stream.
pub fn choices() -> impl Strategy<Value = Vec<Choice>> {
    let gap = prop_oneof![1 => Just(0), 3 => 1..15_i64, 1 => 15..400_i64];
    prop::collection::vec((0..38_u8, any::<u8>(), gap), 0..120)
}

/// The stream that the choices lead to; it ends outside of steps.
pub fn stream(scene: &mut Scene, choices: &[Choice]) -> Stream {
    let mut cpu = Cpu::new(scene);
    for &(action, variant, gap) in choices {
        cpu.time += gap;
        cpu.act(action, usize::from(variant));
    }
    if cpu.step_start.is_some() {
        cpu.toggle_step();
    }
    Stream { steps: cpu.steps, events: cpu.events }
}

#[derive(Clone, Copy)]
enum Open {
    Softirq(usize),
    /// A function of the softirq `hrtimer`. Those of others have no event at their end.
    Timer,
    Work(usize, u64),
    Fault,
}

struct Cpu<'a> {
    scene: &'a mut Scene,
    time: i64,
    events: Vec<Event>,
    steps: Vec<Step>,
    step_start: Option<i64>,
    current: usize,
    /// Interrupts under way, each with the function that it runs.
    irqs: Vec<(usize, Option<Carrier>)>,
    /// What is open in each thread, innermost last.
    open: [Vec<Open>; THREADS.len()],
    works: u64,
}

impl<'a> Cpu<'a> {
    fn new(scene: &'a mut Scene) -> Self {
        Self {
            scene,
            time: 10_000,
            events: Vec::new(),
            steps: Vec::new(),
            step_start: None,
            current: 0,
            irqs: Vec::new(),
            open: Default::default(),
            works: 0,
        }
    }

    fn act(&mut self, action: u8, variant: usize) {
        match action {
            0..5 => self.irq(variant % IRQS.len()),
            5..12 => self.end_top(),
            12 => self.switch_unseen(variant % THREADS.len()),
            13..17 => self.softirq(variant % SOFTIRQS.len()),
            17..22 => self.switch(variant / 2 % THREADS.len(), variant.is_multiple_of(2)),
            22..24 => self.work(variant % WORKS.len()),
            24..26 => {
                self.open_fault();
                let event = self.scene.fault(self.time, "page_fault_user");
                self.write(event);
            }
            26..28 => {
                let event = self.scene.nmi(self.time, "perf", (variant / 8) as i64);
                self.write(event);
            }
            28 => self.lose(variant),
            29..33 => self.function(variant % FUNCTIONS.len()),
            33..35 if !self.irqs.is_empty() || self.timer_softirq().is_some() => {
                self.write(wake(self.time, THREADS[variant % THREADS.len()]))
            }
            _ => {
                self.toggle_step();
                if variant.is_multiple_of(4) {
                    // The next one follows at once.
                    self.toggle_step();
                }
            }
        }
    }

    /// Writes an event down, as the current thread's.
    fn write(&mut self, event: Event) {
        self.events.push(Event { thread: THREADS[self.current], ..event });
    }

    fn irq(&mut self, which: usize) {
        if !self.irqs.iter().any(|(irq, _)| *irq == which) {
            self.irqs.push((which, None));
            let event = self.scene.irq_entry(self.time, IRQS[which]);
            self.write(event);
        }
    }

    fn end_top(&mut self) {
        if let Some((_, function)) = self.irqs.last_mut()
            && let Some(carrier) = function.take()
        {
            let event = self.scene.function_exit(self.time, carrier, "untraced");
            self.write(event);
            return;
        }
        if let Some((which, _)) = self.irqs.pop() {
            let event = self.scene.irq_exit(self.time, IRQS[which]);
            self.write(event);
            return;
        }
        let event = match self.open[self.current].last() {
            Some(Open::Softirq(which)) => self.scene.softirq_exit(self.time, SOFTIRQS[*which]),
            // Every other end of a work item leaves the function out.
            Some(Open::Work(which, work)) => {
                self.scene.work_end(self.time, if work % 2 == 0 { "" } else { WORKS[*which] }, *work)
            }
            Some(Open::Timer) => self.scene.function_exit(self.time, Carrier::Timer, "untraced"),
            Some(Open::Fault) | None => return,
        };
        self.open[self.current].pop();
        self.write(event);
    }

    /// The runner of the functions of the softirq that is on top, if it runs timers.
    fn timer_softirq(&self) -> Option<Carrier> {
        let top = self.open[self.current].last().filter(|_| self.irqs.is_empty())?;
        match top {
            Open::Softirq(which) if SOFTIRQS[*which] == "timer" => Some(Carrier::Wheel),
            Open::Softirq(which) if SOFTIRQS[*which] == "hrtimer" => Some(Carrier::Timer),
            Open::Timer => Some(Carrier::Timer),
            _ => None,
        }
    }

    /// The function of the interrupt or the softirq ends, or another one begins.
    fn function(&mut self, which: usize) {
        if let Some(carrier) = self.timer_softirq() {
            if matches!(self.open[self.current].last(), Some(Open::Timer)) {
                return self.end_top();
            }
            if carrier == Carrier::Timer {
                self.open[self.current].push(Open::Timer);
            }
            let event = self.scene.function_entry(self.time, carrier, TIMERS[which % TIMERS.len()], "untraced");
            return self.write(event);
        }
        match self.irqs.last_mut() {
            Some((_, running @ None)) => {
                let (carrier, source) = FUNCTIONS[which];
                *running = Some(carrier);
                let event = self.scene.function_entry(self.time, carrier, source, "untraced");
                self.write(event);
            }
            Some(_) => self.end_top(),
            None => {}
        }
    }

    fn softirq(&mut self, which: usize) {
        let open = &mut self.open[self.current];
        // A thread runs one at a time.
        if self.irqs.is_empty() && !open.iter().any(|open| matches!(open, Open::Softirq(_))) {
            open.push(Open::Softirq(which));
            let event = self.scene.softirq_entry(self.time, SOFTIRQS[which]);
            self.write(event);
        }
    }

    fn work(&mut self, which: usize) {
        let open = &self.open[self.current];
        // A kworker's own, or one of those that softirqs run since Linux 6.9.
        let kworker = KWORKERS.contains(&THREADS[self.current]) && open.is_empty();
        if self.irqs.is_empty() && (kworker || matches!(open.last(), Some(Open::Softirq(_)))) {
            self.works += 1;
            self.open[self.current].push(Open::Work(which, self.works));
            let event = self.scene.work_start(self.time, WORKS[which], self.works);
            self.write(event);
        }
    }

    fn open_fault(&mut self) {
        if self.current == 0 && self.irqs.is_empty() && self.open[0].is_empty() {
            self.open[0].push(Open::Fault);
        }
    }

    /// Goes to another thread without a word.
    fn switch_unseen(&mut self, next: usize) {
        if self.irqs.is_empty() {
            self.current = next;
        }
    }

    fn switch(&mut self, next: usize, prev_runnable: bool) {
        if self.irqs.is_empty() && next != self.current {
            let (prev, next_pid) = (THREADS[self.current], THREADS[next]);
            let prev_state = if prev_runnable { ThreadState::RUNNABLE } else { ThreadState::SLEEPING };
            self.write(at(self.time, Happening::Switch { prev, prev_state, next: next_pid }));
            self.current = next;
        }
    }

    /// Loses events, and with them whatever the CPU did meanwhile.
    fn lose(&mut self, variant: usize) {
        self.irqs.clear();
        self.open = Default::default();
        self.current = variant / 4 % THREADS.len();
        let count = (!variant.is_multiple_of(4)).then_some(variant as u64);
        self.write(at(self.time, Happening::Lost { count }));
    }

    /// Comes back to the loop, then begins or ends a step.
    fn toggle_step(&mut self) {
        while !self.irqs.is_empty() {
            self.end_top();
            self.time += 1;
        }
        if self.time % 8 == 0 {
            self.switch_unseen(0);
        }
        self.switch(0, true);
        while self.open[0].len() > usize::from(matches!(self.open[0].first(), Some(Open::Fault))) {
            self.time += 1;
            self.end_top();
        }
        self.open[0].clear();
        let after_events = self.events.last().is_none_or(|event| event.time < Nanos::new(self.time));
        self.time += i64::from(!after_events);
        match self.step_start.take() {
            None => self.step_start = Some(self.time),
            Some(start) => {
                self.time = self.time.max(start + 1);
                self.steps.push(step(start, self.time));
            }
        }
    }
}

/// Any events at all, in any order, at times that collide, and a few at the ends of the range.
pub fn hostile_events() -> impl Strategy<Value = Vec<(i64, u8, u8, u8)>> {
    let time = prop_oneof![
        20 => 0..400_i64,
        1 => Just(i64::MIN),
        1 => Just(i64::MAX - 1),
    ];
    (prop::collection::vec((time, 0..17_u8, 0..5_u8, any::<u8>()), 0..150), prop::bool::weighted(0.6)).prop_map(
        |(mut events, sorted)| {
            if sorted {
                events.sort_by_key(|event| event.0);
            }
            events
        },
    )
}

/// The event that such numbers stand for.
pub fn hostile_event(scene: &mut Scene, (time, what, which, more): (i64, u8, u8, u8)) -> Event {
    let which = usize::from(which);
    let thread = |n: usize| THREADS[n % THREADS.len()];
    let (irq, softirq, work) = (IRQS[which % 3], SOFTIRQS[which % 4], WORKS[which % 2]);
    let event = match what {
        0 | 1 => scene.irq_entry(time, irq),
        2 => scene.irq_exit(time, irq),
        3 => scene.softirq_entry(time, softirq),
        4 => scene.softirq_exit(time, softirq),
        5 => scene.work_start(time, work, which as u64),
        6 => scene.work_end(time, "", which as u64),
        7 => scene.fault(time, "page_fault_user"),
        8 => scene.nmi(time, "perf", i64::from(more) - 20),
        9 if more == 0 => scene.nmi(time, "perf", i64::MIN),
        9 if more == 1 => scene.nmi(time, "perf", i64::MAX),
        13 | 14 => scene.function_entry(time, FUNCTIONS[which].0, FUNCTIONS[which].1, "untraced"),
        15 => scene.function_exit(time, FUNCTIONS[which].0, "untraced"),
        16 => wake(time, thread(which)),
        10 if more < 64 => at(time, Happening::Lost { count: Some(u64::MAX >> (more % 2)) }),
        _ => {
            let (prev, next) = (thread(which), thread(usize::from(more / 2)));
            at(time, Happening::Switch { prev, prev_state: ThreadState(more % 2), next })
        }
    };
    event_of_thread(thread(usize::from(more / 16)), event)
}
