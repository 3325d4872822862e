//! Timing of a probe: repeated in rounds, each repetition between two readings of the counter.

use std::io;
use std::marker::PhantomData;
use std::path::PathBuf;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use becalm_linux::clock::Native;
use becalm_linux::clock::{Calibration, Counter, MonotonicRaw, Source, calibrate, choose};
use becalm_linux::perf::PerfEvent;
use becalm_linux::probe::ProbeError;
use becalm_linux::procfs::interrupts::Interrupts;
use becalm_linux::sched::ThreadUsage;
use becalm_measure::loops::countable;
use becalm_stats::median_high;
use becalm_units::{CpuId, Nanos, TickRate};

use super::{CostError, Site, counting};
use crate::documents::{CostSamples, InstrumentDoc, Probe, ProbeCosts, ProbeSamples, ROUNDS};

/// Additional rounds of each process, with the counters of the processor.
const ROUNDS_COUNTED: u64 = 1;

/// The duration of the measurement of the counter's rate.
const CALIBRATION: Nanos = Nanos::from_millis(100);

/// Times probes with the counter `C`.
#[derive(Debug)]
pub(super) struct Bench<'a, C> {
    pub site: &'a Site,
    pub rate: TickRate,
    calibration: Calibration,
    /// The median difference between two readings with nothing in between, in ticks.
    overhead: u64,
    /// The events to count with each series.
    events: Vec<PerfEvent>,
    not_counted: Vec<String>,
    counter: PhantomData<C>,
}

/// The counts of the kernel before a series.
pub(super) struct Watch {
    root: PathBuf,
    cpu: CpuId,
    interrupts: Option<u64>,
    usage: ThreadUsage,
}

impl<'a, C: Counter> Bench<'a, C> {
    /// Measures the cost of the readings on the current CPU, and finds which of these events can be counted.
    pub fn new(site: &'a Site, calibration: Calibration, events: &[PerfEvent]) -> Self {
        let mut samples = vec![1; 10_001];
        // The first pass warms up.
        for _ in 0..2 {
            Self::time_each(&mut samples, |_| ());
        }
        let (events, not_counted) = countable(events);
        let overhead = median_high(&mut samples).unwrap_or(0);
        Self { site, rate: calibration.rate, calibration, overhead, events, not_counted, counter: PhantomData }
    }

    pub fn instrument(&self) -> InstrumentDoc {
        InstrumentDoc {
            counter: C::NAME.to_owned(),
            rate_hz: self.rate.hz(),
            rate_error_ratio: self.calibration.error_ratio,
            overhead_ps: self.picos(self.overhead, 1),
            not_counted: self.not_counted.clone(),
        }
    }

    /// The cost of the two readings of a sample, in ticks.
    pub const fn overhead_ticks(&self) -> u64 {
        self.overhead
    }

    /// Times `body` once per sample, in ticks. Nothing else runs between the two readings: each one waits for earlier instructions and
    /// delays later ones, so `body` cannot leak out.
    #[inline(always)]
    pub fn time_each(samples: &mut [u64], body: impl FnMut(usize)) {
        counting::during(|| Self::time_each_uncounted(samples, body));
    }

    /// The same without counters, for parts of the probe that are not samples.
    #[inline(always)]
    pub fn time_each_uncounted(samples: &mut [u64], mut body: impl FnMut(usize)) {
        for (at, sample) in samples.iter_mut().enumerate() {
            let before = C::read_ordered();
            body(at);
            *sample = C::read_ordered().saturating_sub(before);
        }
    }

    /// The same, with an untimed call before each sample.
    #[inline(always)]
    pub fn time_each_after(samples: &mut [u64], mut before_each: impl FnMut(), mut body: impl FnMut()) {
        for sample in samples {
            before_each();
            let before = C::read_ordered();
            body();
            *sample = C::read_ordered().saturating_sub(before);
        }
    }

    /// Converts ticks to picoseconds per repetition, for `batch` repetitions.
    pub fn picos(&self, ticks: u64, batch: u32) -> i64 {
        (ticks as f64 * self.rate.tick_ns() * 1_000.0 / f64::from(batch)).round() as i64
    }

    /// Runs a round, which fills the given samples, once to warm up and then [`ROUNDS`] times.
    pub fn series(
        &self,
        batch: u32,
        samples: usize,
        mut round: impl FnMut(&mut [u64]) -> Result<(), String>,
    ) -> Result<ProbeSamples, String> {
        let mut buffer = vec![1; samples];
        round(&mut buffer)?;
        let watch = self.watch();
        let mut rounds = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            round(&mut buffer)?;
            rounds.push(buffer.clone());
        }
        let mut taken = self.finish(watch, batch, &rounds);
        // In rounds of their own, because starting and stopping the counters would disturb the caches.
        if !self.events.is_empty() {
            counting::arm(&self.events);
            let counted = (0..ROUNDS_COUNTED).try_for_each(|_| round(&mut buffer));
            taken.series.counts = counting::disarm();
            taken.series.counted =
                if taken.series.counts.is_empty() { 0 } else { ROUNDS_COUNTED * samples as u64 * u64::from(batch) };
            counted?;
        }
        Ok(taken)
    }

    /// Notes the kernel's counts so far, for a series that makes its rounds itself.
    pub fn watch(&self) -> Watch {
        let (root, cpu) = (self.site.root().to_owned(), self.site.cpu);
        Watch { interrupts: interrupts(&root, cpu), root, cpu, usage: ThreadUsage::for_current_thread() }
    }

    /// Converts the samples of rounds from ticks, each with two readings of the counter in it, which are subtracted.
    pub fn finish(&self, watch: Watch, batch: u32, rounds: &[Vec<u64>]) -> ProbeSamples {
        let usage = ThreadUsage::for_current_thread().since(watch.usage);
        let now = interrupts(&watch.root, watch.cpu);
        let picos = |ticks: &u64| self.picos(ticks.saturating_sub(self.overhead), batch);
        let mut taken =
            ProbeSamples::new(batch, rounds.iter().map(|round| round.iter().map(picos).collect()).collect());
        taken.series.interrupts = watch.interrupts.zip(now).map(|(before, now)| now.saturating_sub(before));
        taken.series.preempted = usage.involuntary_switches;
        taken
    }
}

/// The interrupts of a CPU since boot.
fn interrupts(root: &std::path::Path, cpu: CpuId) -> Option<u64> {
    let all = Interrupts::read(root).ok()?;
    let column = all.cpus.iter().position(|candidate| *candidate == cpu)?;
    Some(all.lines.iter().filter_map(|line| line.counts.get(column)).sum())
}

/// The time of an undisturbed repetition: the 5th percentile of all samples, in picoseconds; 0 without samples.
pub(super) fn undisturbed(samples: &ProbeSamples) -> i64 {
    let mut all: Vec<i64> = samples.rounds.concat();
    if all.is_empty() {
        return 0;
    }
    let at = all.len() / 20;
    *all.select_nth_unstable(at).1
}

/// Called with the probes done, the number of all, and the name of the next one. Returns whether to continue; if not, the measurement so
/// far is the result.
pub type CostProgress<'a> = dyn FnMut(usize, usize, &str) -> bool + Send + 'a;

/// Work compiled for this machine's counter.
pub(super) trait ForCounter {
    type Out: Send;
    fn run<C: Counter>(self, bench: &Bench<C>) -> Self::Out;
}

/// Chooses the counter and runs the work in a thread on the measured CPU. Returns the instrument as well.
pub(super) fn run_at<W: ForCounter + Send>(site: &Site, work: W) -> Result<(InstrumentDoc, W::Out), CostError> {
    fn run_with_counter<C: Counter, W: ForCounter + Send>(
        site: &Site,
        work: W,
    ) -> Result<(InstrumentDoc, W::Out), CostError> {
        let calibration = calibrate::<C>(CALIBRATION)?;
        Ok(site.run(|| {
            let bench = Bench::<C>::new(site, calibration, &PerfEvent::OF_PROCESSOR);
            let result = work.run(&bench);
            (bench.instrument(), result)
        })?)
    }
    match choose(site.root()).source {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        Source::Native => run_with_counter::<Native, W>(site, work),
        _ => run_with_counter::<MonotonicRaw, W>(site, work),
    }
}

/// Runs probes in such a thread and returns their document and samples.
pub(super) fn probes_at(
    site: &Site,
    work: impl ForCounter<Out = Vec<Probe>> + Send,
) -> Result<(ProbeCosts, CostSamples), CostError> {
    let (instrument, probes) = run_at(site, work)?;
    let (mut costs, mut samples) =
        (ProbeCosts { instrument: Some(instrument), probes: Vec::new() }, CostSamples::new());
    costs.add(probes, &mut samples);
    Ok((costs, samples))
}

/// The reason for a missing second thread.
pub(super) fn no_thread(error: io::Error) -> String {
    format!("cannot start a second thread: {error}")
}

/// An error as the reason why a probe has no samples.
pub(super) fn text(error: ProbeError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_linux::clock::{MonotonicRaw, calibrate};
    use becalm_linux::sched::Policy;
    use becalm_units::Named;
    use std::path::Path;

    #[test]
    fn a_wait_of_known_length_is_timed() {
        let site = Site::choose(Path::new("/"), None, Policy::Other).unwrap();
        let calibration = calibrate::<MonotonicRaw>(Nanos::from_millis(10)).unwrap();
        let taken = site
            .run(|| {
                let bench =
                    Bench::<MonotonicRaw>::new(&site, calibration, &[PerfEvent::TaskClock, PerfEvent::Migrations]);
                bench.series(2, 10, |samples| {
                    Bench::<MonotonicRaw>::time_each(samples, |_| {
                        let start = MonotonicRaw::read();
                        while MonotonicRaw::read() - start < 20_000 {}
                    });
                    Ok(())
                })
            })
            .unwrap()
            .unwrap();
        assert_eq!((taken.series.batch, taken.rounds.len(), taken.rounds[0].len()), (2, ROUNDS, 10));
        // 20 us over a batch of two, less what the readings cost and a step of the clock at most.
        let length = undisturbed(&taken);
        assert!((9_500_000..15_000_000).contains(&length), "{length}");
        // A container may forbid it. Else each of ten samples of two took 10 us, in both spaces together.
        let series = taken.series;
        if series.counted > 0 {
            assert_eq!(series.counted, ROUNDS_COUNTED * 10 * 2);
            let clock = series
                .counts
                .iter()
                .filter(|count| count.event == PerfEvent::TaskClock.name())
                .map(|count| count.value)
                .max();
            let each = clock.unwrap() / series.counted;
            assert!((9_000..200_000).contains(&each), "{each} ns of {:?}", series.counts);
        }
    }

    #[test]
    fn a_failure_ends_the_series() {
        let site = Site::choose(Path::new("/"), None, Policy::Other).unwrap();
        let bench = Bench::<MonotonicRaw>::new(&site, calibrate::<MonotonicRaw>(Nanos::from_millis(1)).unwrap(), &[]);
        assert_eq!(bench.series(1, 1, |_| Err("no".to_owned())), Err("no".to_owned()));
    }
}
