//! The samples of one CPU, with the kernel's activity in them.

use std::collections::HashMap;

use becalm_bundle::{Bundle, BundleError};
use becalm_model::node::Fixed;
use becalm_model::{Kind, NodeDoc};
use becalm_stats::median_high;
use becalm_units::CpuId;

/// Samples of one CPU, in order of time. Times are in nanoseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkSamples {
    /// The CPU of the samples.
    pub cpu: CpuId,
    /// The name of the work: `add`, `sort`.
    pub body: String,
    /// Whether the work or the time stayed the same from sample to sample.
    pub fixed: Fixed,
    /// The requested grain.
    pub grain_ns: i64,
    /// Iterations per sample, or per step.
    pub iterations: u64,
    /// Their time when calibrated.
    pub calibrated_ns: i64,
    /// Iterations of the copies.
    pub others_iterations: u64,
    /// The start of each sample, in nanoseconds since the run's origin.
    pub starts: Vec<i64>,
    /// The duration of each sample, in nanoseconds.
    pub durations: Vec<i64>,
    /// The iterations done in each.
    pub work: Vec<u64>,
    /// The value of each, as defined by the module.
    pub values: Vec<i64>,
    /// The number of samples with dropped kernel events.
    pub incomplete: u64,
    /// For each source, its times by sample.
    pub sources: Vec<SourceTimes>,
}

/// The time that one source took from the samples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceTimes {
    /// The kind of its activities.
    pub kind: Kind,
    /// The stable name of the source.
    pub source: String,
    /// The index of the sample from 0, and the time, in order; a sample occurs once per instance.
    pub times: Vec<(usize, i64)>,
}

impl SourceTimes {
    /// Its total time.
    pub fn total_ns(&self) -> i64 {
        self.times.iter().map(|(_, ns)| *ns).fold(0, i64::saturating_add)
    }
}

/// Reads the samples of a CPU; `None` if it has none. Fails if the bundle cannot be read, or samples overlap, which is impossible for a loop.
pub fn read(bundle: &Bundle, doc: &NodeDoc, cpu: CpuId) -> Result<Option<WorkSamples>, BundleError> {
    let Some(work) = &doc.settings.work else { return Ok(None) };
    let Some(work_loop) = work.loops.iter().find(|work_loop| work_loop.cpu == cpu) else { return Ok(None) };
    let mut samples = WorkSamples {
        cpu,
        body: work.body_on(cpu).to_owned(),
        fixed: work.fixed,
        grain_ns: work.grain_ns.get(),
        iterations: work_loop.iterations,
        calibrated_ns: work_loop.calibrated_ns.get(),
        others_iterations: work_loop.others_iterations,
        starts: Vec::new(),
        durations: Vec::new(),
        work: Vec::new(),
        values: Vec::new(),
        incomplete: 0,
        sources: Vec::new(),
    };
    let wanted = i32::try_from(cpu.get()).unwrap_or(-1);
    let mut end = i64::MIN;
    for batch in bundle.samples(&doc.node)? {
        let batch = batch?;
        for row in (0..batch.len()).filter(|row| batch.cpus()[*row] == wanted) {
            let start = batch.starts()[row];
            if start < end {
                let why = format!("a sample of CPU {cpu} starts at {start} ns, before the end of the previous one");
                return Err(BundleError::Table { path: bundle.path().to_owned(), table: "samples", why });
            }
            end = start + batch.durations()[row];
            samples.starts.push(start);
            samples.durations.push(batch.durations()[row]);
            samples.work.push(u64::try_from(batch.work()[row]).unwrap_or(0));
            samples.incomplete += u64::from(batch.incomplete(row));
        }
    }
    if samples.starts.is_empty() {
        return Ok(None);
    }
    samples.values = values(&samples);
    let mut places: HashMap<(Kind, String), usize> = HashMap::new();
    for batch in bundle.activities(&doc.node)? {
        let batch = batch?;
        for row in (0..batch.len()).filter(|row| batch.cpus()[*row] == wanted) {
            // The writer ensures that there is such a sample; files of other programs may lack it.
            let Some(number) = usize::try_from(batch.detours()[row]).ok().filter(|at| *at < samples.starts.len())
            else {
                continue;
            };
            let key = (batch.kind(row), batch.source(row));
            let place = match places.get(&(key.0, key.1.to_owned())) {
                Some(place) => *place,
                None => {
                    samples.sources.push(SourceTimes { kind: key.0, source: key.1.to_owned(), times: Vec::new() });
                    places.insert((key.0, key.1.to_owned()), samples.sources.len() - 1);
                    samples.sources.len() - 1
                }
            };
            samples.sources[place].times.push((number, batch.self_times()[row]));
        }
    }
    Ok(Some(samples))
}

/// The value of each sample, in nanoseconds, as defined by the module.
fn values(samples: &WorkSamples) -> Vec<i64> {
    match samples.fixed {
        Fixed::Work => samples.durations.clone(),
        Fixed::Time => {
            let pairs = || samples.durations.iter().zip(&samples.work);
            let mut costs: Vec<f64> =
                pairs().filter(|(_, work)| **work > 0).map(|(ns, work)| *ns as f64 / *work as f64).collect();
            let Some(cost) = median_high(&mut costs) else { return samples.durations.clone() };
            let value = |(ns, work): (&i64, &u64)| {
                samples.grain_ns.saturating_add(*ns).saturating_sub((*work as f64 * cost).round() as i64)
            };
            // A damaged table may contain any count. The difference of two values still fits.
            pairs().map(|pair| value(pair).clamp(-(1 << 61), 1 << 61)).collect()
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Consecutive samples of fixed work with these durations.
    pub fn fixed_work(durations: &[i64]) -> WorkSamples {
        let starts = durations.iter().scan(0, |at, ns| Some(std::mem::replace(at, *at + ns)));
        WorkSamples {
            cpu: CpuId::new(0),
            body: "sum".to_owned(),
            fixed: Fixed::Work,
            grain_ns: 1_000_000,
            iterations: 10,
            calibrated_ns: 1_000_000,
            others_iterations: 0,
            starts: starts.collect(),
            durations: durations.to_vec(),
            work: vec![10; durations.len()],
            values: durations.to_vec(),
            incomplete: 0,
            sources: Vec::new(),
        }
    }

    #[test]
    fn the_value_of_fixed_time_is_the_grain_and_what_was_lost() {
        let mut samples = fixed_work(&[1_000_000, 1_000_000, 1_000_000, 1_500_000, 500_000]);
        samples.fixed = Fixed::Time;
        // An iteration takes 1,000 ns. The third lost 250 us, the fourth a whole millisecond, the last nothing.
        samples.work = vec![1_000, 1_000, 750, 500, 500];
        assert_eq!(values(&samples), [1_000_000, 1_000_000, 1_250_000, 2_000_000, 1_000_000]);
        samples.work = vec![0; 5];
        assert_eq!(values(&samples), samples.durations);
    }
}
