//! The longest delays of a recording, one for each group of detours that a phase can meet together.

use std::collections::BTreeSet;

use crate::delay::{DelayTable, TablePiece};

/// The most that are looked for.
pub(super) const MOST: usize = 101;

/// So many pieces of the delay function are looked at for them.
const PIECES_LIMIT: usize = 1 << 20;

/// Of so many longest delays the shares of the added time are told.
pub(super) const TOLD: [usize; 3] = [1, 3, 10];

/// One of the longest delays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extreme {
    pub kind: u32,
    /// About when its longest detour begins, on the circle.
    pub at: i64,
    /// The delay of a phase that meets all of it.
    pub delay: i64,
}

/// The longest delays, falling.
#[derive(Clone, Debug)]
pub(super) struct Extremes {
    list: Vec<Extreme>,
    apart: i64,
}

/// When the first detour of a piece begins.
fn point(piece: &TablePiece, length: i64) -> i64 {
    (piece.start + piece.flat).rem_euclid(length)
}

impl Extremes {
    /// Of a table, whose pieces come in falling order of delay. Delays that begin within a grain of a longer one belong to
    /// it, since one phase can meet both.
    pub(super) fn new(table: &DelayTable<'_>) -> Self {
        let kinds = table.kinds();
        let apart = table.grain().get();
        let mut taken: Vec<BTreeSet<i64>> = vec![BTreeSet::new(); kinds.len()];
        let mut list = Vec::new();
        for piece in table.pieces().iter().take(PIECES_LIMIT) {
            if list.len() == MOST {
                break;
            }
            let (kind, length) = (piece.kind as usize, kinds[piece.kind as usize].length);
            let at = point(piece, length);
            if !near(&taken[kind], at, length, apart) {
                taken[kind].insert(at);
                list.push(Extreme { kind: piece.kind, at, delay: piece.delay });
            }
        }
        Self { list, apart }
    }

    /// Of those that are known to be the longest, falling and apart by a grain.
    pub(super) fn of(list: Vec<Extreme>, apart: i64) -> Self {
        Self { list, apart }
    }

    pub(super) fn list(&self) -> &[Extreme] {
        &self.list
    }

    /// Whether the longest delay came so often that none is thought to be longer: ten times, to a hundredth of it.
    pub(super) fn settled(&self) -> bool {
        let last = TOLD[TOLD.len() - 1] - 1;
        self.list.get(last).is_some_and(|tenth| tenth.delay >= self.list[0].delay - self.list[0].delay / 100)
    }

    /// In nanoseconds, falling.
    pub(super) fn delays(&self) -> Vec<f64> {
        self.list.iter().map(|extreme| extreme.delay as f64).collect()
    }

    /// The longest delay, in nanoseconds; 0 without any.
    pub(super) fn longest(&self) -> f64 {
        self.list.first().map_or(0.0, |extreme| extreme.delay as f64)
    }

    /// To which of the shares in [`TOLD`] a piece belongs: the number of the first that holds it.
    pub(super) fn rank_of(&self, piece: &TablePiece, length: i64) -> Option<usize> {
        let last = TOLD[TOLD.len() - 1].min(self.list.len());
        let at = point(piece, length);
        let holds = |extreme: &Extreme| extreme.kind == piece.kind && distance(extreme.at, at, length) <= self.apart;
        let number = self.list[..last].iter().position(holds)?;
        TOLD.iter().position(|told| number < *told)
    }
}

/// How far apart two instants of a circle are.
fn distance(a: i64, b: i64, length: i64) -> i64 {
    let apart = (a - b).abs();
    apart.min(length - apart)
}

/// Whether one of the instants is as near as that.
pub(super) fn near(taken: &BTreeSet<i64>, at: i64, length: i64, apart: i64) -> bool {
    let before = taken.range(..=at).next_back().or_else(|| taken.last());
    let after = taken.range(at..).next().or_else(|| taken.first());
    before.into_iter().chain(after).any(|other| distance(*other, at, length) <= apart)
}
