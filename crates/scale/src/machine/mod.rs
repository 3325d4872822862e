//! A machine of ranks, each with its own clock and noise trace, that work and exchange messages (LogGP).
//!
//! Everything that a CPU does (work, the overhead o of a send and of a receive, O per byte) is stretched by the noise during it, and by the noise
//! during that: a rank that has done w of work at time t is at finish(t, w). Transfers are not stretched. A message leaves when its send is done,
//! arrives L + (bytes-1) G later, and is received once the receiver is ready too. Sends of a rank start at least g + (bytes-1) G apart, and so do its
//! receives. `messages` has rendezvous messages, `window` those received in order of arrival. If ranks share nodes, they share their node's card, and
//! messages within a node have their own costs: `nodes`.
//!
//! All ranks do the same step at the same call, so a step is one pass over arrays; large machines use all cores. Each rank's times depend only on
//! values of the step before, or of its node, so the number of threads changes nothing.

mod card;
mod messages;
mod nodes;
mod time;
mod window;

use becalm_units::Nanos;

use crate::delay::TIME_LIMIT;
use crate::network::Network;
use crate::noise::NoiseTrace;
use crate::workers::{Task, run_all};
use crate::{ScaleError, noise};

use card::Card;

pub(crate) use messages::Payload;
pub use time::Time;
pub(crate) use time::{HeldUp, Traced};

/// Minimum number of ranks for using all cores; below, starting threads costs more than it gains.
pub const PARALLEL_RANKS: usize = 1 << 16;

/// The number of ranks that one thread processes at a time.
const CHUNK: usize = 1 << 13;

/// A pass over successive ranks; its arguments are the number of the first, their state, and the times at which their messages leave.
type Pass<'p, 'a, T> = &'p (dyn Fn(usize, &mut [Rank<T>], &mut [Cursor<'a, T>], &mut [T]) + Sync);

/// The number of detours that a rank passes one by one before it searches for the last one it meets.
const WALKED: usize = 8;

/// A link used by one message alone, in thousandths.
const ALONE: u64 = 1_000;

/// The number of steps between two checks of the clocks against their limit.
const STEPS_UNCHECKED: u32 = 1 << 12;

/// The data that every step accesses.
#[derive(Clone, Copy, Debug)]
struct Rank<T> {
    clock: T,
    /// The start of the next detour that has not ended at the clock; it may have started.
    quiet_until: i64,
    send_free: T,
    receive_free: T,
}

/// A rank's position on its trace; only noise accesses it.
#[derive(Clone, Debug)]
struct Cursor<'a, T: Time> {
    trace: &'a NoiseTrace,
    slot: u32,
    /// The offset from its lap's positions on the circle to times.
    shift: i64,
    notes: T::Notes,
}

/// The start of a rank: its trace, and the position on the circle of the trace.
#[derive(Clone, Copy, Debug)]
pub struct RankStart<'a> {
    /// The noise that the rank replays.
    pub trace: &'a NoiseTrace,
    /// The position on the circle, in nanoseconds.
    pub offset: i64,
}

/// The ranks of a job, each with its own clock delayed by noise.
#[derive(Clone, Debug)]
pub struct JobMachine<'a, T: Time = i64> {
    network: Network,
    /// The time of a link that each message takes from all others: see [`Network::share`].
    share: u64,
    ranks: Vec<Rank<T>>,
    cursors: Vec<Cursor<'a, T>>,
    /// The time when each rank's message of this step left.
    sent: Vec<T>,
    spare: Vec<T>,
    /// The number of ranks per node; the last node may have fewer.
    per_node: usize,
    /// The card of each node; empty if every rank has its own node, because then its own times show when the card is free.
    cards: Vec<Card<T>>,
    steps: u32,
}

impl<T: Time> Rank<T> {
    /// The time when the rank has done work that starts at `start`, which is not before its clock.
    #[inline]
    fn finish(&mut self, cursor: &mut Cursor<'_, T>, start: T, work: i64) -> T {
        if start.ns() + work <= self.quiet_until || work == 0 {
            return start.plus(work);
        }
        let end = self.finish_in_noise(cursor, start.ns(), work);
        start.held_up(end, work, &mut cursor.notes)
    }

    /// Most work meets one or two detours: passing them one by one is faster than a search.
    #[cold]
    fn finish_in_noise(&mut self, cursor: &mut Cursor<'_, T>, mut now: i64, mut work: i64) -> i64 {
        let (starts, durations) = (cursor.trace.starts_ns(), cursor.trace.durations_ns());
        let first = cursor.slot as usize;
        let near = (first + WALKED).min(starts.len());
        for slot in first..near {
            let start = starts[slot] + cursor.shift;
            if start - now >= work {
                (cursor.slot, self.quiet_until) = (slot as u32, start);
                return now + work;
            }
            work -= (start - now).max(0);
            now = now.max(start + durations[slot]);
        }
        cursor.slot = near as u32;
        self.finish_further(cursor, now, work)
    }

    /// The same beyond the detours passed so far; there may be many more.
    #[inline(never)]
    fn finish_further(&mut self, cursor: &mut Cursor<'_, T>, mut now: i64, mut work: i64) -> i64 {
        let (starts, durations) = (cursor.trace.starts_ns(), cursor.trace.durations_ns());
        let (count, length) = (starts.len(), cursor.trace.length_ns());
        // Whole laps of waiting are skipped, then whole laps of work.
        let behind = now - cursor.shift - starts[0];
        if behind >= 2 * length {
            let lap = behind / length - 1;
            cursor.shift += lap * length;
            cursor.slot = 0;
        }
        loop {
            // Detours may have ended while the rank waited.
            let slot = cursor.trace.first_ending_from(cursor.slot as usize, now - cursor.shift);
            if slot < count {
                let start = starts[slot] + cursor.shift;
                // The end on the axis of work, where a detour is a point.
                let goal = starts[slot] - cursor.trace.before_ns()[slot] - (start - now).max(0) + work;
                let next = cursor.trace.first_beyond(slot, goal);
                if next < count {
                    cursor.slot = next as u32;
                    self.quiet_until = starts[next] + cursor.shift;
                    return goal + cursor.trace.before_ns()[next] + cursor.shift;
                }
                work = goal - (starts[count - 1] - cursor.trace.before_ns()[count - 1]);
                now = starts[count - 1] + durations[count - 1] + cursor.shift;
            }
            cursor.slot = 0;
            cursor.shift += length;
            let laps = (work - 1) / cursor.trace.work_ns();
            if laps > 0 {
                work -= laps * cursor.trace.work_ns();
                // The next check of the clocks rejects saturated times.
                let skipped = laps.saturating_mul(length).min(TIME_LIMIT.get());
                now = (now + skipped).min(2 * TIME_LIMIT.get() - 1);
                cursor.shift = (cursor.shift + skipped).min(TIME_LIMIT.get());
            }
            if now > TIME_LIMIT.get() {
                self.quiet_until = i64::MAX;
                return TIME_LIMIT.get() + 1;
            }
        }
    }
}

impl<'a> JobMachine<'a> {
    /// A machine with these ranks, all clocks at 0.
    pub fn new(network: Network, starts: &[RankStart<'a>]) -> Result<Self, ScaleError> {
        Self::with_times(network, starts)
    }
}

impl<'a, T: Time> JobMachine<'a, T> {
    /// The same, with times of any kind.
    pub(crate) fn with_times(network: Network, starts: &[RankStart<'a>]) -> Result<Self, ScaleError> {
        if starts.is_empty() {
            return Err(ScaleError::NoRanks);
        }
        let cursors: Vec<Cursor<'a, T>> = starts
            .iter()
            .enumerate()
            .map(|(rank, RankStart { trace, offset })| {
                let offset = offset.rem_euclid(trace.length_ns());
                let first = trace.first_ending_after(offset);
                let count = trace.len().max(1) as i64;
                let slot = first.rem_euclid(count) as u32;
                let shift = first.div_euclid(count) * trace.length_ns() - offset;
                Cursor { trace, slot, shift, notes: T::notes(rank) }
            })
            .collect();
        let rank = |cursor: &Cursor<'_, T>| {
            let next = cursor.trace.starts_ns().get(cursor.slot as usize);
            let quiet_until = next.map_or(i64::MAX, |start| start + cursor.shift);
            Rank { clock: T::default(), quiet_until, send_free: T::default(), receive_free: T::default() }
        };
        let ranks = cursors.iter().map(rank).collect();
        let sent = vec![T::default(); cursors.len()];
        let (spare, cards) = (sent.clone(), Vec::new());
        Ok(Self { network, share: ALONE, ranks, spare, sent, cursors, per_node: 1, cards, steps: 0 })
    }

    /// Puts this many ranks on each node: the first ones on the first, and so on. The last node may have fewer.
    #[must_use]
    pub fn with_nodes(self, per_node: usize) -> Self {
        let per_node = per_node.clamp(1, self.ranks.len());
        let cards = if per_node > 1 { vec![Card::default(); self.ranks.len().div_ceil(per_node)] } else { Vec::new() };
        Self { per_node, cards, ..self }
    }

    /// The number of ranks per node: at most the number of ranks.
    pub fn per_node(&self) -> usize {
        self.per_node
    }

    /// The number of ranks.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Always false: a machine has ranks.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// The network that messages use.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The clock of one rank. Panics if the rank does not exist.
    pub fn clock(&self, rank: usize) -> Nanos {
        Nanos::new(self.ranks[rank].clock.ns())
    }

    /// The clock of the latest rank.
    pub fn latest(&self) -> Nanos {
        Nanos::new(self.latest_time().ns())
    }

    /// The same as a time; on ties that of the first rank.
    pub(crate) fn latest_time(&self) -> T {
        self.ranks.iter().map(|rank| rank.clock).reduce(T::later).unwrap_or_default()
    }

    /// One pass over all ranks.
    fn step(&mut self, each: impl Fn(usize, &mut Rank<T>, &mut Cursor<'a, T>) + Sync) -> Result<(), ScaleError> {
        self.step_and_send(move |at, rank, cursor, _| each(at, rank, cursor))
    }

    /// One pass over all ranks and the times at which their messages leave.
    fn step_and_send(
        &mut self,
        each: impl Fn(usize, &mut Rank<T>, &mut Cursor<'a, T>, &mut T) + Sync,
    ) -> Result<(), ScaleError> {
        // Iterators over several slices go through the stack for each rank when compiled in another crate. Captured values of `each` are read once
        // for all ranks.
        self.in_chunks(&move |first, ranks, cursors, sent| {
            let count = ranks.len();
            let (cursors, sent) = (&mut cursors[..count], &mut sent[..count]);
            for at in 0..count {
                each(first + at, &mut ranks[at], &mut cursors[at], &mut sent[at]);
            }
        });
        self.stepped(1)
    }

    /// Runs `pass` over all ranks, in several threads if that pays off. Compiled once for all kinds of passes: only their loops over ranks are
    /// compiled for each.
    fn in_chunks(&mut self, pass: Pass<'_, 'a, T>) {
        if self.ranks.len() < PARALLEL_RANKS {
            pass(0, &mut self.ranks, &mut self.cursors, &mut self.sent);
            return;
        }
        let chunks = self.ranks.chunks_mut(CHUNK).zip(self.cursors.chunks_mut(CHUNK)).zip(self.sent.chunks_mut(CHUNK));
        let task = |(number, ((ranks, cursors), sent))| -> Task<'_> {
            Box::new(move || pass(number * CHUNK, ranks, cursors, sent))
        };
        run_all(chunks.enumerate().map(task).collect());
    }

    /// Counts steps, and checks the clocks now and then.
    fn stepped(&mut self, steps: u32) -> Result<(), ScaleError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps >= STEPS_UNCHECKED { self.check() } else { Ok(()) }
    }

    /// Fails for clocks beyond the limit. Steps add less than 2^44 ns each without noise, and noise saturates, so no clock can overflow between two
    /// checks.
    pub(crate) fn check(&mut self) -> Result<(), ScaleError> {
        self.steps = 0;
        if self.latest() > TIME_LIMIT {
            return Err(ScaleError::Overflow("the clocks of this job", TIME_LIMIT, "ask for fewer or shorter phases"));
        }
        Ok(())
    }

    /// Every rank works. Fails for negative work, work above 2^60 ns, or clocks beyond their limit.
    pub fn work(&mut self, work: Nanos) -> Result<(), ScaleError> {
        if work < Nanos::ZERO || work > noise::LENGTH_LIMIT {
            return Err(ScaleError::Grain(work, "work takes from 0ns to 36 years"));
        }
        let work = work.get();
        self.step(|_, rank, cursor| rank.clock = rank.finish(cursor, rank.clock, work))?;
        if work > 1 << 40 { self.check() } else { Ok(()) }
    }

    /// The state that decides the machine's future, as differences from the latest clock: without noise, machines with the same shape continue
    /// equally.
    pub(crate) fn shape(&self) -> impl Iterator<Item = (i64, i64, i64)> + '_ {
        let latest = self.latest().get();
        // It does not matter how long the network was free before its rank.
        let rank = move |rank: &Rank<T>| {
            let free = |free: T| free.later(rank.clock).ns() - latest;
            (rank.clock.ns() - latest, free(rank.send_free), free(rank.receive_free))
        };
        self.ranks.iter().map(rank).chain(self.shape_of_cards())
    }

    /// The same for the cards: the busy stretches, with a number for each direction.
    fn shape_of_cards(&self) -> impl Iterator<Item = (i64, i64, i64)> + '_ {
        let (latest, earliest) = (self.latest().get(), if self.cards.is_empty() { 0 } else { self.earliest() });
        let lanes = self.cards.iter().flat_map(|card| [&card.sends, &card.receives]);
        lanes.enumerate().flat_map(move |(number, lane)| {
            lane.busy_from(earliest).map(move |(from, until)| (from - latest, until - latest, number as i64))
        })
    }

    /// The clock of the earliest rank.
    fn earliest(&self) -> i64 {
        self.ranks.iter().map(|rank| rank.clock.ns()).min().unwrap_or(0)
    }

    /// Ranks wait: none continues before its own given time.
    pub(crate) fn wait(&mut self, until: impl Fn(usize) -> T + Sync) -> Result<(), ScaleError> {
        self.step(|at, rank, _| rank.clock = rank.clock.later(until(at)))
    }

    /// The ranks selected by `works` work.
    pub(crate) fn work_some(&mut self, work: i64, works: impl Fn(usize) -> bool + Sync) -> Result<(), ScaleError> {
        self.step(|at, rank, cursor| {
            if works(at) {
                rank.clock = rank.finish(cursor, rank.clock, work);
            }
        })
    }

    /// The latest clock of each group of `ranks` ranks.
    pub(crate) fn latest_by_node(&self, ranks: usize) -> Vec<T> {
        let latest = |node: &[Rank<T>]| node.iter().map(|rank| rank.clock).reduce(T::later).unwrap_or_default();
        self.ranks.chunks(ranks).map(latest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With or without threads, a pass calls each rank with its number.
    #[test]
    fn every_rank_is_passed_by_its_number() {
        let silent = NoiseTrace::silent(Nanos::from_millis(1)).unwrap();
        let network = Network::new(Nanos::ZERO, Nanos::ZERO, Nanos::ZERO, 0).unwrap();
        for ranks in [5, PARALLEL_RANKS - 1, PARALLEL_RANKS, PARALLEL_RANKS + CHUNK / 2 + 1] {
            let mut machine = JobMachine::new(network, &vec![RankStart { trace: &silent, offset: 0 }; ranks]).unwrap();
            machine.wait(|rank| 3 * rank as i64).unwrap();
            assert!((0..ranks).all(|rank| machine.clock(rank).get() == 3 * rank as i64), "{ranks} ranks");
        }
    }
}
