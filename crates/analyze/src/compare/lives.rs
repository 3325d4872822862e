//! Shares of the lives of threads, such as the time that others took from them: sums over the time of lives instead of that of loops.
//!
//! How much recordings of the same program differ on their own was not learned for threads. With one recording per side, the scatter learned for one CPU
//! of a machine is assumed, because threads and takers also come and go on CPUs.

use becalm_model::Kind;

use super::alone::RunScatter;
use super::metric::Metric;
use super::row::{self, ComparedFigure, TestFamily};
use super::series::RatioOfSums;
use super::verdict::Basis;

/// A share for each run of both sides; `None` for a run that lacks it.
pub type Shares = [Vec<Option<RatioOfSums>>; 2];

/// The compared shares.
#[derive(Clone, Debug)]
pub struct ComparedLives {
    /// The basis of the verdicts.
    pub basis: Basis,
    /// The share of all threads together.
    pub total: ComparedFigure,
    /// The shares of each group of threads, in the given order.
    pub groups: Vec<ComparedFigure>,
    /// The shares of each taker, in the given order.
    pub takers: Vec<ComparedFigure>,
}

/// Compares the share of all threads together, alone in its family, those of groups of threads, and those of takers by kind and name.
pub fn compare_lives(total: Shares, groups: Vec<Shares>, takers: Vec<(Kind, String, Shares)>) -> ComparedLives {
    let basis = Basis::for_runs(total[0].len(), total[1].len());
    let scatter = RunScatter::for_cpu(basis);
    // All of the quieter recording.
    let all = total.iter().flatten().flatten().map(|series| series.value).fold(f64::INFINITY, f64::min);
    let whole = |shares, family| {
        let row = row::series_row(Metric::TimeRatio, shares, 1.0, scatter);
        ComparedFigure { family, ..row }
    };
    let count = groups.len();
    let mut rows = vec![whole(total, TestFamily::Headline)];
    rows.extend(groups.into_iter().map(|shares| whole(shares, TestFamily::Total)));
    rows.extend(takers.into_iter().map(|(kind, name, shares)| {
        let row = row::source_row(Metric::TimeRatio, shares, 1.0, scatter, all);
        ComparedFigure { family: TestFamily::Sources, source: Some((kind, name)), ..row }
    }));
    row::refuse_drift(&mut rows, basis);
    row::judge(&mut rows, basis);
    let takers = rows.split_off(1 + count);
    let groups = rows.split_off(1);
    let total = rows.swap_remove(0);
    ComparedLives { basis, total, groups, takers }
}
