//! Whether the detours of several CPUs coincide: how many CPUs are in a detour at a time, and how many detours meet one of another CPU, each compared
//! with the number expected by chance for independent CPUs.
//!
//! By chance means that each other CPU had the same detours, but all of them shifted by a time of its own, uniform over the recorded time, with
//! wraparound.

use std::collections::BTreeMap;

/// The chance of a meeting is computed for at most this many lengths of a group, evenly spread by rank.
const LENGTHS: usize = 1_000;

/// A detour of one of several CPUs, in a recording that starts at 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Placed {
    /// Its start, in nanoseconds.
    pub start: i64,
    /// Its end, in nanoseconds: above the start, and at most the length of the recording.
    pub end: i64,
    /// The number of its CPU.
    pub cpu: u32,
    /// The group that it is counted with.
    pub group: u32,
}

/// The time during which exactly this many CPUs were in a detour.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BusyTime {
    /// The number of CPUs, from 0 to all.
    pub cpus: usize,
    /// That time, in nanoseconds.
    pub time: i64,
    /// The time expected by chance, in nanoseconds.
    pub by_chance: f64,
}

/// A stretch of time with many CPUs in a detour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// The number of CPUs.
    pub cpus: usize,
    /// The start in nanoseconds, when the last of them entered its detour.
    pub start: i64,
    /// The end in nanoseconds, when the first of them left its detour.
    pub end: i64,
}

/// The number of a group's detours that meet one of another CPU.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Meeting {
    /// The group.
    pub group: u32,
    /// The number of its detours.
    pub count: u64,
    /// The number of them that meet a detour of another CPU.
    pub met: u64,
    /// The number expected by chance.
    pub by_chance: f64,
}

/// The time during which 0, 1, ... CPUs are in a detour at once, and the stretches with the most CPUs (at least two), in order of time. Detours are
/// sorted, and those of one CPU do not overlap.
pub fn busy_times(detours: &[Placed], cpus: usize, length: i64) -> (Vec<BusyTime>, Vec<Stretch>) {
    let mut edges: Vec<(i64, i32)> = detours.iter().flat_map(|detour| [(detour.start, 1), (detour.end, -1)]).collect();
    // At the same instant, ends come before starts.
    edges.sort_unstable();
    let (mut times, mut within, mut since) = (vec![0; cpus + 1], 0_usize, 0);
    let mut stretches: Vec<Stretch> = Vec::new();
    for (at, step) in edges.into_iter().chain([(length, 0)]) {
        times[within] += at - since;
        let most = stretches.last().map_or(2, |stretch| stretch.cpus);
        if at > since && within >= most {
            if within > most {
                stretches.clear();
            }
            match stretches.last_mut() {
                // CPUs that take over from each other without a gap form one stretch.
                Some(last) if last.end == since => last.end = at,
                _ => stretches.push(Stretch { cpus: within, start: since, end: at }),
            }
        }
        since = at;
        within = within.saturating_add_signed(step as isize);
    }
    let shares = shares(detours, cpus, length);
    let row = |(cpus, (time, share)): (usize, (i64, f64))| BusyTime { cpus, time, by_chance: share * length as f64 };
    (times.into_iter().zip(shares).enumerate().map(row).collect(), stretches)
}

/// The shares of the time with 0, 1, ... CPUs in a detour if CPUs are independent.
fn shares(detours: &[Placed], cpus: usize, length: i64) -> Vec<f64> {
    let mut busy = vec![0_i64; cpus];
    detours.iter().for_each(|detour| busy[detour.cpu as usize] += detour.end - detour.start);
    let mut shares = vec![1.0];
    for busy in busy {
        let ratio = busy as f64 / length.max(1) as f64;
        let mut next = vec![0.0; shares.len() + 1];
        for (within, share) in shares.iter().enumerate() {
            next[within] += share * (1.0 - ratio);
            next[within + 1] += share * ratio;
        }
        shares = next;
    }
    shares
}

/// The number of detours of each group that meet one of another CPU, by rising group. Two meet if one starts before `within` nanoseconds after the
/// end of the other. Detours are sorted, and those of one CPU do not overlap.
pub fn meetings(detours: &[Placed], cpus: usize, length: i64, within: i64) -> Vec<Meeting> {
    let met = met(detours, within);
    let free: Vec<FreeTime> = (0..cpus).map(|cpu| FreeTime::new(detours, cpu as u32, length, within)).collect();
    let mut groups: BTreeMap<u32, (u64, Vec<(i64, u32)>)> = BTreeMap::new();
    for (detour, met) in detours.iter().zip(met) {
        let (count, lengths) = groups.entry(detour.group).or_default();
        *count += u64::from(met);
        lengths.push((detour.end - detour.start, detour.cpu));
    }
    let meeting = |(group, (met, mut lengths)): (u32, (u64, Vec<(i64, u32)>))| {
        lengths.sort_unstable();
        let all = lengths.len();
        let taken = all.min(LENGTHS);
        // The middle one of each of `taken` equal parts; every one if there are no more.
        let chance = (0..taken).map(|part| {
            let (length, own) = lengths[(2 * part + 1) * all / (2 * taken)];
            let missed = free.iter().enumerate().filter(|(cpu, _)| *cpu != own as usize);
            1.0 - missed.map(|(_, free)| free.missed(length)).product::<f64>()
        });
        let by_chance = chance.sum::<f64>() / taken as f64 * all as f64;
        Meeting { group, count: all as u64, met, by_chance }
    };
    groups.into_iter().map(meeting).collect()
}

/// Which detours meet one of another CPU, as in [`meetings`].
fn met(detours: &[Placed], within: i64) -> Vec<bool> {
    // The latest end so far, and the latest end on any other CPU.
    let mut latest = [(i64::MIN, u32::MAX); 2];
    let mut met: Vec<bool> = Vec::with_capacity(detours.len());
    for detour in detours {
        let before = if latest[0].1 == detour.cpu { latest[1].0 } else { latest[0].0 };
        met.push(before > detour.start);
        let end = (detour.end.saturating_add(within), detour.cpu);
        // A CPU's detours follow each other, so the later one ends later.
        if latest[0].1 == end.1 {
            latest[0] = end;
        } else if end.0 >= latest[0].0 {
            latest = [end, latest[0]];
        } else if latest[1].1 == end.1 || end.0 > latest[1].0 {
            latest[1] = end;
        }
    }
    // Likewise the next start, from the other end.
    let mut next = [(i64::MAX, u32::MAX); 2];
    for (detour, met) in detours.iter().zip(&mut met).rev() {
        let after = if next[0].1 == detour.cpu { next[1].0 } else { next[0].0 };
        *met |= after < detour.end.saturating_add(within);
        if next[0].1 != detour.cpu {
            next[1] = next[0];
        }
        next[0] = (detour.start, detour.cpu);
    }
    met
}

/// The times between the detours of a CPU, with wraparound.
struct FreeTime {
    /// The gaps less `within` on both sides, rising.
    gaps: Vec<i64>,
    /// The sum of the gaps from each on, then 0.
    sums: Vec<i64>,
    length: i64,
}

impl FreeTime {
    fn new(detours: &[Placed], cpu: u32, length: i64, within: i64) -> Self {
        let own: Vec<&Placed> = detours.iter().filter(|detour| detour.cpu == cpu).collect();
        let mut gaps: Vec<i64> = own.windows(2).map(|pair| pair[1].start - pair[0].end).collect();
        let round = own.first().zip(own.last()).map(|(first, last)| first.start + length - last.end);
        gaps.extend(round);
        gaps.iter_mut().for_each(|gap| *gap -= within.saturating_mul(2).min(length));
        gaps.sort_unstable();
        let mut sums = vec![0; gaps.len() + 1];
        for at in (0..gaps.len()).rev() {
            sums[at] = sums[at + 1] + gaps[at];
        }
        Self { gaps, sums, length }
    }

    /// The share of start times at which a detour of this length meets none of them.
    fn missed(&self, length: i64) -> f64 {
        if self.gaps.is_empty() {
            return 1.0;
        }
        // A gap of exactly its length fits it at one instant.
        let first = self.gaps.partition_point(|gap| *gap < length);
        let room = self.sums[first] - (self.gaps.len() - first) as i64 * (length - 1);
        room as f64 / self.length.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LENGTH: i64 = 60;

    /// Two or three CPUs with a few detours each, in order.
    fn cpus() -> impl Strategy<Value = (usize, Vec<Placed>)> {
        let detours = proptest::collection::vec((1_i64..9, 1_i64..7, 0_u32..2), 0..5);
        proptest::collection::vec(detours, 2..4).prop_map(|by_cpu| {
            let mut all = Vec::new();
            for (cpu, detours) in by_cpu.iter().enumerate() {
                let mut at = 0;
                for (gap, long, group) in detours {
                    let start = at + gap;
                    let end = (start + long).min(LENGTH);
                    if start < end {
                        all.push(Placed { start, end, cpu: cpu as u32, group: *group });
                    }
                    at = end;
                }
            }
            all.sort_unstable();
            (by_cpu.len(), all)
        })
    }

    proptest! {
        /// Compared with counting nanosecond by nanosecond.
        #[test]
        fn times_at_once_are_those_counted(case in cpus()) {
            let (cpus, detours) = case;
            let (rows, stretches) = busy_times(&detours, cpus, LENGTH);
            let within = |at: i64| detours.iter().filter(|detour| detour.start <= at && at < detour.end).count();
            for row in &rows {
                prop_assert_eq!(row.time, (0..LENGTH).filter(|at| within(*at) == row.cpus).count() as i64);
            }
            prop_assert!((rows.iter().map(|row| row.by_chance).sum::<f64>() - LENGTH as f64).abs() < 1e-9);
            let most = (0..LENGTH).map(within).max().unwrap_or(0);
            let in_one = |at: i64| stretches.iter().any(|stretch| stretch.start <= at && at < stretch.end);
            for at in 0..LENGTH {
                prop_assert_eq!(in_one(at), most >= 2 && within(at) == most, "{}", at);
            }
            prop_assert!(stretches.windows(2).all(|pair| pair[0].end < pair[1].start));
        }

        /// Compared with trying each pair, and each offset of each other CPU.
        #[test]
        fn meetings_are_those_of_all_pairs_and_offsets(case in cpus(), within in 0_i64..6) {
            let (cpus, detours) = case;
            let meet = |one: &Placed, other: &Placed| {
                one.cpu != other.cpu && one.start < other.end + within && other.start < one.end + within
            };
            // The other CPU with an offset, wrapped around.
            let hit = |one: &Placed, cpu: usize, offset: i64| {
                let others = detours.iter().filter(|other| other.cpu as usize == cpu);
                others.flat_map(|other| [-2, -1, 0, 1].map(|lap| (other, lap * LENGTH + offset))).any(|(other, later)| {
                    one.start < other.end + later + within && other.start + later < one.end + within
                })
            };
            let chance = |one: &Placed| {
                let missed = (0..cpus).filter(|cpu| *cpu != one.cpu as usize).map(|cpu| {
                    (0..LENGTH).filter(|offset| !hit(one, cpu, *offset)).count() as f64 / LENGTH as f64
                });
                1.0 - missed.product::<f64>()
            };
            for meeting in meetings(&detours, cpus, LENGTH, within) {
                let own: Vec<&Placed> = detours.iter().filter(|detour| detour.group == meeting.group).collect();
                prop_assert_eq!(meeting.count, own.len() as u64);
                let met = own.iter().filter(|one| detours.iter().any(|other| meet(one, other))).count();
                prop_assert_eq!(meeting.met, met as u64);
                let expected: f64 = own.iter().map(|one| chance(one)).sum();
                prop_assert!((meeting.by_chance - expected).abs() < 1e-9, "{} {}", meeting.by_chance, expected);
            }
        }
    }

    #[test]
    fn many_lengths_are_taken_by_their_ranks() {
        // One detour of 1 us on the other CPU; own ones of 1 to 10,000 ns in turn, each of which meets it with probability (1,000 + own - 1) /
        // length.
        let length = 1_000_000_000;
        let mut all = vec![Placed { start: 500_000, end: 501_000, cpu: 1, group: 1 }];
        all.extend((0..10_000).map(|at| Placed { start: 50_000 * at, end: 50_001 * at + 1, cpu: 0, group: 0 }));
        all.sort_unstable();
        let found = meetings(&all, 2, length, 0)[0];
        let expected: f64 = (1..=10_000).map(|own| f64::from(1_000 + own - 1) / length as f64).sum();
        assert!((found.by_chance / expected - 1.0).abs() < 1e-3, "{} {expected}", found.by_chance);
    }
}
