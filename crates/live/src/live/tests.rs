pub mod fixture;

use std::collections::BTreeMap;

use super::*;
use becalm_fixtures::account::{AccountedRun, ExpectedAccount};
use fixture::Feed;
use proptest::prelude::*;

const NAMES: [(Kind, &str); 2] = [(Kind::Irq, "local_timer"), (Kind::Task, "sshd")];

#[test]
fn sums_go_on_over_recordings() {
    let mut live = Live::default();
    let mut feed = Feed::begin(&mut live, &[1, 3], &NAMES);
    feed.give(&mut live, 0, &[(100, 40), (300, 80)], 1_000);
    feed.give(&mut live, 1, &[(500, 400)], 1_000);
    // The second recording has other labels, and lacks a CPU.
    let mut feed = Feed::begin(&mut live, &[3], &[NAMES[1], NAMES[0]]);
    feed.give(&mut live, 0, &[(10, 100)], 500);

    let cpus = live.cpus();
    assert_eq!(cpus.iter().map(|cpu| cpu.cpu.get()).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(cpus[0].figures.noise_ratio(), Some(120.0 / 1_000.0));
    assert_eq!(cpus[1].figures.noise_ratio(), Some(500.0 / 1_500.0));
    assert_eq!(cpus[1].last_ns, Some(100));
    assert_eq!(live.total(None).noise_ratio(), Some(620.0 / 2_500.0));
    let sources = live.sources(None);
    // A quarter of the first recording's 520 ns and three quarters of the second's 100 ns, and vice versa.
    let named = |name: &str| sources.iter().find(|source| source.source == name).unwrap();
    assert_eq!((named("local_timer").times.total(), named("sshd").times.total()), (205, 415));
    assert_eq!((named("local_timer").whole_ns, named("sshd").whole_ns), (205, 415));
    assert_eq!(named("sshd").share, Some(415.0 / 620.0));
    assert_eq!(live.own_ratio(), Some(0.0));
    assert_eq!(live.sources(Some(CpuId::new(1)))[0].times.total(), 90);
    // On the view's axis the second recording starts at the end of the first.
    let longest = live.longest(None);
    assert_eq!(longest.iter().map(|detour| detour.duration.get()).collect::<Vec<_>>(), [400, 100, 80, 40]);
    assert_eq!(longest[1].start, Nanos::new(1_010));
    assert_eq!(longest[1].entries.len(), 2);
    assert_eq!(live.longest(Some(CpuId::new(1))).len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// The view's accounting of a recording and its ranking of sources equal those of its report.
    #[test]
    fn the_view_accounts_as_the_rule_says(seed in 0_u64..1 << 40, parts in 1_usize..5) {
        let run = AccountedRun::random(seed);
        let mut live = Live::default();
        let threads = [fixture::thread(0), fixture::thread(1)];
        live.begin(&run.doc, &threads);
        for (index, thread) in threads.into_iter().enumerate() {
            for (detours, activities) in run.parts(thread.cpu.get(), parts) {
                live.take(LanePart {
                    index, thread, steps: &[], work: &[], detours: &detours, activities: &activities,
                    began: Some(Nanos::ZERO), complete_until: Nanos::MAX, unstored: Unstored::default(),
                }, &run.labels);
            }
            let expected = &run.expected[index];
            let figures = &live.cpus()[index].figures;
            prop_assert_eq!((figures.durations.count(), figures.durations.total()), (expected.detours, expected.noise_ns));
            prop_assert_eq!(figures.durations.max().unwrap_or(0), expected.longest_ns);
            prop_assert_eq!((figures.own_ns, figures.incomplete), (Some(expected.own_ns), expected.incomplete));
            let sources = live.sources(Some(thread.cpu));
            let counted = sources.iter().filter(|row| row.times.count() > 0);
            let counted: BTreeMap<_, _> = counted.map(|row| ((row.kind, row.source.clone()), row.times.count())).collect();
            prop_assert_eq!(&counted, &expected.activities);
            let sources = sources.into_iter().filter(|source| source.whole_ns > 0);
            let sources: BTreeMap<_, _> = sources.map(|row| ((row.kind, row.source), row.whole_ns)).collect();
            prop_assert_eq!(&sources, &expected.sources);
        }
        let all = run.expected.iter().fold(ExpectedAccount::default(), ExpectedAccount::plus);
        let sources = live.sources(None).into_iter().filter(|row| row.whole_ns > 0);
        prop_assert!(all.are_top(&sources.map(|row| (row.kind, row.source)).collect::<Vec<_>>()));
    }
}

#[test]
fn becalms_own_time_is_apart() {
    let mut live = Live::default();
    let mut feed = Feed::begin(&mut live, &[0], &[(Kind::Irq, "local_timer"), (Kind::Becalm, "becalm")]);
    feed.give(&mut live, 0, &[(100, 400), (1_000, 8_000)], 10_000);
    // A quarter of each belongs to the tick.
    let figures = live.total(None);
    assert_eq!((figures.durations.total(), figures.long.count(), figures.own_ns), (2_100, 1, None));
    assert_eq!(live.cpus()[0].figures.own_ns, Some(6_300));
    assert_eq!(live.own_ratio(), Some(0.63));
    assert_eq!(live.sources(None).iter().map(|source| source.source.as_str()).collect::<Vec<_>>(), ["local_timer"]);
    let longest = live.longest(None);
    assert_eq!((longest[0].duration.get(), longest[0].entries.len()), (2_000, 1));

    // A detour that is entirely becalm's does not count.
    let mut feed = Feed::begin(&mut live, &[0], &[(Kind::Becalm, "becalm"), (Kind::Becalm, "becalm")]);
    feed.give(&mut live, 0, &[(100, 400)], 1_000);
    assert_eq!((live.total(None).detours(), live.longest(None).len()), (2, 2));
}

#[test]
fn what_is_forgotten_counts_no_more() {
    let mut live = Live::default();
    let mut feed = Feed::begin(&mut live, &[0], &NAMES);
    feed.give(&mut live, 0, &[(100, 40)], 1_000);
    live.forget();
    assert_eq!((live.elapsed(), live.sources(None).len(), live.longest(None).len()), (Nanos::ZERO, 0, 0));
    feed.give(&mut live, 0, &[(1_100, 60)], 2_000);
    assert_eq!(live.cpus()[0].figures.noise_ratio(), Some(0.06));
    assert_eq!(live.sources(None).iter().map(|source| source.times.total()).sum::<i64>(), 60);
}

#[test]
fn a_recordings_end_is_its_last_detour() {
    let mut live = Live::default();
    let mut feed = Feed::begin(&mut live, &[0], &NAMES);
    feed.give(&mut live, 0, &[], 1_000);
    feed.give(&mut live, 0, &[(1_500, 100)], i64::MAX);
    assert_eq!(live.elapsed(), Nanos::new(1_600));
    feed.give(&mut live, 0, &[], i64::MAX);
    assert_eq!(live.elapsed(), Nanos::new(1_600));
}

proptest! {
    /// The size of batches does not affect the view.
    #[test]
    fn batches_add_up(durations in prop::collection::vec(1_i64..1_000_000, 1..80), cuts in prop::collection::vec(0_usize..80, 0..6)) {
        let mut at = 0;
        let detours: Vec<(i64, i64)> = durations.iter().map(|duration| {
            at += 2_000_000;
            (at, *duration)
        }).collect();
        let end = at + 2_000_000;
        let mut cut = Live::default();
        let mut feed = Feed::begin(&mut cut, &[0], &NAMES);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (detours.len() + 1)).collect();
        cuts.extend([0, detours.len()]);
        cuts.sort_unstable();
        for pair in cuts.windows(2) {
            let part = &detours[pair[0]..pair[1]];
            feed.give(&mut cut, 0, part, part.last().map_or(0, |(start, duration)| start + duration));
        }
        feed.give(&mut cut, 0, &[], end);

        let total: i64 = durations.iter().sum();
        let figures = cut.total(None);
        prop_assert_eq!(figures.durations.total(), total);
        prop_assert_eq!(figures.detours(), durations.len() as u64);
        prop_assert_eq!(figures.duration_ns, Some(end));
        // The accounting is exact in the view as well.
        prop_assert_eq!(cut.sources(None).iter().map(|source| source.times.total()).sum::<i64>(), total);
        let mut longest = durations.clone();
        longest.sort_unstable_by(|a, b| b.cmp(a));
        longest.truncate(LONGEST);
        let kept: Vec<i64> = cut.longest(None).iter().map(|detour| detour.duration.get()).collect();
        prop_assert_eq!(kept, longest);
    }
}
