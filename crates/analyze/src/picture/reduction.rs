//! Selects the detours to draw, out of any number.
//!
//! Points in one cell of time and length would cover each other on the screen, so only the longest is drawn. Cells have a fixed height, a quarter of
//! an octave of length, and are as narrow in time as the budget allows: they start 1 ns wide, and whenever there are more than may be drawn, pairs of
//! neighbors are merged.
//!
//! The result does not depend on the order of the input: the longest of a cell is the longest of the longest of its parts, and the width is the
//! smallest power of two with few enough occupied cells.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

/// The default number of drawn detours, not counting the longest.
pub const DETOURS: usize = 40_000;

/// This many of the longest detours are always drawn.
pub const TOP: usize = 1_000;

/// The number of cells per octave of length.
pub const PER_OCTAVE: u32 = 4;

/// A detour and its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlacedDetour {
    /// The index of its node in the summary.
    pub node: u32,
    /// The kernel's number of the CPU.
    pub cpu: u32,
    /// Its number on that CPU, from 0 in order of time over the whole run.
    pub number: u64,
    /// Its start, in nanoseconds since the run's origin.
    pub start: i64,
    /// Its length, in nanoseconds.
    pub duration: i64,
    /// Whether kernel events were dropped in it.
    pub incomplete: bool,
}

impl PlacedDetour {
    /// The longest first; equal ones by node, CPU and number.
    fn rank(&self) -> (Reverse<i64>, u32, u32, u64) {
        (Reverse(self.duration), self.node, self.cpu, self.number)
    }
}

/// Ordered by rank: the first is the longest.
impl Ord for PlacedDetour {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for PlacedDetour {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The detours of a picture, with the totals of the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reduced {
    /// The detours, the longest first; equal ones by node, CPU and number.
    pub detours: Vec<PlacedDetour>,
    /// The number of recorded detours.
    pub recorded: u64,
    /// The width of the cells with only their longest detour, in nanoseconds; `None` if all were kept.
    pub cell_ns: Option<i64>,
    /// This many of the longest detours are all included.
    pub top: usize,
}

/// Reads detours one by one, and keeps a bounded number of them.
#[derive(Debug)]
pub struct Reduction {
    /// Maximum number of occupied cells.
    budget: usize,
    recorded: u64,
    /// The longest so far, with the shortest of them on top.
    top: BinaryHeap<PlacedDetour>,
    keep: usize,
    kept: KeptPlaces,
}

#[derive(Debug)]
enum KeptPlaces {
    /// At most the budget.
    All(Vec<PlacedDetour>),
    /// The longest of each cell, by the number of its stretch of time and its height.
    Cells { width: i64, longest: HashMap<(i64, u32), PlacedDetour> },
}

impl Reduction {
    /// Keeps all of up to `budget` detours; of more, the longest of each of at most that many cells, and the `top` longest of all.
    pub fn new(budget: usize, top: usize) -> Self {
        Self {
            budget: budget.max(1),
            recorded: 0,
            top: BinaryHeap::new(),
            keep: top,
            kept: KeptPlaces::All(Vec::new()),
        }
    }

    /// Adds a detour, which is kept or covered by a longer one.
    pub fn add(&mut self, place: PlacedDetour) {
        self.recorded += 1;
        if self.keep > 0 {
            if self.top.len() < self.keep {
                self.top.push(place);
            } else if let Some(mut last) = self.top.peek_mut()
                && place < *last
            {
                *last = place;
            }
        }
        match &mut self.kept {
            KeptPlaces::All(all) => {
                all.push(place);
                if all.len() > self.budget {
                    let all = std::mem::take(all);
                    self.kept = KeptPlaces::Cells { width: 1, longest: cells(all, 1) };
                }
            }
            KeptPlaces::Cells { width, longest } => enter(longest, *width, place),
        }
        // There is at least one cell for each height.
        while let KeptPlaces::Cells { width, longest } = &mut self.kept
            && longest.len() > self.budget
            && *width < i64::MAX / 2
        {
            *width *= 2;
            *longest = cells(std::mem::take(longest).into_values(), *width);
        }
    }

    /// Ends the reduction and returns the kept detours.
    #[must_use]
    pub fn finish(self) -> Reduced {
        let recorded = self.recorded;
        let (mut detours, cell_ns) = match self.kept {
            KeptPlaces::All(all) => (all, None),
            KeptPlaces::Cells { width, longest } => (longest.into_values().chain(self.top).collect(), Some(width)),
        };
        detours.sort_unstable();
        detours.dedup();
        let top = if cell_ns.is_none() { detours.len() } else { self.keep };
        Reduced { detours, recorded, cell_ns, top }
    }
}

fn cells(places: impl IntoIterator<Item = PlacedDetour>, width: i64) -> HashMap<(i64, u32), PlacedDetour> {
    let mut longest = HashMap::new();
    places.into_iter().for_each(|place| enter(&mut longest, width, place));
    longest
}

fn enter(longest: &mut HashMap<(i64, u32), PlacedDetour>, width: i64, place: PlacedDetour) {
    let kept = longest.entry((place.start.div_euclid(width), height(place.duration))).or_insert(place);
    *kept = (*kept).min(place);
}

/// The cell number of a length: [`PER_OCTAVE`] cells of equal height between one and twice it, linear within the octave; lengths below 4 ns have one
/// each.
fn height(duration: i64) -> u32 {
    let length = duration.max(1) as u64;
    let octave = length.ilog2();
    let bits = PER_OCTAVE.ilog2();
    let within = if octave >= bits { (length >> (octave - bits)) as u32 } else { (length << (bits - octave)) as u32 };
    octave * PER_OCTAVE + (within & (PER_OCTAVE - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn reduce(places: &[PlacedDetour], budget: usize, top: usize) -> Reduced {
        let mut reduction = Reduction::new(budget, top);
        places.iter().for_each(|place| reduction.add(*place));
        reduction.finish()
    }

    /// The plain method: everything at once and in memory.
    fn plain(places: &[PlacedDetour], budget: usize, top: usize) -> Vec<PlacedDetour> {
        let mut sorted = places.to_vec();
        sorted.sort();
        if sorted.len() <= budget {
            return sorted;
        }
        let mut width = 1_i64;
        loop {
            let mut cells: BTreeMap<(i64, u32), PlacedDetour> = BTreeMap::new();
            // The longest come first, so the first of a cell is its longest.
            for place in &sorted {
                cells.entry((place.start.div_euclid(width), height(place.duration))).or_insert(*place);
            }
            if cells.len() <= budget || width >= i64::MAX / 2 {
                let mut kept: Vec<PlacedDetour> = cells.into_values().chain(sorted.iter().take(top).copied()).collect();
                kept.sort();
                kept.dedup();
                return kept;
            }
            width *= 2;
        }
    }

    fn places() -> impl Strategy<Value = Vec<PlacedDetour>> {
        let place = (0_u32..3, 0_i64..100_000, prop_oneof![0_i64..50, 0_i64..1 << 20, 0_i64..1 << 40]);
        proptest::collection::vec(place, 0..400).prop_map(|rows| {
            let place = |(number, (cpu, start, duration))| PlacedDetour {
                node: cpu % 2,
                cpu,
                number: number as u64,
                start,
                duration,
                incomplete: false,
            };
            rows.into_iter().enumerate().map(place).collect()
        })
    }

    proptest! {
        #[test]
        fn equals_the_plain_way_in_any_order(
            places in places(), budget in 1_usize..300, top in 0_usize..20, turn in 0_usize..400,
        ) {
            let expected = plain(&places, budget, top);
            let mut turned = places.clone();
            turned.rotate_left(turn % places.len().max(1));
            for order in [&places, &turned] {
                let reduced = reduce(order, budget, top);
                prop_assert_eq!(&reduced.detours, &expected);
                prop_assert_eq!(reduced.recorded, places.len() as u64);
            }
        }

        #[test]
        fn extremes_stay_and_nothing_is_made_up(places in places(), budget in 1_usize..300, top in 1_usize..20) {
            let reduced = reduce(&places, budget, top);
            let mut sorted = places.clone();
            sorted.sort();
            prop_assert!(reduced.detours.iter().all(|place| places.contains(place)));
            let longest = top.min(sorted.len());
            prop_assert_eq!(&reduced.detours[..longest], &sorted[..longest]);
            if let Some(width) = reduced.cell_ns {
                // A detour that is not drawn has a longer one in the same cell.
                for place in &places {
                    let cell = (place.start.div_euclid(width), height(place.duration));
                    let same = |other: &&PlacedDetour| (other.start.div_euclid(width), height(other.duration)) == cell;
                    let shown = reduced.detours.iter().find(same).expect("each cell shows one");
                    prop_assert!(shown.duration >= place.duration);
                }
                // There are at most 63 octaves of heights, however wide the cells.
                prop_assert!(reduced.detours.len() <= budget.max(63 * PER_OCTAVE as usize) + top);
            } else {
                prop_assert_eq!(reduced.detours.len(), places.len());
            }
        }
    }

    #[test]
    fn a_cell_is_a_quarter_of_an_octave_high() {
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(height), [0, 0, 4, 6, 8, 9, 10, 11, 12, 12, 13]);
        assert_eq!(height(i64::MAX), 62 * 4 + 3);
        assert_eq!(height(-5), 0);
    }
}
