//! The noise file of LogGOPSim: lines of `start<TAB>duration` in nanoseconds, in order of time.
//!
//! Its reader skips the first line's event, never charges the last one, and takes a trailing newline for one more. So the first event has
//! no duration, the last one is at the trace's length, and no newline follows it.

use std::io::{self, Write};

use becalm_units::Nanos;

/// A noise file being written.
#[derive(Debug)]
pub struct NoiseFile<W> {
    out: W,
}

impl<W: Write> NoiseFile<W> {
    /// Starts the file.
    pub fn begin(mut out: W) -> io::Result<Self> {
        writeln!(out, "0\t0")?;
        Ok(Self { out })
    }

    /// Adds a detour, which must follow those before and end within the trace.
    pub fn detour(&mut self, start: Nanos, duration: Nanos) -> io::Result<()> {
        writeln!(self.out, "{}\t{}", start.get(), duration.get())
    }

    /// Ends the file of a trace of this length, and returns the writer.
    pub fn end(mut self, length: Nanos) -> io::Result<W> {
        write!(self.out, "{}\t0", length.get())?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(length: i64, detours: &[(i64, i64)]) -> String {
        let mut file = NoiseFile::begin(Vec::new()).unwrap();
        for (start, duration) in detours {
            file.detour(Nanos::new(*start), Nanos::new(*duration)).unwrap();
        }
        String::from_utf8(file.end(Nanos::new(length)).unwrap()).unwrap()
    }

    #[test]
    fn events_stand_between_two_that_do_not_count() {
        assert_eq!(written(100, &[]), "0\t0\n100\t0");
        assert_eq!(written(100, &[(0, 5), (40, 10)]), "0\t0\n0\t5\n40\t10\n100\t0");
    }

    /// Reads like the simulator: lines of at most 1,023 characters until the stream ends. Each is pushed whether it was understood or not,
    /// with the numbers of the line before if it was not.
    fn as_read(text: &str) -> Vec<(u64, u64)> {
        let (mut events, mut last) = (Vec::new(), (0.0_f64, 0.0_f64));
        for line in text.split('\n') {
            assert!(line.len() < 1_024);
            if line.starts_with('#') {
                continue;
            }
            let mut numbers = line.split('\t').map(str::parse);
            if let Some(Ok(start)) = numbers.next() {
                last.0 = start;
                if let Some(Ok(duration)) = numbers.next() {
                    last.1 = duration;
                }
            }
            events.push((last.0.round() as u64, last.1.round() as u64));
        }
        events
    }

    /// The noise of an operation that spans the whole trace, as the simulator adds it up: each event in full that starts before the
    /// operation ends, from the second one on.
    fn charged(events: &[(u64, u64)], length: u64) -> u64 {
        let (mut place, mut noise) = (0, 0);
        while length > events[place + 1].0 {
            place += 1;
            noise += events[place].1;
            assert!(place < events.len() - 1, "it goes round the trace");
        }
        noise
    }

    proptest! {
        #[test]
        fn the_simulator_charges_each_detour_once(gaps in prop::collection::vec((1_u64..1 << 40, 1_u64..1 << 40), 0..30), rest in 1_u64..9) {
            let (mut time, mut detours) = (0, Vec::new());
            for (gap, duration) in gaps {
                detours.push(((time + gap) as i64, duration as i64));
                time += gap + duration;
            }
            let length = time + rest;
            let events = as_read(&written(length as i64, &detours));
            let kept: Vec<(u64, u64)> = detours.iter().map(|(start, duration)| (*start as u64, *duration as u64)).collect();
            prop_assert_eq!(&events[1..events.len() - 1], &kept[..]);
            prop_assert_eq!(events[events.len() - 1], (length, 0));
            let noise: u64 = kept.iter().map(|(_, duration)| duration).sum();
            prop_assert_eq!(charged(&events, length), noise);
        }
    }
}
