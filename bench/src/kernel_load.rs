//! A synthetic kernel trace: raw pages of interrupts, softirqs, switches and work items, and the steps of the loop around them. Copies of a
//! stretch differ only in the time stamps of their pages, so making ten million events costs no more than copying them.

use std::path::Path;

use becalm_attribute::Attributor;
use becalm_linux::clock::Anchor;
use becalm_linux::ftrace::synth::{Long, SynthKernel};
use becalm_linux::ftrace::{RawEvent, RawHappening, TraceClock, VectorName};
use becalm_measure::{EventClock, Names, Translator};
use becalm_model::{Activity, Detour, Event, Pid, Platform};
use becalm_model::{LoopThread, Step};
use becalm_units::{CpuId, Nanos, TickRate, Ticks, TicksToNanos};

/// The size of sub-buffers that the recorder requests from the kernel.
const PAGE_BYTES: usize = 64 << 10;
/// The loop's thread on CPU n has the id `LOOP + n`.
const LOOP: i32 = 20_000;
/// The id of the kworker.
const KWORKER: i32 = 77;
/// The id of a daemon.
const DAEMON: i32 = 912;

/// A period of one CPU: pages of its trace, and the steps of its loop.
#[derive(Clone, Debug)]
pub struct Stretch {
    pages: Vec<Vec<u8>>,
    /// The readings of the counter before and after each step, in ticks.
    steps: Vec<(u64, u64)>,
    /// The number of events in the pages.
    pub events: u64,
}

impl Stretch {
    /// The same, shifted by `ticks`.
    pub fn later(&self, ticks: u64) -> Self {
        let mut copy = self.clone();
        for page in &mut copy.pages {
            // A page starts with its time stamp; all other times in it are differences.
            let (stamp, _) = page.split_first_chunk_mut().expect("a page holds its time stamp");
            *stamp = (u64::from_ne_bytes(*stamp) + ticks).to_ne_bytes();
        }
        for (start, end) in &mut copy.steps {
            *start += ticks;
            *end += ticks;
        }
        copy
    }

    /// The steps in the run's time.
    pub fn steps(&self, axis: TicksToNanos) -> Vec<Step> {
        let instant = |ticks| axis.instant(Ticks::new(ticks));
        self.steps.iter().map(|(start, end)| Step { start: instant(*start), end: instant(*end) }).collect()
    }
}

/// A machine with a synthetic kernel.
#[derive(Debug)]
pub struct MadeUpMachine {
    kernel: SynthKernel,
    /// Converts its counter to the run's time.
    pub axis: TicksToNanos,
    rate: TickRate,
}

impl Default for MadeUpMachine {
    fn default() -> Self {
        let rate = TickRate::from_hz(2.6e9);
        Self { kernel: SynthKernel::new(Long::Bits64, PAGE_BYTES), axis: TicksToNanos::new(Ticks::new(0), rate), rate }
    }
}

impl MadeUpMachine {
    /// The ticks of its counter in a time.
    pub fn ticks(&self, time: Nanos) -> u64 {
        self.rate.ticks_in(time).get()
    }

    /// A stretch of `length` with at least `events` events in a CPU's trace.
    ///
    /// Every detour has a tick of the local timer; every second one a softirq, every fourth a kworker with a work item,
    /// every eighth a device interrupt and its softirq, every sixteenth a daemon that takes a page fault.
    pub fn stretch(&self, cpu: CpuId, events: u64, length: Nanos) -> Stretch {
        let mut made = Making {
            timer: self.vector("local_timer"),
            cpu,
            tick: self.rate.hz() / 1e9,
            events: Vec::with_capacity(events as usize + 16),
            current: LOOP + cpu.get() as i32,
            now: 0.0,
        };
        // 75 events in 16 detours.
        let detours = (events * 16).div_ceil(75);
        let spacing = self.ticks(length) as f64 / detours as f64;
        let mut steps = Vec::with_capacity(detours as usize);
        for detour in 0..detours {
            made.now = spacing * (detour as f64 + 0.25);
            let start = made.now as u64;
            made.detour(detour);
            made.wait(900.0);
            steps.push((start, made.now as u64));
        }
        Stretch { pages: self.kernel.pages(&made.events), steps, events: made.events.len() as u64 }
    }

    fn vector(&self, name: &str) -> VectorName {
        let mut vectors = self.kernel.decoder().vectors();
        vectors.find(|(_, text)| *text == name).expect("the made-up kernel knows its vectors").0
    }

    /// The names of its events that a recorder knows at its start.
    pub fn translator(&self) -> (Translator, Names) {
        // Its threads are not in /proc.
        let mut names = Names::new(Path::new("/nonexistent"));
        let translator =
            Translator::new(self.kernel.decoder(), None, &Default::default(), "untraced_timer", &mut names.labels);
        (translator, names)
    }

    /// Creates the attribution of a CPU.
    #[must_use]
    pub fn attributor(&self, cpu: CpuId, names: &mut Names) -> Attributor {
        let pid = Pid(LOOP + cpu.get() as i32);
        let thread = LoopThread { cpu, pid, t_min: Nanos::new(9), realtime: false };
        Attributor::new(thread, Platform::Guest, &mut names.labels)
    }

    /// Decodes and names a stretch's events, like the collector. Panics if a page cannot be decoded.
    pub fn decode(&self, stretch: &Stretch, translator: &mut Translator, names: &mut Names, events: &mut Vec<Event>) {
        let anchor = Anchor { ticks: Ticks::new(0), raw_ns: 0, wall_ns: 0, bracket: Ticks::new(0) };
        let clock = EventClock::new(TraceClock::X86Tsc, true, self.axis, anchor);
        for page in &stretch.pages {
            let decoded = self.kernel.decoder().page(page, &mut |raw| {
                let time = clock.instant(raw.time);
                events.push(translator.translate(&raw, time, names));
            });
            decoded.expect("a page of our own can be decoded");
        }
    }
}

/// The result of attribution for a CPU.
#[derive(Debug, Default)]
pub struct Attributed {
    /// The detours of the CPU, in order of time.
    pub detours: Vec<Detour>,
    /// Their activities.
    pub activities: Vec<Activity>,
}

impl Attributed {
    /// Attributes like the recorder's sink.
    pub fn attribute(&mut self, attributor: &mut Attributor, steps: &[Step], events: &[Event], names: &mut Names) {
        let Names { tasks, labels, .. } = names;
        attributor.attribute(steps, events, tasks, labels, &mut self.detours, &mut self.activities);
        if let Some(last) = steps.last() {
            attributor.advance(last.end, tasks, labels);
        }
    }

    /// Whether the times of all activities add up to those of the detours.
    pub fn closes(&self) -> bool {
        let detours: i64 = self.detours.iter().map(|detour| detour.duration.get()).sum();
        detours == self.activities.iter().map(|activity| activity.self_time.get()).sum::<i64>()
    }
}

/// Events of one CPU under construction.
struct Making {
    timer: VectorName,
    cpu: CpuId,
    /// Ticks per nanosecond.
    tick: f64,
    events: Vec<RawEvent<'static>>,
    /// The thread on the CPU.
    current: i32,
    now: f64,
}

impl Making {
    fn wait(&mut self, ns: f64) {
        self.now += ns * self.tick;
    }

    fn happen(&mut self, after_ns: f64, what: RawHappening<'static>) {
        self.wait(after_ns);
        self.events.push(RawEvent { time: self.now as u64, pid: self.current, in_interrupt: false, what });
        if let RawHappening::SchedSwitch { next_pid, .. } = what {
            self.current = next_pid;
        }
    }

    fn softirq(&mut self, vec: u32) {
        self.happen(150.0, RawHappening::SoftirqEntry { vec });
        self.happen(1200.0, RawHappening::SoftirqExit { vec });
    }

    fn switch(&mut self, to: Option<(i32, &'static [u8])>, from: Option<(i32, &'static [u8])>) {
        const RUNNABLE: i64 = 0;
        const SLEEPING: i64 = 1;
        let this: (i32, &[u8]) = (LOOP + self.cpu.get() as i32, b"becalm");
        let (prev, next) = (from.unwrap_or(this), to.unwrap_or(this));
        self.happen(
            300.0,
            RawHappening::SchedSwitch {
                prev_comm: prev.1,
                prev_pid: prev.0,
                prev_prio: 120,
                prev_state: if from.is_some() { SLEEPING } else { RUNNABLE },
                next_comm: next.1,
                next_pid: next.0,
                next_prio: 120,
            },
        );
    }

    fn detour(&mut self, number: u64) {
        self.happen(700.0, RawHappening::VectorEntry { name: self.timer, vector: 236 });
        self.happen(2100.0, RawHappening::VectorExit { name: self.timer, vector: 236 });
        if number.is_multiple_of(2) {
            self.softirq(if number.is_multiple_of(3) { 9 } else { 1 });
        }
        if number.is_multiple_of(4) {
            let kworker = Some((KWORKER, b"kworker/u8:2".as_slice()));
            let (work, function) = (0xffff_8881_0000_1000 + u64::from(self.cpu.get()) * 64, 0xffff_ffff_8120_0040);
            self.switch(kworker, None);
            self.happen(200.0, RawHappening::WorkStart { work, function });
            self.happen(2500.0, RawHappening::WorkEnd { work, function: Some(function) });
            self.switch(None, kworker);
        }
        if number.is_multiple_of(8) {
            self.happen(400.0, RawHappening::IrqHandlerEntry { irq: 27, name: b"virtio1-req.0" });
            self.happen(1600.0, RawHappening::IrqHandlerExit { irq: 27 });
            self.softirq(4);
        }
        if number.is_multiple_of(16) {
            let daemon = Some((DAEMON, b"chronyd".as_slice()));
            self.switch(daemon, None);
            self.happen(
                500.0,
                RawHappening::PageFault { user: true, address: 0x7f00_1000, ip: 0x40_1000, error_code: 6 },
            );
            self.switch(None, daemon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_made_up_trace_is_understood_whole() {
        let machine = MadeUpMachine::default();
        let cpu = CpuId::new(3);
        let (mut translator, mut names) = machine.translator();
        let mut attributor = machine.attributor(cpu, &mut names);
        let mut attributed = Attributed::default();
        let first = machine.stretch(cpu, 7_500, Nanos::from_secs(1));
        for second in 0..3 {
            let stretch = first.later(machine.ticks(Nanos::from_secs(second)));
            let mut events = Vec::new();
            machine.decode(&stretch, &mut translator, &mut names, &mut events);
            assert_eq!(events.len() as u64, stretch.events);
            attributed.attribute(&mut attributor, &stretch.steps(machine.axis), &events, &mut names);
        }
        let tally = attributor.finish(&mut names.labels);
        assert_eq!((first.events, attributed.detours.len()), (7_500, 4_800));
        assert_eq!((tally.events, tally.late_events, tally.refused_steps), (22_500, 0, 0));
        assert_eq!((tally.unmatched_entries, tally.unmatched_exits, tally.unmatched_switches), (0, 0, 0));
        assert_eq!(tally.below_threshold_events, 0);
        assert!(attributed.closes());
        assert!(attributed.activities.len() > 2 * attributed.detours.len());
    }
}
