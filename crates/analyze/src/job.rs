//! A whole parallel benchmark: its nodes, its slowest ranks phase by phase, and each of its ranks.

use becalm_bundle::{BundleError, Phase, PhaseRun};
use becalm_model::phases::PhasesDoc;
use becalm_units::CpuId;

use crate::phases::{PhaseFigures, Slowest};

/// The figures of a whole parallel benchmark, over all nodes and ranks.
#[derive(Clone, PartialEq, Debug)]
pub struct JobPhases {
    /// The documents of its nodes; at least one.
    pub nodes: Vec<PhasesDoc>,
    /// The largest value over the ranks in every phase.
    pub slowest: Slowest,
    /// The ranks, in rising order.
    pub ranks: Vec<RankPhases>,
}

/// The phases of one rank, summed up.
#[derive(Clone, PartialEq, Debug)]
pub struct RankPhases {
    /// The number of the rank in the job, from 0.
    pub rank: u32,
    /// The name of its node.
    pub node: String,
    /// The CPU that it is pinned to.
    pub cpu: CpuId,
    /// The figures of its compute phases.
    pub compute: PhaseFigures,
    /// The figures of its collectives.
    pub collective: PhaseFigures,
}

impl JobPhases {
    /// From a stored run. Fails if one of its tables is missing, damaged, or does not match its document.
    pub fn from_run(run: &PhaseRun) -> Result<Self, BundleError> {
        let phases = run.nodes.first().map_or(0, |doc| doc.job.phases);
        let mut slowest = Slowest::default();
        let mut ranks: Vec<RankPhases> = Vec::new();
        let (mut compute, mut collective) = (Vec::new(), Vec::new());
        run.for_each(|node, rank, number, phase: Phase| {
            slowest.add(rank, number as usize, &phase);
            compute.push(phase.compute_ns);
            collective.push(phase.collective_ns);
            if number + 1 == phases {
                let doc = &run.nodes[node];
                let rank_doc = doc.ranks.iter().find(|rank_doc| rank_doc.rank == rank);
                let figures = PhaseFigures::from_durations(&compute).zip(PhaseFigures::from_durations(&collective));
                ranks.extend(rank_doc.zip(figures).map(|(rank_doc, (compute, collective))| RankPhases {
                    rank,
                    node: doc.node.clone(),
                    cpu: rank_doc.cpu,
                    compute,
                    collective,
                }));
                compute.clear();
                collective.clear();
            }
        })?;
        ranks.sort_by_key(|rank| rank.rank);
        Ok(Self { nodes: run.nodes.clone(), slowest, ranks })
    }
}
