//! Pauses of the recorder if no CPU is free of loops: it splits long work into short stays.

use std::time::Duration;

use becalm_linux::clock;
use becalm_units::Nanos;

/// The CPU time of one stay. The last portion of work comes on top.
const STAY: Nanos = Nanos::from_micros(150);
/// How long the recorder then leaves the CPU to the loop.
const PAUSE: Duration = Duration::from_millis(4);
/// How long if much data waits meanwhile.
const SHORT_PAUSE: Duration = Duration::from_millis(1);

/// The urgency of the work that a pause delays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Haste {
    /// Little data waits.
    None,
    /// Waiting data grows during the pause.
    Some,
    /// No pause, because memory fills up.
    All,
}

/// Decides when the recorder sleeps during long work. It is called after each small portion.
pub struct Pauses<'a> {
    /// Sleeps this long and returns whether the loops still measure; `None` if no loop is disturbed.
    sleep: Option<&'a mut dyn FnMut(Duration) -> bool>,
    /// This thread's CPU time at its last sleep.
    slept: Nanos,
}

impl<'a> Pauses<'a> {
    /// No pauses: a CPU is free for the recorder, or the loops have ended.
    pub const fn never() -> Self {
        Self { sleep: None, slept: Nanos::ZERO }
    }

    /// Creates the pauses of this thread, which has just slept. `sleep` sleeps for the given time and returns whether the loops still measure.
    pub fn new(sleep: &'a mut dyn FnMut(Duration) -> bool) -> Self {
        Self { sleep: Some(sleep), slept: clock::thread_time() }
    }

    /// Sleeps if the thread has used enough CPU time since its last sleep.
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

    /// Works this long with a possible pause after every small part; returns the pauses made.
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
        // Each stay ends at the first call after its time; a busy machine makes the parts between two calls longer.
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
