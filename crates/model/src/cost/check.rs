//! The limits that times in the documents of costs must keep.

/// No time here is longer: a day. Sums of them stay far from where integers end.
const LONGEST_NS: i64 = 86_400_000_000_000;

/// No time of a sample is longer, in picoseconds: a day.
pub const LONGEST_PS: i64 = LONGEST_NS * 1_000;

pub(super) fn check_time(name: &str, ns: i64, shortest: i64) -> Result<(), String> {
    let range = shortest..=LONGEST_NS;
    if range.contains(&ns) { Ok(()) } else { Err(format!("{name} is {ns}, outside of {shortest} to {LONGEST_NS}")) }
}

pub(super) fn check_picos(name: &str, owner: &str, ps: i64) -> Result<(), String> {
    if (0..=LONGEST_PS).contains(&ps) {
        Ok(())
    } else {
        Err(format!("{name} of '{owner}' is {ps}, outside of 0 to {LONGEST_PS}"))
    }
}
