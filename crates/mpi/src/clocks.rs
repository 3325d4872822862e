//! The relation of a node's clock to that of rank 0's node (Cristian 1989; Hunold and Carpen-Amarie 2015 for MPI).
//!
//! Rank 0 sends its time, the other node answers with its own, rank 0 notes the arrival. At the node's reading, rank 0's clock was between
//! its two readings. The shortest round trip has the smallest error. One such instant before and one after the measurement give offset and
//! drift; if both clocks run evenly in between, the error of the line is at most half of the longer round trip.

use becalm_model::phases::ClockRelationDoc;
use becalm_units::Nanos;

/// A round trip, in nanoseconds: rank 0's clock before and after, and the other node's in between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTrip {
    /// Rank 0's clock when it sent the message.
    pub sent: i64,
    /// The other node's clock when it answered.
    pub answered: i64,
    /// Rank 0's clock when the answer arrived.
    pub received: i64,
}

impl RoundTrip {
    /// How long it took.
    pub const fn length(&self) -> i64 {
        self.received - self.sent
    }

    /// The most likely offset to add to the other node's clock.
    fn offset(&self) -> f64 {
        (self.sent as f64 + self.received as f64) / 2.0 - self.answered as f64
    }
}

/// The relation from round trips before and after the measurement; `None` if either has none.
pub fn relate(before: &[RoundTrip], after: &[RoundTrip]) -> Option<ClockRelationDoc> {
    let shortest = |trips: &[RoundTrip]| trips.iter().min_by_key(|trip| trip.length()).copied();
    let (first, last) = (shortest(before)?, shortest(after)?);
    let apart = (last.answered - first.answered) as f64;
    let drift_ratio = if apart > 0.0 { (last.offset() - first.offset()) / apart } else { 0.0 };
    Some(ClockRelationDoc {
        offset_ns: first.offset() - drift_ratio * first.answered as f64,
        drift_ratio,
        error_ns: first.length().max(last.length()) as f64 / 2.0,
        round_trip_ns: Nanos::new(first.length().min(last.length())),
        round_trips: (before.len() + after.len()) as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Round trips whose truth is known: rank 0's time = answered + offset + drift x answered.
    fn trips(starts: i64, delays: &[(i64, i64)], offset: i64, drift: f64) -> Vec<RoundTrip> {
        let trip = |(at, (there, back)): (usize, &(i64, i64))| {
            let answered = starts + at as i64 * 100_000;
            let instant = (answered as f64 * (1.0 + drift)).round() as i64 + offset;
            RoundTrip { sent: instant - there, answered, received: instant + back }
        };
        delays.iter().enumerate().map(trip).collect()
    }

    #[test]
    fn equal_ways_give_the_truth() {
        let delays = [(900, 900), (400, 400), (5_000, 5_000)];
        let (before, after) = (trips(0, &delays, 7_777, 0.0), trips(10_000_000_000, &delays, 7_777, 0.0));
        let relation = relate(&before, &after).unwrap();
        assert_eq!((relation.offset_ns, relation.drift_ratio, relation.error_ns), (7_777.0, 0.0, 400.0));
        assert_eq!((relation.round_trip_ns.get(), relation.round_trips), (800, 6));
        assert_eq!(relate(&before, &[]), None);
        assert_eq!(relate(&before, &before).unwrap().drift_ratio, 0.0);
    }

    proptest! {
        /// However unequal the ways are, the truth lies within the stated error, from the first message to the last.
        #[test]
        fn the_truth_lies_within_the_error(
            offset in -1_000_000_000_000_i64..1_000_000_000_000,
            drift in -1e-4_f64..1e-4,
            before in proptest::collection::vec((100_i64..50_000, 100_i64..50_000), 1..40),
            after in proptest::collection::vec((100_i64..50_000, 100_i64..50_000), 1..40),
            gap in 10_000_000_i64..3_600_000_000_000,
        ) {
            let (first, last) = (trips(0, &before, offset, drift), trips(gap, &after, offset, drift));
            let relation = relate(&first, &last).unwrap();
            let shortest = |trips: &[RoundTrip]| trips.iter().min_by_key(|trip| trip.length()).unwrap().answered;
            let (from, to) = (shortest(&first), shortest(&last));
            for part in 0..=10 {
                let at = from as f64 + (to - from) as f64 * f64::from(part) / 10.0;
                let truth = at * (1.0 + drift) + offset as f64;
                let told = at + relation.offset_ns + relation.drift_ratio * at;
                prop_assert!((told - truth).abs() <= relation.error_ns + 2.0, "{} off, {:?}", told - truth, relation);
            }
        }
    }
}
