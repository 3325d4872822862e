//! The cost of a fleet's noise for its jobs: by size, by source, and for the excess of single nodes over their peers.
//!
//! Delays are drawn from each node's summary form, and phases are sampled from them ([`becalm_scale::sampled`]). Each rank of a job has one CPU of
//! the fleet, drawn at random: a job with many ranks meets a bad node almost surely, one with few seldom.

use std::collections::{BTreeMap, BTreeSet};

use becalm_analyze::condense::digest;
use becalm_analyze::noise::draw_losses;
use becalm_analyze::summary::SummaryError;
use becalm_bundle::StoredNodes;
use becalm_scale::sampled::PhaseLosses;
use becalm_scale::uncertainty::Missed;
use becalm_units::Nanos;

use crate::sacct::Accounting;
use crate::survey::{Fleet, SourceName};

/// Something that can be fixed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// A source on a node that has more of it than its peers.
    OnNode(String, SourceName),
    /// A source on all nodes, except those that have it as a separate cause.
    Everywhere(SourceName),
}

/// The loss of jobs of one size.
#[derive(Clone, PartialEq, Debug)]
pub struct JobLoss {
    /// The ranks of a job.
    pub ranks: u64,
    /// The run time of a job with noise over that without.
    pub slowdown: f64,
    /// The events that the recordings may have missed, which make the slowdown a lower bound.
    pub missed: Option<Missed>,
    /// The node-hours of such jobs per year; `None` without accounting.
    pub node_hours: Option<f64>,
    /// The number of them lost to noise.
    pub lost_hours: Option<f64>,
}

/// The gain of fixing a cause.
#[derive(Clone, PartialEq, Debug)]
pub struct Mending {
    /// The cause to fix.
    pub cause: Cause,
    /// The relative gain for jobs of each size, in the order of [`FleetCost::sizes`].
    pub gains: Vec<f64>,
    /// The node-hours saved per year; `None` without accounting.
    pub saved_hours: Option<f64>,
}

/// The cost of noise for the jobs of a fleet.
#[derive(Clone, PartialEq, Debug)]
pub struct FleetCost {
    /// The number of nodes.
    pub nodes: usize,
    /// The work of each rank between two collectives.
    pub grain: Nanos,
    /// The recorded time, over all CPUs.
    pub recorded: Nanos,
    /// The loss of jobs of each size, smallest size first.
    pub sizes: Vec<JobLoss>,
    /// The possible fixes, largest gain first; those without any gain are left out.
    pub mendings: Vec<Mending>,
    /// The number of jobs in the accounting, if there is one.
    pub jobs: Option<u64>,
    /// Notes on the noise of nodes, one sentence each: findings of the survey, and nodes that failed to be read again.
    pub problems: Vec<(String, String)>,
}

/// The cost of the noise of these nodes, with known outliers, for jobs of these sizes or those of the accounting. Fails if no node can be read.
pub fn fleet_cost(
    bundles: &[StoredNodes],
    fleet: &Fleet,
    grain: Nanos,
    ranks: &[u64],
    accounting: Option<&Accounting>,
) -> Result<FleetCost, SummaryError> {
    // The source responsible for an outlier is a separate cause.
    let own: BTreeMap<&str, &SourceName> = fleet
        .nodes
        .iter()
        .filter_map(|node| {
            let differs = node.differs.as_ref().filter(|differs| differs.factor > 1.0)?;
            Some((node.node.as_str(), &differs.reason.as_ref()?.0))
        })
        .collect();
    let wanted: BTreeSet<&str> = fleet.nodes.iter().map(|node| node.node.as_str()).collect();
    let from_noise = fleet.problems.iter().filter_map(|problem| Some((problem.node.clone(), problem.noise.clone()?)));
    let (mut read, mut problems): (BTreeSet<String>, Vec<_>) = (BTreeSet::new(), from_noise.collect());
    let mut losses: PhaseLosses<Cause> = PhaseLosses::new(grain);
    let mut recorded = Nanos::ZERO;
    for bundle in bundles {
        for node in bundle.names().filter(|node| wanted.contains(node)) {
            if read.contains(node) {
                continue;
            }
            match bundle.read(node).map_err(SummaryError::from).and_then(digest) {
                Ok(digest) => {
                    read.insert(node.to_owned());
                    let (of_node, time) = draw_losses(&digest, grain, wanted.len(), |kind, source| {
                        let name = (kind, source.to_owned());
                        match own.get(node) {
                            Some(other) if **other == name => Cause::OnNode(node.to_owned(), name),
                            _ => Cause::Everywhere(name),
                        }
                    });
                    losses.merge(&of_node, Clone::clone);
                    recorded = recorded.saturating_add(time);
                }
                // The survey has already reported nodes that it could not read.
                Err(_) if problems.iter().any(|(name, _)| name == node) => {}
                Err(error) => problems.push((node.to_owned(), error.to_string())),
            }
        }
    }
    let sizes: Vec<u64> = match accounting {
        Some(jobs) => jobs.sizes.iter().map(|size| size.ranks).collect(),
        None => ranks.to_vec(),
    };
    let hours = |place: usize| accounting.map(|jobs| jobs.sizes[place].node_hours * jobs.per_year());
    let slowdowns: Vec<f64> = sizes.iter().map(|ranks| losses.slowdown(*ranks, None)).collect();
    let all = || slowdowns.iter().enumerate();
    let rows = sizes.iter().zip(all()).map(|(ranks, (place, slowdown))| JobLoss {
        ranks: *ranks,
        slowdown: *slowdown,
        missed: Missed::for_ranks(*ranks, grain, recorded),
        node_hours: hours(place),
        lost_hours: hours(place).map(|hours| hours * (1.0 - 1.0 / slowdown)),
    });
    let rows: Vec<JobLoss> = rows.collect();
    let mut mendings: Vec<Mending> = losses
        .sources()
        .map(|cause| {
            let left = sizes.iter().map(|ranks| losses.slowdown(*ranks, Some(cause)));
            let gains: Vec<f64> = left.zip(&slowdowns).map(|(left, all)| (1.0 - left / all).max(0.0)).collect();
            let saved = gains.iter().enumerate().map(|(place, gain)| hours(place).map(|hours| hours * gain));
            Mending { cause: cause.clone(), saved_hours: saved.sum(), gains }
        })
        .filter(|mending| mending.gains.iter().any(|gain| *gain > 1e-6))
        .collect();
    let weight =
        |mending: &Mending| mending.saved_hours.unwrap_or_else(|| mending.gains.last().copied().unwrap_or(0.0));
    mendings.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then_with(|| a.cause.cmp(&b.cause)));
    let jobs = accounting.map(|jobs| jobs.jobs);
    Ok(FleetCost { nodes: read.len(), grain, recorded, sizes: rows, mendings, jobs, problems })
}

#[cfg(test)]
mod tests {
    use becalm_fixtures::fleet::{Planted, write_fleet};
    use becalm_model::Kind;

    use super::*;
    use crate::{sacct, survey};

    fn cost(planted: Planted, accounting: Option<&Accounting>) -> FleetCost {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.becalm");
        write_fleet(&path, planted, 1);
        let bundles = [StoredNodes::open(&path).unwrap()];
        let fleet = survey(&bundles).unwrap();
        fleet_cost(&bundles, &fleet, Nanos::from_millis(1), &[64, 1 << 10, 1 << 14], accounting).unwrap()
    }

    #[test]
    fn the_slow_node_is_the_first_thing_to_mend() {
        let cost = cost(Planted::SlowNode, None);
        let writeback = (Kind::Workqueue, "kworker:nfs_writeback".to_owned());
        assert_eq!(cost.mendings[0].cause, Cause::OnNode("n17".to_owned(), writeback), "{:?}", cost.mendings);
        let slowdowns: Vec<f64> = cost.sizes.iter().map(|size| size.slowdown).collect();
        assert!(slowdowns.is_sorted() && slowdowns[0] > 1.01, "{slowdowns:?}");
        assert!(cost.mendings[0].gains[0] > 0.005 && cost.mendings[0].gains[1] > 0.03, "{:?}", cost.mendings[0]);
        assert_eq!((cost.nodes, cost.problems.len()), (32, 0));
        let missed: Vec<bool> = cost.sizes.iter().map(|size| size.missed.is_some()).collect();
        assert_eq!(missed, [false, false, true], "320 s of 16,384 ranks");
    }

    #[test]
    fn accounting_weighs_sizes_by_their_node_hours() {
        let text = "JobID|NNodes|NCPUS|ElapsedRaw|Start|End\n\
                    1|32|32|86400|2026-01-01T00:00:00|2026-01-02T00:00:00\n";
        let accounting = sacct::parse(text, 1).unwrap();
        let cost = cost(Planted::SlowNode, Some(&accounting));
        let [size] = &cost.sizes[..] else { panic!("{:?}", cost.sizes) };
        let hours = size.node_hours.unwrap();
        assert!((hours / (32.0 * 24.0 * 365.25) - 1.0).abs() < 1e-9, "{hours}");
        assert!((size.lost_hours.unwrap() / hours - (1.0 - 1.0 / size.slowdown)).abs() < 1e-12);
        let saved = cost.mendings[0].saved_hours.unwrap();
        assert!(saved > 0.0 && saved <= size.lost_hours.unwrap(), "{saved} of {:?}", size.lost_hours);
    }

    #[test]
    fn among_equals_a_source_of_all_is_the_first() {
        let cost = cost(Planted::Nothing, None);
        assert!(matches!(cost.mendings[0].cause, Cause::Everywhere(_)), "{:?}", cost.mendings);
    }
}
