//! What counters of the processor came to in one repetition of what they counted, in itself (user) and in the kernel apart.

use becalm_model::event_count::EventCount;

/// An event, by repetition.
#[derive(Clone, PartialEq, Debug)]
pub struct EventRate {
    /// The event's name: `cycles`, `cache_misses`.
    pub event: String,
    /// How often in a repetition itself, on the average; nothing where it was not counted.
    pub user: Option<f64>,
    /// How often in the kernel meanwhile.
    pub kernel: Option<f64>,
    /// For which part of the time it was counted, the smaller one of the two: below 1 the figures are estimates.
    pub counted_ratio: f64,
}

/// The events of so many repetitions, in the order in which they first stand there; none of no repetition. Where events
/// took turns at the processor's counters, the whole is scaled up from the part that was seen.
#[must_use]
pub fn event_rates(counts: &[EventCount], repetitions: u64) -> Vec<EventRate> {
    let mut events: Vec<&str> = Vec::new();
    for count in counts {
        if !events.contains(&count.event.as_str()) {
            events.push(&count.event);
        }
    }
    let rate = |event: &str| {
        let in_space = |space: &str| {
            let (mut value, mut enabled, mut running) = (0.0, 0.0, 0.0);
            for count in counts.iter().filter(|count| count.event == event && count.space == space) {
                value += count.value as f64;
                enabled += count.enabled_ns as f64;
                running += count.running_ns as f64;
            }
            (running > 0.0).then(|| (value * enabled / running / repetitions as f64, running / enabled))
        };
        let (user, kernel) = (in_space("user"), in_space("kernel"));
        let counted_ratio = [user, kernel].into_iter().flatten().map(|(_, ratio)| ratio).reduce(f64::min)?;
        let value = |scaled: Option<(f64, f64)>| scaled.map(|(value, _)| value);
        Some(EventRate { event: event.to_owned(), user: value(user), kernel: value(kernel), counted_ratio })
    };
    if repetitions == 0 { Vec::new() } else { events.into_iter().filter_map(rate).collect() }
}

/// What one interrupt more brings: of the same work counted without and with added interrupts, the
/// difference by the number of interrupts that `raised` took more. About zero, of either sign, where interrupts do not touch
/// what was counted.
#[must_use]
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

    fn count(event: &str, space: &str, value: u64, [enabled_ns, running_ns]: [i64; 2]) -> EventCount {
        EventCount { event: event.to_owned(), space: space.to_owned(), value, enabled_ns, running_ns }
    }

    #[test]
    fn parts_are_scaled_up_and_spaces_stay_apart() {
        let counts = [
            count("cycles", "user", 600, [100, 50]),
            count("misses", "kernel", 7, [10, 10]),
            count("cycles", "kernel", 30, [100, 100]),
            count("cycles", "user", 300, [100, 100]),
            count("never", "user", 0, [100, 0]),
        ];
        let found = event_rates(&counts, 10);
        let rate =
            |event: &str, user, kernel, counted_ratio| EventRate { event: event.into(), user, kernel, counted_ratio };
        assert_eq!(found, [rate("cycles", Some(120.0), Some(3.0), 0.75), rate("misses", None, Some(0.7), 1.0)]);
        assert!(event_rates(&counts, 0).is_empty() && event_rates(&[], 3).is_empty());
    }

    #[test]
    fn an_interrupt_brings_what_comes_with_it() {
        let quiet = [count("cycles", "user", 1_000, [100, 100]), count("cycles", "kernel", 50, [100, 50])];
        let raised = [
            count("cycles", "user", 1_600, [150, 150]),
            count("cycles", "kernel", 500, [150, 150]),
            count("misses", "user", 5, [150, 150]),
        ];
        let found = per_interrupt(&quiet, &raised, 20);
        let cycles = EventRate { event: "cycles".into(), user: Some(30.0), kernel: Some(20.0), counted_ratio: 0.5 };
        // What was counted on one side only says nothing.
        assert_eq!(found, [cycles]);
        assert!(per_interrupt(&quiet, &raised, 0).is_empty());
    }
}
