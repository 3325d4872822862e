//! Properties: equal to the plain reference, whatever the cuts into calls, and closed books on any input.

use becalm_model::{Event, Happening};
use becalm_model::{LoopThread, Step};
use becalm_units::Nanos;
use proptest::prelude::*;

use crate::reference::Reference;
use crate::scene::{Outcome, Scene, assert_books_close, step};
use crate::streams::{Stream, choices, hostile_event, hostile_events, stream};

/// A call: how many more steps, how many more events than they need, and whether to advance as far as is true.
type Cut = (usize, usize, bool);

/// Hands the stream over in pieces, each with at least the events that its steps need.
fn in_pieces(scene: &mut Scene, stream: &Stream, cuts: &[Cut]) -> Outcome {
    let Stream { steps, events } = stream;
    let mut attributor = scene.attributor();
    let mut outcome = Outcome::default();
    let (mut step_at, mut event_at) = (0_usize, 0_usize);
    for &(more_steps, more_events, advance) in cuts.iter().chain([&(usize::MAX, usize::MAX, false)]) {
        let step_to = step_at.saturating_add(more_steps).min(steps.len());
        let needed = steps[..step_to].last().map_or(0, |last| events_until(events, last.end));
        let event_to = event_at.max(needed).saturating_add(more_events).min(events.len());
        let (steps, events) = (&steps[step_at..step_to], &events[event_at..event_to]);
        scene.hand_over(&mut attributor, steps, events, &mut outcome);
        (step_at, event_at) = (step_to, event_to);
        if advance {
            let next_step = stream.steps.get(step_at).map_or(Nanos::MAX, |step| step.start);
            let next_event = stream.events.get(event_at).map_or(Nanos::MAX, |event| event.time);
            attributor.advance(next_step.min(next_event), &scene.tasks, &mut scene.labels);
        }
    }
    scene.end(&mut attributor, outcome)
}

/// How many events are needed to know what was before an instant: also the mark of a gap that reaches over it.
fn events_until(events: &[Event], end: Nanos) -> usize {
    let needed = events.partition_point(|event| event.time < end);
    needed + usize::from(matches!(events.get(needed), Some(Event { what: Happening::Lost { .. }, .. })))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn equals_the_plain_reference(choices in choices()) {
        let mut scene = Scene::new();
        let stream = stream(&mut scene, &choices);
        let outcome = scene.attribute(&stream.steps, &stream.events);
        assert_books_close(&outcome);
        let expected = Reference::new(&mut scene, &stream).outcome();
        prop_assert_eq!(&outcome.detours, &expected.detours);
        prop_assert_eq!(scene.readable(&outcome), scene.readable(&expected), "{:#?}", &stream.events);
        prop_assert_eq!(&outcome.activities, &expected.activities);
        // Nothing unmatched but switches, nothing late or refused in a legal stream.
        prop_assert_eq!(outcome.tally, expected.tally);
    }

    #[test]
    fn cuts_make_no_difference(
        choices in choices(),
        cuts in prop::collection::vec((0..3_usize, 0..20_usize, any::<bool>()), 0..20),
    ) {
        let mut scene = Scene::new();
        let stream = stream(&mut scene, &choices);
        let whole = scene.attribute(&stream.steps, &stream.events);
        prop_assert_eq!(in_pieces(&mut scene, &stream, &cuts), whole);
    }

    #[test]
    fn books_close_on_any_input(
        events in hostile_events(),
        steps in prop::collection::vec((0..400_i64, -3..60_i64), 0..12),
        sorted in prop::bool::weighted(0.8),
        calls in 1..5_usize,
        advance in prop::option::of(-10..500_i64),
        t_min in prop_oneof![4 => 0..30_i64, 1 => Just(-5), 1 => Just(i64::MAX)],
    ) {
        let mut scene = Scene::new();
        scene.thread = LoopThread { t_min: Nanos::new(t_min), ..scene.thread };
        let events: Vec<Event> = events.into_iter().map(|event| hostile_event(&mut scene, event)).collect();
        let mut steps: Vec<Step> = steps.into_iter().map(|(start, length)| step(start, start + length)).collect();
        if sorted {
            steps.sort_by_key(|step| step.start);
        }
        let mut attributor = scene.attributor();
        let mut outcome = Outcome::default();
        let portion = |len: usize, call: usize| len * call / calls..len * (call + 1) / calls;
        for call in 0..calls {
            let (steps, events) = (&steps[portion(steps.len(), call)], &events[portion(events.len(), call)]);
            scene.hand_over(&mut attributor, steps, events, &mut outcome);
            if let (1, Some(until)) = (call, advance) {
                attributor.advance(Nanos::new(until), &scene.tasks, &mut scene.labels);
            }
        }
        let outcome = scene.end(&mut attributor, outcome);
        assert_books_close(&outcome);
        let tally = outcome.tally;
        prop_assert_eq!(tally.events + tally.lost_gaps, events.len() as u64);
        prop_assert_eq!(outcome.detours.len() as u64 + tally.refused_steps, steps.len() as u64);
        for row in &outcome.activities {
            let detour = &outcome.detours[row.detour as usize];
            let ends = steps.iter().filter(|step| step.start == detour.start).map(|step| step.end);
            prop_assert!(row.start + row.self_time <= ends.max().unwrap(), "{:?} leaves {:?}", row, detour);
        }
    }
}
