//! The cost of an interrupt for the interrupted thread, without tracing: another CPU sends interrupts and notes when, while the acquisition
//! loop runs here and keeps its long steps. A step that overlaps a sending is that interrupt's detour.

use std::thread;

use becalm_linux::clock::Counter;
use becalm_linux::probe::membarrier;
use becalm_measure::loops::StepProfile;
use becalm_measure::loops::acquire::{Lengths, acquire};
use becalm_measure::loops::ring::Ring;
use becalm_units::{Nanos, Ticks};

use super::switch::{ONE_CPU, elsewhere};
use crate::documents::{Probe, ProbeSamples, into_rounds};
use crate::measure::bench::{Bench, text};

/// Interrupts that one process sends.
const SENT: usize = 250;
/// The pause between interrupts, long enough to separate their detours.
const PAUSE: Nanos = Nanos::from_micros(200);
/// The time limit of the loop; the sender ends it earlier.
const LIMIT: Nanos = Nanos::from_millis(500);
/// The capacity for steps.
const KEPT: usize = 1 << 16;

/// The detour of an interrupt that another CPU sends.
pub(super) fn from_another_cpu<C: Counter>(bench: &Bench<C>) -> Probe {
    let other = bench.site.other().map_or_else(String::new, |cpu| format!(" (CPU {cpu})"));
    Probe::new(
        "interrupt",
        "hardware interrupt",
        format!(
            "detour of the acquisition loop, seen to run just before, while another CPU{other} interrupts it by membarrier: \
             the longest step that overlaps the call, less the loop's shortest step"
        ),
        measure(bench),
    )
}

fn measure<C: Counter>(bench: &Bench<C>) -> Result<ProbeSamples, String> {
    let other = bench.site.other().ok_or_else(|| ONE_CPU.to_owned())?;
    membarrier::register().map_err(text)?;
    let ring = Ring::new(KEPT).map_err(|error| error.to_string())?;
    let profile = StepProfile::measure::<C>(bench.rate);
    let threshold = profile.auto_threshold();
    let mut sent = vec![(1_u64, 1_u64); SENT];
    let pause = bench.rate.ticks_in(PAUSE).get();
    let watch = bench.watch();
    let sender = || {
        let mut count = 0;
        while count < sent.len() {
            let start = C::read();
            while C::read().saturating_sub(start) < pause {}
            // If another thread has taken the loop's CPU, there is nothing to interrupt, so check that the loop runs.
            let progress = ring.progress();
            while ring.progress() == progress && C::read() < ring.deadline().get() {}
            let before = C::read_ordered();
            if !membarrier::private() {
                break;
            }
            sent[count] = (before, C::read_ordered());
            count += 1;
            if ring.deadline().get() <= C::read() {
                break;
            }
        }
        ring.stop();
        count
    };
    let count = thread::scope(|scope| {
        let sender = elsewhere(scope, "becalm/sender", other, sender)?;
        let start = C::read();
        ring.set_deadline(Ticks::new(start + bench.rate.ticks_in(LIMIT).get()));
        let sender = sender.start(());
        acquire::<C>(&ring, bench.site.cpu, Ticks::new(start), Lengths::until_full(threshold, bench.rate));
        sender.join().ok().flatten().ok_or_else(|| "the sending thread failed".to_owned())
    })?;
    let mut steps = Vec::with_capacity(KEPT);
    ring.drain(|before, after| steps.push((before.get(), after.get())));
    let hit = matched(&sent[..count], &steps);
    if hit.len() < count / 2 || hit.is_empty() {
        return Err(format!("of {count} interrupts only {} were seen as detours on CPU {}", hit.len(), bench.site.cpu));
    }
    let detours: Vec<u64> = hit.iter().map(|step| step.saturating_sub(profile.shortest.get())).collect();
    let mut series = bench.finish(watch, 1, &into_rounds(&detours));
    // The loop's steps consist of single readings and contain only its shortest step, which is subtracted already.
    let overhead = bench.instrument().overhead_ps;
    series.rounds.iter_mut().flatten().for_each(|sample| *sample += overhead);
    Ok(series)
}

/// The longest step that overlaps each sending, if any. Both are in order of time.
fn matched(sent: &[(u64, u64)], steps: &[(u64, u64)]) -> Vec<u64> {
    let mut from = 0;
    let mut longest = Vec::with_capacity(sent.len());
    for (before, after) in sent {
        while steps.get(from).is_some_and(|step| step.1 < *before) {
            from += 1;
        }
        let overlapping = steps[from..].iter().take_while(|step| step.0 <= *after);
        longest.extend(overlapping.map(|step| step.1 - step.0).max());
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_step_is_found_by_the_sending_that_it_overlaps() {
        let steps = [(10, 20), (100, 130), (131, 135), (400, 500)];
        assert_eq!(matched(&[(95, 132), (200, 210), (450, 460)], &steps), [30, 100]);
        assert_eq!(matched(&[], &steps), [] as [u64; 0]);
    }

    proptest! {
        #[test]
        fn equals_the_plain_way(
            gaps in proptest::collection::vec((1_u64..50, 0_u64..50), 0..40),
            pauses in proptest::collection::vec((1_u64..80, 0_u64..40), 0..40),
        ) {
            let intervals = |parts: &[(u64, u64)]| {
                let mut at = 0;
                let next = |&(gap, length): &(u64, u64)| { let start = at + gap; at = start + length; (start, at) };
                parts.iter().map(next).collect::<Vec<_>>()
            };
            let (steps, sent) = (intervals(&gaps), intervals(&pauses));
            let plain: Vec<u64> = sent
                .iter()
                .filter_map(|s| steps.iter().filter(|t| t.0 <= s.1 && s.0 <= t.1).map(|t| t.1 - t.0).max())
                .collect();
            prop_assert_eq!(matched(&sent, &steps), plain);
        }
    }
}
