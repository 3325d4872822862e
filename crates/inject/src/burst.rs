//! Bursts: several detours in place of one, as from a daemon that wakes, sleeps briefly and wakes again, or an interrupt storm.

use std::fmt;
use std::str::FromStr;

use becalm_scale::{NoiseTrace, TraceError};
use becalm_units::Nanos;

/// Maximum number of detours in a burst, and on a circle.
const COUNT_MAX: u32 = 10_000;
const DETOURS_MAX: usize = 1 << 22;

/// A group of detours: `5x100us` is five, with starts 100 us apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Burst {
    count: u32,
    apart: Nanos,
}

/// A text that is not a burst, or noise that cannot be made of bursts.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BurstError {
    /// The text is not a burst.
    #[error(
        "'{0}' is no burst: write the number of detours, from 2 to {COUNT_MAX}, and the time from one to the next, like 5x100us"
    )]
    Text(String),
    /// Detours of this length, with starts so far apart, touch or overlap.
    #[error("detours of {0} that come every {1} are no burst but one detour: their starts must be further apart")]
    Touching(Nanos, Nanos),
    /// The circle would hold too many detours.
    #[error("bursts of {count} detours make {detours} of the {before} on the circle, and there may be {DETOURS_MAX}")]
    Many {
        /// The number of detours of a burst.
        count: u32,
        /// The number of detours on the circle with bursts.
        detours: usize,
        /// The number of detours on the circle without bursts.
        before: usize,
    },
    /// The bursts leave no time.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl Burst {
    /// The number of detours.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count
    }

    /// The time from the start of the first detour to the end of the last, for detours of this length.
    #[must_use]
    pub fn lasts(self, detour: Nanos) -> Nanos {
        Nanos::new(self.apart.get().saturating_mul(i64::from(self.count) - 1).saturating_add(detour.get()))
    }

    /// Replaces each detour of a circle with a burst of detours of this length. If bursts overlap, a detour due during another follows it, so no time
    /// is lost, not even across the end of the circle. Fails if the detours of one burst touch, if the circle would hold too many, or if no time is
    /// left.
    pub fn apply(self, trace: &NoiseTrace, detour: Nanos) -> Result<NoiseTrace, BurstError> {
        if detour >= self.apart {
            return Err(BurstError::Touching(detour, self.apart));
        }
        let detours = trace.len().saturating_mul(self.count as usize);
        if detours > DETOURS_MAX {
            return Err(BurstError::Many { count: self.count, detours, before: trace.len() });
        }
        let length = trace.length();
        let noise = detour.get().checked_mul(detours as i64).map_or(Nanos::MAX, Nanos::new);
        if noise >= length {
            return Err(TraceError::Full(noise, length).into());
        }
        let (circle, apart) = (length.get(), self.apart.get());
        let turns = |start: i64| (0..i64::from(self.count)).map(move |turn| (start + turn * apart) % circle);
        let mut due: Vec<i64> = trace.detours().flat_map(|(start, _)| turns(start.get())).collect();
        due.sort_unstable();
        // A first lap finds how far detours that wait at its end reach into the next one.
        let queued = |from: i64, due: &[i64]| due.iter().fold(from, |end, at| end.max(*at) + detour.get());
        let mut end = (queued(i64::MIN, &due) - circle).max(0);
        let mut starts: Vec<i64> = Vec::with_capacity(due.len());
        for at in due {
            let start = end.max(at);
            end = start + detour.get();
            starts.push(start % circle);
        }
        starts.sort_unstable();
        Ok(NoiseTrace::new(length, starts.into_iter().map(|start| (Nanos::new(start), detour)))?)
    }
}

impl FromStr for Burst {
    type Err = BurstError;

    fn from_str(text: &str) -> Result<Self, BurstError> {
        let parsed = || {
            let (count, apart) = text.split_once('x')?;
            let (count, apart) = (count.parse().ok()?, apart.parse::<Nanos>().ok()?);
            ((2..=COUNT_MAX).contains(&count) && (Nanos::ZERO..Nanos::from_secs(3_600)).contains(&apart))
                .then_some(Self { count, apart })
        };
        parsed().ok_or_else(|| BurstError::Text(text.to_owned()))
    }
}

impl fmt::Display for Burst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.count, self.apart)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trace(length: i64, starts: &[i64]) -> NoiseTrace {
        NoiseTrace::new(Nanos::new(length), starts.iter().map(|start| (Nanos::new(*start), Nanos::new(1)))).unwrap()
    }

    fn detours(trace: &NoiseTrace) -> Vec<(i64, i64)> {
        trace.detours().map(|(start, length)| (start.get(), length.get())).collect()
    }

    #[test]
    fn a_burst_is_several_detours_in_the_place_of_one() {
        let burst: Burst = "3x20ns".parse().unwrap();
        assert_eq!(
            (burst.to_string(), burst.count(), burst.lasts(Nanos::new(5))),
            ("3x20ns".to_owned(), 3, Nanos::new(45))
        );
        let made = burst.apply(&trace(200, &[10, 100]), Nanos::new(5)).unwrap();
        assert_eq!(detours(&made), [(10, 5), (30, 5), (50, 5), (100, 5), (120, 5), (140, 5)]);
        // Overlapping detours follow each other, also across the end: touching detours are one.
        let made = burst.apply(&trace(200, &[190, 193]), Nanos::new(5)).unwrap();
        assert_eq!((made.len(), made.noise()), (3, Nanos::new(30)));
        assert_eq!(detours(&made), [(10, 10), (30, 10), (190, 10)]);
    }

    #[test]
    fn what_is_no_burst_is_refused_with_the_reason() {
        for text in ["", "5", "1x1us", "5x", "x1us", "5x-1us", "5x1", "99999x1us"] {
            assert!(text.parse::<Burst>().unwrap_err().to_string().contains("like 5x100us"), "{text}");
        }
        let burst: Burst = "10x20ns".parse().unwrap();
        let why = |detour, length| burst.apply(&trace(length, &[0]), Nanos::new(detour)).unwrap_err().to_string();
        assert!(why(20, 10_000).contains("further apart"));
        assert!(why(19, 190).contains("no work is ever done"));
        let many: Burst = "10000x20ns".parse().unwrap();
        let starts: Vec<i64> = (0..1_000).map(|turn| turn * 1_000_000).collect();
        assert!(
            many.apply(&trace(1_000_000_000, &starts), Nanos::new(1)).unwrap_err().to_string().contains("there may be")
        );
    }

    proptest! {
        /// Compared with a simulation in steps of a nanosecond: what is owed is lost as soon as the one before is over.
        #[test]
        fn it_is_the_queue_played_out(
            gaps in prop::collection::vec(2_i64..60, 1..8), count in 2_u32..6, apart in 2_i64..40, detour in 1_i64..10,
        ) {
            let starts: Vec<i64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
            let base = trace(starts.last().unwrap() + 30, &starts);
            let burst = Burst { count, apart: Nanos::new(apart) };
            let Ok(made) = burst.apply(&base, Nanos::new(detour)) else { return Ok(()) };
            let circle = base.length().get();
            let mut owed = vec![0; circle as usize];
            for start in &starts {
                for turn in 0..i64::from(count) {
                    owed[((start + turn * apart) % circle) as usize] += detour;
                }
            }
            let (mut waiting, mut lost) = (0_i64, vec![false; circle as usize]);
            // The second lap starts with what the first one left over.
            for now in 0..2 * circle {
                waiting += owed[(now % circle) as usize];
                lost[(now % circle) as usize] = waiting > 0;
                waiting -= i64::from(waiting > 0);
            }
            let mut told = vec![false; circle as usize];
            for (start, length) in detours(&made) {
                (start..start + length).for_each(|now| told[(now % circle) as usize] = true);
            }
            prop_assert_eq!(told, lost);
            prop_assert_eq!(made.noise().get(), detour * i64::from(count) * starts.len() as i64);
        }
    }
}
