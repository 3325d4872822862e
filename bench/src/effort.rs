//! The extent of a benchmark.

/// Whether figures are reliable, or only show that each benchmark still runs and that exact results still hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Everything, with as many repetitions as the figures need.
    Full,
    /// A twentieth, by `--quick`. Figures are printed but not judged.
    Quick,
}

impl Effort {
    /// The argument for the quick part.
    pub const QUICK: &str = "--quick";

    /// The extent requested by this program's arguments.
    pub fn from_arguments() -> Self {
        if std::env::args().any(|argument| argument == Self::QUICK) { Self::Quick } else { Self::Full }
    }

    /// The number of repetitions, rows or seconds to measure out of `full`: at least one.
    pub const fn share(self, full: u64) -> u64 {
        match self {
            Self::Full => full,
            Self::Quick if full < 20 => 1,
            Self::Quick => full / 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Effort;

    #[test]
    fn a_quick_benchmark_measures_a_twentieth_and_at_least_once() {
        for (full, quick) in [(4_000, 200), (30, 1), (1, 1)] {
            assert_eq!(Effort::Full.share(full), full);
            assert_eq!(Effort::Quick.share(full), quick);
        }
    }
}
