//! Pauses of the recorder, where no CPU is free of loops: it does long work in short stays.

use std::time::Duration;

use becalm_linux::clock;
use becalm_units::Nanos;

/// How much of a CPU's time the recorder takes at once. The last portion of work comes on top.
const STAY: Nanos = Nanos::from_micros(150);
/// For how long it then leaves the CPU to the loop.
const PAUSE: Duration = Duration::from_millis(4);
/// For how long where much waits to be taken meanwhile.
const SHORT_PAUSE: Duration = Duration::from_millis(1);

/// How urgent the work is that a pause would hold up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Haste {
    /// Little waits.
    None,
    /// What waits grows while the recorder pauses.
    Some,
    /// No pause, or memory fills up.
    All,
}

/// When the recorder sleeps within long work. It is asked after each small portion.
pub struct Pauses<'a> {
    /// Sleeps for so long, and says whether the loops still measure; `None` where nothing is disturbed.
    sleep: Option<&'a mut dyn FnMut(Duration) -> bool>,
    /// The processor time of this thread when it slept last.
    slept: Nanos,
}

impl<'a> Pauses<'a> {
    /// None: a CPU is free for the recorder, or the loops have ended.
    pub const fn never() -> Self {
        Self { sleep: None, slept: Nanos::ZERO }
    }

    /// Creates the pauses of this thread, which has just slept. `sleep` sleeps for the time given, and says whether the loops still measure.
    pub fn new(sleep: &'a mut dyn FnMut(Duration) -> bool) -> Self {
        Self { sleep: Some(sleep), slept: clock::thread_time() }
    }

    /// Sleeps if the thread was on the CPU for long enough since it slept last.
    pub fn rest(&mut self, haste: Haste) {
        let Some(sleep) = &mut self.sleep else { return };
        if haste == Haste::All || clock::thread_time() - self.slept < STAY {
            return;
        }
        let goes_on = sleep(if haste == Haste::None { PAUSE } else { SHORT_PAUSE });
        self.slept = clock::thread_time();
        if !goes_on {
            self.sleep = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works for this long, and pauses after every small part; gives the pauses made.
    fn pauses(work: Nanos, haste: Haste, most: usize) -> Vec<Duration> {
        let mut made = Vec::new();
        let mut sleep = |length: Duration| {
            made.push(length);
            made.len() < most
        };
        let mut pauses = Pauses::new(&mut sleep);
        let end = clock::thread_time() + work;
        while clock::thread_time() < end {
            pauses.rest(haste);
        }
        made
    }

    #[test]
    fn long_work_is_done_in_short_stays() {
        let work = Nanos::from_millis(10);
        let made = pauses(work, Haste::None, usize::MAX);
        // Each stay ends at the first question after its time; a busy machine makes the parts between two questions longer.
        let most = (work.get() / STAY.get()) as usize;
        assert!((most / 4..=most).contains(&made.len()), "{} pauses", made.len());
        assert!(made.iter().all(|length| *length == PAUSE));
        assert!(pauses(work, Haste::Some, usize::MAX).iter().all(|length| *length == SHORT_PAUSE));
        assert_eq!(pauses(work, Haste::All, usize::MAX).len(), 0);
    }

    #[test]
    fn after_the_loops_ended_there_are_none() {
        assert_eq!(pauses(Nanos::from_millis(5), Haste::None, 2).len(), 2);
        Pauses::never().rest(Haste::None);
    }

    #[test]
    fn short_work_is_not_held_up() {
        assert_eq!(pauses(Nanos::from_micros(50), Haste::None, usize::MAX).len(), 0);
    }
}
