//! Readings of the kernel's clocks during a recording, which place other programs' times on its axis.

use becalm_linux::clock::{self, Counter};
use becalm_model::node::ClockPair;
use becalm_units::{Nanos, Ticks, TicksToNanos};

/// The most readings between the first and the last one.
const MOST: usize = 100;

/// All clocks at one instant, in ticks of the counter.
#[derive(Clone, Copy, Debug)]
struct ClockReading {
    before: u64,
    after: u64,
    clocks: [u64; 3],
}

impl ClockReading {
    fn take<C: Counter>() -> Self {
        let before = C::read();
        let clocks = clock::wall_clocks();
        Self { before, after: C::read(), clocks }
    }
}

/// Readings of all clocks: one per second, and in longer recordings about a hundred at even distances.
#[derive(Clone, Debug)]
pub struct ClockLog {
    readings: Vec<ClockReading>,
    last: Nanos,
    every: Nanos,
}

impl ClockLog {
    /// Takes the first reading.
    pub fn start<C: Counter>() -> Self {
        Self { readings: vec![ClockReading::take::<C>()], last: Nanos::ZERO, every: Nanos::from_secs(1) }
    }

    /// Takes a reading if it is time for one; `now` is the time since the start.
    pub fn look<C: Counter>(&mut self, now: Nanos) {
        if now - self.last < self.every {
            return;
        }
        if self.readings.len() >= MOST {
            let mut number = 0;
            self.readings.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.every += self.every;
        }
        self.take::<C>();
        self.last = now;
    }

    /// Takes a reading.
    pub fn take<C: Counter>(&mut self) {
        self.readings.push(ClockReading::take::<C>());
    }

    /// The readings on an axis.
    pub fn pairs(&self, axis: TicksToNanos) -> Vec<ClockPair> {
        let pair = |reading: &ClockReading| {
            let width = reading.after.saturating_sub(reading.before);
            let [monotonic_ns, realtime_ns, boottime_ns] = reading.clocks;
            let at_ns = axis.instant(Ticks::new(reading.before + width / 2));
            ClockPair { at_ns, monotonic_ns, realtime_ns, boottime_ns, width_ns: axis.duration(Ticks::new(width)) }
        };
        self.readings.iter().map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use becalm_linux::clock::MonotonicRaw;
    use becalm_units::TickRate;

    use super::*;

    #[test]
    fn long_recordings_have_as_many_readings_at_greater_distances() {
        let mut log = ClockLog::start::<MonotonicRaw>();
        let origin = Ticks::new(log.readings[0].before);
        for second in 0..1_000 {
            log.look::<MonotonicRaw>(Nanos::from_secs(second));
            assert!(log.readings.len() <= MOST);
        }
        assert!(log.readings.len() > MOST / 2 && log.every == Nanos::from_secs(16), "{}", log.readings.len());
        log.take::<MonotonicRaw>();
        let pairs = log.pairs(TicksToNanos::new(origin, TickRate::from_hz(1e9)));
        assert!(pairs[0].at_ns >= Nanos::ZERO && pairs.is_sorted_by_key(|pair| pair.at_ns));
        assert!(
            pairs.is_sorted_by_key(|pair| pair.monotonic_ns) && pairs.iter().all(|pair| pair.width_ns > Nanos::ZERO)
        );
    }
}
