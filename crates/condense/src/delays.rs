//! The delays that a CPU's noise adds to work, for several grains.
//!
//! Windows of a grain of work start an eighth of the grain apart, so each detour is in eight windows. The noise in a window is its delay. Windows
//! without noise are not counted, because their number follows from the length of the recording.

use std::collections::{BTreeMap, VecDeque};

use becalm_model::digest::{DELAY_CELLS, DELAY_PARTS, DelayCell, DelayCells, GRAINS_NS, GrainDelays, WINDOWS};

/// An octave of delays has up to 2^`FINEST` cells per source.
const FINEST: u32 = 4;

/// The delays of a CPU. Sources are identified by index.
#[derive(Debug)]
pub(crate) struct Delays {
    /// The time lost so far. The rest is work.
    lost: i64,
    grains: Vec<Grain>,
}

impl Default for Delays {
    fn default() -> Self {
        Self { lost: 0, grains: GRAINS_NS.iter().map(|ns| Grain::new(*ns)).collect() }
    }
}

impl Delays {
    /// Takes a detour with the time of each source in it. Detours must come in order of time.
    pub(crate) fn add(&mut self, start: i64, duration: i64, parts: &[(u32, i64)]) {
        let worked = start.saturating_sub(self.lost);
        self.grains.iter_mut().for_each(|grain| grain.add(worked, duration, parts));
        self.lost = self.lost.saturating_add(duration);
    }

    /// The cells for the document, with source indices replaced by those in `places`.
    pub(crate) fn document(&self, places: &[u32]) -> Vec<GrainDelays> {
        self.grains.iter().map(|grain| grain.document(places)).collect()
    }
}

#[derive(Clone, Debug)]
struct Grain {
    ns: i64,
    /// The steps of work with noise, by number, in ascending order. A window is a step and the seven before it.
    steps: VecDeque<(i64, DelayCell)>,
    /// The last step of the next window to be counted.
    next: i64,
    cells: Cells,
}

impl Grain {
    const fn new(ns: i64) -> Self {
        Self { ns, steps: VecDeque::new(), next: 0, cells: Cells::new() }
    }

    fn add(&mut self, worked: i64, duration: i64, parts: &[(u32, i64)]) {
        let step = worked.div_euclid(self.ns / WINDOWS as i64);
        if self.steps.back().is_none_or(|(last, _)| *last < step) {
            self.count_until(step);
            self.steps.push_back((step, DelayCell { windows: 1, ..DelayCell::default() }));
        }
        let Some((_, noise)) = self.steps.back_mut() else { return };
        noise.delay_ns = noise.delay_ns.saturating_add(duration);
        add_parts(&mut noise.parts, parts, 1);
    }

    /// Counts the windows that end before a step.
    fn count_until(&mut self, step: i64) {
        while let Some((first, noise)) = self.steps.front() {
            // Windows have the same noise until they pass the first step.
            let gone = first.saturating_add(WINDOWS as i64);
            let windows = gone.min(step).saturating_sub(self.next).max(0);
            if self.steps.len() == 1 {
                self.cells.add(noise, windows);
            } else {
                let mut all = DelayCell { windows: 1, ..DelayCell::default() };
                for (_, noise) in &self.steps {
                    all.delay_ns = all.delay_ns.saturating_add(noise.delay_ns);
                    add_parts(&mut all.parts, &noise.parts, 1);
                }
                self.cells.add(&all, windows);
            }
            if gone > step {
                break;
            }
            self.next = gone;
            self.steps.pop_front();
        }
        self.next = step;
    }

    fn document(&self, places: &[u32]) -> GrainDelays {
        let mut ended = self.clone();
        ended.count_until(self.steps.back().map_or(0, |(last, _)| last.saturating_add(WINDOWS as i64)));
        let mut cells = Cells::new();
        cells.width = ended.cells.width;
        for cell in ended.cells.by_place.into_values() {
            let DelayCell { windows, delay_ns, parts } = cell;
            let mut renamed = DelayCell { windows, delay_ns, parts: Vec::with_capacity(parts.len()) };
            for (place, ns) in &parts {
                add_parts(&mut renamed.parts, &[(places[*place as usize], *ns)], 1);
            }
            cells.add(&renamed, 1);
        }
        GrainDelays { grain_ns: self.ns, cells: DelayCells(cells.by_place.into_values().collect()) }
    }
}

/// Adds the time of sources, multiplied by `times`. Time of sources beyond the limit is charged to none.
fn add_parts(sum: &mut Vec<(u32, i64)>, parts: &[(u32, i64)], times: i64) {
    for (source, ns) in parts {
        let ns = ns.saturating_mul(times);
        if let Some((_, sum)) = sum.iter_mut().find(|(other, _)| other == source) {
            *sum = sum.saturating_add(ns);
        } else if sum.len() < DELAY_PARTS {
            sum.push((*source, ns));
        }
    }
}

/// The resolution of cells.
#[derive(Clone, Copy, Debug)]
enum Width {
    /// An octave has 2^n cells for each source with the largest part of a delay.
    Apart(u32),
    /// An octave is one cell, for all sources.
    Octave,
}

/// Cells of similar delays: about the same length, mostly from the same source.
#[derive(Clone, Debug)]
struct Cells {
    width: Width,
    /// By length and source.
    by_place: BTreeMap<(u32, u32), DelayCell>,
}

impl Cells {
    const fn new() -> Self {
        Self { width: Width::Apart(FINEST), by_place: BTreeMap::new() }
    }

    /// Adds the windows of `more`, `times` times.
    fn add(&mut self, more: &DelayCell, times: i64) {
        if more.delay_ns == 0 || times == 0 {
            return;
        }
        let cell = self.by_place.entry(self.width.place(more)).or_default();
        cell.windows += more.windows * times as u64;
        cell.delay_ns = cell.delay_ns.saturating_add(more.delay_ns.saturating_mul(times));
        add_parts(&mut cell.parts, &more.parts, times);
        if self.by_place.len() > DELAY_CELLS {
            self.width = match self.width {
                Width::Apart(0) | Width::Octave => Width::Octave,
                Width::Apart(bits) => Width::Apart(bits - 1),
            };
            for cell in std::mem::take(&mut self.by_place).into_values() {
                self.add(&cell, 1);
            }
        }
    }
}

impl Width {
    /// The key of a cell, from the mean delay of its windows.
    fn place(self, cell: &DelayCell) -> (u32, u32) {
        let mean = (cell.delay_ns / cell.windows.max(1) as i64).max(1);
        let octave = mean.ilog2();
        match self {
            Self::Octave => (octave, 0),
            Self::Apart(bits) => {
                let within = ((mean ^ 1 << octave) << bits) >> octave;
                let most = cell.parts.iter().max_by_key(|(_, ns)| *ns).map_or(u32::MAX, |(source, _)| *source);
                ((octave << bits) + within as u32, most)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use becalm_testing::noise::Source;

    use super::*;

    /// The windows of a grain, counted one by one from the detours.
    fn plain(grain: i64, detours: &[(i64, i64)]) -> Vec<i64> {
        let step = grain / WINDOWS as i64;
        let mut lost = 0;
        let worked: Vec<(i64, i64)> = detours
            .iter()
            .map(|(start, ns)| {
                let at = start - lost;
                lost += ns;
                (at, *ns)
            })
            .collect();
        let last = worked.last().unwrap().0 / step;
        let windows = (1 - WINDOWS as i64..=last).map(|number| {
            let within = worked.iter().filter(|(at, _)| (number * step..number * step + grain).contains(at));
            within.map(|(_, ns)| ns).sum::<i64>()
        });
        let mut late: Vec<i64> = windows.filter(|ns| *ns > 0).collect();
        late.sort_unstable();
        late
    }

    #[test]
    fn windows_are_those_that_a_plain_count_finds() {
        let mut random = Source::seeded(3);
        let (mut delays, mut detours, mut start) = (Delays::default(), Vec::new(), 0);
        for _ in 0..400 {
            let ns = random.pareto(2_000.0, 1.2) as i64;
            detours.push((start, ns));
            delays.add(start, ns, &[(0, ns / 2), (1, ns - ns / 2)]);
            // Writing a document in between changes nothing.
            delays.document(&[0, 1]);
            start += ns + (random.uniform().powi(3) * 800_000.0) as i64;
        }
        for grain in delays.document(&[0, 1]) {
            let late = plain(grain.grain_ns, &detours);
            let windows: u64 = grain.cells.0.iter().map(|cell| cell.windows).sum();
            let total: i64 = grain.cells.0.iter().map(|cell| cell.delay_ns).sum();
            assert_eq!((windows as usize, total), (late.len(), late.iter().sum()), "{}", grain.grain_ns);
            let parts: i64 = grain.cells.0.iter().flat_map(|cell| &cell.parts).map(|part| part.1).sum();
            assert_eq!(parts, total);
            // The longest delays have one cell each, or share one with delays of about the same length.
            let mut longest = late.iter().rev();
            for cell in grain.cells.0.iter().rev().take(8) {
                let mean = cell.delay_ns as f64 / cell.windows as f64;
                for late in longest.by_ref().take(cell.windows as usize) {
                    assert!((*late as f64 / mean - 1.0).abs() < 0.14, "{late} for {mean}");
                }
            }
        }
    }

    #[test]
    fn many_kinds_of_delays_take_no_more_cells_and_lose_nothing() {
        let mut random = Source::seeded(4);
        let (mut delays, mut start, mut all) = (Delays::default(), 0, 0);
        for _ in 0..200_000 {
            let ns = 10_f64.powf(2.0 + 5.0 * random.uniform()) as i64;
            delays.add(start, ns, &[((random.uniform() * 500.0) as u32, ns)]);
            start += ns + (random.uniform() * 2_000_000.0) as i64;
            all += ns;
        }
        for grain in delays.document(&(0..500).collect::<Vec<_>>()) {
            assert!(
                grain.cells.0.len() <= DELAY_CELLS && grain.cells.0.iter().all(|cell| cell.parts.len() <= DELAY_PARTS)
            );
            let total: i64 = grain.cells.0.iter().map(|cell| cell.delay_ns).sum();
            assert_eq!(total, all * WINDOWS as i64, "{}", grain.grain_ns);
        }
    }
}
