//! Totals by category: interrupts, work items, other kernel threads, user processes, and time without a kernel event (De et al. 2009, Figure 1).

use becalm_model::Kind;

use super::SourceSummary;

/// The categories of noise sources of De et al., plus the remainders that exact accounting needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Category {
    /// Interrupts, softirqs and non-maskable interrupts.
    Interrupts,
    /// Work items of the kernel's workqueues.
    Workqueues,
    /// Other kernel threads.
    KernelThreads,
    /// User processes.
    UserProcesses,
    /// Time without a kernel event: the hypervisor, another hardware thread of the core, firmware. No recording tells these apart, so these two
    /// categories of De et al. are one here.
    Unseen,
    /// Kernel entry and exit, and cold caches.
    Edges,
    /// Page faults of the loop, and time taken by bandwidth limits.
    Limits,
    /// Time that the kernel's trace attributes to no source.
    NotTraced,
}

impl Category {
    /// Every category, in the order of the paper, then the remainders.
    pub const ALL: [Self; 8] = [
        Self::Interrupts,
        Self::Workqueues,
        Self::KernelThreads,
        Self::UserProcesses,
        Self::Unseen,
        Self::Edges,
        Self::Limits,
        Self::NotTraced,
    ];

    /// Its name in documents and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interrupts => "interrupts",
            Self::Workqueues => "workqueue threads",
            Self::KernelThreads => "other kernel threads",
            Self::UserProcesses => "user processes",
            Self::Unseen => "hypervisor, sibling thread or firmware",
            Self::Edges => "ways in and out",
            Self::Limits => "faults and limits",
            Self::NotTraced => "not traced",
        }
    }

    /// The category of a kind. becalm's own time, if counted, is a user process.
    pub const fn for_kind(kind: Kind) -> Self {
        match kind {
            Kind::Nmi | Kind::Irq | Kind::Softirq => Self::Interrupts,
            Kind::Workqueue => Self::Workqueues,
            Kind::Kthread => Self::KernelThreads,
            Kind::Task | Kind::Becalm => Self::UserProcesses,
            Kind::Unseen => Self::Unseen,
            Kind::Edge => Self::Edges,
            Kind::Fault | Kind::Throttling => Self::Limits,
            Kind::NotTraced => Self::NotTraced,
        }
    }
}

/// The total of a category.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CategoryTotal {
    /// The category.
    pub category: Category,
    /// The number of its sources.
    pub sources: u64,
    /// The number of their activities.
    pub count: u64,
    /// Their own time, in nanoseconds.
    pub total_ns: i64,
    /// The same as a share of all categories; `None` if there is none.
    pub share: Option<f64>,
}

/// The totals of all categories in order, including those without a source; empty if no source is known.
pub fn categories(sources: &[SourceSummary]) -> Vec<CategoryTotal> {
    if sources.is_empty() {
        return Vec::new();
    }
    let all: i64 = sources.iter().map(|source| source.times.total()).fold(0, i64::saturating_add);
    let total = |category: Category| {
        let own = || sources.iter().filter(|source| Category::for_kind(source.kind) == category);
        let total_ns = own().map(|source| source.times.total()).fold(0, i64::saturating_add);
        CategoryTotal {
            category,
            sources: own().count() as u64,
            count: own().map(|source| source.times.count()).fold(0, u64::saturating_add),
            total_ns,
            share: (all > 0).then(|| total_ns as f64 / all as f64),
        }
    };
    Category::ALL.map(total).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_stats::Moments;
    use proptest::prelude::*;

    fn source(kind: Kind, times: &[i64]) -> SourceSummary {
        let mut moments = Moments::default();
        times.iter().for_each(|time| moments.add(*time));
        SourceSummary {
            place: None,
            source: kind.name().to_owned(),
            kind,
            times: moments,
            whole_ns: moments.total(),
            share: None,
            time_ratio: None,
            run_at_least_ns: None,
        }
    }

    #[test]
    fn sources_are_sorted_into_categories_by_their_kind() {
        let sources = [source(Kind::Irq, &[10, 20]), source(Kind::Softirq, &[30]), source(Kind::Task, &[40])];
        let found = categories(&sources);
        assert_eq!(found.len(), Category::ALL.len());
        assert_eq!((found[0].sources, found[0].count, found[0].total_ns, found[0].share), (2, 3, 60, Some(0.6)));
        assert_eq!((found[3].category, found[3].total_ns, found[3].share), (Category::UserProcesses, 40, Some(0.4)));
        assert_eq!((found[1].sources, found[1].share), (0, Some(0.0)));
        assert!(categories(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn no_time_is_lost_and_none_counted_twice(times in proptest::collection::vec(0_i64..1_000_000, 11)) {
            let sources: Vec<SourceSummary> =
                Kind::ALL.iter().zip(&times).map(|(kind, time)| source(*kind, &[*time])).collect();
            let found = categories(&sources);
            prop_assert_eq!(found.iter().map(|total| total.total_ns).sum::<i64>(), times.iter().sum::<i64>());
            prop_assert_eq!(found.iter().map(|total| total.count).sum::<u64>(), 11);
        }
    }
}
