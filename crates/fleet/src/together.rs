//! Which sources strike several nodes at the same time: a permutation test of their moments.
//!
//! Time is cut into slots, at least 16.8 ms each and twice as long as the clocks of the nodes may be off by what they state; they are those of the
//! summary form, or several of them together. A node whose clock may be off further than the others' is left out. A source has in each slot a number of nodes in which it began there, and the
//! statistic is the sum of the squares of these numbers. Were the nodes independent of each other, each could as well have begun at any other time: so the slots of
//! each node are turned by a random number of places, 999 times over, which keeps its own trains and periods whole. The chance is the part of all turns, the
//! one that was recorded among them, whose statistic is as large. It is compared with 5 % over the number of tested sources (Bonferroni). Beside that a
//! quarter more pairs of nodes must meet than on the average of the turns, as of a frequent source a trifle would be beyond chance.

use std::collections::{BTreeMap, BTreeSet};

use becalm_stats::outliers::FACTOR_MIN;
use becalm_stats::splitmix::SplitMix64;

use crate::survey::SourceName;

/// So many nodes are tested, the first that were watched all the time.
pub(super) const NODES: usize = 64;
/// The fewest nodes that are tested.
pub(super) const NODES_MIN: usize = 3;
/// The fewest slots.
pub(super) const SLOTS_MIN: usize = 64;
/// How many sources are tested: those in most slots.
const SOURCES: usize = 20;
/// How often the nodes are turned.
const TURNS: u64 = 999;
/// The probability of naming any source where none strikes nodes together, at most.
const LEVEL: f64 = 0.05;

/// What was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Together {
    /// How many nodes were tested.
    pub nodes: usize,
    /// How long a slot is, in nanoseconds: what comes within it comes at the same time.
    pub slot_ns: i64,
    /// How far the clocks of the tested nodes may be off at most, by what the nodes state, in nanoseconds; `None` where none states it. At most half
    /// of a slot.
    pub clock_error_ns: Option<i64>,
    /// How many of them do not state it.
    pub unstated: usize,
    /// The sources, by their chance.
    pub sources: Vec<Struck>,
}

/// A source that came on several nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Struck {
    /// Its kind and name.
    pub name: SourceName,
    /// On how many nodes it came.
    pub nodes: usize,
    /// On how many nodes it came in the slot in which it came on most.
    pub most: usize,
    /// The probability of as much togetherness among nodes that are independent, by the test; `None` where it was not tested.
    pub chance: Option<f64>,
    /// What follows.
    pub verdict: Verdict,
}

/// Whether a source strikes nodes at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It does.
    Together,
    /// It was not shown to.
    NotShown,
    /// It is in more than half of the slots, so that it would coincide anyway.
    Everywhere,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Together => "at the same time",
            Self::NotShown => "none shown",
            Self::Everywhere => "too frequent to tell",
        }
    }
}

/// In which slots a source began on a node.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Moments(Vec<bool>);

impl Moments {
    /// In these slots.
    pub(super) fn from_slots(slots: Vec<bool>) -> Self {
        Self(slots)
    }

    fn count(&self) -> usize {
        self.0.iter().filter(|set| **set).count()
    }
}

/// Tests the sources of these nodes, in so many slots of this length.
pub(super) fn strikes(nodes: &[BTreeMap<SourceName, Moments>], slots: usize, slot_ns: i64) -> Result<Together, String> {
    if slots < SLOTS_MIN {
        return Err(format!("the nodes have less than {SLOTS_MIN} slots of time in common by their clocks"));
    }
    if nodes.len() < NODES_MIN {
        return Err(format!(
            "it takes {NODES_MIN} nodes that were watched with tracepoints all the time, and there {}",
            are(nodes.len())
        ));
    }
    let names: BTreeSet<&SourceName> = nodes.iter().flat_map(|node| node.keys()).collect();
    let mut found: Vec<(&SourceName, Vec<&Moments>, usize)> = names
        .into_iter()
        .map(|name| {
            let moments: Vec<&Moments> =
                nodes.iter().filter_map(|node| node.get(name)).filter(|moments| moments.count() > 0).collect();
            let count = moments.iter().map(|moments| moments.count()).sum();
            (name, moments, count)
        })
        .filter(|(_, moments, _)| moments.len() >= NODES_MIN)
        .collect();
    found.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(b.0)));
    found.truncate(SOURCES);
    let everywhere = |moments: &[&Moments], count: usize| count * 2 > moments.len() * slots;
    let tested = found.iter().filter(|(_, moments, count)| !everywhere(moments, *count)).count();
    let mut sources: Vec<Struck> = found
        .iter()
        .map(|(name, moments, count)| {
            let most = at_once(moments, &vec![0; moments.len()]).into_iter().max().unwrap_or(0) as usize;
            let chance = (!everywhere(moments, *count)).then(|| chance(moments));
            let verdict = match chance {
                None => Verdict::Everywhere,
                Some((chance, pairs)) if chance * tested as f64 <= LEVEL && pairs >= FACTOR_MIN => Verdict::Together,
                Some(_) => Verdict::NotShown,
            };
            Struck {
                name: (*name).clone(),
                nodes: moments.len(),
                most,
                chance: chance.map(|(chance, _)| chance),
                verdict,
            }
        })
        .collect();
    sources.sort_by(|a, b| a.chance.unwrap_or(2.0).total_cmp(&b.chance.unwrap_or(2.0)));
    Ok(Together { nodes: nodes.len(), slot_ns, clock_error_ns: None, unstated: 0, sources })
}

/// A number in words.
fn are(nodes: usize) -> String {
    if nodes == 1 { "is 1".to_owned() } else { format!("are {nodes}") }
}

/// On how many nodes it came in each slot, where each node is turned by so many places.
fn at_once(nodes: &[&Moments], turns: &[usize]) -> Vec<u16> {
    let slots = nodes.first().map_or(0, |node| node.0.len());
    let mut counts = vec![0_u16; slots];
    for (node, turn) in nodes.iter().zip(turns) {
        let (late, early) = node.0.split_at(slots - turn);
        let turned = early.iter().chain(late);
        counts.iter_mut().zip(turned).for_each(|(count, set)| *count += u16::from(*set));
    }
    counts
}

/// The part of all turns in which as many nodes meet, and how many times as many pairs of nodes meet as on the average of the turns.
fn chance(nodes: &[&Moments]) -> (f64, f64) {
    let statistic =
        |turns: &[usize]| -> u64 { at_once(nodes, turns).into_iter().map(|count| u64::from(count).pow(2)).sum() };
    let slots = nodes[0].0.len() as u64;
    let recorded = statistic(&vec![0; nodes.len()]);
    let mut random = SplitMix64::new(1);
    let (mut as_large, mut sum) = (0_u64, 0_u64);
    for _ in 0..TURNS {
        let turns: Vec<usize> = nodes.iter().map(|_| random.below(slots) as usize).collect();
        let turned = statistic(&turns);
        as_large += u64::from(turned >= recorded);
        sum += turned;
    }
    // Each node meets itself, however it is turned.
    let alone: usize = nodes.iter().map(|node| node.count()).sum();
    let expected = (sum as f64 / TURNS as f64 - alone as f64).max(f64::MIN_POSITIVE);
    ((1 + as_large) as f64 / (1 + TURNS) as f64, (recorded as f64 - alone as f64) / expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_model::Kind;
    use becalm_testing::noise::Source;

    const LENGTH: i64 = 10_000_000_000;
    const SLOTS: usize = 512;

    fn name(name: &str) -> SourceName {
        (Kind::Task, name.to_owned())
    }

    /// Nodes with a daemon each at times of their own, and where `both` one that comes to all of them at once.
    fn nodes(source: &mut Source, both: bool) -> Vec<BTreeMap<SourceName, Moments>> {
        let common: Vec<f64> = source.poisson(1.0, LENGTH as f64);
        (0..8)
            .map(|_| {
                let of = |times: &[f64]| {
                    let mut slots = vec![false; SLOTS];
                    times.iter().for_each(|at| slots[(*at / LENGTH as f64 * SLOTS as f64) as usize] = true);
                    Moments::from_slots(slots)
                };
                let own = source.trains(2.0, 3.0, 2e7, LENGTH as f64);
                let mut node = BTreeMap::from([(name("own"), of(&own))]);
                if both {
                    node.insert(name("both"), of(&common));
                }
                node
            })
            .collect()
    }

    #[test]
    fn what_comes_at_once_is_told_from_what_does_not() {
        let (mut wrong, mut right) = (0, 0);
        for seed in 0..60 {
            let nodes = nodes(&mut Source::seeded(seed), true);
            let found = strikes(&nodes, SLOTS, LENGTH / SLOTS as i64).unwrap();
            let verdict =
                |of: &str| found.sources.iter().find(|source| source.name.1 == of).map(|source| source.verdict);
            wrong += i32::from(verdict("own") == Some(Verdict::Together));
            right += i32::from(verdict("both") == Some(Verdict::Together));
        }
        assert!(wrong <= 6, "{wrong} of 60 independent daemons are called together");
        assert!(right >= 57, "{right} of 60 common daemons are found");
    }

    /// Turned one by one, slot after slot.
    #[test]
    fn turning_is_what_turning_is_plainly() {
        let of = nodes(&mut Source::seeded(9), false);
        let moments: Vec<&Moments> = of.iter().map(|node| &node[&name("own")]).collect();
        let turns: Vec<usize> = (0..moments.len()).map(|node| node * 61).collect();
        let slots = moments[0].0.len();
        let plain = (0..slots).map(|slot| {
            let met = moments.iter().zip(&turns).filter(|(node, turn)| node.0[(slot + slots - **turn) % slots]);
            met.count() as u16
        });
        assert_eq!(at_once(&moments, &turns), plain.collect::<Vec<_>>());
    }

    #[test]
    fn too_little_is_said() {
        assert!(strikes(&[], 63, 1).unwrap_err().contains("64 slots"));
        assert!(strikes(&[], 64, LENGTH).unwrap_err().contains("it takes 3 nodes"));
    }
}
