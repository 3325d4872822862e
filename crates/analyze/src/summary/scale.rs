//! The cost of a run's noise for a program with many ranks, and the part of it charged to each source.

use std::collections::HashMap;

use becalm_model::Kind;
use becalm_model::digest::DigestDoc;
use becalm_model::node::Rung;
use becalm_scale::sampled::PhaseLosses;
use becalm_scale::uncertainty::{Missed, RecordingBounds};
use becalm_units::{Count, Nanos};

use super::Observed;
use crate::noise::draw_losses;

/// A source, by kind and name.
pub(super) type SourceKey = (Kind, String);

/// The work of each rank between two collectives, as in `becalm predict`.
pub(super) const GRAIN: Nanos = Nanos::from_millis(1);

/// The default number of ranks.
pub const RANKS: u64 = 1 << 10;

/// Why the cost at scale is unknown.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoScale {
    /// The kernel's tracepoints were not seen on all nodes, or no activities were stored.
    #[error("the recording has no sources")]
    NoSources,
    /// The run time of the loops is unknown.
    #[error("it is not known how long the loops ran")]
    Endless,
    /// A phase of all ranks takes more CPU time than was recorded, so only the longest detours would decide.
    #[error(
        "a phase of {} ranks takes {needed} of CPU time, and {recorded:.1} were recorded; record for longer, or ask for fewer ranks",
        Count::new(*ranks)
    )]
    Short {
        /// The requested ranks.
        ranks: u64,
        /// The CPU time of a phase of all of them without noise.
        needed: Nanos,
        /// The total observation time of the CPUs.
        recorded: Nanos,
    },
}

/// The slowdown of a bulk-synchronous program by the noise of a run.
#[derive(Clone, Debug)]
pub struct CostAtScale {
    /// The ranks of the program.
    pub ranks: u64,
    /// The work of each rank between two collectives, which are free.
    pub grain: Nanos,
    /// With all the noise; 1.0 without any.
    pub slowdown: f64,
    /// The uncertainty from one recording to the next; `None` for a summary form.
    pub recording: Option<RecordingBounds>,
    /// Noise that the recording may have missed; then the slowdown is a lower bound.
    pub missed: Option<Missed>,
    without: HashMap<SourceKey, f64>,
}

impl CostAtScale {
    /// The slowdown without a source and everything charged to it; unchanged if nothing is charged to it.
    pub fn without(&self, kind: Kind, source: &str) -> f64 {
        self.without.get(&(kind, source.to_owned())).copied().unwrap_or(self.slowdown)
    }
}

/// The phases of a run, which can be evaluated for any number of ranks.
#[derive(Clone, Debug)]
pub struct SampledPhases {
    losses: PhaseLosses<SourceKey>,
    /// The total time of all CPUs; `None` if unknown.
    recorded: Option<Nanos>,
    missing: Option<NoScale>,
    /// Whether they are drawn from a summary form.
    drawn: bool,
}

impl SampledPhases {
    pub(super) fn new() -> Self {
        Self { losses: PhaseLosses::new(GRAIN), recorded: None, missing: None, drawn: false }
    }

    /// From nodes in summary form.
    pub(super) fn from_digests(digests: &[DigestDoc]) -> Self {
        let mut phases = Self { drawn: true, ..Self::new() };
        for digest in digests {
            let (more, _) = draw_losses(digest, GRAIN, digests.len(), |kind, source| (kind, source.to_owned()));
            phases.losses.merge(&more, Clone::clone);
        }
        phases
    }

    /// Adds the phases of a node; `names` maps the numbers of its sources to names.
    pub(super) fn add(&mut self, losses: &PhaseLosses<u32>, names: &[SourceKey]) {
        self.losses.merge(losses, |number| names[*number as usize].clone());
    }

    /// Adds the properties of the whole run.
    pub(super) fn for_run(mut self, rung: Rung, activities: u64, observed: Option<i64>, how: Observed) -> Self {
        self.recorded = observed.map(Nanos::new);
        self.missing = if rung != Rung::Tracepoints || activities == 0 {
            Some(NoScale::NoSources)
        } else if how == Observed::LastDetour || observed.is_none() {
            Some(NoScale::Endless)
        } else {
            None
        };
        self
    }

    /// The cost of the noise for this many ranks, by order statistics of a rank's lateness (see [`becalm_scale::sampled`]).
    pub fn at(&self, ranks: u64) -> Result<CostAtScale, NoScale> {
        if let Some(missing) = &self.missing {
            return Err(missing.clone());
        }
        let recorded = self.recorded.unwrap_or_default();
        let needed = Nanos::new(GRAIN.get().saturating_mul(i64::try_from(ranks).unwrap_or(i64::MAX)));
        if needed > recorded {
            return Err(NoScale::Short { ranks, needed, recorded });
        }
        let known = self.losses.uncertainty().filter(|_| !self.drawn);
        let recording = known.map(|known| self.losses.bounds(&known, ranks));
        let missed = if self.drawn {
            Missed::for_ranks(ranks, GRAIN, recorded)
        } else {
            recording.and_then(|bounds| bounds.missed)
        };
        let without = self.losses.sources().map(|source| (source.clone(), self.losses.slowdown(ranks, Some(source))));
        Ok(CostAtScale {
            ranks,
            grain: self.losses.grain(),
            slowdown: self.losses.slowdown(ranks, None),
            recording,
            missed,
            without: without.collect(),
        })
    }
}
