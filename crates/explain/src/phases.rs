//! Phases of a parallel job as spans: of each phase the compute time of the rank that computed longest, because all others waited for it (De et al. 2009,
//! section 4.2).
//!
//! The job and a simultaneous recording of its nodes read the same counter, and store its value at their time 0, so no clocks are compared.

use std::collections::HashMap;

use becalm_analyze::phases::Slowest;
use becalm_bundle::PhaseRun;
use becalm_model::node::NodeDoc;
use becalm_model::observed::ThreadId;
use becalm_model::phases::PhasesDoc;
use becalm_model::{Label, Labels};
use becalm_units::fault::{self, UsageError, Wording};

use crate::joined::{LeftOutSpans, Piece, PlacedSpan};
use crate::lives::OwnThreads;
use crate::measured::Measured;
use crate::spans::is_like;

/// The name of a job's threads in recordings.
const JOB: &str = "becalm-mpi";

/// Tolerated difference between the wall clocks and the counters of two documents; more means another boot of the machine.
const SAME_BOOT_NS: f64 = 1e9;

/// The phases of a job in a recording.
pub struct Phases {
    /// The spans, in order of time; each has the name of its rank.
    pub placed: Vec<PlacedSpan>,
    /// Their names.
    pub labels: Labels,
    /// Phases that are not in the recording.
    pub left_out: LeftOutSpans,
}

/// The threads of a job.
pub fn threads() -> OwnThreads {
    OwnThreads { name: Some(JOB), ..OwnThreads::default() }
}

/// Finds the phases of a job in a recording; with a pattern only those of ranks with this name. Fails if the job cannot be read, did not end, or
/// cannot be aligned with the recording, or if that lacks more than one phase in a hundred.
pub fn place(job: &PhaseRun, recording: &Measured, name: Option<&str>) -> fault::Result<Phases> {
    let mut slowest = Slowest::default();
    job.for_each(|_, rank, number, phase| slowest.add(rank, number as usize, &phase))?;
    if slowest.compute.is_empty() {
        return Err(apart("the job did not come to its end, so it has no phases").into());
    }
    let mut shifts = Vec::new();
    for doc in &job.nodes {
        let recorded = recording.nodes().iter().find(|recorded| recorded.node == doc.node);
        shifts.push(recorded.map(|recorded| shift(doc, recorded)).transpose()?);
    }
    if shifts.iter().all(Option::is_none) {
        let names: Vec<&str> = job.nodes.iter().map(|doc| doc.node.as_str()).collect();
        return Err(apart(&format!("the recording holds no node of the job, which ran on {}", names.join(", "))).into());
    }
    let mut labels = Labels::new();
    labels.intern("");
    // The names of ranks, and the places of their CPUs in the recording.
    let mut known: HashMap<u32, (Label, Option<usize>)> = HashMap::new();
    for doc in &job.nodes {
        for rank in &doc.ranks {
            let text = format!("rank {}", rank.rank);
            if name.is_none_or(|pattern| is_like(&text, pattern)) {
                let place = recording.cpus().iter().position(|cpu| cpu.node == doc.node && cpu.doc.cpu == rank.cpu);
                known.insert(rank.rank, (labels.intern(&text), place));
            }
        }
    }
    let (mut found, mut left_out) = (Vec::new(), LeftOutSpans::default());
    job.for_each(|node, rank, number, phase| {
        let Some((name, place)) = known.get(&rank).filter(|_| slowest.latest[number as usize] == rank).copied() else {
            return;
        };
        let (Some((offset, ratio)), Some(place)) = (shifts[node], place) else {
            left_out.strangers += 1;
            return;
        };
        let at = |ns: i64| (offset + ns as f64 * ratio).round() as i64;
        let (start, end) = (at(phase.start_ns), at(phase.start_ns + phase.compute_ns));
        let measured = &recording.cpus()[place].doc;
        if start < measured.start_ns.get() || end > (measured.start_ns + measured.duration_ns).get() {
            left_out.outside += 1;
            return;
        }
        let pieces = vec![Piece { thread: ThreadId(place as u32), start, end }];
        found.push((number, PlacedSpan { name, group: name, pieces }));
    })?;
    let count = found.len() + (left_out.outside + left_out.strangers) as usize;
    if !found.is_empty() && left_out.are_many(count) {
        let LeftOutSpans { outside, strangers, .. } = left_out;
        let text = Wording::new(
            "{} of {} phases are outside of the recording, and {} waited for ranks on CPUs that it does not have; record all CPUs \
             of the job for all of its time, or choose ranks with {name}",
        );
        return Err(UsageError::new(text.with(outside).with(count).with(strangers)).into());
    }
    // The times of several nodes differ.
    found.sort_by_key(|(number, _)| *number);
    Ok(Phases { placed: found.into_iter().map(|(_, span)| span).collect(), labels, left_out })
}

fn apart(why: &str) -> UsageError {
    UsageError::new(format!("the job cannot be aligned with the recording: {why}"))
}

/// The job's time 0 on the recording's clock, in nanoseconds, and the ratio of the clock rates, job to recording.
fn shift(doc: &PhasesDoc, recorded: &NodeDoc) -> Result<(f64, f64), UsageError> {
    let (job, run) = (&doc.clock, &recorded.clock);
    if job.origin_ticks == 0 || run.origin_ticks == 0 {
        return Err(apart(&format!("one of them does not have the value of the counter of {} at its start", doc.node)));
    }
    if job.counter != run.counter {
        return Err(apart(&format!(
            "on {} it read the counter {}, and the recording {}",
            doc.node, job.counter, run.counter
        )));
    }
    let ticks = job.origin_ticks as f64 - run.origin_ticks as f64;
    let offset = ticks * 1e9 / run.rate_hz;
    let by_wall = recorded.origin.map(|origin| doc.origin.duration_since(origin).as_secs_f64() * 1e9);
    if by_wall.is_none_or(|by_wall| (offset - by_wall).abs() > SAME_BOOT_NS) {
        return Err(apart(&format!(
            "they are of different boots of {}: their counters and their wall clocks disagree",
            doc.node
        )));
    }
    Ok((offset, job.rate_hz / run.rate_hz))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::joined::SpanCauses;

    /// In every hundredth phase, a kernel thread takes 5 ms and a tick 20 us from rank 1. Other work while ranks wait is not in the spans.
    #[test]
    fn what_made_phases_long_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        becalm_fixtures::phases::write_beside(folder.path());
        let job = PhaseRun::open(&folder.path().join("observed.becalm")).unwrap();
        let recording = Measured::open(&folder.path().join("meanwhile.becalm"), None).unwrap();
        let Phases { placed, labels, left_out } = place(&job, &recording, None).unwrap();
        assert_eq!((placed.len(), left_out), (1_000, LeftOutSpans::default()));
        let (lives, notes) = recording.lives(&placed, &threads()).unwrap();
        assert!(notes[0].contains("measuring loop"), "{notes:?}");
        let causes = SpanCauses::new(&placed, &lives);
        let mut sums: BTreeMap<&str, (usize, i64)> = BTreeMap::new();
        for (place, span) in placed.iter().enumerate() {
            let is_late = place % 100 == 50;
            assert_eq!(span.length(), if is_late { 6_020_000 } else { 1_000_000 });
            assert_eq!(labels.text(span.name), if is_late { "rank 1" } else { "rank 0" });
            assert_eq!(causes.get(place).iter().map(|time| time.ns).sum::<i64>(), span.length());
            for time in causes.get(place) {
                let (count, ns) = sums.entry(&lives.causes.get(time.cause).source).or_default();
                (*count, *ns) = (*count + 1, *ns + time.ns);
            }
        }
        let expected = [("", (1_000, 1_000_000_000)), ("pdflush", (10, 50_000_000)), ("tick", (10, 200_000))];
        assert_eq!(sums.into_iter().collect::<Vec<_>>(), expected);
        // Only the phases for which all others waited for this rank.
        assert_eq!(place_count(&job, &recording, "rank 1"), 10);
        assert_eq!(place_count(&job, &recording, "rank*"), 1_000);
    }

    fn place_count(job: &PhaseRun, recording: &Measured, name: &str) -> usize {
        place(job, recording, Some(name)).unwrap().placed.len()
    }

    #[test]
    fn a_recording_that_ends_before_the_job_explains_nothing() {
        let folder = tempfile::tempdir().unwrap();
        becalm_fixtures::phases::write_beside(folder.path());
        let mut job = PhaseRun::open(&folder.path().join("observed.becalm")).unwrap();
        let recording = Measured::open(&folder.path().join("meanwhile.becalm"), None).unwrap();
        let (_, end) = recording.books();
        // Now the job starts half a second before the end.
        let later = end - 1_000_000_000 - 500_000_000;
        let doc = &mut job.nodes[0];
        doc.clock.origin_ticks += (later as f64 * doc.clock.rate_hz / 1e9) as u64;
        doc.origin += std::time::Duration::from_nanos(later.unsigned_abs());
        let error = place(&job, &recording, None).err().unwrap();
        assert!(error.is_usage(), "{error}");
        assert!(error.to_string().contains("of 1000 phases are outside of the recording, and 0 waited"), "{error}");
    }

    #[test]
    fn a_job_of_another_boot_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        becalm_fixtures::phases::write_beside(folder.path());
        let recording = Measured::open(&folder.path().join("meanwhile.becalm"), None).unwrap();
        let job = PhaseRun::open(&folder.path().join("rebooted.becalm")).unwrap();
        let error = place(&job, &recording, None).err().unwrap();
        assert!(error.is_usage() && error.to_string().contains("different boots of node1"), "{error}");
    }
}
