//! The longest detours of a recording.

use super::cells::place;
use crate::order::any;

/// Maximum number searched for.
pub(super) const MOST: usize = 101;

/// The shares of the added time are reported for this many longest detours.
pub(super) const TOLD: [usize; 3] = [1, 3, 10];

/// The lengths of the longest detours in nanoseconds, falling. No phase meets two of them.
#[derive(Clone, Debug)]
pub(super) struct Extremes(Vec<f64>);

impl Extremes {
    pub(super) const fn new(delays: Vec<f64>) -> Self {
        Self(delays)
    }

    /// In nanoseconds, falling.
    pub(super) fn delays(&self) -> &[f64] {
        &self.0
    }

    /// Whether the longest is so frequent that no longer one is assumed: ten times within 1 %.
    pub(super) fn settled(&self) -> bool {
        let last = TOLD[TOLD.len() - 1] - 1;
        self.0.get(last).is_some_and(|tenth| *tenth >= self.longest() * 0.99)
    }

    /// The longest, in nanoseconds; 0 without any.
    pub(super) fn longest(&self) -> f64 {
        self.0.first().copied().unwrap_or(0.0)
    }

    /// The contributions of the longest 1, 3 and 10 to a phase of n ranks, in nanoseconds. `meets` is the probability that a rank meets any of the
    /// first ones. Those of similar length get equal parts.
    pub(super) fn added(&self, n: f64, meets: impl Fn(usize) -> f64) -> [f64; TOLD.len()] {
        let (mut reached, mut parts) = (0.0, Vec::with_capacity(self.0.len()));
        for group in self.0.chunk_by(|one, other| place(*one as i64) == place(*other as i64)) {
            let reach = any(n, meets(parts.len() + group.len()).min(1.0));
            let part = (reach - reached) / group.len() as f64;
            parts.extend(group.iter().map(|delay| part * delay));
            reached = reach;
        }
        TOLD.map(|told| parts.iter().take(told).sum())
    }
}
