//! The noise file of LogGOPSim: lines of `start<TAB>duration` in nanoseconds, in order of time.
//!
//! Its reader skips the first line's event, never charges the last one, and takes a trailing newline for one more. So an
//! event of no duration stands first, one at the trace's length stands last, and no newline follows it.

use std::io::{self, Write};

use becalm_units::Nanos;

/// Writes a trace of the given length, with detours `(start, duration)` in order of time. What a detour has beyond the end
/// comes at the beginning, where a trace that is replayed in circles goes on.
///
/// # Errors
/// If `out` cannot be written.
pub fn write<I>(length: Nanos, detours: I, out: &mut dyn Write) -> io::Result<()>
where
    I: IntoIterator<Item = (Nanos, Nanos)>,
    I::IntoIter: DoubleEndedIterator,
{
    let mut detours = detours.into_iter();
    let mut last = detours.next_back();
    writeln!(out, "0\t0")?;
    if let Some((start, duration)) = &mut last {
        let room = length - *start;
        if *duration > room {
            writeln!(out, "0\t{}", (*duration - room).get())?;
            *duration = room;
        }
    }
    for (start, duration) in detours.chain(last) {
        writeln!(out, "{}\t{}", start.get(), duration.get())?;
    }
    write!(out, "{}\t0", length.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(length: i64, detours: &[(i64, i64)]) -> String {
        let mut out = Vec::new();
        let detours: Vec<(Nanos, Nanos)> = detours.iter().map(|(s, d)| (Nanos::new(*s), Nanos::new(*d))).collect();
        write(Nanos::new(length), detours, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn events_stand_between_two_that_do_not_count() {
        assert_eq!(written(100, &[]), "0\t0\n100\t0");
        assert_eq!(written(100, &[(0, 5), (40, 10)]), "0\t0\n0\t5\n40\t10\n100\t0");
    }

    #[test]
    fn what_goes_over_the_end_comes_first() {
        assert_eq!(written(100, &[(40, 10), (95, 8)]), "0\t0\n0\t3\n40\t10\n95\t5\n100\t0");
    }
}
