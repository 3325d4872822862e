//! Where on its circle the noise of a CPU or a thread starts, and which start together.

use becalm_scale::random::{Purpose, Stream};
use becalm_scale::{NoiseTrace, TraceError};
use becalm_units::{CpuId, Nanos};

use crate::document::Together;

/// The range of a node's own place: far larger than any circle, yet the sum with the wall clock fits.
const SHIFTS: u64 = 1 << 62;

/// The offset added to the wall clock to get the place on every circle of the node: 0 if all nodes lose the same instants, a random one from seed and
/// node number if they differ. `None` if each CPU or thread has a place of its own.
pub(crate) fn shift(together: Together, seed: u64, host: u64) -> Option<u64> {
    match together {
        Together::Apart => None,
        Together::Node => Some(Stream::new(seed, Purpose::Offsets, host).below(SHIFTS)),
        Together::All => Some(0),
    }
}

/// The place on a circle at an instant of the wall clock.
pub(crate) fn at(wall_ns: u64, shift: u64, circle: Nanos) -> Nanos {
    let circle = circle.get() as u64;
    Nanos::new(((wall_ns % circle + shift % circle) % circle) as i64)
}

/// The circle rotated such that its place at the wall clock's time is the given circle's place at the shifted time, for code that does not know
/// shifts.
pub(crate) fn turned(trace: &NoiseTrace, shift: u64) -> Result<NoiseTrace, TraceError> {
    let length = trace.length();
    let back = at(0, shift, length).get();
    let mut detours: Vec<(Nanos, Nanos)> = trace
        .detours()
        .map(|(start, lasts)| (Nanos::new((start.get() - back).rem_euclid(length.get())), lasts))
        .collect();
    detours.sort_unstable();
    NoiseTrace::new(length, detours)
}

/// The noise of each CPU from a random place of its own, coalesced: detours that start within a window are delayed to its end. The windows of all
/// CPUs end at the same instants, at multiples of the window on the wall clock. Must be injected with [`Together::All`].
pub fn coalesced(
    cpus: Vec<(CpuId, NoiseTrace)>,
    window: Nanos,
    seed: u64,
    node: u64,
) -> Result<Vec<(CpuId, NoiseTrace)>, TraceError> {
    let mut places = Stream::new(seed, Purpose::Offsets, node);
    let mut put_off = |trace: &NoiseTrace| turned(trace, places.below(trace.length().get() as u64))?.coalesced(window);
    cpus.into_iter().map(|(cpu, trace)| Ok((cpu, put_off(&trace)?))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nodes_share_their_place_with_nobody_but_their_own() {
        assert_eq!(shift(Together::Apart, 1, 7), None);
        assert_eq!((shift(Together::All, 1, 7), shift(Together::All, 2, 8)), (Some(0), Some(0)));
        let own = shift(Together::Node, 1, 7);
        assert_eq!(own, shift(Together::Node, 1, 7));
        assert!(own != shift(Together::Node, 1, 8) && own != shift(Together::Node, 2, 7));
        // One offset shifts all circles of a node.
        let second = Nanos::from_secs(1);
        assert_eq!(at(2_300_000_000, 900_000_000, second), Nanos::from_millis(200));
        assert_eq!(
            at(u64::MAX, u64::MAX >> 2, second).get() as u64,
            (u64::MAX % 1_000_000_000 + (u64::MAX >> 2) % 1_000_000_000) % 1_000_000_000
        );
    }

    /// Two CPUs with one noise differ in how much comes at the end of a window, but not in when.
    #[test]
    fn coalesced_noise_is_put_off_to_common_instants() {
        let spec: becalm_scale::spec::NoiseSpec = "poisson:rate=500Hz,detour=50us".parse().unwrap();
        let (trace, window) = (spec.trace(1).unwrap(), Nanos::from_millis(10));
        let cpus = vec![(CpuId::new(0), trace.clone()), (CpuId::new(1), trace.clone())];
        let made = coalesced(cpus, window, 1, 7).unwrap();
        for (_, one) in &made {
            assert_eq!(one.length().get() % window.get(), 0);
            assert!(one.detours().all(|(start, _)| start.get() % window.get() == 0));
            assert!((one.noise_ratio() / trace.noise_ratio() - 1.0).abs() < 0.01);
        }
        assert_ne!(made[0].1, made[1].1);
    }

    proptest! {
        #[test]
        fn a_turned_circle_loses_at_a_time_what_the_circle_loses_later(
            gaps in prop::collection::vec((1_i64..30, 1_i64..20), 1..8), shift in 0_u64..1_000,
        ) {
            let mut at_ns = 0;
            let detours: Vec<(Nanos, Nanos)> = gaps.iter().map(|(gap, lasts)| {
                let start = at_ns + gap;
                at_ns = start + lasts;
                (Nanos::new(start), Nanos::new(*lasts))
            }).collect();
            let trace = NoiseTrace::new(Nanos::new(at_ns + 5), detours).unwrap();
            let turned = turned(&trace, shift).unwrap();
            let circle = trace.length();
            let lost = |trace: &NoiseTrace, place: Nanos| {
                trace.detours().any(|(start, lasts)| (place - start).get().rem_euclid(circle.get()) < lasts.get())
            };
            for wall in 0..circle.get() as u64 {
                prop_assert_eq!(lost(&turned, at(wall, 0, circle)), lost(&trace, at(wall, shift, circle)), "at {}", wall);
            }
        }
    }
}
