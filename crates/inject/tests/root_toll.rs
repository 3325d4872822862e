//! The cost of a detour is measured on a CPU whose counter takes longer to read than a step takes elsewhere.

use becalm_inject::toll;
use becalm_linux::clock::Counter;
use becalm_linux::sched::{Policy, allowed_cpus};
use becalm_testing::{Need, attempts, machine_has};
use becalm_units::{Nanos, TickRate};

/// A clock as in an emulator: reading it takes more than a microsecond.
struct Slow;

impl Counter for Slow {
    const NAME: &'static str = "slow";

    fn read() -> u64 {
        let begin = becalm_linux::alarm::monotonic_ns();
        loop {
            let now = becalm_linux::alarm::monotonic_ns();
            if now - begin >= 1_100 {
                return now;
            }
        }
    }
}

/// Its own steps are no detours: they leave room for the trials, which are then all seen except those that others hid.
#[test]
fn a_slow_counter_hides_no_trials() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let cpu = allowed_cpus().unwrap().iter().last().unwrap();
    let rate = TickRate::from_hz(1e9);
    let toll = attempts(3, || {
        toll::measure::<Slow>(cpu, Policy::Fifo(51), rate, Nanos::from_millis(50)).map_err(|error| error.to_string())
    });
    // The three readings of a trial alone take that long.
    assert!(toll.entry + toll.exit >= Nanos::from_micros(2), "{toll:?}");
}
