//! The verdict on a difference, and whether it exceeds a limit.

use super::{ComparedFigure, Effect};

/// The share of families without any difference that still show one.
pub const LEVEL: f64 = 0.05;

/// Smaller relative differences do not matter: the whole interval of b / a must be beyond this.
pub const FLOOR: f64 = 0.02;

/// The basis of the intervals and verdicts of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// One run per side: the scatter within each of the two recordings, and the learned scatter between recordings of one machine.
    WithinRuns,
    /// The scatter between the runs of a side: a significant difference is to be expected of further runs.
    BetweenRuns,
}

impl Basis {
    pub(super) const fn for_runs(a: usize, b: usize) -> Self {
        if a > 1 || b > 1 { Self::BetweenRuns } else { Self::WithinRuns }
    }

    /// The name of the basis in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WithinRuns => "within runs",
            Self::BetweenRuns => "between runs",
        }
    }
}

/// The verdict on the difference of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The figure of b is higher: more noise, or longer detours. For several runs per side.
    Worse,
    /// The figure of b is lower. For several runs per side.
    Better,
    /// The figure of recording b is higher than that of recording a by more than recordings of one machine differ. For one run per side.
    Higher,
    /// The figure of recording b is lower by more than that. For one run per side.
    Lower,
    /// No significant difference, which does not prove that there is none.
    NoDifferenceShown,
    /// Not enough data to show a difference.
    NotEnoughData,
}

impl Verdict {
    /// The name of the verdict in tables and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::NoDifferenceShown => "no difference shown",
            Self::NotEnoughData => "not enough data",
        }
    }

    /// Whether a difference is shown.
    #[must_use]
    pub const fn is_difference(self) -> bool {
        match self {
            Self::Worse | Self::Better | Self::Higher | Self::Lower => true,
            Self::NoDifferenceShown | Self::NotEnoughData => false,
        }
    }

    pub(super) fn from_p_value(difference: f64, p_adjusted: f64, effect: Option<Effect>, basis: Basis) -> Self {
        if p_adjusted > LEVEL || difference == 0.0 || !matters(effect) {
            return Self::NoDifferenceShown;
        }
        match (basis, difference > 0.0) {
            (Basis::BetweenRuns, true) => Self::Worse,
            (Basis::BetweenRuns, false) => Self::Better,
            (Basis::WithinRuns, true) => Self::Higher,
            (Basis::WithinRuns, false) => Self::Lower,
        }
    }
}

/// Whether the interval of b / a is beyond [`FLOOR`]. Without one, because a is 0, any difference matters.
fn matters(effect: Option<Effect>) -> bool {
    let Some(Effect { ratio_low, ratio_high, .. }) = effect else { return true };
    let ends = (ratio_low, ratio_high);
    ends == (None, None)
        || ratio_low.is_some_and(|low| low > 1.0 + FLOOR)
        || ratio_high.is_some_and(|high| high < 1.0 - FLOOR)
}

/// The result for a limit on how much worse b may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// It is significantly worse than the limit.
    Exceeded,
    /// No significant excess.
    NotShown,
    /// Not enough data.
    Unknown,
}

/// Whether b is significantly worse than a by more than `share` (0.05 for 5 %): the lower end of the 95 % interval of b / a is above 1 + share. Runs
/// without a difference, or with one of exactly `share`, exceed it in 2.5 % of cases.
///
/// If a is 0, so is any share of it, and the lower end of the interval of the difference must be above 0.
pub fn exceeds(row: &ComparedFigure, share: f64) -> Limit {
    let beyond = match (row.verdict, row.a, row.effect) {
        (Verdict::NotEnoughData, ..) => return Limit::Unknown,
        (_, Some(0.0), _) => row.low.is_some_and(|low| low > 0.0),
        (.., effect) => effect.and_then(|effect| effect.ratio_low).is_some_and(|low| low > 1.0 + share),
    };
    if beyond { Limit::Exceeded } else { Limit::NotShown }
}
