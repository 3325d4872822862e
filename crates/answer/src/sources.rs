//! The sources of noise: over all CPUs, per CPU, in single detours, or on several CPUs at once.

use std::path::PathBuf;
use std::str::FromStr;

use becalm_analyze::summary::{DetourId, RANKS, Selection, longest, summarize, summarize_digests, timelines};
use becalm_analyze::together::together;
use becalm_bundle::{Bundle, Contents};
use becalm_report::{DetoursReport, SourcesReport, TogetherReport};
use becalm_units::fault::{self, UsageError, Wording};
use becalm_units::{CpuId, Nanos};

use crate::{Asker, open};

/// A question about the sources of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourcesQuestion {
    /// The recording.
    pub run: PathBuf,
    /// The selected part of it.
    pub selection: Selection,
    /// The requested view.
    pub wanted: SourcesWanted,
}

/// The view of the sources.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SourcesWanted {
    /// All sources, ranked (`becalm.sources/1`).
    Ranked {
        /// Also per CPU.
        per_cpu: bool,
    },
    /// One detour as a timeline (`becalm.detours/1`).
    Detour(DetourName),
    /// The longest detours as timelines, this many (`becalm.detours/1`).
    Longest(u32),
    /// Noise on several CPUs at once (`becalm.together/1`).
    Together {
        /// Detours closer than this also meet.
        within: Nanos,
    },
}

/// A detour by its number, `CPU:N`, or `N` if only one CPU was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DetourName {
    /// The CPU; may be missing for a run with only one.
    pub cpu: Option<CpuId>,
    /// The number, counted on the CPU from 0.
    pub number: u64,
}

impl FromStr for DetourName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("'{text}' is not the number of a detour"));
        let Some((cpu, of_cpu)) = text.split_once(':') else {
            return Ok(Self { cpu: None, number: number(text)? });
        };
        let cpu = match cpu.parse::<u32>() {
            Ok(cpu) if cpu < CpuId::LIMIT => CpuId::new(cpu),
            _ => return Err(format!("'{cpu}' is not the number of a CPU")),
        };
        Ok(Self { cpu: Some(cpu), number: number(of_cpu)? })
    }
}

impl SourcesQuestion {
    /// Reads the run and shows the requested view. Fails if the run cannot be read or lacks the selected part, or the answer cannot be
    /// shown.
    pub fn answer(&self, asker: &mut impl Asker) -> fault::Result<()> {
        if Contents::read(&self.run)? == Contents::Summary {
            return self.answer_from_summary(asker);
        }
        let bundle = open::recording(&self.run, |text| asker.tell(text))?;
        let selection = &self.selection;
        // The longest are known only after reading all once.
        let reading = asker.reading(&bundle, if matches!(self.wanted, SourcesWanted::Longest(_)) { 2 } else { 1 });
        let detours = match &self.wanted {
            SourcesWanted::Together { within } => {
                let together = together(&bundle, selection, *within)?;
                drop(reading);
                return asker.show(&TogetherReport { together: &together });
            }
            SourcesWanted::Ranked { per_cpu } => {
                let mut summary = summarize(&bundle, &selection.with_detail(asker.detail()))?;
                drop(reading);
                summary.ask_for_ranks(RANKS);
                return asker.show(&SourcesReport { summary: &summary, per_cpu: *per_cpu });
            }
            SourcesWanted::Detour(detour) => vec![find(&bundle, selection, *detour)?],
            SourcesWanted::Longest(count) => longest(&bundle, selection, *count as usize)?,
        };
        let timelines = timelines(&bundle, &detours)?;
        drop(reading);
        asker.show(&DetoursReport { timelines: &timelines })
    }

    /// Answers from a recording in summary form.
    fn answer_from_summary(&self, asker: &mut impl Asker) -> fault::Result<()> {
        let SourcesWanted::Ranked { per_cpu } = self.wanted else {
            let text = format!("{} holds a recording in summary form, which has no single detours", self.run.display());
            return Err(UsageError::new(text).into());
        };
        let bundle = open::summary(&self.run, |text| asker.tell(text))?;
        let mut summary = summarize_digests(&bundle, &self.selection.with_detail(asker.detail()))?;
        summary.ask_for_ranks(RANKS);
        asker.show(&SourcesReport { summary: &summary, per_cpu })
    }
}

/// The detour with that name.
fn find(bundle: &Bundle, selection: &Selection, detour: DetourName) -> fault::Result<DetourId> {
    let cpus = selection.cpus.clone().or_else(|| detour.cpu.map(|cpu| [cpu].into_iter().collect()));
    let docs = Selection { cpus, ..selection.clone() }.documents(bundle)?;
    let places = docs.iter().flat_map(|doc| doc.cpus.iter().map(|cpu| (doc.node.clone(), cpu.cpu)));
    let places: Vec<(String, CpuId)> =
        places.filter(|(_, cpu)| detour.cpu.is_none_or(|wanted| wanted == *cpu)).collect();
    let number = detour.number;
    let refusal = match places.as_slice() {
        [(node, cpu)] => return Ok(DetourId { node: node.clone(), cpu: *cpu, number }),
        [] => Wording::new("{detour=} is not among the CPUs of {cpus}")
            .with(format_args!("{}:{number}", text(detour.cpu))),
        [(_, first), ..] if detour.cpu.is_none() && docs.len() == 1 => {
            let text = Wording::new("the run has several CPUs; name the detour's, as in {detour=}");
            text.with(format_args!("{first}:{number}"))
        }
        [(node, _), ..] => Wording::new("the run has several nodes; name one, as in {node=}").with(node),
    };
    Err(UsageError::new(refusal).into())
}

fn text(cpu: Option<CpuId>) -> String {
    cpu.map(|cpu| cpu.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detours_are_named_by_cpu_and_number() {
        assert_eq!("1:20".parse(), Ok(DetourName { cpu: Some(CpuId::new(1)), number: 20 }));
        assert_eq!("20".parse(), Ok(DetourName { cpu: None, number: 20 }));
        for (text, why) in [
            ("", "number of a detour"),
            ("1:", "number of a detour"),
            ("x:1", "number of a CPU"),
            ("9999999:1", "number of a CPU"),
            ("-1", "number of a detour"),
            ("1:2:3", "number of a detour"),
        ] {
            let error = text.parse::<DetourName>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
