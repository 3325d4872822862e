//! What is said of a difference in the end, and whether it exceeds a limit.

use super::{ComparedFigure, Effect};

/// The share of families of rows without any difference in which one is found all the same.
pub const LEVEL: f64 = 0.05;

/// A difference of less than this part is none that matters: it is shown where the whole interval of b / a lies beyond it.
pub const FLOOR: f64 = 0.02;

/// What the intervals and verdicts of a comparison rest on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// One run a side: how each of two recordings scatters within itself, and how recordings of one machine were found to differ
    /// elsewhere.
    WithinRuns,
    /// How the runs of a side differ from each other: what is shown is to be expected of further runs.
    BetweenRuns,
}

impl Basis {
    pub(super) const fn for_runs(a: usize, b: usize) -> Self {
        if a > 1 || b > 1 { Self::BetweenRuns } else { Self::WithinRuns }
    }

    /// The basis as documents have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WithinRuns => "within runs",
            Self::BetweenRuns => "between runs",
        }
    }
}

/// What the difference of a row shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The figure of b is higher: more noise, or longer detours. Said of several runs a side.
    Worse,
    /// The figure of b is lower. Said of several runs a side.
    Better,
    /// The figure of the recording b is higher than that of the recording a by more than recordings of one machine differ. Said of
    /// one run a side.
    Higher,
    /// The figure of the recording b is lower by more than that. Said of one run a side.
    Lower,
    /// The runs do not show a difference; that there is none is not shown either.
    NoDifferenceShown,
    /// The runs cannot show a difference.
    NotEnoughData,
}

impl Verdict {
    /// The verdict as tables and documents have it.
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

/// Whether the interval of b / a lies beyond [`FLOOR`]. Where there is none, as a has nothing of it, any difference matters.
fn matters(effect: Option<Effect>) -> bool {
    let Some(Effect { ratio_low, ratio_high, .. }) = effect else { return true };
    let ends = (ratio_low, ratio_high);
    ends == (None, None)
        || ratio_low.is_some_and(|low| low > 1.0 + FLOOR)
        || ratio_high.is_some_and(|high| high < 1.0 - FLOOR)
}

/// What a row says of a limit on how much worse b may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// It is worse by more than the limit, beyond doubt.
    Exceeded,
    /// It is not shown that the limit is exceeded.
    NotShown,
    /// The runs cannot show it.
    Unknown,
}

/// Whether b is worse than a by more than `share` (0.05 for 5 %) beyond doubt: the lower end of the 95 % interval of b / a
/// lies above 1 + share. Runs without a difference, or with one of just `share`, exceed it in 2.5 % of cases.
///
/// If a is 0, any share of it is 0, and the lower end of the interval of the difference must lie above that.
pub fn exceeds(row: &ComparedFigure, share: f64) -> Limit {
    let beyond = match (row.verdict, row.a, row.effect) {
        (Verdict::NotEnoughData, ..) => return Limit::Unknown,
        (_, Some(0.0), _) => row.low.is_some_and(|low| low > 0.0),
        (.., effect) => effect.and_then(|effect| effect.ratio_low).is_some_and(|low| low > 1.0 + share),
    };
    if beyond { Limit::Exceeded } else { Limit::NotShown }
}
