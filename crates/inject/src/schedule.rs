//! When detours are due on one CPU: a circle of noise, repeated from some place on it.

use becalm_scale::NoiseTrace;
use becalm_units::Nanos;

use crate::document::Shortfall;

/// A detour that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// The time from the start of the noise to the start of the detour.
    pub at: Nanos,
    /// The requested length.
    pub length: Nanos,
}

/// One lap of the circle of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lap {
    /// The number of detours.
    pub detours: usize,
    /// The time that they take.
    pub noise: Nanos,
    /// The length of the circle.
    pub length: Nanos,
}

/// The endless sequence of detours on one CPU, in order; empty if there is no noise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    detours: Vec<(Nanos, Nanos)>,
    circle: Nanos,
    /// The place on the circle where the noise starts.
    offset: Nanos,
    next: usize,
    lap: i64,
}

impl Schedule {
    /// Starts at `offset` on the trace's circle, from zero to below its length. Leaves out a detour that is in progress there.
    pub fn new(trace: &NoiseTrace, offset: Nanos) -> Self {
        let detours = trace.detours().collect();
        let mut schedule = Self { detours, circle: trace.length(), offset, next: 0, lap: 0 };
        schedule.begin_at(offset);
        schedule
    }

    /// Starts at another place on the circle.
    pub fn begin_at(&mut self, offset: Nanos) {
        self.offset = Nanos::new(offset.get().rem_euclid(self.circle.get()));
        self.next = self.detours.partition_point(|(start, _)| *start < self.offset);
        self.lap = 0;
    }

    /// Merges detours that are closer to each other than `room`, also across the end of the circle. A merged detour is as long as both together,
    /// which keeps the total noise. Returns the number of detours removed.
    pub fn merge_closer(&mut self, room: Nanos) -> usize {
        let before = self.detours.len();
        self.detours.dedup_by(|next, kept| {
            let close = next.0 - (kept.0 + kept.1) < room;
            if close {
                kept.1 += next.1;
            }
            close
        });
        // The last one is longer now, and may reach several detours of the next lap.
        let mut taken = 0;
        while taken + 1 < self.detours.len() {
            let (first, last) = (self.detours[taken], *self.detours.last().expect("there are two"));
            if first.0 + self.circle - (last.0 + last.1) >= room {
                break;
            }
            self.detours.last_mut().expect("there are two").1 += first.1;
            taken += 1;
        }
        self.detours.drain(..taken);
        self.begin_at(self.offset);
        before - self.detours.len()
    }

    /// Leaves out detours shorter than `shortest`. Returns those of one lap.
    pub fn drop_shorter(&mut self, shortest: Nanos) -> Shortfall {
        let before = self.detours.len();
        let mut gone = Nanos::ZERO;
        self.detours.retain(|(_, length)| {
            let kept = *length >= shortest;
            if !kept {
                gone += *length;
            }
            kept
        });
        self.begin_at(self.offset);
        Shortfall { count: (before - self.detours.len()) as u64, time: gone }
    }

    /// The length of the shortest detour; `None` if there is none.
    pub fn shortest(&self) -> Option<Nanos> {
        self.detours.iter().map(|(_, length)| *length).min()
    }

    /// The length of the longest detour; `None` if there is none.
    pub fn longest(&self) -> Option<Nanos> {
        self.detours.iter().map(|(_, length)| *length).max()
    }

    /// One lap of the circle.
    pub fn lap(&self) -> Lap {
        let noise = self.detours.iter().fold(Nanos::ZERO, |sum, (_, length)| sum + *length);
        Lap { detours: self.detours.len(), noise, length: self.circle }
    }

    /// The shortest time from the end of a detour to the start of the next; for a single detour, to its next lap. `None` without detours.
    pub fn narrowest_gap(&self) -> Option<Nanos> {
        let (first, last) = (self.detours.first()?, self.detours.last()?);
        let over = first.0 + self.circle - (last.0 + last.1);
        let gaps = self.detours.windows(2).map(|pair| pair[1].0 - (pair[0].0 + pair[0].1));
        Some(gaps.fold(over, Nanos::min))
    }
}

impl Iterator for Schedule {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        if self.next == self.detours.len() {
            self.next = 0;
            self.lap += 1;
        }
        let (start, length) = *self.detours.get(self.next)?;
        self.next += 1;
        // Room for two hundred years; then the schedule ends.
        let laps = self.circle.get().checked_mul(self.lap)?;
        let at = (start - self.offset).get().checked_add(laps)?;
        Some(Due { at: Nanos::new(at), length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trace(length: i64, detours: &[(i64, i64)]) -> NoiseTrace {
        let detours = detours.iter().map(|(start, length)| (Nanos::new(*start), Nanos::new(*length)));
        NoiseTrace::new(Nanos::new(length), detours).unwrap()
    }

    fn first(schedule: Schedule, count: usize) -> Vec<(i64, i64)> {
        schedule.take(count).map(|due| (due.at.get(), due.length.get())).collect()
    }

    #[test]
    fn a_circle_goes_round_and_round() {
        let trace = trace(100, &[(10, 5), (60, 7)]);
        assert_eq!(first(Schedule::new(&trace, Nanos::ZERO), 4), [(10, 5), (60, 7), (110, 5), (160, 7)]);
        assert_eq!(first(Schedule::new(&trace, Nanos::new(10)), 3), [(0, 5), (50, 7), (100, 5)]);
        assert_eq!(first(Schedule::new(&trace, Nanos::new(61)), 3), [(49, 5), (99, 7), (149, 5)]);
        assert_eq!(first(Schedule::new(&trace, Nanos::new(161)), 1), [(49, 5)]);
    }

    #[test]
    fn what_cannot_be_made_is_left_out_and_counted() {
        let mut schedule = Schedule::new(&trace(100, &[(10, 5), (60, 7), (80, 2)]), Nanos::new(70));
        assert_eq!(schedule.drop_shorter(Nanos::new(6)), Shortfall { count: 2, time: Nanos::new(7) });
        assert_eq!(schedule.lap(), Lap { detours: 1, noise: Nanos::new(7), length: Nanos::new(100) });
        assert_eq!(first(schedule, 2), [(90, 7), (190, 7)]);
        let mut silent = Schedule::new(&trace(100, &[(10, 5)]), Nanos::ZERO);
        assert_eq!(silent.drop_shorter(Nanos::new(6)).count, 1);
        assert_eq!((silent.narrowest_gap(), silent.next()), (None, None));
    }

    #[test]
    fn what_is_too_close_becomes_one() {
        let mut schedule = Schedule::new(&trace(100, &[(10, 5), (17, 7), (40, 2), (45, 1)]), Nanos::new(20));
        assert_eq!(schedule.merge_closer(Nanos::new(3)), 1);
        assert_eq!(
            (schedule.lap(), schedule.longest()),
            (Lap { detours: 3, noise: Nanos::new(15), length: Nanos::new(100) }, Some(Nanos::new(12)))
        );
        assert_eq!(first(schedule, 3), [(20, 2), (25, 1), (90, 12)]);
    }

    #[test]
    fn gaps_are_measured_over_the_end_too() {
        assert_eq!(Schedule::new(&trace(100, &[(10, 5)]), Nanos::ZERO).narrowest_gap(), Some(Nanos::new(95)));
        assert_eq!(
            Schedule::new(&trace(100, &[(2, 5), (20, 1), (95, 3)]), Nanos::ZERO).narrowest_gap(),
            Some(Nanos::new(4))
        );
    }

    /// Merges the first pair that is too close, the pair over the end being the last one, until there is none.
    fn merged_plainly(mut detours: Vec<(i64, i64)>, circle: i64, room: i64) -> Vec<(i64, i64)> {
        'again: loop {
            let count = detours.len();
            for index in 0..count {
                let next = (index + 1) % count;
                let lap = if next == 0 { circle } else { 0 };
                if next != index && detours[next].0 + lap - (detours[index].0 + detours[index].1) < room {
                    detours[index].1 += detours[next].1;
                    detours.remove(next);
                    continue 'again;
                }
            }
            return detours;
        }
    }

    proptest! {
        #[test]
        fn merging_is_what_the_plain_way_gives_and_keeps_the_noise(
            gaps in prop::collection::vec((1_i64..50, 1_i64..20), 1..30), tail in 1_i64..50, room in 0_i64..60,
        ) {
            let mut at = 0;
            let mut detours = Vec::new();
            for (gap, length) in &gaps {
                at += gap;
                detours.push((at, *length));
                at += length;
            }
            let circle = at + tail;
            let mut schedule = Schedule::new(&trace(circle, &detours), Nanos::ZERO);
            let Lap { detours: count, noise, .. } = schedule.lap();
            let gone = schedule.merge_closer(Nanos::new(room));
            let left: Vec<(i64, i64)> = schedule.detours.iter().map(|(at, long)| (at.get(), long.get())).collect();
            prop_assert_eq!(&left, &merged_plainly(detours, circle, room));
            prop_assert_eq!(schedule.lap(), Lap { detours: count - gone, noise, length: Nanos::new(circle) });
            prop_assert!(left.len() == 1 || schedule.narrowest_gap().unwrap() >= Nanos::new(room));
        }

        #[test]
        fn every_detour_comes_once_a_lap_in_order(
            gaps in prop::collection::vec((1_i64..50, 1_i64..20), 1..20),
            offset in 0_i64..5_000,
        ) {
            let mut at = 0;
            let mut detours = Vec::new();
            for (gap, length) in &gaps {
                at += gap;
                detours.push((at, *length));
                at += length;
            }
            let trace = trace(at + 1, &detours);
            let due = first(Schedule::new(&trace, Nanos::new(offset)), 3 * detours.len());
            prop_assert!(due.is_sorted_by(|a, b| a.0 + a.1 < b.0));
            prop_assert!(due[0].0 >= 0 && due[0].0 <= at + 1);
            for ((at, length), (start, expected)) in due.iter().zip(&due[detours.len()..]) {
                prop_assert_eq!((start - at, length), (trace.length().get(), expected));
            }
            for (at, length) in due {
                prop_assert!(detours.contains(&((at + offset).rem_euclid(trace.length().get()), length)));
            }
        }
    }
}
