//! What counters of the processor came to in one repetition of what they counted, in itself (user) and in the kernel apart.

use becalm_trace::event_count::EventCount;

/// An event, by repetition.
#[derive(Clone, PartialEq, Debug)]
pub struct EventRate {
    /// Which.
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
        let of = |space: &str| {
            let (mut value, mut enabled, mut running) = (0.0, 0.0, 0.0);
            for count in counts.iter().filter(|count| count.event == event && count.space == space) {
                value += count.value as f64;
                enabled += count.enabled_ns as f64;
                running += count.running_ns as f64;
            }
            (running > 0.0).then(|| (value * enabled / running / repetitions as f64, running / enabled))
        };
        let (user, kernel) = (of("user"), of("kernel"));
        let counted_ratio = [user, kernel].into_iter().flatten().map(|(_, ratio)| ratio).reduce(f64::min)?;
        let value = |of: Option<(f64, f64)>| of.map(|(value, _)| value);
        Some(EventRate { event: event.to_owned(), user: value(user), kernel: value(kernel), counted_ratio })
    };
    if repetitions == 0 { Vec::new() } else { events.into_iter().filter_map(rate).collect() }
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
}
