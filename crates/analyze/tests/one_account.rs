//! Reports, summary forms, predictions and comparisons account for the same recording alike: as the rule says, added up plainly.
//! Exported rows, the live view and the windows of `becalm watch` are compared with the same sums in their crates.

use std::collections::BTreeMap;

use becalm_analyze::compare::{Comparison, Metric, compare, compare_nodes};
use becalm_analyze::condense::condense;
use becalm_analyze::noise::NoiseInput;
use becalm_analyze::summary::{Books, Figures, Selection, SourceSummary, Summary, summarize, summarize_digests};
use becalm_bundle::{Bundle, StoredNodes, SummaryBundle, SummaryWriter};
use becalm_fixtures::account::{AccountedRun, ExpectedAccount};
use becalm_model::Kind;
use proptest::prelude::*;

fn account(figures: &Figures, sources: &[SourceSummary]) -> ExpectedAccount {
    let name = |source: &SourceSummary| (source.kind, source.source.clone());
    ExpectedAccount {
        detours: figures.durations.count(),
        noise_ns: figures.durations.total(),
        longest_ns: figures.durations.max().unwrap_or(0),
        own_ns: figures.own_ns.unwrap_or(0),
        incomplete: figures.incomplete,
        sources: sources
            .iter()
            .filter(|source| source.whole_ns > 0)
            .map(|source| (name(source), source.whole_ns))
            .collect(),
        activities: sources
            .iter()
            .filter(|source| source.times.count() > 0)
            .map(|source| (name(source), source.times.count()))
            .collect(),
    }
}

/// The sources with a total, in the order of the report.
fn ranked(summary: &Summary) -> Vec<(Kind, String)> {
    let sources = summary.sources.iter().filter(|source| source.whole_ns > 0);
    sources.map(|source| (source.kind, source.source.clone())).collect()
}

/// Holds a report against the sums, CPU by CPU and all together.
fn check_summary(summary: &Summary, run: &AccountedRun) -> Result<(), TestCaseError> {
    let all = run.expected.iter().fold(ExpectedAccount::default(), ExpectedAccount::plus);
    prop_assert_eq!(account(&summary.total, &summary.sources), all);
    prop_assert_eq!(summary.cpus.len(), run.expected.len());
    for (cpu, expected) in summary.cpus.iter().zip(&run.expected) {
        let sources =
            summary.cpu_sources.iter().filter(|source| source.place.as_ref().is_some_and(|place| place.1 == cpu.cpu));
        prop_assert_eq!(&account(&cpu.figures, &sources.cloned().collect::<Vec<_>>()), expected);
    }
    let books = if run.activities.is_empty() { Books::NoActivities } else { Books::Closed };
    prop_assert_eq!(&summary.books, &books);
    Ok(())
}

/// The values of a figure of the sources in the first of two recordings, times `factor`.
fn compared_sources(comparison: &Comparison, metric: Metric, factor: f64) -> BTreeMap<(Kind, String), i64> {
    let rows = comparison.rows.iter().filter(|row| row.metric == metric);
    rows.filter_map(|row| Some((row.source.clone()?, (row.a? * factor).round() as i64))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn everything_accounts_and_ranks_alike(seed in 0_u64..1 << 40) {
        let run = AccountedRun::random(seed);
        let all = run.expected.iter().fold(ExpectedAccount::default(), ExpectedAccount::plus);
        let folder = tempfile::tempdir().unwrap();
        let (full, short) = (folder.path().join("full.becalm"), folder.path().join("short.becalm"));
        run.write(&full);
        let bundle = Bundle::open(&full).unwrap();
        let selection = Selection::default();
        let summary = summarize(&bundle, &selection).unwrap();
        check_summary(&summary, &run)?;
        prop_assert!(all.are_top(&ranked(&summary)));

        drop(SummaryWriter::create(&short, &condense(&bundle, "accounted").unwrap()).unwrap());
        let digest = SummaryBundle::open(&short).unwrap();
        let condensed = summarize_digests(&digest, &selection).unwrap();
        // Per CPU a summary form keeps no sources.
        let total = account(&condensed.total, &condensed.sources);
        prop_assert_eq!(&total, &all);
        prop_assert_eq!(ranked(&condensed), ranked(&summary));
        let books = if run.activities.is_empty() { Books::NoActivities } else { Books::Closed };
        prop_assert_eq!(&condensed.books, &books);

        let noise = NoiseInput::from_run(&bundle, &selection, true).unwrap().noise;
        prop_assert_eq!(noise.traces().count(), run.expected.len());
        for (trace, expected) in noise.traces().zip(&run.expected) {
            prop_assert_eq!(trace.noise().get(), expected.noise_ns);
        }

        if all.detours > 0 {
            let comparison = compare((&bundle, &selection), (&bundle, &selection)).unwrap();
            // Two CPUs over 10 s.
            prop_assert_eq!(&compared_sources(&comparison, Metric::TimeRatio, 2e10), &all.sources);
            let counts = run.counts_in_detours();
            let counts = counts.iter().filter(|(name, _)| all.sources.contains_key(*name));
            let counts = all.sources.keys().map(|name| (name.clone(), 0)).chain(counts.map(|(name, count)| (name.clone(), *count as i64)));
            prop_assert_eq!(&compared_sources(&comparison, Metric::Rate, 20.0), &counts.collect::<BTreeMap<_, _>>());
        }
    }
}

/// A source that is its own root in one recording, and belongs to interrupts in the other, comes as often in both.
#[test]
fn a_source_that_belongs_to_others_in_one_recording_keeps_its_rate() {
    let folder = tempfile::tempdir().unwrap();
    let written = [false, true].map(|belongs| {
        let path = folder.path().join(format!("{belongs}.becalm"));
        AccountedRun::with_softirqs(belongs).write(&path);
        Bundle::open(&path).unwrap()
    });
    let selection = Selection::default();
    let [a, b] = written.each_ref();
    let condensed = [a, b].map(|bundle| {
        let path = bundle.path().with_extension("short.becalm");
        drop(SummaryWriter::create(&path, &condense(bundle, "accounted").unwrap()).unwrap());
        StoredNodes::open(&path).unwrap()
    });
    let [short_a, short_b] = condensed.each_ref();
    for comparison in [
        compare((a, &selection), (b, &selection)).unwrap(),
        compare_nodes(&[(short_a, &selection)], &[(short_b, &selection)]).unwrap(),
    ] {
        let softirq = |metric| {
            let mut rows = comparison.rows.iter().filter(|row| row.metric == metric);
            rows.find(|row| row.source.as_ref().is_some_and(|(_, name)| name == "rcu")).unwrap()
        };
        let (time, rate) = (softirq(Metric::TimeRatio), softirq(Metric::Rate));
        assert!(time.a > Some(0.0) && time.b == Some(0.0), "{time:?}");
        assert!(rate.a > Some(0.0) && rate.a == rate.b, "{rate:?}");
    }
}
