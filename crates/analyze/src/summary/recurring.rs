//! Finds the periods of a run, in every source of every CPU, or, without sources, in the detours of each octave of length.

use becalm_model::Kind;
use becalm_units::{CpuId, Nanos};

use super::scan::CpuScan;
use super::{Origin, PeriodSummary, SourceSummary};
use becalm_stats::periods::{Period, Times};
use becalm_stats::spectrum::{Spectrum, Welch};

/// Maximum probability that a run without any period shows one: divided over all searches (Bonferroni).
const FALSE_ALARM: f64 = 0.01;

/// The data to search: the first times of each kind of events.
#[derive(Default)]
pub(super) struct Recurring {
    searches: Vec<(String, CpuId, Origin, Times)>,
    spectrum: Welch,
}

impl Recurring {
    /// Adds the events of a CPU, whose sources have these names. Remainders of a detour recur with its cause and are left out.
    pub(super) fn add_cpu(&mut self, node: &str, rows: &mut CpuScan, names: &[(Kind, String)]) {
        let sources =
            rows.sources.iter_mut().map(|source| (&names[source.number.index()], std::mem::take(&mut source.times)));
        let sources = sources.filter(|((kind, _), _)| *kind != Kind::Edge);
        let sources =
            sources.map(|((kind, source), times)| (Origin::Source { kind: *kind, source: source.clone() }, times));
        let octaves = (0..).zip(std::mem::take(&mut rows.octaves)).map(|(octave, times)| {
            let from_ns = 1_i64 << octave;
            (Origin::Detours { from_ns, below_ns: from_ns.saturating_mul(2) }, times)
        });
        for (origin, times) in sources.chain(octaves).filter(|(_, times)| times.can_be_searched()) {
            self.searches.push((node.to_owned(), rows.cpu, origin, times));
        }
    }

    pub(super) fn add_spectrum(&mut self, spectrum: &Welch) {
        self.spectrum.merge(spectrum);
    }

    /// The periods, by place, then the most frequent first, and the spectrum with a name on each. If several sources have one period, the spectrum
    /// names the one that takes the most time: `sources` are sorted that way.
    pub(super) fn found(self, sources: &[SourceSummary]) -> (Vec<PeriodSummary>, Option<Spectrum>) {
        let each = FALSE_ALARM / self.searches.len().max(1) as f64;
        let mut periods: Vec<PeriodSummary> = Vec::new();
        for (node, cpu, origin, times) in self.searches {
            for period in times.periods(each) {
                periods.push(PeriodSummary { node: node.clone(), cpu, origin: origin.clone(), period });
            }
        }
        join_lengths(&mut periods);
        periods.sort_by(|a, b| {
            let place = (&a.node, a.cpu).cmp(&(&b.node, b.cpu));
            place.then(a.period.interval_ns.total_cmp(&b.period.interval_ns)).then_with(|| a.origin.cmp(&b.origin))
        });
        let rank = |origin: &Origin| match origin {
            Origin::Source { kind, source } => sources.iter().position(|s| s.kind == *kind && s.source == *source),
            Origin::Detours { .. } => None,
        };
        let mut named: Vec<&PeriodSummary> = periods.iter().collect();
        named.sort_by_key(|found| rank(&found.origin).unwrap_or(usize::MAX));
        let peaks = named.into_iter().map(|found| (found.period.frequency_hz(), found.label()));
        let spectrum = self.spectrum.spectrum(peaks);
        (periods, spectrum)
    }
}

impl PeriodSummary {
    /// The time between two occurrences, with the digits that are certain: `4.000ms`.
    pub fn every(&self) -> String {
        format!("{:.3}", Nanos::new(self.period.interval_ns.round() as i64))
    }

    /// A label for people: `timer: every 4.000ms`, `detours of 8.192us to 16.384us: every 4.000ms`.
    pub fn label(&self) -> String {
        let interval = self.every();
        match &self.origin {
            Origin::Source { source, .. } => format!("{source}: every {interval}"),
            Origin::Detours { from_ns, below_ns } => {
                format!("detours of {} to {}: every {interval}", Nanos::new(*from_ns), Nanos::new(*below_ns))
            }
        }
    }
}

/// Detours of one cause may be in several octaves of length, each with the period: merges them.
fn join_lengths(periods: &mut Vec<PeriodSummary>) {
    let mut joined: Vec<PeriodSummary> = Vec::new();
    for found in periods.drain(..) {
        let Origin::Detours { from_ns, below_ns } = found.origin else {
            joined.push(found);
            continue;
        };
        let same = joined.iter_mut().find(|other| {
            (&other.node, other.cpu) == (&found.node, found.cpu)
                && (other.period.interval_ns / found.period.interval_ns - 1.0).abs() < 1e-3
        });
        let Some(same) = same else {
            joined.push(found);
            continue;
        };
        if let Origin::Detours { from_ns: from, below_ns: below } = &mut same.origin {
            (*from, *below) = ((*from).min(from_ns), (*below).max(below_ns));
        }
        let (more, fewer) = if found.period.events > same.period.events {
            (found.period, same.period)
        } else {
            (same.period, found.period)
        };
        // Each beat has one detour, of either length. Those of one length may have been searched over a shorter time.
        let others = (fewer.events as f64 * more.beats as f64 / fewer.beats.max(1) as f64).round() as u64;
        same.period = Period { events: (more.events + others).min(more.beats), ..more };
    }
    *periods = joined;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{ActivityColumns, DetourColumns, Scan};
    use becalm_stats::TimeCells;
    use becalm_testing::noise::Source;

    const SECOND: i64 = 1_000_000_000;

    /// A tick of 8,000 ns to 8,400 ns every 4 ms, on both sides of 8,192 ns, among random others.
    fn ticks(source: &mut Source) -> (Vec<i64>, Vec<i64>) {
        let mut detours: Vec<(i64, i64)> =
            (0..2_500).map(|tick| (tick * 4_000_000 + 700, 8_000 + (400.0 * source.uniform()) as i64)).collect();
        detours.extend(source.poisson(100.0, 1e10).into_iter().map(|time| (time as i64, 300)));
        detours.sort_unstable();
        detours.into_iter().unzip()
    }

    #[test]
    fn without_sources_detours_of_one_cause_become_one_period() {
        let (starts, durations) = ticks(&mut Source::seeded(1));
        let mut scan = Scan::default().searching_detours(true);
        scan.expect(CpuId::new(3), Some(TimeCells::new(0, 10 * SECOND)));
        let cpus = vec![3; starts.len()];
        let incomplete = |_| false;
        scan.detours(&DetourColumns { cpus: &cpus, starts: &starts, durations: &durations, incomplete });
        let mut recurring = Recurring::default();
        recurring.add_spectrum(scan.spectrum());
        recurring.add_cpu("node1", &mut scan.cpus()[0], &[]);
        let (periods, spectrum) = recurring.found(&[]);
        let [found] = &periods[..] else { panic!("{periods:#?}") };
        assert_eq!((found.node.as_str(), found.cpu), ("node1", CpuId::new(3)));
        assert_eq!(found.label(), "detours of 4.096us to 16.384us: every 4.000ms");
        // Half of the ticks are of each length, and no beat is missed.
        assert!(found.period.events * 100 >= found.period.beats * 98, "{found:?}");
        let spectrum = spectrum.unwrap();
        let [peak] = &spectrum.peaks[..] else { panic!("{:?}", spectrum.peaks) };
        assert_eq!(peak.label, found.label());
        let middle = spectrum.points[spectrum.points.len() / 2].power;
        assert!(peak.power > 100.0 * middle, "{} over {middle}", peak.power);
    }

    #[test]
    fn a_source_is_named_and_the_rest_of_detours_is_not() {
        let (starts, self_times) = ticks(&mut Source::seeded(2));
        let mut scan = Scan::default();
        scan.expect(CpuId::new(0), None);
        let detours: Vec<i64> = (0..).take(starts.len()).collect();
        let cpus = vec![0; starts.len()];
        for (kind, source) in [(Kind::Irq, "local_timer"), (Kind::Edge, "edge")] {
            scan.activities(&ActivityColumns {
                cpus: &cpus,
                detours: &detours,
                starts: &starts,
                self_times: &self_times,
                sources: &[source],
                details: &[""],
                keys: |_: usize| (kind, 0, 0),
            });
        }
        let names = scan.names().to_vec();
        let mut recurring = Recurring::default();
        recurring.add_cpu("node1", &mut scan.cpus()[0], &names);
        let labels: Vec<String> = recurring.found(&[]).0.iter().map(PeriodSummary::label).collect();
        assert_eq!(labels, ["local_timer: every 4.000ms"]);
    }
}
