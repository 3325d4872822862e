//! The processor's counters for a measured loop: cycles, instructions, cache misses, of the work itself (user) and of interruptions (kernel).

use becalm_model::node::WorkDoc;
use becalm_units::CpuId;

use crate::events::{EventRate, totals};

/// One event over a CPU's samples.
#[derive(Clone, PartialEq, Debug)]
pub struct EventTotal {
    /// The event's name: `cycles`, `cache_misses`.
    pub event: String,
    /// In the loop itself, scaled to the whole time if counted for a part of it; `None` if it was not counted.
    pub user: Option<f64>,
    /// In the kernel while the loop's thread ran.
    pub kernel: Option<f64>,
    /// The counted share of the time, the smaller one if there are two. Below 1 the figures are estimates.
    pub counted_ratio: f64,
    /// The number of samples.
    pub samples: u64,
}

impl EventTotal {
    /// The average per sample in the loop itself.
    pub fn user_a_sample(&self) -> Option<f64> {
        self.user.filter(|_| self.samples > 0).map(|count| count / self.samples as f64)
    }

    /// The average per sample in the kernel.
    pub fn kernel_a_sample(&self) -> Option<f64> {
        self.kernel.filter(|_| self.samples > 0).map(|count| count / self.samples as f64)
    }
}

/// The events requested on a CPU, in the order of the document.
pub(super) fn counts(work: &WorkDoc, cpu: CpuId, samples: u64) -> Vec<EventTotal> {
    let here = work.counts.iter().filter(|count| count.cpu == cpu).map(|count| &count.count);
    let total =
        |EventRate { event, user, kernel, counted_ratio }| EventTotal { event, user, kernel, counted_ratio, samples };
    totals(here).into_iter().map(total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_model::event_count::{CountedIn, EventCount};
    use becalm_model::node::{Fixed, WorkCount};
    use becalm_units::Nanos;

    #[test]
    fn user_and_kernel_stand_beside_each_other_and_parts_are_scaled() {
        let count = |cpu, event: &str, space: CountedIn, value, running| WorkCount {
            cpu: CpuId::new(cpu),
            count: EventCount { event: event.to_owned(), space, value, enabled_ns: 1_000, running_ns: running },
        };
        let work = WorkDoc {
            body: "sum".to_owned(),
            iteration: String::new(),
            bodies: Vec::new(),
            fixed: Fixed::Work,
            grain_ns: Nanos::from_millis(1),
            copies: 1,
            added_hz: 0,
            samples: None,
            memory_bytes: 0,
            cache_bytes: None,
            cache_known: true,
            loops: Vec::new(),
            sessions: Vec::new(),
            counts: vec![
                count(1, "cycles", CountedIn::User, 500, 1_000),
                count(1, "cycles", CountedIn::Kernel, 30, 500),
                count(1, "cache_misses", CountedIn::User, 7, 0),
                count(2, "cycles", CountedIn::User, 9, 1_000),
            ],
            not_counted: Vec::new(),
        };
        let found = counts(&work, CpuId::new(1), 10);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].user, found[0].kernel, found[0].counted_ratio), (Some(500.0), Some(60.0), 0.5));
        assert_eq!((found[0].user_a_sample(), found[0].kernel_a_sample()), (Some(50.0), Some(6.0)));
        // Its group never had a turn.
        assert_eq!((found[1].user, found[1].kernel, found[1].counted_ratio), (None, None, 0.0));
        assert!(counts(&work, CpuId::new(3), 10).is_empty());
    }
}
