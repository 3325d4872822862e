//! The lateness of the latest rank in successive phases.

use std::collections::{BTreeMap, BTreeSet};

use super::lateness::{CELLS_PER_OCTAVE, CELLS_WITHIN, LatenessCells, middle, place};
use crate::order::any;
use crate::uncertainty::{RecordingUncertainty, ReplayFactors};

/// Phases are iterated until their mean lateness changes by at most this share of the grain, or this many times.
const CLOSE_RATIO: f64 = 1e-6;
const PHASES_LIMIT: usize = 1_000;

/// Latenesses below this probability have their successors ignored.
const NEGLIGIBLE: f64 = 1e-12;

/// Successive phases: a rank starts within a detour only if the phase before lasted long enough.
pub(super) struct PhaseChain {
    ranks: f64,
    /// The cells of lateness with phases, falling.
    places: Vec<usize>,
    /// The mean lateness in each of them, in nanoseconds.
    late: Vec<f64>,
    /// The phases that start at work, by these cells.
    at_work: Vec<f64>,
    /// The phases that start within a detour, by the minimum cell of lateness of the phase before that makes such a start possible, rising.
    in_detour: Vec<(usize, Vec<f64>)>,
}

impl PhaseChain {
    pub(super) fn new(cells: &LatenessCells, ranks: f64) -> Self {
        let in_detour = || cells.in_detour().filter(|(_, _, phases)| *phases > 0);
        let at_work = || cells.at_work.iter().enumerate().filter(|(_, phases)| **phases > 0);
        let late: BTreeSet<usize> =
            at_work().map(|(late, _)| late).chain(in_detour().map(|(_, late, _)| late)).collect();
        let places: Vec<usize> = late.into_iter().rev().collect();
        let slot = |late: usize| places.partition_point(|place| *place > late);
        let mut working = vec![0.0; places.len()];
        at_work().for_each(|(late, phases)| working[slot(late)] += *phases as f64);
        let mut by_start: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (into, late, phases) in in_detour() {
            let waited = place(middle(into, CELLS_WITHIN) as i64, CELLS_PER_OCTAVE) + 1;
            by_start.entry(waited).or_insert_with(|| vec![0.0; places.len()])[slot(late)] += phases as f64;
        }
        Self { ranks, at_work: working, in_detour: by_start.into_iter().collect(), late: cells.means(&places), places }
    }

    /// The number of starts within detours that are possible after a phase this late.
    fn starts_after(&self, late: usize) -> usize {
        self.in_detour.partition_point(|(waited, _)| *waited <= late)
    }

    /// The probability that the latest rank is at least as late as each cell, if this many of the starts within detours are possible.
    fn reach(&self, starts: usize) -> Vec<f64> {
        let mut phases = self.at_work.clone();
        // The rank that all others waited for has not waited.
        let waited = (self.ranks - 1.0) / self.ranks;
        for (_, in_detour) in &self.in_detour[..starts] {
            phases.iter_mut().zip(in_detour).for_each(|(phases, more)| *phases += waited * more);
        }
        let all: f64 = phases.iter().sum();
        let mut later = 0.0;
        let reach = |phases: &f64| {
            later += phases;
            if all > 0.0 { any(self.ranks, later / all) } else { 0.0 }
        };
        phases.iter().map(reach).collect()
    }

    /// The lateness of the latest rank in the long run, starting with a phase without starts within detours; `grain` is the work of each in
    /// nanoseconds.
    pub(super) fn settled(&self, grain: f64) -> Latest {
        let starts: Vec<usize> = self.places.iter().map(|place| self.starts_after(*place)).collect();
        let mut rows: Vec<Option<Vec<f64>>> = vec![None; self.in_detour.len() + 1];
        let mut shares = vec![0.0; rows.len()];
        shares[0] = 1.0;
        let mut latest = Latest { late: self.late.clone(), reached: Vec::new() };
        let mut mean = 0.0;
        for _ in 0..PHASES_LIMIT {
            latest.reached = vec![0.0; self.places.len()];
            let rows = shares.iter().zip(&mut rows).enumerate();
            for (starts, (share, row)) in rows.filter(|(_, (share, _))| **share > NEGLIGIBLE) {
                let row = row.get_or_insert_with(|| self.reach(starts));
                latest.reached.iter_mut().zip(row).for_each(|(reached, reach)| *reached += share * *reach);
            }
            let last = std::mem::replace(&mut mean, latest.mean());
            if mean - last <= CLOSE_RATIO * grain {
                break;
            }
            shares.fill(0.0);
            let mut before = 0.0;
            for (starts, reached) in starts.iter().zip(&latest.reached) {
                shares[*starts] += reached - before;
                before = *reached;
            }
        }
        latest
    }
}

/// The lateness of the latest of all ranks.
pub(super) struct Latest {
    /// In nanoseconds, falling.
    late: Vec<f64>,
    /// The probability of at least that lateness.
    reached: Vec<f64>,
}

impl Latest {
    /// The mean, in nanoseconds.
    pub(super) fn mean(&self) -> f64 {
        self.mean_below(f64::INFINITY)
    }

    /// The loss of successive phases below the threshold, relative to the draws.
    pub(super) fn passed(&self, known: &RecordingUncertainty, ranks: u64) -> ReplayFactors {
        let expected = known.expected_below(ranks);
        let below = if expected > 0.0 { self.mean_below(known.block_limit()) / expected } else { 1.0 };
        ReplayFactors { below, above: 1.0 }
    }

    /// The part of the mean below a threshold, in nanoseconds.
    fn mean_below(&self, threshold: f64) -> f64 {
        let mut before = 0.0;
        let part =
            |(late, reached): (&f64, &f64)| (reached - std::mem::replace(&mut before, *reached)) * late.min(threshold);
        self.late.iter().zip(&self.reached).map(part).sum()
    }
}
