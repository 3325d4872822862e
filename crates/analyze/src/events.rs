//! The processor's counters per repetition, in user mode and in the kernel separately.

use becalm_model::event_count::{CountedIn, EventCount};

/// An event's counts per repetition.
#[derive(Clone, PartialEq, Debug)]
pub struct EventRate {
    /// The event's name: `cycles`, `cache_misses`.
    pub event: String,
    /// The average per repetition in user mode; `None` if not counted.
    pub user: Option<f64>,
    /// The same in the kernel.
    pub kernel: Option<f64>,
    /// The counted share of the time, the smaller one if there are two. Below 1 the figures are estimates; 0 if it was never counted.
    pub counted_ratio: f64,
}

/// The events per repetition, in order of first appearance; empty without repetitions. Events that were not counted are left out.
pub fn event_rates(counts: &[EventCount], repetitions: u64) -> Vec<EventRate> {
    if repetitions == 0 {
        return Vec::new();
    }
    let each = |count: Option<f64>| count.map(|count| count / repetitions as f64);
    let counted = totals(counts.iter()).into_iter().filter(|total| total.counted_ratio > 0.0);
    counted.map(|total| EventRate { user: each(total.user), kernel: each(total.kernel), ..total }).collect()
}

/// The totals of the events, in order of first appearance, including events that were not counted.
pub(crate) fn totals<'a>(counts: impl Iterator<Item = &'a EventCount>) -> Vec<EventRate> {
    let mut events: Vec<(&str, Option<EventCount>, Option<EventCount>)> = Vec::new();
    for count in counts {
        let at = events.iter().position(|(event, ..)| *event == count.event).unwrap_or_else(|| {
            events.push((&count.event, None, None));
            events.len() - 1
        });
        let (_, user, kernel) = &mut events[at];
        let sum = match count.space {
            CountedIn::Kernel => kernel,
            CountedIn::User => user,
        };
        match sum {
            Some(sum) => sum.add(count),
            None => *sum = Some(count.clone()),
        }
    }
    let total = |(event, user, kernel): (&str, Option<EventCount>, Option<EventCount>)| {
        let (user, kernel) = (user.as_ref().and_then(scaled), kernel.as_ref().and_then(scaled));
        let part = [user, kernel].into_iter().flatten().map(|scaled| scaled.part).reduce(f64::min);
        EventRate {
            event: event.to_owned(),
            user: user.map(|scaled| scaled.count),
            kernel: kernel.map(|scaled| scaled.count),
            counted_ratio: part.unwrap_or(0.0),
        }
    };
    events.into_iter().map(total).collect()
}

/// A count for the whole time, with the share of it that was counted: above 0, at most 1.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Scaled {
    count: f64,
    part: f64,
}

/// If events took turns on the processor's counters, scales the count up from the part that was seen. `None` if the event never had a turn, whatever
/// its count. The kernel reads the two times one after the other: a turn that seems longer than the whole is the whole.
fn scaled(count: &EventCount) -> Option<Scaled> {
    let (enabled, running) = (count.enabled_ns as f64, count.running_ns as f64);
    if running <= 0.0 {
        return None;
    }
    if running >= enabled {
        return Some(Scaled { count: count.value as f64, part: 1.0 });
    }
    Some(Scaled { count: count.value as f64 * enabled / running, part: running / enabled })
}

/// The effect of one more interrupt: the difference between the same work without and with added interrupts, per interrupt that `raised` had more.
/// Around zero, with either sign, if interrupts do not affect the counted event.
pub fn per_interrupt(quiet: &[EventCount], raised: &[EventCount], more_interrupts: u64) -> Vec<EventRate> {
    let (quiet, raised) = (event_rates(quiet, 1), event_rates(raised, 1));
    let rate = |with: EventRate| {
        let without = quiet.iter().find(|without| without.event == with.event)?;
        let each = |with: Option<f64>, without: Option<f64>| Some((with? - without?) / more_interrupts as f64);
        Some(EventRate {
            user: each(with.user, without.user),
            kernel: each(with.kernel, without.kernel),
            counted_ratio: with.counted_ratio.min(without.counted_ratio),
            event: with.event,
        })
    };
    if more_interrupts == 0 { Vec::new() } else { raised.into_iter().filter_map(rate).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(event: &str, space: CountedIn, value: u64, [enabled_ns, running_ns]: [i64; 2]) -> EventCount {
        EventCount { event: event.to_owned(), space, value, enabled_ns, running_ns }
    }

    #[test]
    fn a_part_is_scaled_to_the_whole_and_no_further() {
        let total =
            |times| scaled(&count("cycles", CountedIn::User, 600, times)).map(|scaled| (scaled.count, scaled.part));
        assert_eq!(total([100, 50]), Some((1_200.0, 0.5)));
        assert_eq!(total([100, 100]), Some((600.0, 1.0)));
        assert_eq!((total([100, 101]), total([0, 1])), (Some((600.0, 1.0)), Some((600.0, 1.0))));
        assert_eq!((total([100, 0]), total([0, 0]), total([100, -1])), (None, None, None));
    }

    #[test]
    fn parts_are_scaled_up_and_spaces_stay_apart() {
        let counts = [
            count("cycles", CountedIn::User, 600, [100, 50]),
            count("misses", CountedIn::Kernel, 7, [10, 10]),
            count("cycles", CountedIn::Kernel, 30, [100, 100]),
            count("cycles", CountedIn::User, 300, [100, 100]),
            count("never", CountedIn::User, 0, [100, 0]),
        ];
        let found = event_rates(&counts, 10);
        let rate =
            |event: &str, user, kernel, counted_ratio| EventRate { event: event.into(), user, kernel, counted_ratio };
        assert_eq!(found, [rate("cycles", Some(120.0), Some(3.0), 0.75), rate("misses", None, Some(0.7), 1.0)]);
        assert!(event_rates(&counts, 0).is_empty() && event_rates(&[], 3).is_empty());
    }

    #[test]
    fn an_interrupt_brings_what_comes_with_it() {
        let quiet =
            [count("cycles", CountedIn::User, 1_000, [100, 100]), count("cycles", CountedIn::Kernel, 50, [100, 50])];
        let raised = [
            count("cycles", CountedIn::User, 1_600, [150, 150]),
            count("cycles", CountedIn::Kernel, 500, [150, 150]),
            count("misses", CountedIn::User, 5, [150, 150]),
        ];
        let found = per_interrupt(&quiet, &raised, 20);
        let cycles = EventRate { event: "cycles".into(), user: Some(30.0), kernel: Some(20.0), counted_ratio: 0.5 };
        // An event counted on one side only is left out.
        assert_eq!(found, [cycles]);
        assert!(per_interrupt(&quiet, &raised, 0).is_empty());
    }
}
