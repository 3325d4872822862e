//! The books of threads against a plain simulation of a scheduler, which adds up each nanosecond.

use std::collections::BTreeMap;

use becalm_attribute::books::{Books, Ledger, RanAs, SwitchRepair, ThreadIdentity, TimeCount};
use becalm_model::observed::{LifePart, OwnedActivity, Owner, Stay, ThreadDetour, ThreadId};
use becalm_model::{Event, Happening, Kind, Label, Labels, Life, Pid, ThreadState};
use becalm_units::{CpuId, Nanos};
use proptest::prelude::*;

const CPUS: usize = 3;
const THREADS: usize = 7;
/// The threads with the lowest numbers are chosen.
const CHOSEN: usize = 4;

/// The deepest work of the kernel on behalf of a thread.
const WORKS: usize = 3;

/// What a simulated thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Does {
    Runs(usize),
    Queues { cpu: usize, was_woken: bool },
    Comes,
    Sleeps,
}

/// One nanosecond at a time.
struct Simulation {
    now: i64,
    threads: [Does; THREADS],
    /// Whether each was woken since it has the CPU.
    pending: [bool; THREADS],
    /// The thread on each CPU, and whether an interrupt is on top.
    cpus: [(Option<usize>, bool); CPUS],
    events: Vec<(usize, Event)>,
    /// Time of each chosen thread by part.
    parts: BTreeMap<(usize, LifePart), i64>,
    /// Time of each chosen thread by who had its CPU while it queued.
    takers: BTreeMap<(usize, String), i64>,
    /// Time of interrupts on top of each chosen thread.
    on_top: BTreeMap<usize, i64>,
    /// The depth of work of the kernel on behalf of each thread.
    works: [usize; THREADS],
    /// Time of each chosen thread on a CPU by this depth, without interrupts and with them.
    own: BTreeMap<(usize, usize), (i64, i64)>,
    irq: Label,
    names: [Label; WORKS],
}

const fn pid(thread: usize) -> Pid {
    Pid(100 + thread as i32)
}

impl Simulation {
    fn new(labels: &mut Labels) -> Self {
        let irq = labels.intern("local_timer");
        let names = ["work 1", "work 2", "work 3"].map(|name| labels.intern(name));
        let mut simulation = Self {
            now: 0,
            threads: [Does::Sleeps; THREADS],
            pending: [false; THREADS],
            cpus: [(None, false); CPUS],
            events: Vec::new(),
            parts: BTreeMap::new(),
            takers: BTreeMap::new(),
            on_top: BTreeMap::new(),
            works: [0; THREADS],
            own: BTreeMap::new(),
            irq,
            names,
        };
        // Each CPU is known to idle from the start.
        let (source, detail) = (irq, Label::EMPTY);
        for cpu in 0..CPUS {
            simulation.write(cpu, Happening::IrqEntry { source, detail });
            simulation.write(cpu, Happening::IrqExit { source, detail });
        }
        simulation
    }

    fn write(&mut self, cpu: usize, what: Happening) {
        let thread = self.cpus[cpu].0.map_or(Pid::IDLE, pid);
        self.events.push((cpu, Event { time: Nanos::new(self.now), thread, in_interrupt: false, what }));
    }

    fn pass(&mut self, length: i64) {
        for _ in 0..length {
            for thread in 0..CHOSEN {
                let part = match self.threads[thread] {
                    Does::Runs(cpu) => {
                        let (alone, all) = self.own.entry((thread, self.works[thread])).or_default();
                        *all += 1;
                        if self.cpus[cpu].1 {
                            *self.on_top.entry(thread).or_default() += 1;
                        } else {
                            *alone += 1;
                        }
                        LifePart::Ran
                    }
                    Does::Queues { cpu, was_woken } => {
                        let taker = match self.cpus[cpu] {
                            (_, true) => "interrupt".to_owned(),
                            (Some(other), false) => format!("thread {other}"),
                            (None, false) if was_woken => "idle exit".to_owned(),
                            (None, false) => "limit".to_owned(),
                        };
                        *self.takers.entry((thread, taker)).or_default() += 1;
                        LifePart::Queued
                    }
                    Does::Comes => LifePart::OnTheWay,
                    Does::Sleeps => LifePart::Asleep,
                };
                *self.parts.entry((thread, part)).or_default() += 1;
            }
            self.now += 1;
        }
    }

    /// Does something possible, chosen by three numbers.
    fn act(&mut self, (what, one, other): (u8, u8, u8)) {
        let (thread, cpu) = (usize::from(one) % THREADS, usize::from(other) % CPUS);
        match (what % 7, self.threads[thread]) {
            // The thread on another CPU wakes it.
            (0, Does::Sleeps) => {
                self.write(cpu, Happening::Waking { thread: pid(thread) });
                self.threads[thread] = Does::Comes;
            }
            // It leaves for sleep later, or finds its reason to sleep gone.
            (0, Does::Runs(_)) => {
                self.write(cpu, Happening::Waking { thread: pid(thread) });
                self.pending[thread] = true;
            }
            (1, Does::Runs(on)) if self.pending[thread] => {
                let on = CpuId::new(on as u32);
                self.write(cpu, Happening::Woken { thread: pid(thread), cpu: on, is_new: false });
                self.pending[thread] = false;
            }
            (0 | 1, Does::Comes) => {
                self.write(cpu, Happening::Woken { thread: pid(thread), cpu: CpuId::new(cpu as u32), is_new: false });
                self.threads[thread] = Does::Queues { cpu, was_woken: true };
            }
            // A switch to a waiting thread, or to idle.
            (2 | 3, _) => {
                let waiting = |does: &Does| matches!(does, Does::Queues { cpu: of, .. } if *of == cpu);
                let next =
                    (0..THREADS).map(|more| (thread + more) % THREADS).find(|next| waiting(&self.threads[*next]));
                self.switch(cpu, next, what % 7 == 2);
            }
            (4, Does::Queues { cpu: from, .. }) if from != cpu => {
                self.write(cpu, Happening::Life(Life::Moved { thread: pid(thread), cpu: CpuId::new(cpu as u32) }));
                // On another CPU, an idle one wakes up for it.
                self.threads[thread] = Does::Queues { cpu, was_woken: true };
            }
            (5, _) => {
                let (source, detail) = (self.irq, Label::EMPTY);
                let is_on = self.cpus[cpu].1;
                self.write(
                    cpu,
                    if is_on { Happening::IrqExit { source, detail } } else { Happening::IrqEntry { source, detail } },
                );
                self.cpus[cpu].1 = !is_on;
            }
            (6, Does::Runs(on)) if !self.cpus[on].1 => {
                let depth = self.works[thread];
                if other.is_multiple_of(2) && depth < WORKS {
                    self.write(on, Happening::Life(Life::WorkBegan { work: self.names[depth] }));
                    self.works[thread] += 1;
                } else if depth > 0 {
                    self.write(on, Happening::Life(Life::WorkEnded { work: self.names[depth - 1] }));
                    self.works[thread] -= 1;
                }
            }
            _ => {}
        }
    }

    fn switch(&mut self, cpu: usize, next: Option<usize>, stays_runnable: bool) {
        let prev = self.cpus[cpu].0;
        if prev == next || self.cpus[cpu].1 {
            return;
        }
        let prev_state = if stays_runnable && prev.is_some() { ThreadState::RUNNABLE } else { ThreadState::SLEEPING };
        let [from, to] = [prev, next].map(|thread| thread.map_or(Pid::IDLE, pid));
        self.write(cpu, Happening::Switch { prev: from, prev_state, next: to });
        if let Some(prev) = prev {
            self.threads[prev] = match (prev_state.is_runnable(), self.pending[prev]) {
                (true, _) => Does::Queues { cpu, was_woken: false },
                (false, true) => Does::Comes,
                (false, false) => Does::Sleeps,
            };
            self.pending[prev] = false;
        }
        if let Some(next) = next {
            self.threads[next] = Does::Runs(cpu);
        }
        self.cpus[cpu].0 = next;
    }
}

/// Adds up what the books report.
#[derive(Default)]
struct Sums {
    parts: BTreeMap<(ThreadId, LifePart), i64>,
    /// Time on a CPU by the work of the kernel.
    own: BTreeMap<(ThreadId, Label), i64>,
    ends: BTreeMap<ThreadId, i64>,
    detours: i64,
    rows: i64,
}

impl Ledger for Sums {
    fn stay(&mut self, stay: &Stay) {
        *self.parts.entry((stay.thread, stay.part)).or_default() += stay.duration.get();
        if stay.part == LifePart::Ran {
            *self.own.entry((stay.thread, stay.context)).or_default() += stay.duration.get();
        }
        let end = self.ends.entry(stay.thread).or_insert(stay.start.get());
        assert_eq!(*end, stay.start.get(), "the stays of a thread follow each other");
        *end += stay.duration.get();
    }

    fn detour(&mut self, detour: &ThreadDetour, rows: &[OwnedActivity]) {
        self.detours += detour.duration.get();
        self.rows += rows.iter().map(|row| row.time.get()).sum::<i64>();
    }
}

/// Books with the simulation's threads, all asleep.
fn books(labels: &mut Labels) -> Books {
    let choose = |thread: &ThreadIdentity, _: &Labels| (100..100 + CHOSEN as i32).contains(&thread.pid.0);
    let mut books = Books::new(Box::new(choose), &[], true, labels);
    for thread in 0..THREADS {
        let name = labels.intern(&format!("thread {thread}"));
        let identity = ThreadIdentity { name, ..ThreadIdentity::unknown(pid(thread)) };
        books.meet(pid(thread), &identity, Some((ThreadState::SLEEPING, CpuId::new(0))), Nanos::ZERO, labels);
    }
    books
}

fn scripts() -> impl Strategy<Value = Vec<((u8, u8, u8), i64)>> {
    proptest::collection::vec(((any::<u8>(), any::<u8>(), any::<u8>()), 0_i64..40), 1..400)
}

/// Times, counts and longest times by the number of a thread and a name.
type NamedSums = BTreeMap<(i32, String), (i64, u64, i64)>;

/// The sums of the portions that end at these instants, the last of which is the end, and the time that each chosen thread has in them.
fn sums_of_portions(simulation: &Simulation, labels: &mut Labels, cuts: &[i64]) -> (NamedSums, [i64; CHOSEN]) {
    let mut books = books(labels);
    books.open(Nanos::ZERO, labels);
    let mut sums = NamedSums::new();
    let mut wall = [0; CHOSEN];
    let mut events = simulation.events.iter().peekable();
    for cut in cuts.iter().copied() {
        while let Some((cpu, event)) = events.next_if(|(_, event)| event.time.get() <= cut) {
            books.take(CpuId::new(*cpu as u32), event, labels, &mut Sums::default());
        }
        for (thread, portion) in books.divide(Nanos::new(cut), &[], labels) {
            assert_eq!(portion.imbalance(), Nanos::ZERO);
            let of = books.identity(thread).pid.0;
            wall[(of - 100) as usize] += portion.wall().get();
            let parts = [portion.ran, portion.queued, portion.on_the_way, portion.asleep, portion.quota];
            let parts = parts.iter().enumerate().map(|(part, time)| (format!("part {part}"), (time.get(), 0, 0)));
            let switches = [("switches".to_owned(), (0, portion.switches, 0))];
            let takers = portion.takers.iter().map(|(taken, sum)| (format!("{taken:?}"), *sum));
            let ran = portion
                .ran_as
                .iter()
                .map(|(part, sum)| (format!("{part:?}"), TimeCount { longest: Nanos::ZERO, ..*sum }));
            let sleeps = portion
                .sleeps
                .iter()
                .map(|(sleep, sum)| (format!("{sleep:?}"), TimeCount { longest: Nanos::ZERO, ..*sum }));
            let counts = takers
                .chain(ran)
                .chain(sleeps)
                .map(|(name, sum)| (name, (sum.time.get(), sum.count, sum.longest.get())));
            for (name, (time, count, longest)) in parts.into_iter().chain(switches).chain(counts) {
                let sum: &mut (i64, u64, i64) = sums.entry((of, name)).or_default();
                *sum = (sum.0 + time, sum.1 + count, sum.2.max(longest));
            }
        }
    }
    sums.retain(|_, sum| *sum != (0, 0, 0));
    (sums, wall)
}

/// The interrupt of the second CPU comes once to a thread that moves there, also if the books are divided at that instant.
#[test]
fn a_wait_that_moves_where_the_books_are_divided_meets_what_is_there() {
    let mut labels = Labels::new();
    let mut simulation = Simulation::new(&mut labels);
    // Interrupts on both CPUs, and a thread that is woken on the first one.
    for (action, length) in [((5, 0, 0), 5), ((5, 0, 1), 5), ((0, 2, 0), 1), ((0, 2, 0), 10)] {
        simulation.act(action);
        simulation.pass(length);
    }
    let moved = simulation.now;
    simulation.act((4, 2, 1));
    simulation.pass(10);
    let end = simulation.now;
    let (whole, lives) = sums_of_portions(&simulation, &mut labels, &[end]);
    assert!(whole.values().any(|sum| *sum == (20, 2, 20)), "{whole:?}");
    assert_eq!(sums_of_portions(&simulation, &mut labels, &[moved, end]), (whole, lives));
}

proptest! {
    #[test]
    fn the_books_are_those_of_each_nanosecond(script in scripts()) {
        let mut labels = Labels::new();
        let mut simulation = Simulation::new(&mut labels);
        for (action, length) in script {
            simulation.act(action);
            simulation.pass(length);
        }
        let mut books = books(&mut labels);
        books.open(Nanos::ZERO, &labels);
        let mut sums = Sums::default();
        for (cpu, event) in &simulation.events {
            books.take(CpuId::new(*cpu as u32), event, &mut labels, &mut sums);
        }
        books.close(Nanos::new(simulation.now), &mut sums);

        prop_assert_eq!(books.tally().unexpected_runs, 0);
        prop_assert_eq!(sums.detours, sums.rows, "the activities of an interruption add up to it");
        let chosen: Vec<_> = books.threads().filter(|(.., books)| books.is_some()).collect();
        prop_assert_eq!(chosen.len(), CHOSEN);
        for (number, (id, identity, books)) in chosen.into_iter().enumerate() {
            let books = books.unwrap();
            prop_assert_eq!(identity.pid, pid(number));
            prop_assert_eq!((books.wall().get(), books.imbalance()), (simulation.now, Nanos::ZERO));
            let expected = |part| simulation.parts.get(&(number, part)).copied().unwrap_or(0);
            for (part, found) in [
                (LifePart::Ran, books.ran),
                (LifePart::Queued, books.queued),
                (LifePart::OnTheWay, books.on_the_way),
                (LifePart::Asleep, books.asleep),
            ] {
                prop_assert_eq!(found.get(), expected(part), "{:?} of thread {}", part, number);
                prop_assert_eq!(sums.parts.get(&(id, part)).copied().unwrap_or(0), expected(part));
            }
            let mut takers: BTreeMap<(usize, String), i64> = BTreeMap::new();
            for (taken, sum) in &books.takers {
                let name = match (taken.owner, taken.kind) {
                    (Owner::Interrupt, _) => "interrupt".to_owned(),
                    (Owner::Quota, _) => "limit".to_owned(),
                    (_, Kind::Kthread) => "idle exit".to_owned(),
                    _ => labels.text(taken.source).to_owned(),
                };
                *takers.entry((number, name)).or_default() += sum.time.get();
            }
            let expected: BTreeMap<_, _> =
                simulation.takers.iter().filter(|((of, _), _)| *of == number).map(|(key, ns)| (key.clone(), *ns)).collect();
            prop_assert_eq!(takers, expected);
            let on_top: i64 = books.ran_as.iter().filter(|(part, _)| matches!(part, RanAs::Activity(..))).map(|(_, sum)| sum.time.get()).sum();
            prop_assert_eq!(on_top, simulation.on_top.get(&number).copied().unwrap_or(0));
            for depth in 0..=WORKS {
                let (alone, all) = simulation.own.get(&(number, depth)).copied().unwrap_or_default();
                let work = depth.checked_sub(1).map_or(Label::EMPTY, |depth| simulation.names[depth]);
                let as_what = depth.checked_sub(1).map_or(RanAs::Program, |_| RanAs::Own(work));
                prop_assert_eq!(books.ran_as.get(&as_what).map_or(0, |sum| sum.time.get()), alone);
                prop_assert_eq!(sums.own.get(&(id, work)).copied().unwrap_or(0), all, "{:?} of thread {}", as_what, number);
            }
        }
    }

    /// Portions of the books, divided at any instants, add up to the whole: times, visits, the longest loss of a wait.
    #[test]
    fn portions_add_up_to_the_whole(script in scripts(), cuts in proptest::collection::btree_set(0_i64..8_000, 0..12)) {
        let mut labels = Labels::new();
        let mut simulation = Simulation::new(&mut labels);
        for (action, length) in script {
            simulation.act(action);
            simulation.pass(length);
        }
        let end = simulation.now;
        let (whole, lives) = sums_of_portions(&simulation, &mut labels, &[end]);
        prop_assert_eq!(lives, [end; CHOSEN]);
        let cuts: Vec<i64> = cuts.into_iter().filter(|cut| *cut < end).chain([end]).collect();
        let divided = sums_of_portions(&simulation, &mut labels, &cuts);
        prop_assert_eq!(divided, (whole, lives));
    }

    /// Whatever is missing from the trace, the parts of each life still add up.
    #[test]
    fn with_gaps_the_parts_still_add_up(script in scripts(), missing in proptest::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        let mut labels = Labels::new();
        let mut simulation = Simulation::new(&mut labels);
        for (action, length) in script {
            simulation.act(action);
            simulation.pass(length);
        }
        let mut events = simulation.events.clone();
        for index in missing {
            if !events.is_empty() {
                let place = index.index(events.len());
                // Some are marked as lost, others just lack.
                if place % 3 == 0 { events[place].1.what = Happening::Lost { count: Some(2) } } else { let _ = events.remove(place); }
            }
        }
        let mut repairs = vec![SwitchRepair::default(); CPUS];
        let mut repaired: Vec<(usize, Event)> = Vec::new();
        for (cpu, event) in events {
            repairs[cpu].take(event, &mut |event| repaired.push((cpu, event)));
        }
        for (cpu, repair) in repairs.iter_mut().enumerate() {
            repair.finish(&mut |event| repaired.push((cpu, event)));
        }
        repaired.sort_by_key(|(cpu, event)| (event.time, *cpu));
        let mut books = books(&mut labels);
        books.open(Nanos::ZERO, &labels);
        let mut sums = Sums::default();
        for (cpu, event) in &repaired {
            books.take(CpuId::new(*cpu as u32), event, &mut labels, &mut sums);
        }
        books.close(Nanos::new(simulation.now), &mut sums);
        prop_assert_eq!(sums.detours, sums.rows);
        for (_, _, books) in books.threads() {
            if let Some(books) = books {
                prop_assert_eq!((books.wall().get(), books.imbalance()), (simulation.now, Nanos::ZERO));
            }
        }
    }
}

#[test]
fn a_quota_ends_with_the_period_timer_and_covers_what_the_group_was_kept_from() {
    let mut labels = Labels::new();
    let choose = |thread: &ThreadIdentity, _: &Labels| thread.pid == pid(0);
    let mut books = Books::new(Box::new(choose), &["/limited".to_owned()], true, &mut labels);
    let (group, timer) = (labels.intern("/limited/inside"), labels.intern("timer:sched_cfs_period_timer"));
    let interrupt = labels.intern("local_timer");
    let identity = ThreadIdentity { group, ..ThreadIdentity::unknown(pid(0)) };
    books.meet(pid(0), &identity, Some((ThreadState::SLEEPING, CpuId::new(0))), Nanos::ZERO, &labels);
    books.open(Nanos::ZERO, &labels);
    let cpu = CpuId::new(0);
    let mut sums = Sums::default();
    let mut take = |time: i64, thread, what| {
        books.take(cpu, &Event { time: Nanos::new(time), thread, in_interrupt: false, what }, &mut labels, &mut sums);
    };
    let switch = |prev, prev_state, next| Happening::Switch { prev, prev_state, next };
    take(0, Pid::IDLE, switch(Pid::IDLE, ThreadState::RUNNABLE, pid(0)));
    // The group has used up its time after 100 ns; the CPU idles until the period ends.
    take(100, pid(0), switch(pid(0), ThreadState::RUNNABLE, Pid::IDLE));
    take(500, Pid::IDLE, Happening::IrqEntry { source: interrupt, detail: Label::EMPTY });
    let carrier = becalm_model::carried::Carrier::Timer;
    take(
        510,
        Pid::IDLE,
        Happening::FunctionEntry { source: timer, root: Label::EMPTY, carrier, interrupt: Label::EMPTY, request: 0 },
    );
    take(520, Pid::IDLE, Happening::IrqExit { source: interrupt, detail: Label::EMPTY });
    take(550, Pid::IDLE, switch(Pid::IDLE, ThreadState::RUNNABLE, pid(0)));
    books.close(Nanos::new(600), &mut sums);
    let (.., books) = books.threads().next().unwrap();
    let books = books.unwrap();
    assert_eq!([books.ran, books.quota, books.queued].map(Nanos::get), [150, 410, 40]);
    assert_eq!((books.wall().get(), books.imbalance()), (600, Nanos::ZERO));
}

#[test]
fn a_division_within_a_gap_leaves_its_time_unknown() {
    let mut labels = Labels::new();
    let mut books = books(&mut labels);
    books.open(Nanos::ZERO, &labels);
    let mut take = |books: &mut Books, time, what| {
        let event = Event { time: Nanos::new(time), thread: Pid::IDLE, in_interrupt: false, what };
        books.take(CpuId::new(0), &event, &mut labels, &mut Sums::default());
    };
    let switch = Happening::Switch { prev: Pid::IDLE, prev_state: ThreadState::RUNNABLE, next: pid(0) };
    take(&mut books, 100, switch);
    // Events after 100 are lost, and the first one that is not comes at 900.
    let portion = books.divide(Nanos::new(500), &[CpuId::new(0)], &Labels::new());
    let of = |portion: &[(ThreadId, becalm_attribute::books::ThreadBooks)]| {
        let (_, books) = &portion[0];
        assert_eq!(books.imbalance(), Nanos::ZERO);
        [books.asleep, books.ran, books.unknown].map(Nanos::get)
    };
    assert_eq!(of(&portion), [100, 0, 400]);
    take(&mut books, 900, Happening::Lost { count: Some(3) });
    take(&mut books, 900, switch);
    assert_eq!(of(&books.divide(Nanos::new(1_000), &[], &labels)), [0, 100, 400]);
    assert_eq!(books.tally().lost_events, 3);
}

#[test]
fn threads_that_ended_are_forgotten() {
    let mut labels = Labels::new();
    let mut books = books(&mut labels);
    books.open(Nanos::ZERO, &labels);
    let mut most = 0;
    for round in 0..100 {
        let (at, child) = (Nanos::new(round * 1_000), Pid(1_000 + round as i32));
        let mut take = |cpu, offset, thread, what| {
            let event = Event { time: at + Nanos::new(offset), thread, in_interrupt: false, what };
            books.take(CpuId::new(cpu), &event, &mut labels, &mut Sums::default());
        };
        let created = Life::Created { thread: child, name: Label::EMPTY, in_process: false };
        take(0, 1, pid(0), Happening::Life(created));
        take(0, 2, pid(0), Happening::Woken { thread: child, cpu: CpuId::new(1), is_new: true });
        let switch = |prev, prev_state, next| Happening::Switch { prev, prev_state, next };
        take(1, 3, Pid::IDLE, switch(Pid::IDLE, ThreadState::RUNNABLE, child));
        take(1, 500, child, switch(child, ThreadState::from_letter('X').unwrap(), Pid::IDLE));
        let portion = books.divide(at + Nanos::new(999), &[], &labels);
        // A child of a chosen thread is chosen; each has its books once.
        let of_child: Vec<_> = portion.iter().filter(|(thread, _)| books.identity(*thread).pid == child).collect();
        assert_eq!((of_child.len(), of_child[0].1.wall().get(), of_child[0].1.ran.get()), (1, 498, 497));
        most = most.max(books.threads().count());
    }
    assert!(most <= THREADS + 4, "{most}");
}
