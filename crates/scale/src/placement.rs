//! The placement of a job's ranks: the trace of each, and the offset on its circle.

use becalm_units::Nanos;

use crate::ScaleError;
use crate::delay::{DelayTable, units};
use crate::machine::RankStart;
use crate::noise::Noise;
use crate::random::{Purpose, Stream};

/// Maximum number of ranks that are replayed one by one: their offsets and index take up to 3 GB. Order statistics go further.
pub const RANKS_LIMIT: u64 = 1 << 27;

/// The distribution of ranks over nodes and time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Ranks of the job.
    pub ranks: u64,
    /// Ranks per node.
    pub per_node: u64,
    /// Whether all start at the same offset, with simultaneous noise.
    pub synchronized: bool,
}

/// Offsets of units (see [`DelayTable`]), for each kind of unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offsets(pub(crate) Vec<Vec<i64>>);

impl Offsets {
    /// Given offsets: one list for each kind of unit in the table. Fails if a list is missing, no unit has an offset, or one is outside of its
    /// circle.
    pub fn new(table: &DelayTable<'_>, offsets: Vec<Vec<Nanos>>) -> Result<Self, ScaleError> {
        if offsets.iter().all(Vec::is_empty) || offsets.len() != table.kinds().len() {
            return Err(ScaleError::NoRanks);
        }
        for (kind, list) in table.kinds().iter().zip(&offsets) {
            if let Some(offset) = list.iter().find(|offset| !(0..kind.length).contains(&offset.get())) {
                return Err(ScaleError::Range("an offset", offset.to_string(), "its trace's circle"));
            }
        }
        Ok(Self(offsets.into_iter().map(|list| list.into_iter().map(Nanos::get).collect()).collect()))
    }

    /// The number of units.
    pub fn units(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ReplayStart {
    kind: usize,
    offset: i64,
}

/// The start of an offset's window, if the noise was coalesced: so the windows of all ranks end together.
fn at_a_window(offset: i64, windows: Option<Nanos>) -> i64 {
    windows.map_or(offset, |window| offset - offset % window.get())
}

impl Placement {
    /// Offsets for the units of a table for this many ranks (see [`DelayTable::for_ranks`]), drawn from a seed. The first units of a larger job are
    /// those of a smaller one. Fails for no ranks, too many, or a table for another number of ranks.
    pub fn draw(&self, table: &DelayTable<'_>, seed: u64, replica: u64) -> Result<Offsets, ScaleError> {
        if self.ranks % table.ranks_per_unit() != table.rest() {
            return Err(ScaleError::PartialNode(self.ranks, table.ranks_per_unit()));
        }
        let lengths: Vec<i64> = table.kinds().iter().map(|kind| kind.length).collect();
        let (full, parts) = lengths.split_at(table.full_kinds());
        let mut offsets = vec![Vec::new(); lengths.len()];
        for start in self.starts(full, parts, table.ranks_per_unit(), seed, replica)? {
            offsets[start.kind].push(at_a_window(start.offset, table.windows()));
        }
        Ok(Offsets(offsets))
    }

    /// Each rank's trace and offset, in the order of ranks, with the ranks of a node next to each other. The same draws as [`Placement::draw`].
    pub(crate) fn ranks<'a>(
        &self,
        noise: &'a Noise,
        seed: u64,
        replica: u64,
    ) -> Result<Vec<RankStart<'a>>, ScaleError> {
        let units = units(noise, self.per_node)?;
        let per_unit = units[0].len() as u64;
        let lengths: Vec<i64> = units.iter().map(|traces| traces[0].length_ns()).collect();
        let full = if self.ranks < per_unit { 0 } else { units.len() };
        let rest = (self.ranks % per_unit) as usize;
        let mut ranks = Vec::with_capacity(self.ranks.min(RANKS_LIMIT) as usize);
        for start in self.starts(&lengths[..full], &lengths, per_unit, seed, replica)? {
            let traces = if start.kind < full { &units[start.kind][..] } else { &units[start.kind - full][..rest] };
            let offset = at_a_window(start.offset, noise.windows());
            ranks.extend(traces.iter().map(|trace| RankStart { trace, offset }));
        }
        Ok(ranks)
    }

    /// The starts of all units, for kinds with full circles of these lengths, followed by a partly filled one if ranks are left.
    fn starts(
        &self,
        full: &[i64],
        parts: &[i64],
        per_unit: u64,
        seed: u64,
        replica: u64,
    ) -> Result<impl Iterator<Item = ReplayStart>, ScaleError> {
        if self.ranks == 0 {
            return Err(ScaleError::NoRanks);
        }
        if self.ranks > RANKS_LIMIT {
            return Err(ScaleError::TooManyRanks {
                ranks: self.ranks,
                limit: RANKS_LIMIT,
                method: "a replay",
                advice: "; order statistics give their expectation",
            });
        }
        let (full, parts) = (full.to_vec(), parts.to_vec());
        let mut stream = Stream::new(seed, Purpose::Offsets, replica);
        let longest = full.iter().chain(&parts).copied().max().unwrap_or(1);
        let common = self.synchronized.then(|| stream.below(longest as u64) as i64);
        let whole = self.ranks / per_unit;
        Ok((0..self.ranks.div_ceil(per_unit)).map(move |unit| {
            let (first, lengths) = if unit < whole { (0, &full) } else { (full.len(), &parts) };
            let kind = if lengths.len() > 1 { stream.below(lengths.len() as u64) as usize } else { 0 };
            let length = lengths[kind];
            let offset = common.map_or_else(|| stream.below(length as u64) as i64, |common| common % length);
            ReplayStart { kind: first + kind, offset }
        }))
    }
}
