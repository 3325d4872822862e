//! Noise inside programs: a preloaded library has a timer for each of their threads, whose signal handler burns the time (B07 section 4). It needs no
//! privilege, and takes no CPU from other programs.
//!
//! Requested and delivered noise is in memory shared with the processes ([`becalm_preload::layout`]). The library and the memory are files in
//! directories that only this user can write ([`becalm_linux::shared`]), removed when this process ends. If it is killed, the noise stops within a
//! tenth of a second, and the next such process removes the files.

use std::ffi::OsString;
use std::sync::atomic::Ordering;

use becalm_linux::rights::User;
use becalm_linux::shared::{CodeFile, Places, SharedWords};
use becalm_preload::{IMAGE, layout};
use becalm_scale::NoiseTrace;
use becalm_stats::Moments;
use becalm_units::Nanos;

use crate::InjectError;
use crate::document::{InjectedPlace, NoisePlace, Shortfall, SignalCounts, Together};
use crate::fit::{Fit, RequestedNoise, share_below};
use crate::place;
use crate::schedule::Schedule;
use crate::tally::DeliveryTally;

const VARIABLE: &str = match layout::VARIABLE.to_str() {
    Ok(name) => name,
    Err(_) => panic!("the name is plain ASCII"),
};

/// The noise to inject.
#[derive(Clone, Debug)]
pub struct SignalPlan {
    /// The noise of the first thread, of the second, and so on, starting over after the last.
    pub traces: Vec<NoiseTrace>,
    /// Which threads start at the place that the wall clock gives, and which at a random one.
    pub together: Together,
    /// The seed from which random places are drawn.
    pub seed: u64,
    /// A number that differs between injectors with the same seed, such as that of the node or the rank.
    pub node: u64,
    /// The number of the node, equal for all of its ranks.
    pub host: u64,
    /// How much of the noise must be possible; with less, it is refused. Detours are never merged.
    pub fit: Fit,
    /// Whether only the first thread of each process has noise, as in B07.
    pub main_thread_only: bool,
    /// The user that this root process has become; `None` if it is the one its environment names.
    pub user: Option<User>,
}

/// Limits that must be possible: the shortest detour, and the narrowest gap between two.
#[derive(Clone, Copy, Debug)]
struct Demands {
    length: Nanos,
    gap: Nanos,
}

/// Noise ready for programs to load.
#[derive(Debug)]
pub struct SignalNoise {
    words: SharedWords,
    library: CodeFile,
    /// The shortest detour and the narrowest gap that must be possible.
    demands: Demands,
    fit: Fit,
    traces: Vec<NoiseTrace>,
}

/// The noise delivered in all processes of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct DeliveredSignals {
    /// The threads for which detours were due, those with the most first.
    pub threads: Vec<InjectedPlace>,
    /// Statistics of all processes together.
    pub counts: SignalCounts,
}

impl SignalNoise {
    /// Prepares the files that [`Self::environment`] makes programs load. Fails if there is no library for this machine, or no directory or space for
    /// library and memory.
    pub fn prepare(plan: &SignalPlan) -> Result<Self, InjectError> {
        let image = IMAGE.ok_or(InjectError::NoLibrary)?;
        let places = plan.user.as_ref().map_or_else(Places::for_this_user, Places::for_user);
        let library = CodeFile::new(&places, layout::LIBRARY, image).map_err(InjectError::Files)?;
        let circles = plan.traces.len();
        let detours: usize = plan.traces.iter().map(NoiseTrace::len).sum();
        let first = layout::first_detour(circles);
        let words = SharedWords::new(&places, "becalm-inject", first + 2 * detours).map_err(InjectError::Files)?;
        let schedules = || plan.traces.iter().map(|trace| Schedule::new(trace, Nanos::ZERO));
        let demands = Demands {
            length: plan.fit.needs(lengths(&plan.traces)).unwrap_or(Nanos::MAX),
            gap: schedules().filter_map(|schedule| schedule.narrowest_gap()).min().unwrap_or(Nanos::MAX),
        };
        let set = |at: usize, value: u64| words[at].store(value, Ordering::Relaxed);
        set(layout::WORDS, words.len() as u64);
        let shift = place::shift(plan.together, plan.seed, plan.host);
        set(layout::SYNCHRONIZED, shift.is_some().into());
        set(layout::SEED, plan.seed);
        set(layout::NODE, plan.node);
        set(layout::MAIN_ONLY, plan.main_thread_only.into());
        set(layout::EXACT, (plan.fit == Fit::Exact).into());
        set(layout::SHORTEST, demands.length.get() as u64);
        set(layout::NARROWEST, demands.gap.get() as u64);
        set(layout::CIRCLES, circles as u64);
        set(layout::MAKER, std::process::id().into());
        let mut at = first;
        for (number, trace) in plan.traces.iter().enumerate() {
            // The library starts at the place that the wall clock gives.
            let trace = &place::turned(trace, shift.unwrap_or(0)).map_err(InjectError::Circle)?;
            let circle = layout::HEADER_WORDS + number * layout::CIRCLE_WORDS;
            set(circle, trace.length().get() as u64);
            set(circle + 1, trace.len() as u64);
            set(circle + 2, at as u64);
            for (start, length) in trace.detours() {
                set(at, start.get() as u64);
                set(at + 1, length.get() as u64);
                at += 2;
            }
        }
        // Stored last: it marks the rest as complete.
        words[layout::KIND].store(layout::MAGIC, Ordering::Release);
        Ok(Self { words, library, demands, fit: plan.fit, traces: plan.traces.clone() })
    }

    /// The environment variables that give a program, and all programs that it starts on this machine, noise: the library, before those that the
    /// program preloads anyway, and the path of the shared memory.
    pub fn environment(&self) -> [(&'static str, OsString); 2] {
        let mut libraries = self.library.path().as_os_str().to_owned();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            libraries.push(":");
            libraries.push(others);
        }
        [("LD_PRELOAD", libraries), (VARIABLE, self.words.path().as_os_str().to_owned())]
    }

    fn word(&self, at: usize) -> u64 {
        self.words[at].load(Ordering::Relaxed)
    }

    /// Ends the noise; programs continue without it.
    pub fn stop(&self) {
        self.words[layout::STOP].store(1, Ordering::Relaxed);
    }

    /// The noise delivered so far. Fails if the first program refused the noise and therefore never started, or if none has loaded the library.
    pub fn delivered(&self) -> Result<DeliveredSignals, InjectError> {
        let shortest = Nanos::new(self.word(layout::LIMIT) as i64);
        match self.word(layout::STATUS) {
            layout::STATUS_SHORT => {
                let is_part = lengths(&self.traces).any(|length| length >= shortest);
                return Err(if self.fit == Fit::Most && is_part {
                    let share = share_below(lengths(&self.traces), shortest);
                    InjectError::MostlyShortSignal(share, shortest)
                } else {
                    InjectError::ShortSignal(self.demands.length, shortest)
                });
            }
            layout::STATUS_CLOSE => return Err(InjectError::CloseSignals(self.demands.gap, shortest)),
            _ => {}
        }
        let processes = self.word(layout::PROCESSES);
        if processes == 0 {
            return Err(InjectError::NotLoaded);
        }
        let first = layout::first_slot(self.word(layout::CIRCLES) as usize);
        let slots = (0..layout::SLOTS).map(|slot| first + slot * layout::SLOT_WORDS);
        let used = slots.filter(|slot| self.word(slot + layout::STATE) != layout::SLOT_FREE);
        let mut threads: Vec<InjectedPlace> = used.map(|slot| self.thread(slot)).collect();
        threads.retain(|thread| thread.requested.count > 0);
        threads.sort_by_key(|thread| (std::cmp::Reverse(thread.requested.count), thread.place));
        let counts = SignalCounts {
            processes,
            unattended: self.word(layout::UNATTENDED),
            given_up: self.word(layout::MOVES),
            without_signal: self.word(layout::GIVEN_UP),
        };
        Ok(DeliveredSignals { threads, counts })
    }

    fn thread(&self, slot: usize) -> InjectedPlace {
        let word = |at: usize| self.word(slot + at);
        let nanos = |at: usize| Nanos::new(word(at) as i64);
        let moments = |at: usize| {
            let [count, sum, low, high, least, greatest] = [0, 1, 2, 3, 4, 5].map(|part: usize| word(at + part));
            let squares = u128::from(high) << 64 | u128::from(low);
            Moments::from_parts(count, sum.into(), squares, (least as i64, greatest as i64))
        };
        let mut tally = DeliveryTally::default();
        tally.due = moments(layout::DUE);
        tally.due_intervals = moments(layout::DUE_INTERVALS);
        tally.delivered = moments(layout::DELIVERED);
        tally.intervals = moments(layout::INTERVALS);
        tally.missed = word(layout::MISSED);
        tally.joined = word(layout::JOINED);
        for bin in 0..layout::LATE_BINS {
            let count = word(layout::LATE + bin);
            if count > 0 {
                // The middle of the bin.
                let ends = (layout::late_of_bin(bin), layout::late_of_bin(bin + 1));
                tally.add_late(Nanos::new(ends.0.midpoint(ends.1) as i64), count);
            }
        }
        let seen = word(layout::SEEN_AT).saturating_sub(word(layout::BEGAN_AT));
        let place = NoisePlace::Thread { pid: word(layout::PID) as u32, tid: word(layout::TID) as u32 };
        let observed = Nanos::new((word(layout::OBSERVED_BEFORE) + seen) as i64);
        let shortest = nanos(layout::ENTRY) + nanos(layout::EXIT);
        let left_out = Shortfall { count: word(layout::LEFT_OUT), time: nanos(layout::LEFT_OUT_NS) };
        let made = tally.injected_place(place, observed, shortest);
        // Some of the due detours were left out before.
        let asked = self.traces.get(word(layout::CIRCLE) as usize).filter(|_| left_out.count > 0);
        let requested = asked.map_or(made.requested, |trace| RequestedNoise::new(trace).injected_in(observed));
        InjectedPlace { requested, left_out, ..made }
    }
}

fn lengths(traces: &[NoiseTrace]) -> impl Iterator<Item = Nanos> {
    traces.iter().flat_map(|trace| trace.detours().map(|(_, length)| length))
}
