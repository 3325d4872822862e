//! A synthetic stream of a scheduler's events: many threads that wake each other, wait and sleep on several CPUs.

use becalm_attribute::books::{Books, Ledger, SwitchRepair, ThreadIdentity};
use becalm_model::carried::Carrier;
use becalm_model::observed::{OwnedActivity, Stay, ThreadDetour};
use becalm_model::{Event, Happening, Label, Labels, Life, Pid, ThreadState};
use becalm_units::{CpuId, Nanos};

/// The CPUs of the made-up machine.
const CPUS: usize = 16;
/// Threads of each CPU.
const THREADS: usize = 16;
/// The time between two switches of a CPU: 200,000 per second on all CPUs.
const STEP: i64 = 1_000_000_000 * CPUS as i64 / 200_000;
/// Threads that wait for a CPU at most.
const MOST_QUEUED: usize = 4;
/// Switches of a CPU between two ticks, which come every 4 ms.
const TICK: i64 = 4_000_000 / STEP;

/// A second of events, in order of time. A replay repeats it.
pub struct Switching {
    labels: Labels,
    events: Vec<(CpuId, Event)>,
    /// The switches in it.
    pub switches: u64,
}

/// A CPU of the made-up machine.
struct Cpu {
    current: Option<usize>,
    queue: std::collections::VecDeque<usize>,
    asleep: Vec<usize>,
}

/// Receives stays and detours as a recording does, and keeps only their number.
#[derive(Default)]
struct Counted {
    stays: u64,
    rows: usize,
}

impl Ledger for Counted {
    fn stay(&mut self, _: &Stay) {
        self.stays += 1;
    }

    fn detour(&mut self, _: &ThreadDetour, rows: &[OwnedActivity]) {
        self.rows += rows.len();
    }
}

/// The result of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// The events taken.
    pub events: u64,
    /// Threads with parts that do not add up to their lives.
    pub unbalanced: u64,
    /// Parts of lives.
    pub stays: u64,
}

const fn pid(cpu: usize, thread: usize) -> Pid {
    Pid((1_000 + cpu * THREADS + thread) as i32)
}

impl Default for Switching {
    fn default() -> Self {
        let mut labels = Labels::new();
        let timer = labels.intern("local_timer");
        let tick = labels.intern("tick");
        let reschedule = labels.intern("reschedule");
        let softirq = labels.intern("sched");
        let (mut events, mut switches) = (Vec::new(), 0);
        let mut cpus: Vec<Cpu> = (0..CPUS)
            .map(|_| Cpu { current: None, queue: Default::default(), asleep: (0..THREADS).collect() })
            .collect();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as usize % below
        };
        for step in 0..1_000_000_000 / STEP {
            for number in 0..CPUS {
                let mut now = step * STEP + number as i64 * (STEP / CPUS as i64);
                let mut write = |cpu: usize, on: Option<usize>, after: i64, what: Happening| {
                    now += after;
                    let thread = on.map_or(Pid::IDLE, |thread| pid(cpu, thread));
                    events.push((
                        CpuId::new(cpu as u32),
                        Event { time: Nanos::new(now), thread, in_interrupt: false, what },
                    ));
                };
                let current = cpus[number].current;
                if step % TICK == 0 {
                    let irq = |source| Happening::IrqEntry { source, detail: Label::EMPTY };
                    write(number, current, 100, irq(timer));
                    let (root, carrier, interrupt) = (Label::EMPTY, Carrier::Timer, timer);
                    write(
                        number,
                        current,
                        100,
                        Happening::FunctionEntry { source: tick, root, carrier, interrupt, request: 0 },
                    );
                    write(number, current, 900, Happening::IrqExit { source: timer, detail: Label::EMPTY });
                    write(number, current, 100, Happening::SoftirqEntry { source: softirq });
                    write(number, current, 900, Happening::SoftirqExit { source: softirq });
                }
                // It wakes a thread of its own CPU, or every fourth time one of another.
                let target = if random(4) == 0 { random(CPUS) } else { number };
                if cpus[target].queue.len() < MOST_QUEUED
                    && let Some(woken) = cpus[target].asleep.pop()
                {
                    let thread = pid(target, woken);
                    write(number, current, 2_000, Happening::Waking { thread });
                    let arrives = Happening::Woken { thread, cpu: CpuId::new(target as u32), is_new: false };
                    if target == number {
                        write(number, current, 500, arrives);
                    } else {
                        let (on, source, detail) = (cpus[target].current, reschedule, Label::EMPTY);
                        write(target, on, 1_000, Happening::IrqEntry { source, detail });
                        write(target, on, 300, arrives);
                        write(target, on, 300, Happening::IrqExit { source, detail });
                    }
                    cpus[target].queue.push_back(woken);
                }
                let next = cpus[number].queue.pop_front();
                if next.is_none() && current.is_none() {
                    continue;
                }
                if let Some(current) = current {
                    let ran = Nanos::new(STEP - 1_000);
                    let accounted = Life::Accounted { thread: pid(number, current), ran };
                    write(number, Some(current), 500, Happening::Life(accounted));
                }
                let is_preempted = random(4) == 0;
                let prev_state = if is_preempted { ThreadState::RUNNABLE } else { ThreadState::SLEEPING };
                let [prev, to] = [current, next].map(|thread| thread.map_or(Pid::IDLE, |thread| pid(number, thread)));
                write(number, current, 300, Happening::Switch { prev, prev_state, next: to });
                switches += 1;
                let cpu = &mut cpus[number];
                match current {
                    Some(current) if is_preempted => cpu.queue.push_back(current),
                    Some(current) => cpu.asleep.insert(0, current),
                    None => {}
                }
                cpu.current = next;
            }
        }
        // The next copy finds idle CPUs.
        for (number, cpu) in cpus.iter().enumerate() {
            if let Some(current) = cpu.current {
                let (prev, prev_state) = (pid(number, current), ThreadState::SLEEPING);
                let what = Happening::Switch { prev, prev_state, next: Pid::IDLE };
                events.push((
                    CpuId::new(number as u32),
                    Event { time: Nanos::new(999_999_999), thread: prev, in_interrupt: false, what },
                ));
                switches += 1;
            }
        }
        events.sort_by_key(|(cpu, event)| (event.time, *cpu));
        Self { labels, events, switches }
    }
}

impl Switching {
    /// The number of events in it.
    pub fn events(&self) -> u64 {
        self.events.len() as u64
    }

    /// Feeds this many seconds of it to books of threads that are all chosen, through the repair of missing switches.
    pub fn replay(&mut self, seconds: i64) -> Replayed {
        let Self { labels, events, .. } = self;
        let mut books = Books::new(Box::new(|_, _| true), &[], true, labels);
        for number in 0..CPUS * THREADS {
            let pid = pid(number / THREADS, number % THREADS);
            let identity =
                ThreadIdentity { name: labels.intern(&format!("thread {number}")), ..ThreadIdentity::unknown(pid) };
            let cpu = CpuId::new((number / THREADS) as u32);
            books.meet(pid, &identity, Some((ThreadState::SLEEPING, cpu)), Nanos::ZERO, labels);
        }
        books.open(Nanos::ZERO, labels);
        let mut counted = Counted::default();
        let mut repairs = vec![SwitchRepair::default(); CPUS];
        for second in 0..seconds {
            let later = Nanos::from_secs(second);
            for (cpu, event) in &*events {
                let event = Event { time: event.time + later, ..*event };
                let mut pass = |event| books.take(*cpu, &event, labels, &mut counted);
                repairs[cpu.get() as usize].take(event, &mut pass);
            }
        }
        books.close(Nanos::from_secs(seconds), &mut counted);
        let all = books.threads().filter_map(|(_, _, books)| books);
        let unbalanced = all.filter(|books| books.imbalance() != Nanos::ZERO).count() as u64;
        Replayed { events: books.tally().events, unbalanced, stays: counted.stays }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_has_the_promised_rate_and_lacks_nothing() {
        let mut switching = Switching::default();
        assert!((150_000..=200_000).contains(&switching.switches), "{}", switching.switches);
        let events = switching.events.len() as u64;
        let replayed = switching.replay(2);
        assert_eq!((replayed.events, replayed.unbalanced), (2 * events, 0));
    }
}
