//! The activities of a detour as nested time slices: an interrupting activity is inside the interrupted one.

use becalm_model::{Activity, Detour, Kind};

/// The time from the start to the end of an activity, including everything that interrupted it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// Its start, in nanoseconds since the run's origin.
    pub begin: i64,
    pub end: i64,
    /// The index of the activity in the detour.
    pub activity: usize,
}

/// The urgency of a kind: an interrupting kind is more urgent than the interrupted one.
const fn urgency(kind: Kind) -> u8 {
    match kind {
        Kind::Nmi => 3,
        Kind::Irq => 2,
        Kind::Softirq => 1,
        _ => 0,
    }
}

/// Finds the start and end of each activity of a detour, in order of starts, an outer one before an inner one. Any two are disjoint or
/// nested, and all are within the detour.
///
/// Replays the detour. Time between two starts is taken off the innermost activity that still has self time, which ends when it has none.
/// The next activity is inside all that have not ended, except for rests and unseen time, which end there. Activities that would exceed the
/// detour are cut at its end: the loop's shortest step, which is subtracted from a detour, may be in the middle of its activities.
pub fn slices(detour: &Detour, activities: &[Activity], into: &mut Vec<Slice>) {
    into.clear();
    let begin = detour.start.get();
    let end = begin.saturating_add(detour.duration.get().max(0));
    let start = |activity: usize| activities[activity].start.get().clamp(begin, end);
    let mut order: Vec<usize> = (0..activities.len()).collect();
    order.sort_by_key(|activity| (start(*activity), urgency(activities[*activity].kind)));
    // The open slices, and their remaining self time.
    let mut open: Vec<(usize, i64)> = Vec::new();
    let mut now = begin;
    for activity in order {
        pass(&mut open, &mut now, start(activity), into);
        while let Some((rest, _)) = open.pop_if(|(rest, _)| activities[into[*rest].activity].kind.is_rest()) {
            into[rest].end = now;
        }
        open.push((into.len(), activities[activity].self_time.get().max(0)));
        into.push(Slice { begin: now, end, activity });
    }
    pass(&mut open, &mut now, end, into);
}

/// Lets time pass until an instant: innermost slices end when their time is used up.
fn pass(open: &mut Vec<(usize, i64)>, now: &mut i64, until: i64, slices: &mut [Slice]) {
    while let Some((slice, left)) = open.last_mut() {
        let elapsed = until - *now;
        if *left > elapsed {
            *left -= elapsed;
            break;
        }
        *now += *left;
        slices[*slice].end = *now;
        open.pop();
    }
    *now = until;
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use becalm_model::Label;
    use becalm_units::{CpuId, Nanos};
    use proptest::prelude::*;

    pub fn detour(start: i64, duration: i64) -> Detour {
        Detour { cpu: CpuId::new(0), start: Nanos::new(start), duration: Nanos::new(duration), incomplete: false }
    }

    pub fn activity(start: i64, self_time: i64, kind: Kind) -> Activity {
        let (start, self_time) = (Nanos::new(start), Nanos::new(self_time));
        let (source, detail) = (Label::EMPTY, Label::EMPTY);
        Activity { cpu: CpuId::new(0), detour: 0, start, self_time, kind, source, detail }
    }

    fn found(detour: &Detour, activities: &[Activity]) -> Vec<(usize, i64, i64)> {
        let mut into = Vec::new();
        slices(detour, activities, &mut into);
        into.iter().map(|slice| (slice.activity, slice.begin, slice.end)).collect()
    }

    #[test]
    fn what_interrupts_lies_within_what_it_interrupts() {
        // Entry until 100, a softirq from there to 950, in it an irq from 200 to 500, in that an nmi from 300 to 350; then the exit.
        let activities = [
            activity(0, 100, Kind::Edge),
            activity(100, 550, Kind::Softirq),
            activity(200, 250, Kind::Irq),
            activity(300, 50, Kind::Nmi),
            activity(950, 50, Kind::Edge),
        ];
        let expected = [(0, 0, 100), (1, 100, 950), (2, 200, 500), (3, 300, 350), (4, 950, 1_000)];
        assert_eq!(found(&detour(0, 1_000), &activities), expected);
    }

    #[test]
    fn what_took_no_time_and_what_goes_over_the_end() {
        let activities = [activity(10, 0, Kind::Irq), activity(10, 30, Kind::Softirq), activity(35, 20, Kind::Edge)];
        assert_eq!(found(&detour(10, 40), &activities), [(1, 10, 50), (0, 10, 10), (2, 35, 50)]);
        let activities = [activity(0, 30, Kind::Edge), activity(10, 5, Kind::Irq), activity(15, 5, Kind::Unseen)];
        assert_eq!(found(&detour(0, 40), &activities), [(0, 0, 10), (1, 10, 15), (2, 15, 20)]);
        assert_eq!(found(&detour(10, 40), &[]), []);
        assert_eq!(found(&detour(10, 0), &[activity(5, 9, Kind::Task)]), [(0, 10, 10)]);
    }

    pub fn any_activities() -> impl Strategy<Value = Vec<Activity>> {
        let one = (-50_i64..1_100, 0_i64..400, 0_usize..Kind::ALL.len());
        let one = one.prop_map(|(start, self_time, kind)| activity(start, self_time, Kind::ALL[kind]));
        prop::collection::vec(one, 0..30)
    }

    proptest! {
        #[test]
        fn slices_always_nest(activities in any_activities(), duration in 0_i64..1_000) {
            let mut into = Vec::new();
            slices(&detour(0, duration), &activities, &mut into);
            prop_assert_eq!(into.len(), activities.len());
            prop_assert!(into.is_sorted_by_key(|slice| slice.begin));
            for (at, slice) in into.iter().enumerate() {
                prop_assert!(0 <= slice.begin && slice.begin <= slice.end && slice.end <= duration);
                for later in &into[at + 1..] {
                    prop_assert!(later.begin >= slice.end || later.end <= slice.end, "{:?} {:?}", slice, later);
                }
                // Without its inner slices, it is no longer than its own time.
                let own = slice.end - slice.begin - covered(slice, &into[at + 1..]);
                prop_assert!(own <= activities[slice.activity].self_time.get(), "{:?}", slice);
            }
        }

        /// If accounting is exact and activities follow or interrupt each other, slices have exactly the self times.
        #[test]
        fn self_times_are_what_slices_have_alone(cuts in prop::collection::vec((1_i64..200, 0_usize..3), 1..20)) {
            let (mut activities, mut time): (Vec<Activity>, i64) = (Vec::new(), 0);
            let kinds = [Kind::Softirq, Kind::Irq, Kind::Nmi];
            for (length, depth) in cuts {
                // A softirq; or one with an interrupt in the middle; or that with an nmi in its middle.
                let base = time;
                for level in 0..=depth as i64 {
                    let own = if level < depth as i64 { 2 * length } else { length };
                    activities.push(activity(base + level * length, own, kinds[level as usize]));
                    time += own;
                }
            }
            let mut into = Vec::new();
            slices(&detour(0, time), &activities, &mut into);
            for (at, slice) in into.iter().enumerate() {
                let own = slice.end - slice.begin - covered(slice, &into[at + 1..]);
                prop_assert_eq!(own, activities[slice.activity].self_time.get());
            }
        }
    }

    /// The time of a slice that its outermost inner slices take.
    fn covered(slice: &Slice, later: &[Slice]) -> i64 {
        let (mut until, mut sum) = (slice.begin, 0);
        for inner in later.iter().filter(|inner| inner.begin < slice.end) {
            sum += (inner.end - inner.begin.max(until)).max(0);
            until = until.max(inner.end);
        }
        sum
    }
}
