//! A thread in the books: its condition, its wait, and its totals.

use becalm_model::observed::{LifePart, Owner, StayReason, ThreadId};
use becalm_model::{Kind, Label, Pid, ThreadState};
use becalm_units::{CpuId, Nanos, NumberMap};

use super::Occupant;

/// Facts about a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadIdentity {
    /// The kernel's number.
    pub pid: Pid,
    /// The number of its process.
    pub process: Pid,
    /// The thread that created it, if that was observed.
    pub parent: Option<ThreadId>,
    /// Its name, at most 15 characters.
    pub name: Label,
    /// The command line of its process; empty if unknown.
    pub command: Label,
    /// The path of its control group; empty for the topmost one, or if unknown.
    pub group: Label,
    /// Whether it is a kernel thread.
    pub is_kernel: bool,
    /// Whether it belongs to becalm.
    pub is_becalm: bool,
    /// Whether it is observed.
    pub chosen: bool,
    /// When it was created, if that was observed.
    pub started: Option<Nanos>,
    /// When it ended, if that was observed.
    pub ended: Option<Nanos>,
}

impl ThreadIdentity {
    /// A thread with only its number.
    pub const fn unknown(pid: Pid) -> Self {
        Self {
            pid,
            process: pid,
            parent: None,
            name: Label::EMPTY,
            command: Label::EMPTY,
            group: Label::EMPTY,
            is_kernel: false,
            is_becalm: false,
            chosen: false,
            started: None,
            ended: None,
        }
    }
}

/// The current activity of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Condition {
    /// The trace does not tell.
    Unknown,
    /// It was created and has not been woken yet.
    Unborn,
    Ran,
    Queued {
        reason: StayReason,
        by: Option<ThreadId>,
    },
    OnTheWay {
        by: Option<ThreadId>,
    },
    Asleep {
        state: ThreadState,
        context: Label,
    },
    Stopped {
        state: ThreadState,
        context: Label,
    },
    /// It left the CPU without a switch in the trace: it sleeps, or waits for a CPU.
    Left,
    Dead,
}

impl Condition {
    pub const fn asleep(state: ThreadState, context: Label) -> Self {
        if state.is_stopped() && state.0 != ThreadState::UNKNOWN.0 {
            Self::Stopped { state, context: Label::EMPTY }
        } else {
            Self::Asleep { state, context }
        }
    }

    pub const fn part(self) -> LifePart {
        match self {
            Self::Ran => LifePart::Ran,
            Self::Queued { .. } => LifePart::Queued,
            Self::OnTheWay { .. } => LifePart::OnTheWay,
            Self::Asleep { .. } => LifePart::Asleep,
            Self::Stopped { .. } => LifePart::Stopped,
            Self::Unknown | Self::Unborn | Self::Left | Self::Dead => LifePart::Unknown,
        }
    }

    pub const fn by(self) -> Option<ThreadId> {
        match self {
            Self::Queued { by, .. } | Self::OnTheWay { by } => by,
            _ => None,
        }
    }

    /// Reason, context and waker of a stay.
    pub const fn told(self) -> (StayReason, Label, Option<ThreadId>) {
        match self {
            Self::Queued { reason, by } => (reason, Label::EMPTY, by),
            Self::OnTheWay { by } => (StayReason::Woken, Label::EMPTY, by),
            Self::Asleep { state, context } | Self::Stopped { state, context } => {
                (StayReason::Left(state), context, None)
            }
            _ => (StayReason::None, Label::EMPTY, None),
        }
    }
}

/// A part of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretch {
    /// The CPU.
    pub cpu: CpuId,
    pub from: Nanos,
    pub until: Nanos,
    /// Whether a quota kept the thread from running.
    pub is_quota: bool,
    /// Whether the thread has not been moved to another CPU yet.
    pub is_first: bool,
    /// Whether it continues the last stretch of an earlier part of the wait, if there is one.
    pub goes_on: bool,
}

/// A wait for a CPU, possibly on several in turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wait {
    /// The CPUs, each with the instant from which it was waited for.
    places: Vec<(CpuId, Nanos)>,
    /// Stretches during which a quota kept the thread from running, in order of time.
    quotas: Vec<(Nanos, Nanos)>,
    /// The part of it in earlier books, if it was divided.
    pub before: Option<EarlierPart>,
}

/// The part of a wait in earlier books.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct EarlierPart {
    /// The takers of the CPU then, and their time.
    pub taken: Vec<(Taken, Nanos)>,
    /// How often those came who had the CPU that it still waits for.
    pub visits: Vec<(Occupant, u64)>,
    /// Whether the thread had been moved to another CPU.
    pub has_moved: bool,
}

impl Wait {
    pub fn new(cpu: CpuId, at: Nanos) -> Self {
        Self { places: vec![(cpu, at)], quotas: Vec::new(), before: None }
    }

    /// The wait counts from now on only.
    pub fn restart(&mut self, cpu: CpuId, at: Nanos) {
        *self = Self::new(cpu, at);
    }

    /// The thread was moved to another CPU.
    pub fn go_on(&mut self, cpu: CpuId, at: Nanos) {
        self.places.push((cpu, at));
    }

    /// Whether the thread was moved to another CPU since it waits.
    pub fn has_moved(&self) -> bool {
        self.places.len() > 1 || self.before.as_ref().is_some_and(|before| before.has_moved)
    }

    pub fn since(&self) -> Nanos {
        self.places[0].1
    }

    /// The last known instant.
    pub fn latest(&self) -> Nanos {
        let moved = self.places.last().map_or(Nanos::ZERO, |(_, at)| *at);
        self.quotas.last().map_or(moved, |(_, until)| moved.max(*until))
    }

    pub fn cpus(&self) -> impl Iterator<Item = CpuId> {
        self.places.iter().map(|(cpu, _)| *cpu)
    }

    /// A quota kept the thread from running since `from`.
    pub fn add_quota(&mut self, from: Nanos, until: Nanos) {
        let from = self.quotas.pop_if(|last| last.1 >= from).map_or(from, |last| last.0.min(from));
        self.quotas.push((from, until));
    }

    /// The stretches of the wait until `end`.
    pub fn stretches(&self, end: Nanos) -> Vec<Stretch> {
        let mut found = Vec::new();
        let had_moved = self.before.as_ref().is_some_and(|before| before.has_moved);
        for (place, (cpu, start)) in self.places.iter().enumerate() {
            let over = self.places.get(place + 1).map_or(end, |next| next.1).max(*start);
            let stretch = |from, until, is_quota| Stretch {
                cpu: *cpu,
                from,
                until,
                is_quota,
                is_first: place == 0 && !had_moved,
                goes_on: place == 0 && from == *start && !is_quota,
            };
            let mut since = *start;
            for (from, until) in &self.quotas {
                let (from, until) = ((*from).clamp(since, over), (*until).clamp(since, over));
                found.push(stretch(since, from, false));
                found.push(stretch(from, until, true));
                since = until;
            }
            found.push(stretch(since, over, false));
        }
        found.retain(|stretch| stretch.until > stretch.from);
        found
    }

    /// The parts of the wait until `end`.
    pub fn parts(&self, end: Nanos) -> Vec<(LifePart, Nanos, Nanos)> {
        let mut since = self.since();
        let mut parts = Vec::new();
        for (begin, over) in &self.quotas {
            parts.push((LifePart::Queued, since, *begin));
            parts.push((LifePart::Quota, *begin, *over));
            since = *over;
        }
        parts.push((LifePart::Queued, since, end));
        parts
    }
}

/// A time and a count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeCount {
    /// The sum.
    pub time: Nanos,
    /// How often.
    pub count: u64,
    /// The longest single time.
    pub longest: Nanos,
}

impl TimeCount {
    pub(super) fn add(&mut self, time: Nanos, count: u64) {
        self.add_part(time, count, time);
    }

    /// Adds a part of a longer time.
    pub(super) fn add_part(&mut self, time: Nanos, count: u64, whole: Nanos) {
        self.time += time;
        self.count += count;
        self.longest = self.longest.max(whole);
    }
}

/// The use of a thread's time on the CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RanAs {
    /// The program itself, in user mode or in the kernel.
    Program,
    /// Work of the kernel on its behalf, by name: a system call, `reclaim`.
    Own(Label),
    /// An interrupt or a softirq on top.
    Activity(Kind, Label),
    /// The hypervisor.
    Host,
}

/// Sleep of one sort.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sleep {
    /// The state of the thread when it left the CPU.
    pub state: ThreadState,
    /// Where: the system call, `page_fault`, `reclaim`; empty if unknown.
    pub context: Label,
}

/// A taker of a thread's time: who had the CPU while it waited.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Taken {
    /// The owner, relative to the choice.
    pub owner: Owner,
    /// The kind.
    pub kind: Kind,
    /// The name; of a thread the one that it had then.
    pub source: Label,
    /// The thread, if it is one.
    pub thread: Option<ThreadId>,
}

/// The books of an observed thread.
#[derive(Clone, Debug)]
pub struct ThreadBooks {
    /// The start of its books.
    pub start: Nanos,
    /// The end of its books: of its life, or of the observation.
    pub end: Nanos,
    /// Time on a CPU.
    pub ran: Nanos,
    /// Time between being woken and being on a run queue.
    pub on_the_way: Nanos,
    /// Time on a run queue without a CPU, without quota.
    pub queued: Nanos,
    /// Time on a run queue because its group had used up its CPU time.
    pub quota: Nanos,
    /// Time asleep.
    pub asleep: Nanos,
    /// Time stopped by a signal or a debugger.
    pub stopped: Nanos,
    /// Time that the trace does not show.
    pub unknown: Nanos,
    /// How often it got a CPU.
    pub switches: u64,
    /// The time on a CPU by what it was spent on.
    pub ran_as: NumberMap<RanAs, TimeCount>,
    /// The time asleep or stopped by sort.
    pub sleeps: NumberMap<Sleep, TimeCount>,
    /// The time queued or kept by a quota, by who had the CPU; the longest is the most that one wait lost to it.
    pub takers: NumberMap<Taken, TimeCount>,
}

impl ThreadBooks {
    pub(super) fn new(start: Nanos) -> Self {
        Self {
            start,
            end: start,
            ran: Nanos::ZERO,
            on_the_way: Nanos::ZERO,
            queued: Nanos::ZERO,
            quota: Nanos::ZERO,
            asleep: Nanos::ZERO,
            stopped: Nanos::ZERO,
            unknown: Nanos::ZERO,
            switches: 0,
            ran_as: NumberMap::default(),
            sleeps: NumberMap::default(),
            takers: NumberMap::default(),
        }
    }

    /// Adds a stay. Running time was credited as it passed.
    pub(super) fn add(&mut self, part: LifePart, length: Nanos) {
        let sum = match part {
            LifePart::Ran => return,
            LifePart::OnTheWay => &mut self.on_the_way,
            LifePart::Queued => &mut self.queued,
            LifePart::Quota => &mut self.quota,
            LifePart::Asleep => &mut self.asleep,
            LifePart::Stopped => &mut self.stopped,
            LifePart::Unknown => &mut self.unknown,
        };
        *sum += length;
    }

    /// The time that the hypervisor took on the CPU.
    pub fn host(&self) -> Nanos {
        self.ran_as.get(&RanAs::Host).map_or(Nanos::ZERO, |host| host.time)
    }

    /// Moves time of the program to the hypervisor, as far as there is any, and returns it.
    pub(super) fn move_to_host(&mut self, excess: Nanos) -> Nanos {
        let Some(program) = self.ran_as.get_mut(&RanAs::Program) else { return Nanos::ZERO };
        let taken = excess.min(program.time);
        program.time -= taken;
        self.ran_as.entry(RanAs::Host).or_default().add(taken, 1);
        taken
    }

    /// The length of the observed life.
    pub fn wall(&self) -> Nanos {
        self.end - self.start
    }

    /// By how much the parts of its life differ from its length, and what it did on the CPU, while asleep and while queued from these parts: 0 if
    /// the books are right.
    pub fn imbalance(&self) -> Nanos {
        let sum = |times: &mut dyn Iterator<Item = &TimeCount>| times.map(|part| part.time).sum::<Nanos>();
        let parts = self.ran + self.on_the_way + self.queued + self.quota + self.asleep + self.stopped + self.unknown;
        let off = |one: Nanos, other: Nanos| Nanos::new((one - other).get().abs());
        off(parts, self.wall())
            + off(sum(&mut self.ran_as.values()), self.ran)
            + off(sum(&mut self.sleeps.values()), self.asleep + self.stopped)
            + off(sum(&mut self.takers.values()), self.queued + self.quota)
    }
}

/// A thread, chosen or not.
#[derive(Debug)]
pub(super) struct ObservedThread {
    pub identity: ThreadIdentity,
    /// Whether its name is known.
    pub is_named: bool,
    pub condition: Condition,
    /// The start of its current stay.
    pub since: Nanos,
    /// The CPU on which it is, waits, or last was.
    pub cpu: CpuId,
    pub wait: Option<Wait>,
    /// It was woken while it still ran, by this thread.
    pub pending: Option<Option<ThreadId>>,
    /// Work of the kernel on its behalf that it does now, innermost last.
    pub works: Vec<Label>,
    /// Whether it had a page fault since it last had the CPU or made a system call.
    pub faults: bool,
    /// Whether it is made to wait for a disk.
    pub is_paused: bool,
    /// The work item that it runs, if it is a kworker.
    pub item: Option<Label>,
    /// Until when the kernel accounted for its time on the CPU.
    pub accounted_until: Nanos,
    /// By how much its time on the CPU exceeds the accounted one.
    pub excess: Nanos,
    /// `None` unless it is chosen and the books are open.
    pub books: Option<ThreadBooks>,
}

impl ObservedThread {
    pub fn new(identity: ThreadIdentity) -> Self {
        Self {
            identity,
            is_named: false,
            condition: Condition::Unknown,
            since: Nanos::ZERO,
            cpu: CpuId::new(0),
            wait: None,
            pending: None,
            works: Vec::new(),
            faults: false,
            is_paused: false,
            item: None,
            accounted_until: Nanos::ZERO,
            excess: Nanos::ZERO,
            books: None,
        }
    }

    /// The start of its wait, if it waits.
    pub fn waits_since(&self) -> Nanos {
        self.wait.as_ref().map_or(self.since, Wait::since)
    }

    /// The place where it falls asleep now.
    pub fn sleeps_in(&self, dirty: Label, page_fault: Label) -> Label {
        if self.is_paused {
            dirty
        } else if self.faults {
            page_fault
        } else {
            self.works.last().copied().unwrap_or(Label::EMPTY)
        }
    }
}
