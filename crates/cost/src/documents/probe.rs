//! Probes of traps and detours: samples, or the reason why there are none.

use becalm_model::event_count::EventCount;
use serde::{Deserialize, Serialize};

use super::CostSamples;
use super::check::check_picos;

/// The counter that timed the samples, and what reading it costs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct InstrumentDoc {
    /// `tsc`, `cntvct`, `timebase` or `monotonic_raw`.
    pub counter: String,
    /// Its rate, in ticks a second.
    pub rate_hz: f64,
    /// Largest relative error of the rate, as parts of 1.
    pub rate_error_ratio: f64,
    /// Cost of the two readings around a sample, in picoseconds; it is taken off each.
    pub overhead_ps: i64,
    /// Events of the processor that are not counted, with a line for each reason.
    #[serde(default)]
    pub not_counted: Vec<String>,
}

/// The samples of a probe, except for their times, which are in the table under the probe's name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SeriesDoc {
    /// Repetitions in a sample, which is their mean; at least 1.
    pub batch: u32,
    /// Number of samples of all rounds together.
    pub samples: u64,
    /// Number of rounds of each process of the document's `spread`, in their order: first those of the first one.
    /// Empty where one process measured all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds_by_process: Vec<u32>,
    /// Interrupts that the kernel counted on the CPU meanwhile; `None` where it does not tell.
    pub interrupts: Option<u64>,
    /// Preemptions of the measuring thread meanwhile.
    pub preempted: u64,
    /// True if the samples are interruptions themselves, so none is slow because it was interrupted.
    pub interruptions: bool,
    /// Counts of the processor in further repetitions, without the time between samples; often nothing on a virtual
    /// machine.
    #[serde(default)]
    pub counts: Vec<EventCount>,
    /// Number of these repetitions.
    #[serde(default)]
    pub counted: u64,
}

/// One probe: its samples, or the reason why there are none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ProbeDoc {
    /// Its stable name, which no other probe of the document has.
    pub name: String,
    /// The probe in a few words.
    pub what: String,
    /// Its method, in a sentence.
    pub method: String,
    /// Description of its samples; `None` if there are none.
    pub series: Option<SeriesDoc>,
    /// Reason if there are no samples.
    pub not_measured: Option<String>,
    /// Reason of a process that has none although others have, in the words of the first such process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_in_all: Option<String>,
}

/// The samples of a probe: their description and their times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbeSamples {
    /// The description of the samples.
    pub series: SeriesDoc,
    /// The times of each round in order, in picoseconds per repetition. No round is empty.
    pub rounds: Vec<Vec<i64>>,
}

impl ProbeSamples {
    /// Rounds of samples without other information; each sample is the mean of `batch` repetitions. Empty rounds are dropped: they are
    /// indistinguishable from missing ones.
    pub fn new(batch: u32, mut rounds: Vec<Vec<i64>>) -> Self {
        rounds.retain(|round| !round.is_empty());
        let series = SeriesDoc {
            batch,
            samples: rounds.iter().map(|round| round.len() as u64).sum(),
            rounds_by_process: Vec::new(),
            interrupts: None,
            preempted: 0,
            interruptions: false,
            counts: Vec::new(),
            counted: 0,
        };
        Self { series, rounds }
    }
}

/// A probe with its samples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// The document of the probe.
    pub doc: ProbeDoc,
    /// Its samples' times, as in [`ProbeSamples::rounds`]; empty without samples.
    pub rounds: Vec<Vec<i64>>,
}

impl Probe {
    /// A probe with its samples, or the reason why there are none.
    pub fn new(name: &str, what: &str, method: impl Into<String>, outcome: Result<ProbeSamples, String>) -> Self {
        let (series, not_measured, rounds) = match outcome {
            Ok(ProbeSamples { series, rounds }) if series.samples > 0 => (Some(series), None, rounds),
            Ok(_) => (None, Some("the probe gave no sample".to_owned()), Vec::new()),
            Err(why) => (None, Some(why), Vec::new()),
        };
        let (name, what, method) = (name.to_owned(), what.to_owned(), method.into());
        Self { doc: ProbeDoc { name, what, method, series, not_measured, not_in_all: None }, rounds }
    }

    /// The same probe under another name and with another description.
    #[must_use]
    pub fn called(mut self, name: &str, what: &str) -> Self {
        (self.doc.name, self.doc.what) = (name.to_owned(), what.to_owned());
        self
    }
}

/// The maximum number of rounds of a probe in a process. A probe sets itself up again for each round. The median of the rounds' medians is
/// the value of the process, because rounds of one process share what does not change within it.
pub const ROUNDS: usize = 5;

/// Splits samples, in order, into [`ROUNDS`] rounds, or fewer if there are fewer samples. Their lengths differ by at most one.
pub fn into_rounds<T: Clone>(samples: &[T]) -> Vec<Vec<T>> {
    let rounds = ROUNDS.min(samples.len());
    (0..rounds).map(|n| samples[n * samples.len() / rounds..(n + 1) * samples.len() / rounds].to_vec()).collect()
}

/// Probes of traps or detours.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ProbeCosts {
    /// The instrument; `None` before anything is measured.
    pub instrument: Option<InstrumentDoc>,
    /// The probes, in display order.
    pub probes: Vec<ProbeDoc>,
}

impl ProbeCosts {
    /// Adds probes to the document and their times to the samples.
    pub fn add(&mut self, probes: impl IntoIterator<Item = Probe>, samples: &mut CostSamples) {
        for Probe { doc, rounds } in probes {
            samples.extend(doc.series.as_ref().map(|_| (doc.name.clone(), rounds)));
            self.probes.push(doc);
        }
    }
}

/// Checks that samples have an instrument.
pub(super) fn check_instrument(instrument: Option<&InstrumentDoc>, nothing_timed: bool) -> Result<(), String> {
    match instrument {
        None if nothing_timed => Ok(()),
        None => Err("it does not tell what timed the samples".to_owned()),
        Some(timer) if timer.rate_hz > 0.0 && timer.rate_error_ratio >= 0.0 => {
            check_picos("overhead_ps", "the instrument", timer.overhead_ps)
        }
        Some(timer) => Err(format!(
            "its counter cannot have a rate of {} Hz with a relative error of {}",
            timer.rate_hz, timer.rate_error_ratio
        )),
    }
}

impl ProbeDoc {
    pub(super) fn check(&self) -> Result<(), String> {
        match (&self.series, &self.not_measured) {
            (Some(_), None) | (None, Some(_)) => Ok(()),
            _ => Err(format!("'{}' has both samples and a reason why it has none, or neither", self.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_probe_without_samples_has_a_reason() {
        let probe = |outcome| Probe::new("name", "what", "method", outcome);
        let none = probe(Ok(ProbeSamples::new(1, vec![vec![], vec![]])));
        assert_eq!(none.doc.not_measured.as_deref(), Some("the probe gave no sample"));
        let two = probe(Ok(ProbeSamples::new(1, vec![vec![1], vec![], vec![2]])));
        assert_eq!((two.rounds.len(), two.doc.series.map(|series| series.samples)), (2, Some(2)));
        let failed = probe(Err("no".to_owned()));
        assert_eq!((failed.doc.series, failed.doc.not_measured), (None, Some("no".to_owned())));
    }

    proptest! {
        #[test]
        fn rounds_hold_every_sample_once(samples in proptest::collection::vec(0_u64..9, 0..100)) {
            let rounds = into_rounds(&samples);
            prop_assert_eq!(rounds.len(), samples.len().min(ROUNDS));
            prop_assert!(rounds.iter().all(|round| round.len().abs_diff(samples.len() / ROUNDS.min(samples.len())) <= 1));
            prop_assert_eq!(rounds.concat(), samples);
        }
    }
}
