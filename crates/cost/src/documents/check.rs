//! Limits on times in the documents of costs.

use becalm_bundle::series::LONGEST_PS;

/// The longest valid time: a day. Keeps sums far below integer overflow.
pub(super) const LONGEST_NS: i64 = 86_400_000_000_000;

pub(super) fn check_time(name: &str, ns: i64, shortest: i64) -> Result<(), String> {
    let range = shortest..=LONGEST_NS;
    if range.contains(&ns) { Ok(()) } else { Err(format!("{name} is {ns}, outside of {shortest} to {LONGEST_NS}")) }
}

/// Counts are limited to one per nanosecond.
pub(super) fn check_count(name: &str, count: u64) -> Result<(), String> {
    if count <= LONGEST_NS as u64 { Ok(()) } else { Err(format!("{name} is {count}, above {LONGEST_NS}")) }
}

pub(super) fn check_picos(name: &str, owner: &str, ps: i64) -> Result<(), String> {
    if (0..=LONGEST_PS).contains(&ps) {
        Ok(())
    } else {
        Err(format!("{name} of '{owner}' is {ps}, outside of 0 to {LONGEST_PS}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PlacementDoc, RoamedDoc, SuccessiveDoc, TimedDoc, WorkPlace};
    use super::*;

    /// Sums and products of larger counts would overflow.
    #[test]
    fn counts_that_nothing_reaches_are_refused() {
        let timed = TimedDoc { elapsed_ns: 1, interrupts: 0, window_ns: 1 };
        let placed = |pieces| PlacementDoc {
            place: WorkPlace::Same,
            body: String::new(),
            quiet: timed,
            raised: timed,
            counted: None,
            roamed: Some(RoamedDoc { pieces, there: 0, moves: 0 }),
        };
        assert_eq!(placed(7).check(), Ok(()));
        assert!(placed(u64::MAX).check().unwrap_err().starts_with("pieces is 18446744073709551615, above"));
        let read = |readings, backwards, tick_ps| {
            SuccessiveDoc { readings, tick_ps, distinct: 0, max_ticks: 0, backwards, steps: Vec::new() }.check()
        };
        assert_eq!(read(7, 7, LONGEST_PS), Ok(()));
        for (readings, backwards, tick_ps) in [(u64::MAX, 0, 1), (7, 8, 1), (7, 0, -1), (7, 0, i64::MAX)] {
            assert!(read(readings, backwards, tick_ps).is_err(), "{readings} {backwards} {tick_ps}");
        }
    }
}
