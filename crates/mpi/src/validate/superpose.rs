//! Combines a CPU's own noise and injected noise: overlapping detours queue up, so no time is lost.

use becalm_scale::{NoiseTrace, TraceError};
use becalm_units::Nanos;

/// The injected noise: one detour per interval, at a fixed place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Regular {
    /// The time between starts.
    pub interval: Nanos,
    /// The length of each detour.
    pub detour: Nanos,
    /// The start of the detour in the first interval.
    pub place: Nanos,
}

/// The length of a periodic trace of whole intervals that fits into noise of length `own`; one interval if that is longer.
pub fn circle(own: Nanos, interval: Nanos) -> Nanos {
    Nanos::new(interval.get() * (own.get() / interval.get()).max(1))
}

/// The own noise as a periodic trace of that length: cut off or repeated. Fails if it leaves no time.
pub fn on_circle(own: &NoiseTrace, length: Nanos) -> Result<NoiseTrace, TraceError> {
    NoiseTrace::from_window(Nanos::ZERO, length, around(own, length.get()))
}

fn around(own: &NoiseTrace, length: i64) -> impl Iterator<Item = (Nanos, Nanos)> + '_ {
    let again = length / own.length().get();
    let all = (0..=again).flat_map(move |lap| {
        let shift = lap * own.length().get();
        own.detours().map(move |(start, lasts)| (Nanos::new(start.get() + shift), lasts))
    });
    all.filter(move |(start, _)| start.get() < length)
}

/// Both as a periodic trace of that length, which must be whole intervals. Fails if both together leave no time.
pub fn superpose(own: &NoiseTrace, injected: Regular, length: Nanos) -> Result<NoiseTrace, TraceError> {
    let (length, Regular { interval, detour, place }) = (length.get(), injected);
    let laps = (length / interval.get()).max(1);
    let regular = (0..laps).map(|lap| (lap * interval.get() + place.get(), detour.get()));
    let own = around(own, length).map(|(start, lasts)| (start.get(), lasts.get()));
    let mut detours: Vec<(i64, i64)> = regular.chain(own).collect();
    detours.sort_unstable();
    // A first lap finds how far detours queued at its end extend into the next one.
    let queued = |from: i64| detours.iter().fold(from, |end, (start, lasts)| end.max(*start) + lasts);
    let mut end = (queued(0) - length).max(0);
    for (start, lasts) in &mut detours {
        *start = end.max(*start);
        end = *start + *lasts;
    }
    // Detours delayed beyond the end wrap around to the start.
    for (start, _) in &mut detours {
        *start %= length;
    }
    detours.sort_unstable();
    NoiseTrace::new(
        Nanos::new(length),
        detours.into_iter().map(|(start, lasts)| (Nanos::new(start), Nanos::new(lasts))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trace(length: i64, detours: &[(i64, i64)]) -> NoiseTrace {
        let detours = detours.iter().map(|(start, lasts)| (Nanos::new(*start), Nanos::new(*lasts)));
        NoiseTrace::new(Nanos::new(length), detours).unwrap()
    }

    fn regular(interval: i64, detour: i64, place: i64) -> Regular {
        let [interval, detour, place] = [interval, detour, place].map(Nanos::new);
        Regular { interval, detour, place }
    }

    #[test]
    fn silence_leaves_what_is_injected() {
        let silent = NoiseTrace::silent(Nanos::new(1_050)).unwrap();
        let made = |interval, place| {
            let length = circle(silent.length(), Nanos::new(interval));
            superpose(&silent, regular(interval, 7, place), length).unwrap()
        };
        let both = made(100, 0);
        assert_eq!((both.length().get(), both.noise().get(), both.len()), (1_000, 70, 10));
        let long = made(5_000, 4_998);
        assert_eq!((long.length().get(), long.noise().get()), (5_000, 7));
        assert_eq!(on_circle(&trace(100, &[(90, 5)]), Nanos::new(250)).unwrap().len(), 2);
    }

    #[test]
    fn what_meets_waits() {
        let both = superpose(&trace(100, &[(5, 20)]), regular(100, 10, 0), Nanos::new(100)).unwrap();
        let detours: Vec<_> = both.detours().map(|(start, lasts)| (start.get(), lasts.get())).collect();
        assert_eq!(detours, [(0, 30)]);
    }

    proptest! {
        /// Against the plain way: nanosecond by nanosecond, work that is owed is done as soon as the CPU is free.
        #[test]
        fn it_is_the_queue_played_out(
            gaps in proptest::collection::vec((1_i64..40, 1_i64..12), 0..8),
            interval in 20_i64..120,
            detour in 1_i64..10,
            place in 0_i64..20,
        ) {
            let mut at = 0;
            let own: Vec<(i64, i64)> = gaps.iter().map(|(gap, lasts)| {
                let start = at + gap;
                at = start + lasts;
                (start, *lasts)
            }).collect();
            let own = trace(at + 30, &own);
            let length = circle(own.length(), Nanos::new(interval)).get();
            let Ok(both) = superpose(&own, regular(interval, detour, place), Nanos::new(length)) else {
                // Only noise without a gap is refused.
                return Ok(());
            };
            prop_assert_eq!(length % interval, 0);
            let mut owed = 0;
            let mut lost = vec![false; length as usize];
            // The second lap begins with what the first one left.
            for now in (0..length).chain(0..length) {
                if now % interval == place {
                    owed += detour;
                }
                let at = now % own.length().get();
                owed += own.detours().filter(|(start, _)| start.get() == at).map(|(_, lasts)| lasts.get()).sum::<i64>();
                lost[now as usize] = owed > 0;
                owed -= i64::from(owed > 0);
            }
            let mut told = vec![false; length as usize];
            for (start, lasts) in both.detours() {
                for now in start.get()..start.get() + lasts.get() {
                    told[(now % length) as usize] = true;
                }
            }
            prop_assert_eq!(told, lost);
        }
    }
}
