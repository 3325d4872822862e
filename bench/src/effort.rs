//! How much a benchmark measures.

/// Whether figures are to be trusted, or only that each benchmark still runs and that what is exact still holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Everything, as often as the figures need.
    Full,
    /// A twentieth of it, as `--quick` asks for. Figures are then stated and not held against a promise.
    Quick,
}

impl Effort {
    /// The argument that asks for the quick part.
    pub const QUICK: &str = "--quick";

    /// What the arguments of this program ask for.
    pub fn from_arguments() -> Self {
        if std::env::args().any(|argument| argument == Self::QUICK) { Self::Quick } else { Self::Full }
    }

    /// How many of `full` repetitions, rows or seconds are measured: at least one.
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
