//! Finds the periods of a run, in every source of every CPU, or, without sources, in the detours of each octave of length.

use becalm_model::{Kind, unseen};
use becalm_units::{CpuId, Nanos};

use super::scan::CpuScan;
use super::{Origin, PeriodSummary, SourceSummary};
use becalm_stats::periods::{Period, Times};
use becalm_stats::spectrum::{Spectrum, Welch};

/// Maximum probability that a run without any period shows one: divided over all searches (Bonferroni).
const FALSE_ALARM: f64 = 0.01;

/// Maximum relative difference of intervals that are one period on several CPUs.
const SAME: f64 = 1e-3;

/// Maximum relative difference of a multiple, or of the periods of two sources.
const ALIKE: f64 = 0.01;

/// The frequencies of timer ticks, in Hz.
const TICKS_HZ: [u32; 3] = [100, 250, 1_000];

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
        keep_strongest(&mut periods, sources);
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
    /// The frequency in Hz of a timer tick with this period, if its events are long and unseen. On all CPUs of a guest, it is the host's.
    pub fn host_tick_hz(&self) -> Option<u32> {
        let is_long = matches!(&self.origin, Origin::Source { kind: Kind::Unseen, source } if source == unseen::LONG);
        let hz = self.period.frequency_hz();
        TICKS_HZ.into_iter().find(|tick| is_long && (hz / f64::from(*tick) - 1.0).abs() <= SAME)
    }

    /// Whether both are one period of one source, perhaps on different CPUs.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.node, &self.origin) == (&other.node, &other.origin) && self.differs_by(other) < SAME
    }

    fn differs_by(&self, other: &Self) -> f64 {
        (self.period.interval_ns / other.period.interval_ns - 1.0).abs()
    }

    /// Whether it is a multiple of the other period, as is, within [`ALIKE`], everything beyond 50 times.
    fn is_multiple_of(&self, other: &Self) -> bool {
        let ratio = self.period.interval_ns / other.period.interval_ns;
        ratio > 0.5 && (ratio.round() / ratio - 1.0).abs() < ALIKE
    }

    fn share_of_beats(&self) -> f64 {
        self.period.events as f64 / self.period.beats.max(1) as f64
    }

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

/// Keeps at most two periods of each source on a node, because others are artifacts:
/// - the one with the most events on all CPUs, unless the source is charged to another one with that period;
/// - the next one, unless one is a multiple of the other, or another source has more of the beats of that period.
fn keep_strongest(periods: &mut Vec<PeriodSummary>, sources: &[SourceSummary]) {
    let mut found: Vec<PeriodSummary> = Vec::new();
    for period in &*periods {
        match found.iter_mut().find(|known| known.is_same(period)) {
            Some(known) => {
                known.period.events += period.period.events;
                known.period.beats += period.period.beats;
            }
            None => found.push(period.clone()),
        }
    }
    found.sort_by_key(|period| std::cmp::Reverse(period.period.events));
    let is_charged_to_others = |origin: &Origin| {
        let is_it = |other: &&SourceSummary| match origin {
            Origin::Source { kind, source } => other.kind == *kind && other.source == *source,
            Origin::Detours { .. } => false,
        };
        sources
            .iter()
            .find(is_it)
            .is_some_and(|source| i128::from(source.whole_ns) * 2 < i128::from(source.times.total()))
    };
    let mut kept: Vec<&PeriodSummary> = Vec::new();
    for period in &found {
        let mut others = found.iter().filter(|other| {
            other.node == period.node && other.origin != period.origin && other.differs_by(period) < ALIKE
        });
        let own: Vec<_> =
            kept.iter().filter(|own| (&own.node, &own.origin) == (&period.node, &period.origin)).collect();
        let is_kept = match own[..] {
            _ if is_charged_to_others(&period.origin)
                && others.clone().any(|other| !is_charged_to_others(&other.origin)) =>
            {
                false
            }
            [] => true,
            [first] => {
                let is_harmonic = period.is_multiple_of(first) || first.is_multiple_of(period);
                !is_harmonic && !others.any(|other| other.share_of_beats() > period.share_of_beats())
            }
            _ => false,
        };
        if is_kept {
            kept.push(period);
        }
    }
    periods.retain(|period| kept.iter().any(|kept| kept.is_same(period)));
}

/// Detours of one cause may be in several octaves of length, each with the period: merges them.
fn join_lengths(periods: &mut Vec<PeriodSummary>) {
    let mut joined: Vec<PeriodSummary> = Vec::new();
    for found in periods.drain(..) {
        let Origin::Detours { from_ns, below_ns } = found.origin else {
            joined.push(found);
            continue;
        };
        let same = joined
            .iter_mut()
            .find(|other| (&other.node, other.cpu) == (&found.node, found.cpu) && other.differs_by(&found) < SAME);
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

    /// A period of 100 s of a source on a CPU.
    fn found(cpu: u32, kind: Kind, source: &str, ms: f64, events: u64) -> PeriodSummary {
        let period = Period {
            interval_ns: ms * 1e6,
            interval_error_ns: 0.0,
            jitter_ns: 0.0,
            events,
            beats: (100_000.0 / ms) as u64,
            false_alarm: 0.0,
        };
        let origin = Origin::Source { kind, source: source.to_owned() };
        PeriodSummary { node: "node1".to_owned(), cpu: CpuId::new(cpu), origin, period }
    }

    fn source(kind: Kind, name: &str, own_ns: i64, whole_ns: i64) -> SourceSummary {
        let mut times = becalm_stats::Moments::default();
        times.add(own_ns);
        let source = name.to_owned();
        SourceSummary {
            place: None,
            source,
            kind,
            times,
            whole_ns,
            share: None,
            time_ratio: None,
            run_at_least_ns: None,
        }
    }

    #[test]
    fn a_source_keeps_its_strongest_period_and_one_that_is_its_own() {
        let sources = [
            source(Kind::Irq, "local_timer", 100, 150),
            source(Kind::Softirq, "timer", 50, 0),
            source(Kind::Task, "memfd", 10, 10),
        ];
        let mut periods = vec![
            found(0, Kind::Irq, "local_timer", 4.0, 20_000),
            found(1, Kind::Irq, "local_timer", 4.001, 20_000),
            // Of memfd, which has more of these beats.
            found(1, Kind::Irq, "local_timer", 50.104, 1_700),
            // Multiples, at this precision.
            found(0, Kind::Irq, "local_timer", 251.294, 390),
            found(1, Kind::Irq, "local_timer", 257.466, 380),
            found(0, Kind::Softirq, "timer", 4.0, 20_000),
            found(1, Kind::Task, "memfd", 50.106, 1_990),
            found(1, Kind::Task, "memfd", 70.0, 1_000),
            found(1, Kind::Task, "memfd", 90.0, 500),
        ];
        keep_strongest(&mut periods, &sources);
        let labels: Vec<String> = periods.iter().map(|period| format!("{} {}", period.cpu, period.label())).collect();
        assert_eq!(
            labels,
            [
                "0 local_timer: every 4.000ms",
                "1 local_timer: every 4.001ms",
                "1 memfd: every 50.106ms",
                "1 memfd: every 70.000ms"
            ]
        );
    }

    #[test]
    fn the_tick_of_the_host_has_its_frequency() {
        let hz = |source, ms| found(0, Kind::Unseen, source, ms, 9).host_tick_hz();
        assert_eq!(
            [hz("long", 10.0), hz("long", 4.003), hz("long", 1.0), hz("long", 4.1), hz("short", 10.0)],
            [Some(100), Some(250), Some(1_000), None, None]
        );
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
