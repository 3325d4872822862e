//! What is said of a difference in the end, and whether it exceeds a limit.

use super::ComparedFigure;

/// The share of families of rows without any difference in which one is found all the same.
pub const LEVEL: f64 = 0.05;

/// What the difference of a row shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The figure of b is higher: more noise, or longer detours.
    Worse,
    /// The figure of b is lower.
    Better,
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
            Self::NoDifferenceShown => "no difference shown",
            Self::NotEnoughData => "not enough data",
        }
    }

    /// Of a difference with its adjusted p-value.
    pub(super) fn from_p_value(difference: f64, p_adjusted: f64) -> Self {
        if p_adjusted > LEVEL || difference == 0.0 {
            Self::NoDifferenceShown
        } else if difference > 0.0 {
            Self::Worse
        } else {
            Self::Better
        }
    }
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
#[must_use]
pub fn exceeds(row: &ComparedFigure, share: f64) -> Limit {
    let beyond = match (row.verdict, row.a, row.effect) {
        (Verdict::NotEnoughData, ..) => return Limit::Unknown,
        (_, Some(0.0), _) => row.low.is_some_and(|low| low > 0.0),
        (.., effect) => effect.and_then(|effect| effect.ratio_low).is_some_and(|low| low > 1.0 + share),
    };
    if beyond { Limit::Exceeded } else { Limit::NotShown }
}
