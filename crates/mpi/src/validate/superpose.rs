//! A CPU's own noise and the noise injected there, as one: what comes while another detour lasts waits until that is over, so
//! that no time is lost.

use becalm_scale::{NoiseTrace, TraceError};
use becalm_units::Nanos;

/// A circle of whole intervals, each of which begins with an injected detour. It is about as long as the own noise, or one
/// interval long where the interval is longer.
///
/// # Errors
/// If both together leave no time.
pub fn superpose(own: &NoiseTrace, interval: Nanos, detour: Nanos) -> Result<NoiseTrace, TraceError> {
    let laps = (own.length().get() / interval.get()).max(1);
    let length = interval.get() * laps;
    let injected = (0..laps).map(|lap| (lap * interval.get(), detour.get()));
    // The own noise again where one interval is longer than its circle.
    let again = length / own.length().get();
    let all = (0..=again).flat_map(|lap| {
        let shift = lap * own.length().get();
        own.detours().map(move |(start, lasts)| (start.get() + shift, lasts.get()))
    });
    let mut detours: Vec<(i64, i64)> = injected.chain(all.filter(|(start, _)| *start < length)).collect();
    detours.sort_unstable();
    let mut end = 0;
    for (start, lasts) in &mut detours {
        *start = end.max(*start);
        end = *start + *lasts;
    }
    // What goes over the end is cut off: the next lap begins with a detour.
    let detours = detours.into_iter().filter(|(start, _)| *start < length);
    let detours = detours.map(|(start, lasts)| (Nanos::new(start), Nanos::new(lasts.min(length - start))));
    NoiseTrace::new(Nanos::new(length), detours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trace(length: i64, detours: &[(i64, i64)]) -> NoiseTrace {
        let detours = detours.iter().map(|(start, lasts)| (Nanos::new(*start), Nanos::new(*lasts)));
        NoiseTrace::new(Nanos::new(length), detours).unwrap()
    }

    #[test]
    fn silence_leaves_what_is_injected() {
        let silent = NoiseTrace::silent(Nanos::new(1_050)).unwrap();
        let both = superpose(&silent, Nanos::new(100), Nanos::new(7)).unwrap();
        assert_eq!((both.length().get(), both.noise().get(), both.len()), (1_000, 70, 10));
        let long = superpose(&silent, Nanos::new(5_000), Nanos::new(7)).unwrap();
        assert_eq!((long.length().get(), long.noise().get()), (5_000, 7));
    }

    #[test]
    fn what_meets_waits() {
        let both = superpose(&trace(100, &[(5, 20)]), Nanos::new(100), Nanos::new(10)).unwrap();
        let detours: Vec<_> = both.detours().map(|(start, lasts)| (start.get(), lasts.get())).collect();
        assert_eq!(detours.iter().map(|(_, lasts)| lasts).sum::<i64>(), 30);
        assert_eq!(detours[0].0, 0);
    }

    proptest! {
        /// Against the plain way: nanosecond by nanosecond, work that is owed is done as soon as the CPU is free.
        #[test]
        fn it_is_the_queue_played_out(
            gaps in proptest::collection::vec((1_i64..40, 1_i64..12), 0..8),
            interval in 20_i64..120,
            detour in 1_i64..10,
        ) {
            let mut at = 0;
            let own: Vec<(i64, i64)> = gaps.iter().map(|(gap, lasts)| {
                let start = at + gap;
                at = start + lasts;
                (start, *lasts)
            }).collect();
            let own = trace(at + 30, &own);
            let Ok(both) = superpose(&own, Nanos::new(interval), Nanos::new(detour)) else {
                // Only noise without a gap is refused.
                return Ok(());
            };
            let length = both.length().get();
            prop_assert_eq!(length % interval, 0);
            let mut owed = 0;
            let mut lost = vec![false; length as usize];
            for now in 0..length {
                if now % interval == 0 {
                    owed += detour;
                }
                let place = now % own.length().get();
                owed += own.detours().filter(|(start, _)| start.get() == place).map(|(_, lasts)| lasts.get()).sum::<i64>();
                if owed > 0 {
                    lost[now as usize] = true;
                    owed -= 1;
                }
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
