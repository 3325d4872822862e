//! FWQ of the Sequoia benchmarks, as kept by LLNL: `<prefix>_<thread>_times.dat` of the serial program and of threads, with an integer per
//! line in ticks of the processor's counter; and the single file of `fwq-th` and `fwq-mpi`, which has a line with the counter's rate for
//! each worker, and one with the CPUs that it ran on.
//!
//! The serial files lack the rate of the counter, so the caller must supply it. None of them has the starts of samples. FTQ of the same
//! family has two files per thread, which [`super::ftq_ticks`] reads.

use becalm_model::node::{Fixed, Warning};
use becalm_units::{CpuId, Nanos};

use super::distribution::{integer, short};
use super::lines::{End, Lines, Progress, is_row, text};
use super::samples::{SampleList, end_to_end};
use super::{ReadError, Source};

/// The prefixes of the line with a worker's speed, and of the line before its samples.
pub(super) const SPEED: &str = "Speed: ";
const KINDS: [&str; 2] = ["Thread ", "Process "];

/// A worker while its samples are read.
struct Worker<'a> {
    /// Its name in the file: `Thread 0`.
    name: &'a str,
    /// Ticks per nanosecond.
    ghz: Option<f64>,
    cpu: Option<CpuId>,
    ticks: Vec<i64>,
}

/// Reads the samples of each worker. `rate_hz` is the rate of the counter, unless the file has it. Fails if the rate is unknown, a line is
/// neither of a worker nor a whole number, and if the file is one of FTQ's.
pub fn read(source: Source<'_>, rate_hz: Option<f64>, progress: Progress<'_>) -> Result<Vec<SampleList>, ReadError> {
    if source.name.ends_with("_counts.dat") {
        return Err(ReadError::new("it holds counts of FTQ: import it with the file of its times, as ftq-ticks"));
    }
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let (mut speeds, mut workers) = (Vec::<f64>::new(), Vec::<Worker<'_>>::new());
    while let Some(line) = lines.next() {
        if let Some(speed) = line.strip_prefix(SPEED) {
            speeds.push(gigahertz(speed).map_err(|why| lines.error(why))?);
        } else if let Some(rest) = KINDS.iter().find_map(|kind| line.strip_prefix(kind)) {
            let cpu = worker_cpu(rest).map_err(|why| lines.error(why))?;
            let name = line.split(" running on").next().unwrap_or(line);
            if workers.iter().any(|worker| worker.name == name) {
                return Err(lines.second_report());
            }
            workers.push(Worker { name, ghz: speeds.get(workers.len()).copied(), cpu, ticks: Vec::new() });
        } else if !is_row(line) {
            // The program's own messages.
            lines.leave_out()?;
        } else {
            if workers.is_empty() {
                workers.push(Worker { name: "", ghz: None, cpu: None, ticks: Vec::new() });
            }
            let ticks = integer(line, "sample").map_err(|why| lines.error(why))?;
            if let Some(worker) = workers.last_mut() {
                worker.ticks.push(ticks);
            }
        }
    }
    let end = if workers.len() < speeds.len() {
        End::Missing(format!("it announces {} workers and holds samples of {}", speeds.len(), workers.len()))
    } else {
        End::Unmarked
    };
    let warnings = lines.warnings(end);
    workers.into_iter().map(|worker| list(worker, rate_hz, &warnings)).collect()
}

/// The last number of `thread 0, cycles 90000000, seconds 0.036000, GHz 2.500000`.
fn gigahertz(speed: &str) -> Result<f64, String> {
    let number = speed.rsplit_once("GHz ").and_then(|(_, number)| number.trim().parse().ok());
    number.filter(|ghz| (1e-3..=1e3).contains(ghz)).ok_or_else(|| "its speed is no number of GHz".to_owned())
}

/// The CPU of `0 running on CPUs 4`; `None` if there are several.
fn worker_cpu(rest: &str) -> Result<Option<CpuId>, String> {
    let (_, cpus) = rest.split_once(" running on CPUs ").ok_or("it does not say on which CPUs the worker ran")?;
    Ok(cpus.trim().parse().ok().map(CpuId::new))
}

fn list(worker: Worker<'_>, rate_hz: Option<f64>, warnings: &[Warning]) -> Result<SampleList, ReadError> {
    let ghz = worker.ghz.or_else(|| rate_hz.map(|hz| hz / 1e9)).ok_or_else(|| {
        ReadError::new("its samples are in ticks of a counter, and it does not say how fast that was")
            .with_fix("; say it with {rate}")
    })?;
    let duration = |ticks: i64| {
        let ns = ticks as f64 / ghz;
        if ns < 9e18 {
            Ok((Nanos::new(ns.round() as i64), 0))
        } else {
            Err(ReadError::new(format!("a sample of {} ticks is longer than times can be", short(&ticks.to_string()))))
        }
    };
    Ok(SampleList {
        cpu: worker.cpu,
        body: "fwq",
        iteration: "a pass of FWQ's loop",
        fixed: Fixed::Work,
        grain: None,
        has_starts: false,
        samples: end_to_end(worker.ticks.into_iter().map(duration))?,
        warnings: warnings.to_vec(),
    })
}
