//! Becalm's own time in the detours of a CPU, which is not the machine's.

/// What becalm itself took of the detours of one CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnTime {
    /// How much of which detour, in rising order.
    detours: Vec<(u64, i64)>,
    /// Up to which of them detours have been read.
    read: usize,
}

impl OwnTime {
    /// Adds an activity; their detours must not decrease.
    pub(crate) fn add(&mut self, detour: u64, time: i64) {
        match self.detours.last_mut() {
            Some((last, sum)) if *last == detour => *sum = sum.saturating_add(time),
            _ => self.detours.push((detour, time)),
        }
    }

    /// How much of the next detour to be read it is.
    pub(crate) fn of_next(&mut self, detour: u64) -> i64 {
        match self.detours.get(self.read) {
            Some((number, time)) if *number == detour => {
                self.read += 1;
                *time
            }
            _ => 0,
        }
    }

    /// Goes back to the first detour.
    pub(crate) fn rewind(&mut self) {
        self.read = 0;
    }

    /// All of it, in nanoseconds.
    pub(crate) fn total(&self) -> i64 {
        self.detours.iter().fold(0, |sum: i64, (_, time)| sum.saturating_add(*time))
    }

    /// The most in one detour, in nanoseconds.
    pub(crate) fn longest(&self) -> i64 {
        self.detours.iter().map(|(_, time)| *time).max().unwrap_or(0)
    }
}
