//! Events that stop several CPUs of a node at once, such as stops by the hypervisor: detours of different CPUs overlap in time.
//!
//! Sampling CPUs one by one would count such an event once per CPU. It counts once, with its longest detour, because a phase waits for the latest
//! rank.

use becalm_stats::Longest;
use becalm_units::Nanos;

/// The detours of a CPU by start and duration, in order of time.
pub type TimedDetours = Vec<(Nanos, Nanos)>;

/// The longest detours of a CPU, added in order of time. Adjacent detours are merged.
#[derive(Clone, Default, Debug)]
pub struct LongestStops {
    last: Option<(i64, i64)>,
    longest: Longest,
}

impl LongestStops {
    /// From all detours of a CPU.
    pub fn from_detours(detours: impl IntoIterator<Item = (Nanos, Nanos)>) -> Self {
        let mut stops = Self::default();
        detours.into_iter().for_each(|(start, duration)| stops.add(start, duration));
        stops
    }

    /// Adds the next detour.
    pub fn add(&mut self, start: Nanos, duration: Nanos) {
        match &mut self.last {
            Some((began, lasted)) if began.saturating_add(*lasted) == start.get() => {
                *lasted = lasted.saturating_add(duration.get());
            }
            last => {
                if let Some((began, lasted)) = last.replace((start.get(), duration.get())) {
                    self.longest.add(began, lasted);
                }
            }
        }
    }

    /// The longest detours, in order of time.
    fn sorted(mut self) -> TimedDetours {
        if let Some((began, lasted)) = self.last {
            self.longest.add(began, lasted);
        }
        self.longest.sorted().1.into_iter().map(|(start, duration)| (Nanos::new(start), Nanos::new(duration))).collect()
    }
}

/// For each CPU of a node, the detours that belong to an event with its longest detour on another CPU.
pub fn repeated_stops(cpus: impl IntoIterator<Item = LongestStops>) -> Vec<TimedDetours> {
    let cpus: Vec<TimedDetours> = cpus.into_iter().map(LongestStops::sorted).collect();
    let mut repeated = vec![Vec::new(); cpus.len()];
    for event in events_at_once(&cpus) {
        event.iter().skip(1).for_each(|detour| repeated[detour.cpu].push(cpus[detour.cpu][detour.place]));
    }
    repeated.iter_mut().for_each(|detours| detours.sort_unstable());
    repeated
}

/// The position of a detour in the lists of several CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DetourPlace {
    /// The index of its CPU's list.
    pub cpu: usize,
    /// Its index in that list.
    pub place: usize,
}

/// The detours that hit several CPUs of a node at once. Each event lists the longest detour first, then at most one of each other CPU. A detour is
/// part of at most one event.
pub fn events_at_once(cpus: &[TimedDetours]) -> Vec<Vec<DetourPlace>> {
    let mut left: Vec<Vec<bool>> = cpus.iter().map(|detours| vec![true; detours.len()]).collect();
    let places =
        |(cpu, detours): (usize, &TimedDetours)| (0..detours.len()).map(move |place| DetourPlace { cpu, place });
    let mut all: Vec<DetourPlace> = cpus.iter().enumerate().flat_map(places).collect();
    all.sort_by_key(|detour| std::cmp::Reverse(cpus[detour.cpu][detour.place].1));
    let mut events = Vec::new();
    for first in all {
        if !std::mem::take(&mut left[first.cpu][first.place]) {
            continue;
        }
        let detour = cpus[first.cpu][first.place];
        let mut event = vec![first];
        for (cpu, detours) in cpus.iter().enumerate().filter(|(cpu, _)| *cpu != first.cpu) {
            let begin = detours.partition_point(|other| end(*other) <= detour.0);
            let meanwhile = (begin..detours.len()).take_while(|place| detours[*place].0 < end(detour));
            let same = meanwhile.filter(|place| left[cpu][*place] && is_same(detour, detours[*place]));
            if let Some(same) = same.max_by_key(|place| detours[*place].1) {
                left[cpu][same] = false;
                event.push(DetourPlace { cpu, place: same });
            }
        }
        if event.len() > 1 {
            events.push(event);
        }
    }
    events
}

const fn end((start, duration): (Nanos, Nanos)) -> Nanos {
    start.saturating_add(duration)
}

/// Whether two detours overlap for more than half of the shorter one.
fn is_same(one: (Nanos, Nanos), other: (Nanos, Nanos)) -> bool {
    let both = end(one).min(end(other)).get().saturating_sub(one.0.max(other.0).get());
    both > one.1.min(other.1).get() / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detours(pairs: &[(i64, i64)]) -> TimedDetours {
        pairs.iter().map(|(start, duration)| (Nanos::new(*start), Nanos::new(*duration))).collect()
    }

    #[test]
    fn an_event_has_one_detour_of_each_cpu_that_it_stopped() {
        let cpus = [
            detours(&[(0, 100), (1_000, 50), (2_000, 10)]),
            // The last one shares only 10 of its 40 ns with the one on the first CPU.
            detours(&[(10, 70), (80, 30), (1_040, 40)]),
            detours(&[(5, 110), (2_001, 4)]),
        ];
        let events = events_at_once(&cpus);
        let places =
            |event: &Vec<DetourPlace>| event.iter().map(|detour| (detour.cpu, detour.place)).collect::<Vec<_>>();
        let events: Vec<_> = events.iter().map(places).collect();
        assert_eq!(events, [vec![(2, 0), (0, 0), (1, 0)], vec![(0, 2), (2, 1)]]);
        let stops = cpus.map(LongestStops::from_detours);
        // Adjacent detours are merged: (10, 70) and (80, 30).
        let repeated = repeated_stops(stops);
        assert_eq!(repeated, [detours(&[(0, 100)]), detours(&[(10, 100)]), detours(&[(2_001, 4)])]);
    }

    #[test]
    fn alone_on_its_node_a_cpu_repeats_nothing() {
        let mut stops = LongestStops::default();
        stops.add(Nanos::new(3), Nanos::new(8));
        assert_eq!(repeated_stops([stops]), [TimedDetours::new()]);
        assert!(repeated_stops([]).is_empty());
    }
}
