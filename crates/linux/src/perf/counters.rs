//! Counters of the processor and of the kernel for one thread: cycles, instructions, cache misses, in user space and in the kernel separately.
//!
//! The events of each space form a group. The kernel schedules a group onto the processor's counters as a whole or not at all, so its events cover
//! the same instants and can be related. If there are fewer counters than events, groups take turns; each reading contains how long its group was
//! enabled and how long it counted, and [`CountedEvent::estimate`] scales by that. A timer interrupts the CPU to switch groups.
//!
//! Counting needs no help: between start and stop there are no system calls and no interrupts, except for those switches. Activity of a hypervisor is
//! not counted. Most virtual machines have no processor counters; the result contains the missing events, with the reason.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use becalm_units::Nanos;

use super::attributes::{
    Attributes, CACHE, DISABLE, DISABLED, ENABLE, EXCLUDE_HYPERVISOR, EXCLUDE_KERNEL, EXCLUDE_USER, HARDWARE,
    READ_GROUP, SOFTWARE, WHOLE_GROUP, control,
};
use crate::rights::Need;

/// Countable events of a thread.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, strum::Display, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum PerfEvent {
    /// Processor cycles while the thread ran.
    Cycles,
    /// Instructions that the processor completed, without those started on a wrong guess.
    Instructions,
    /// Loads that missed the first-level data cache.
    #[strum(serialize = "l1d_read_misses")]
    L1dReadMisses,
    /// Generic cache misses as defined by the processor's vendor: in the last level for Intel, in the second for AMD.
    CacheMisses,
    /// Loads that missed the last level of cache.
    #[strum(serialize = "llc_read_misses")]
    LastLevelReadMisses,
    /// Nanoseconds during which the thread ran; counted by the kernel.
    #[strum(serialize = "task_clock_ns")]
    TaskClock,
    /// Page faults; counted by the kernel.
    PageFaults,
    /// Switches away from the thread; counted by the kernel.
    ContextSwitches,
    /// Moves to another CPU; counted by the kernel.
    Migrations,
}

/// The number of a cache event: which cache, loads (0), misses (1).
const fn load_misses(cache: u64) -> u64 {
    cache | 1 << 16
}

impl PerfEvent {
    /// Events that the processor counts, if it can: cycles, instructions, and misses of its caches.
    pub const OF_PROCESSOR: [Self; 4] = [Self::Cycles, Self::Instructions, Self::L1dReadMisses, Self::CacheMisses];

    /// Events that the kernel counts, on every machine with perf events.
    pub const OF_KERNEL: [Self; 4] = [Self::TaskClock, Self::PageFaults, Self::ContextSwitches, Self::Migrations];

    /// The kernel's type and number, from `include/uapi/linux/perf_event.h`.
    const fn code(self) -> (u32, u64) {
        match self {
            Self::Cycles => (HARDWARE, 0),
            Self::Instructions => (HARDWARE, 1),
            Self::CacheMisses => (HARDWARE, 3),
            Self::L1dReadMisses => (CACHE, load_misses(0)),
            Self::LastLevelReadMisses => (CACHE, load_misses(2)),
            Self::TaskClock => (SOFTWARE, 1),
            Self::PageFaults => (SOFTWARE, 2),
            Self::ContextSwitches => (SOFTWARE, 3),
            Self::Migrations => (SOFTWARE, 4),
        }
    }
}

/// Where an event is counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Space {
    /// Only the thread's activity in user mode.
    User,
    /// Only the kernel's activity while the thread runs.
    Kernel,
}

impl Space {
    /// Both spaces, for counting an event in each of them separately.
    pub const APART: [Self; 2] = [Self::User, Self::Kernel];
}

/// Counters that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    /// A system call on the counters failed: to `start`, `stop` or `read` them.
    #[error("cannot {0} the counters of this thread: {1}")]
    System(&'static str, io::Error),
    /// The kernel's answer of this many bytes does not match a group of this many events.
    #[error("cannot read the counters of this thread: {0} bytes came for a group of {1} events")]
    Answer(usize, usize),
}

/// An event that is not counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UncountedEvent {
    /// The event that is not counted.
    pub event: PerfEvent,
    /// The space that it is not counted in.
    pub space: Space,
    /// The reason, as part of a sentence.
    pub why: String,
}

/// The count of one event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountedEvent {
    /// The event that was counted.
    pub event: PerfEvent,
    /// The space that it was counted in.
    pub space: Space,
    /// How often the event happened while it was being counted.
    pub value: u64,
    /// The time during which it was enabled, while the thread ran.
    pub enabled: Nanos,
    /// The time during which it counted: less if events share the processor's counters.
    pub running: Nanos,
}

impl CountedEvent {
    /// The count for the whole time, scaled up from the time during which it counted; `None` if it never counted although the thread ran.
    pub fn estimate(&self) -> Option<f64> {
        match (self.enabled.get(), self.running.get()) {
            (enabled, running) if running > 0 && running < enabled => {
                Some(self.value as f64 * (enabled as f64 / running as f64))
            }
            (enabled, 0) if enabled > 0 => None,
            _ => Some(self.value as f64),
        }
    }

    /// The difference since an earlier reading of the same event.
    fn since(self, before: Self) -> Self {
        Self {
            value: self.value.saturating_sub(before.value),
            enabled: self.enabled - before.enabled,
            running: self.running - before.running,
            ..self
        }
    }
}

/// The events of one space; the first one is the leader.
#[derive(Debug)]
struct Group {
    space: Space,
    events: Vec<(PerfEvent, OwnedFd)>,
}

impl Group {
    /// Opens as many of the events as possible together, and adds the others to `missing` with the reason.
    fn open(space: Space, wanted: &[PerfEvent], missing: &mut Vec<UncountedEvent>) -> Self {
        let mut events: Vec<(PerfEvent, OwnedFd)> = Vec::with_capacity(wanted.len());
        for event in wanted {
            let (kind, config) = event.code();
            let mut attributes = Attributes { read_format: READ_GROUP, ..Attributes::new(kind, config) };
            attributes.flags |= EXCLUDE_HYPERVISOR;
            attributes.flags |= match space {
                Space::User => EXCLUDE_KERNEL,
                Space::Kernel => EXCLUDE_USER,
            };
            let leader = events.first().map(|(_, leader)| leader.as_fd());
            if leader.is_some() {
                // Members follow their leader.
                attributes.flags &= !DISABLED;
            }
            match attributes.open_for_current_thread(leader) {
                Ok(descriptor) => events.push((*event, descriptor)),
                Err(error) => {
                    missing.push(UncountedEvent { event: *event, space, why: why_not(&error, leader.is_some()) })
                }
            }
        }
        Self { space, events }
    }

    fn control(&self, action: &'static str, request: libc::c_ulong) -> Result<(), CountersError> {
        match self.events.first() {
            Some((_, leader)) => {
                control(leader.as_fd(), request, WHOLE_GROUP).map_err(|source| CountersError::System(action, source))
            }
            None => Ok(()),
        }
    }

    fn read(&self, counts: &mut Vec<CountedEvent>) -> Result<(), CountersError> {
        let Some((_, leader)) = self.events.first() else { return Ok(()) };
        let mut bytes = [0; 8 * (3 + EVENTS_MAX)];
        let got = rustix::io::read(leader, &mut bytes).map_err(|error| CountersError::System("read", error.into()))?;
        let events: Vec<PerfEvent> = self.events.iter().map(|(event, _)| *event).collect();
        let parsed = parse(&bytes[..got], &events, self.space);
        counts.extend(parsed.ok_or(CountersError::Answer(got, events.len()))?);
        Ok(())
    }
}

/// The variants of [`PerfEvent`]: no group has more events.
const EVENTS_MAX: usize = 9;

/// Parses the kernel's data for a group: the number of events, time enabled, time running, then the value of each, all of 64 bits
/// (`struct read_format` in `include/uapi/linux/perf_event.h`).
fn parse(bytes: &[u8], events: &[PerfEvent], space: Space) -> Option<Vec<CountedEvent>> {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut words = words.iter().map(|word| u64::from_ne_bytes(*word));
    let count = words.next()?;
    let [enabled, running] = [words.next()?, words.next()?].map(|ns| Nanos::new(i64::try_from(ns).unwrap_or(i64::MAX)));
    let values: Vec<u64> = words.collect();
    if !rest.is_empty() || count != events.len() as u64 || values.len() != events.len() {
        return None;
    }
    let counted = |(event, value): (&PerfEvent, u64)| CountedEvent { event: *event, space, value, enabled, running };
    Some(events.iter().zip(values).map(counted).collect())
}

/// The reason why the kernel refuses an event.
fn why_not(error: &io::Error, in_group: bool) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
            "the processor, or its hypervisor, has no such counter".to_owned()
        }
        Some(libc::EACCES | libc::EPERM) => {
            format!("not permitted ({})", Need::KernelCounts.advice())
        }
        Some(libc::ENOSYS) => "this kernel was built without perf events".to_owned(),
        Some(libc::EINVAL | libc::ENOSPC) if in_group => "the processor has too few counters for it".to_owned(),
        Some(libc::EMFILE | libc::ENFILE) => "too many files are open".to_owned(),
        _ => error.to_string(),
    }
}

/// Counters of the thread that opened them. Dropping it closes them.
#[derive(Debug)]
pub struct Counters {
    groups: Vec<Group>,
    missing: Vec<UncountedEvent>,
    /// The counts at the last start.
    before: Vec<CountedEvent>,
}

impl Counters {
    /// Opens these events for the calling thread, in each of these spaces, without starting them. Unavailable events are in
    /// [`missing`](Self::missing).
    pub fn for_current_thread(events: &[PerfEvent], spaces: &[Space]) -> Self {
        let mut wanted = events.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let mut missing = Vec::new();
        let groups = spaces.iter().map(|space| Group::open(*space, &wanted, &mut missing));
        let groups = groups.filter(|group| !group.events.is_empty()).collect();
        Self { groups, missing, before: Vec::new() }
    }

    /// Whether nothing can be counted.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The events that are not counted, with the reason.
    pub fn missing(&self) -> &[UncountedEvent] {
        &self.missing
    }

    /// Starts counting from zero.
    pub fn start(&mut self) -> Result<(), CountersError> {
        // The kernel can reset the counts, but not their times.
        self.before = self.standing()?;
        self.groups.iter().try_for_each(|group| group.control("start", ENABLE))
    }

    /// Continues counting, adding to the earlier counts.
    pub fn resume(&self) -> Result<(), CountersError> {
        self.groups.iter().try_for_each(|group| group.control("start", ENABLE))
    }

    /// The counts since the counters were opened.
    pub fn total(&self) -> Result<Vec<CountedEvent>, CountersError> {
        self.standing()
    }

    /// Stops counting.
    pub fn stop(&self) -> Result<(), CountersError> {
        self.groups.iter().try_for_each(|group| group.control("stop", DISABLE))
    }

    /// The counts since the last start.
    pub fn read(&self) -> Result<Vec<CountedEvent>, CountersError> {
        let mut counts = self.standing()?;
        counts.iter_mut().zip(&self.before).for_each(|(count, before)| *count = count.since(*before));
        Ok(counts)
    }

    /// The counts since they were opened.
    fn standing(&self) -> Result<Vec<CountedEvent>, CountersError> {
        let mut counts = Vec::new();
        self.groups.iter().try_for_each(|group| group.read(&mut counts))?;
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::ThreadUsage;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_group_is_read_as_the_kernel_lays_it_out() {
        let events = [PerfEvent::Cycles, PerfEvent::Instructions];
        let counts = parse(&words(&[2, 1_000, 500, 70, 90]), &events, Space::User).unwrap();
        assert_eq!(
            counts.iter().map(|count| (count.event, count.value)).collect::<Vec<_>>(),
            [(PerfEvent::Cycles, 70), (PerfEvent::Instructions, 90)]
        );
        // Counted for half of the time.
        assert_eq!(counts[0].estimate(), Some(140.0));
        let whole = CountedEvent { running: counts[0].enabled, ..counts[0] };
        assert_eq!(whole.estimate(), Some(70.0));
        let never = CountedEvent { running: Nanos::ZERO, ..counts[0] };
        assert_eq!(never.estimate(), None);
        // A thread that did not run.
        assert_eq!(CountedEvent { enabled: Nanos::ZERO, ..never }.estimate(), Some(70.0));
        let later = CountedEvent { value: 100, enabled: Nanos::new(1_500), running: Nanos::new(900), ..counts[0] };
        let since = later.since(counts[0]);
        assert_eq!((since.value, since.enabled.get(), since.running.get()), (30, 500, 400));
    }

    #[test]
    fn another_answer_is_refused() {
        let events = [PerfEvent::Cycles];
        for bad in [&[][..], &[1], &[1, 2, 3], &[1, 2, 3, 4, 5], &[2, 2, 3, 4]] {
            assert_eq!(parse(&words(bad), &events, Space::User), None, "{bad:?}");
        }
        assert_eq!(parse(&[0; 33], &events, Space::User), None);
    }

    /// Touches fresh pages: each is a fault.
    fn fault(pages: usize) {
        let length = pages * 4096;
        // SAFETY: a mapping of our own, which nothing else refers to; it is written within its length and unmapped once.
        unsafe {
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let memory = libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, kind, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            libc::madvise(memory, length, libc::MADV_NOHUGEPAGE);
            for page in 0..pages {
                memory.cast::<u8>().add(page * 4096).write_volatile(1);
            }
            libc::munmap(memory, length);
        }
    }

    /// If perf events are forbidden, as in some containers, all of them are missing, with a reason.
    fn opened(events: &[PerfEvent]) -> Option<Counters> {
        let counters = Counters::for_current_thread(events, &Space::APART);
        if counters.is_empty() {
            assert_eq!(counters.missing().len(), 2 * events.len());
            assert!(counters.missing().iter().all(|missing| !missing.why.is_empty()));
            assert!(counters.read().unwrap().is_empty());
            return None;
        }
        Some(counters)
    }

    #[test]
    fn the_kernels_counters_agree_with_its_account_of_the_thread() {
        let Some(mut counters) = opened(&PerfEvent::OF_KERNEL) else { return };
        let before = ThreadUsage::for_current_thread();
        counters.start().unwrap();
        fault(300);
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        counters.stop().unwrap();
        let used = ThreadUsage::for_current_thread().since(before);
        let counts = counters.read().unwrap();
        let count = |event, space| {
            counts.iter().find(|count| count.event == event && count.space == space).map(|count| count.value)
        };
        let faults = count(PerfEvent::PageFaults, Space::User).unwrap();
        assert!((300..=used.faults).contains(&faults), "{faults} faults of {}", used.faults);
        // The kernel touched none of these pages.
        assert!(count(PerfEvent::PageFaults, Space::Kernel).is_none_or(|faults| faults < 50), "{counts:?}");
        // A switch happens in the kernel.
        if let Some(switches) = count(PerfEvent::ContextSwitches, Space::Kernel) {
            assert!((20..=used.voluntary_switches + used.involuntary_switches).contains(&switches), "{switches}");
        }
        assert_eq!(count(PerfEvent::ContextSwitches, Space::User), Some(0));
        let clock = count(PerfEvent::TaskClock, Space::User).unwrap();
        assert!((1..10_000_000_000).contains(&clock), "{clock} ns");
        // Software events need no processor counter, and so take no turns.
        assert!(counts.iter().all(|count| count.enabled == count.running && count.enabled > Nanos::ZERO), "{counts:?}");
        assert!(counters.missing().iter().all(|missing| missing.space == Space::Kernel), "{:?}", counters.missing());
    }

    #[test]
    fn what_stands_still_counts_nothing() {
        let Some(mut counters) = opened(&[PerfEvent::PageFaults]) else { return };
        fault(50);
        assert!(counters.read().unwrap().iter().all(|count| count.value == 0));
        counters.start().unwrap();
        fault(70);
        counters.stop().unwrap();
        fault(50);
        let faults: u64 = counters.read().unwrap().iter().map(|count| count.value).sum();
        assert!((70..110).contains(&faults), "{faults}");
        // Started again, they start at zero.
        counters.start().unwrap();
        counters.stop().unwrap();
        let faults: u64 = counters.read().unwrap().iter().map(|count| count.value).sum();
        assert!(faults < 50, "{faults}");
    }

    /// If the processor has counters, they count; otherwise there is a reason.
    #[test]
    fn the_processors_counters_count_or_are_missing_for_a_reason() {
        let mut counters = Counters::for_current_thread(&PerfEvent::OF_PROCESSOR, &[Space::User]);
        let named: Vec<PerfEvent> = counters.missing().iter().map(|missing| missing.event).collect();
        counters.start().unwrap();
        let mut sum = 0_u64;
        for i in 0..1_000_000_u64 {
            sum = std::hint::black_box(sum.wrapping_add(i));
        }
        counters.stop().unwrap();
        let counts = counters.read().unwrap();
        assert_eq!(counts.len() + named.len(), PerfEvent::OF_PROCESSOR.len());
        for missing in counters.missing() {
            assert!(!missing.why.is_empty(), "{missing:?}");
        }
        if let Some(count) = counts.iter().find(|count| count.event == PerfEvent::Instructions) {
            assert!(count.estimate().is_none_or(|instructions| instructions > 1e6), "{count:?}");
        }
    }
}
