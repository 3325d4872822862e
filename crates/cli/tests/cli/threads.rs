//! Predictions from observed threads, compared with plain sums of the stored tables.

use becalm_analyze::noise::NoiseInput;
use becalm_bundle::{ObservedHead, ObservedTables, node_document};
use becalm_model::Labels;
use becalm_model::observed::LifePart;

#[test]
fn the_noise_of_threads_is_the_share_of_waits_and_interrupts_while_they_are_awake() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::observed::write_observed(folder.path());
    let path = folder.path().join("observed.becalm");
    let head = node_document::load::<ObservedHead>(&path, None).unwrap().doc;
    let tables = ObservedTables::new(&path, &head.node, head.rows);
    let mut labels = Labels::new();
    let (mut awake, mut lost, mut planted) = (0, 0, 0);
    let mut stay = |part: LifePart, time: i64| {
        if !matches!(part, LifePart::Asleep | LifePart::OnTheWay) {
            awake += time;
        }
    };
    tables.stays(&mut labels, &mut |row, _| stay(row.part, row.duration.get())).unwrap();
    let mut detour = |time: i64, grem1: i64| (lost, planted) = (lost + time, planted + grem1);
    tables
        .detours(&mut labels, &mut |row, activities, labels| {
            let own = activities.iter().filter(|activity| labels.text(activity.source) == "grem1");
            detour(row.duration.get(), own.map(|activity| activity.time.get()).sum());
        })
        .unwrap();

    let input = NoiseInput::from_threads(&path, None, false, true).unwrap();
    let [trace] = input.noise.traces().collect::<Vec<_>>()[..] else { panic!("{:?}", input.places) };
    assert_eq!((trace.length().get(), trace.noise().get()), (awake, lost));
    assert_eq!(input.places, [("solver (4242)".to_owned(), 0)]);
    let out = input.mark(|_, name| name == "grem1");
    let without = input.booked.unwrap().without(&out).unwrap();
    let left: i64 = without.traces().map(|trace| trace.noise().get()).sum();
    // Five bursts of 5 ms and more, by the steps in which the fixture plants them.
    assert_eq!((left, planted), (lost - planted, (0..5).map(|burst| 5_000_000 + (20 * burst + 7) * 10_000).sum()));
}
