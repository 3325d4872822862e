//! Surveys many nodes: ranks them by noise, names outliers with the reason, and finds when the noise occurred and which sources hit several nodes at
//! the same time.
//!
//! Nodes are read one by one, each once and in its summary form: memory contains the figures of all nodes, but no rows or documents. Nodes that
//! cannot be read are reported and skipped.

use std::collections::{BTreeMap, BTreeSet};

use becalm_analyze::condense::digest;
use becalm_analyze::summary::{NodeNoise, SummaryError, node_noise, observed};
use becalm_bundle::StoredNodes;
use becalm_model::Kind;
use becalm_model::digest::DigestDoc;
use becalm_model::node::NodeDoc;
use becalm_model::warning::{Bearing, Code};
use becalm_stats::outliers::{Outlier, PARTS, PEERS_MIN, Peer, outliers_of};
use becalm_stats::{Interval, median_low, median_mid};
use becalm_units::{CpuList, Nanos, counted, cpus};

use crate::heat::{Gathered, Heat, Window, Windows};
use crate::together::Together;

/// The number of a node's sources, the largest, that are compared with those of other nodes. All others count as 0.
const SOURCES: usize = 64;

/// The kind and the name of a source.
pub type SourceName = (Kind, String);

/// The results for many nodes.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The nodes that were read, the noisiest first; equal ones by name.
    pub nodes: Vec<FleetNode>,
    /// The number of them whose noise is known well enough for a comparison.
    pub compared: usize,
    /// The median noise ratio of all nodes, 0 to 1.
    pub median_ratio: f64,
    /// The noise over time.
    pub heat: Option<Heat>,
    /// The sources that hit nodes at the same time, or why they cannot be determined.
    pub together: Result<Together, String>,
    /// Notes on nodes.
    pub problems: Vec<Problem>,
}

/// A note on a node. Commands that do not compare nodes show only the part on noise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The node.
    pub node: String,
    /// The note on its noise, one sentence.
    pub noise: Option<String>,
    /// The note on its comparison with others, one sentence.
    pub comparison: Option<String>,
}

impl Problem {
    pub(crate) fn from_noise(node: &str, noise: String) -> Self {
        Self { node: node.to_owned(), noise: Some(noise), comparison: None }
    }

    pub(crate) fn from_comparison(node: &str, comparison: String) -> Self {
        Self { node: node.to_owned(), noise: None, comparison: Some(comparison) }
    }

    /// Both parts in a sentence.
    pub fn what(&self) -> String {
        let parts: Vec<&str> = [&self.noise, &self.comparison].into_iter().flatten().map(String::as_str).collect();
        parts.join("; ")
    }
}

/// A node of the fleet.
#[derive(Clone, Debug)]
pub struct FleetNode {
    /// Its name.
    pub node: String,
    /// Its noise ratio, 0 to 1.
    pub ratio: f64,
    /// The 95 % interval of the ratio.
    pub interval: Interval,
    /// The number of watched CPUs.
    pub cpus: usize,
    /// The longest detour, in nanoseconds.
    pub longest_ns: i64,
    /// The source with the largest total time, and its share of all time, 0 to 1.
    pub largest: Option<(SourceName, f64)>,
    /// Its difference from its peers, if it is an outlier.
    pub differs: Option<Difference>,
    /// Whether it is compared with the others.
    comparable: bool,
    /// Its noise ratio in the quietest part of its time; `None` if it is unknown when it was watched.
    steady: Option<f64>,
    /// Its size; only nodes of the same size are its peers.
    size: Size,
    /// The share of each source in all time, by total time, 0 to 1.
    sources: BTreeMap<SourceName, f64>,
}

/// The number of a node's online CPUs during the recording, and how many of them were watched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Size {
    online: usize,
    watched: usize,
}

impl Size {
    fn new(doc: &NodeDoc) -> Self {
        Self { online: doc.machine.online.len(), watched: doc.cpus.len() }
    }
}

/// The difference of a node from its peers.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// Its noise ratio over the median of all: above 1 noisier, below 1 quieter.
    pub factor: f64,
    /// An upper bound of the probability that any of so many peers would differ as much.
    pub chance: f64,
    /// The source with the largest part of the difference, and that part, from 0 to 1; `None` if no source is known.
    pub reason: Option<(SourceName, f64)>,
}

/// The facts about a node that are needed for comparisons.
struct Facts {
    node: String,
    ended: bool,
    program: String,
    counter: String,
    watched: Option<Window>,
    size: Size,
    /// The CPUs whose loops ended before the others, in words.
    cut_short: Option<String>,
    threshold_ns: i64,
    /// The first warning that makes its figures unusable for a verdict, in words.
    doubt: Option<String>,
}

impl Facts {
    fn new(doc: &NodeDoc) -> Self {
        Self {
            node: doc.node.clone(),
            ended: doc.ended.is_some(),
            program: doc.program.clone(),
            counter: doc.clock.counter.clone(),
            watched: Window::from_document(doc).filter(|_| doc.origin.is_some()),
            size: Size::new(doc),
            cut_short: {
                let cut: CpuList = doc.cpus.iter().filter(|cpu| cpu.cut_short).map(|cpu| cpu.cpu).collect();
                (!cut.is_empty()).then(|| cpus(&cut))
            },
            doubt: {
                let mut grave = doc.bearing_warnings().filter(|warning| warning.bearing() == Bearing::NotEnough);
                // Loops that ended early are reported separately.
                let doubt = grave.find(|warning| warning.known() != Some(Code::CutShort));
                doubt.map(|warning| warning.message.clone())
            },
            threshold_ns: doc.cpus.iter().map(|cpu| cpu.threshold_ns.get()).max().unwrap_or(0),
        }
    }
}

/// Reads the nodes of some recordings one by one: a full recording is condensed at once, in one pass over its tables. Fails if no node can be read.
pub fn survey(bundles: &[StoredNodes]) -> Result<Fleet, SummaryError> {
    let (mut problems, mut failure) = (Vec::new(), None);
    let (mut facts, mut nodes, mut gathered) = (Vec::new(), Vec::new(), Gathered::default());
    let mut names: BTreeSet<String> = BTreeSet::new();
    for bundle in bundles {
        for node in bundle.names() {
            if names.contains(node) {
                let path = bundle.path().display();
                let told = format!("a node of this name was read already; that of {path} is left out");
                problems.push(Problem::from_noise(node, told));
                continue;
            }
            let stored = match bundle.read(node) {
                Ok(stored) => stored,
                Err(error) => {
                    problems.push(Problem::from_noise(node, format!("its document is left out: {error}")));
                    failure = failure.or(Some(error.into()));
                    continue;
                }
            };
            match digest(stored) {
                Ok(digest) => {
                    names.insert(node.to_owned());
                    facts.push(Facts::new(&digest.run));
                    match FleetNode::from_digest(&digest) {
                        Some(node) => {
                            gathered.take(&digest);
                            nodes.push(node);
                        }
                        None => problems.push(Problem::from_noise(node, "it recorded nothing".to_owned())),
                    }
                }
                Err(error) => {
                    problems.push(Problem::from_noise(node, format!("it is left out: {error}")));
                    failure = failure.or(Some(error));
                }
            }
        }
    }
    if let (true, Some(error)) = (nodes.is_empty(), failure) {
        return Err(error);
    }
    let windows = Windows::new(facts.iter().filter_map(|facts| facts.watched));
    let apart = note_others(&facts, &windows, &mut problems);
    for node in &mut nodes {
        node.comparable = !apart.contains(&node.node);
    }
    note_sizes(&nodes, &mut problems);
    let (compared, median_ratio) = name_outliers(&mut nodes);
    nodes.sort_by(|a, b| b.ratio.total_cmp(&a.ratio).then_with(|| a.node.cmp(&b.node)));
    let (heat, together) = gathered.finish(&windows, nodes.iter().map(|node| node.node.as_str()), &mut problems);
    Ok(Fleet { nodes, compared, median_ratio, heat, together, problems })
}

impl FleetNode {
    /// Whether its noise is known well enough for a comparison.
    fn is_known(&self) -> bool {
        self.ratio > 0.0 && self.interval.low().is_some_and(|low| low > 0.0)
    }

    /// `None` for a node that was never watched.
    fn from_digest(digest: &DigestDoc) -> Option<Self> {
        let NodeNoise { ratio, interval } = node_noise(digest)?;
        let spans = digest.run.cpus.iter().zip(&digest.cpus);
        let spans = spans.filter_map(|(cpu, counts)| observed(&digest.run, cpu, counts).0);
        let observed = spans.fold(0, i64::saturating_add).max(1) as f64;
        let mut wholes: BTreeMap<SourceName, i64> = BTreeMap::new();
        for source in digest.cpus.iter().flat_map(|cpu| &cpu.sources).filter(|source| source.whole_ns > 0) {
            let sum = wholes.entry((source.kind, source.source.clone())).or_default();
            *sum = sum.saturating_add(source.whole_ns);
        }
        let mut ranked: Vec<(SourceName, i64)> = wholes.into_iter().collect();
        ranked.sort_by_key(|source| std::cmp::Reverse(source.1));
        ranked.truncate(SOURCES);
        let ratios = ranked.into_iter().map(|(name, whole)| (name, whole as f64 / observed));
        let sources: Vec<(SourceName, f64)> = ratios.collect();
        Some(Self {
            node: digest.run.node.clone(),
            ratio,
            interval,
            cpus: digest.cpus.len(),
            longest_ns: digest.cpus.iter().map(|cpu| cpu.durations.max_ns).max().unwrap_or(0),
            largest: sources.first().cloned(),
            differs: None,
            comparable: true,
            steady: steady(digest, observed),
            size: Size::new(&digest.run),
            sources: sources.into_iter().collect(),
        })
    }
}

/// The noise ratio of a node in the quietest of [`PARTS`] equal parts of its time; `observed` is the total observed time of its CPUs.
fn steady(digest: &DigestDoc, observed: f64) -> Option<f64> {
    let window = Window::from_document(&digest.run)?;
    let mut parts = [0.0; PARTS];
    for cpu in &digest.cpus {
        for (slot, noise) in cpu.noise_ns.iter().enumerate() {
            let middle =
                (digest.first_slot.saturating_add(slot as i64)).saturating_mul(digest.slot_ns) + digest.slot_ns / 2;
            let since = middle.saturating_sub(window.begin).clamp(0, window.length() - 1);
            parts[(since as f64 / window.length() as f64 * PARTS as f64) as usize % PARTS] += *noise as f64;
        }
    }
    let least = parts.into_iter().fold(f64::INFINITY, f64::min);
    Some(least / (observed / PARTS as f64))
}

/// The most frequent value.
fn usual<'a, T: Ord + 'a>(values: impl Iterator<Item = &'a T>) -> Option<&'a T> {
    let mut counts: BTreeMap<&T, usize> = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(value, _)| value)
}

const NOT_COMPARED: Option<&str> = Some("it is not compared");
const LIKE_ITSELF: Option<&str> = Some("it is only compared with nodes of its size");

/// Reports nodes whose recordings did not end, are from another program, or were made at another time, with other settings, or in part. Returns those
/// whose noise differs from the others for that reason alone.
fn note_others(facts: &[Facts], windows: &Windows, problems: &mut Vec<Problem>) -> BTreeSet<String> {
    let program = usual(facts.iter().map(|facts| &facts.program));
    let counter = usual(facts.iter().map(|facts| &facts.counter));
    let size = usual(facts.iter().map(|facts| &facts.size));
    let lengths = facts.iter().filter_map(|facts| facts.watched).map(Window::length);
    let length = median_low(&mut lengths.collect::<Vec<i64>>()).unwrap_or(0);
    let thresholds = facts.iter().map(|facts| facts.threshold_ns).filter(|ns| *ns > 0);
    let threshold = median_low(&mut thresholds.collect::<Vec<i64>>()).unwrap_or(0);
    let mut apart = BTreeSet::new();
    for node in facts {
        let mut say = |noise: String, comparison: Option<&str>| {
            let comparison = comparison.map(str::to_owned);
            problems.push(Problem { node: node.node.clone(), noise: Some(noise), comparison });
        };
        if !node.ended {
            let noise = "its recording has no end: it is still running, or the node died; the stored part is used";
            say(noise.to_owned(), NOT_COMPARED);
            apart.insert(node.node.clone());
        }
        if let Some(usual) = program.filter(|usual| **usual != node.program) {
            say(format!("it was recorded by {}, most nodes by {usual}", node.program), None);
        }
        if let Some(usual) = counter.filter(|usual| **usual != node.counter) {
            say(
                format!(
                    "its loops read the counter {}, those of most nodes {usual}, which resolves other interruptions",
                    node.counter
                ),
                None,
            );
        }
        if let Some(usual) = size.filter(|usual| usual.watched != node.size.watched) {
            let watched = counted(node.size.watched as u64, "CPU was", "CPUs were");
            say(format!("{watched} recorded, {} on most nodes", usual.watched), LIKE_ITSELF);
        } else if let Some(usual) = size.filter(|usual| usual.online != node.size.online) {
            let online = counted(node.size.online as u64, "CPU was", "CPUs were");
            say(format!("{online} online, {} on most nodes", usual.online), LIKE_ITSELF);
        }
        if let Some(doubt) = &node.doubt {
            say(doubt.clone(), NOT_COMPARED);
            apart.insert(node.node.clone());
        }
        if let Some(cut) = &node.cut_short {
            say(format!("{cut} went offline or was full before the end"), NOT_COMPARED);
            apart.insert(node.node.clone());
        }
        match node.watched {
            Some(watched) if windows.misses(watched) => {
                let noise = "according to its clock, it was recorded at another time than most".to_owned();
                say(noise, Some("its common time is unknown"));
            }
            Some(watched) if watched.length() < length / 10 * 9 && node.ended => {
                let [own, most] = [watched.length(), length].map(Nanos::new);
                say(format!("it was recorded for {own:.1}, most nodes for {most:.1}"), None);
            }
            _ => {}
        }
        if threshold > 0
            && node.threshold_ns > 0
            && !(threshold / 2..=threshold.saturating_mul(2)).contains(&node.threshold_ns)
        {
            let [own, most] = [node.threshold_ns, threshold].map(Nanos::new);
            let noise =
                format!("its threshold is {own}, that of most nodes about {most}, so it sees other interruptions");
            say(noise, NOT_COMPARED);
            apart.insert(node.node.clone());
        }
    }
    apart
}

/// Names outliers with the reason; returns how many nodes were compared, and the median ratio of all.
fn name_outliers(nodes: &mut [FleetNode]) -> (usize, f64) {
    let groups = groups(nodes);
    let peer = |node: &FleetNode| Peer { ratio: node.ratio, interval: node.interval, steady: node.steady };
    let compared = |places: &[usize]| places.iter().filter(|place| nodes[**place].is_known()).count();
    let all: usize = groups.values().map(|places| compared(places)).sum();
    let mut found: Vec<(usize, Difference)> = Vec::new();
    for places in groups.values() {
        let peers: Vec<Peer> = places.iter().map(|place| peer(&nodes[*place])).collect();
        let median = median_mid(&mut peers.iter().map(|peer| peer.ratio).collect::<Vec<_>>()).unwrap_or(0.0);
        let named: Vec<Outlier> = outliers_of(&peers, all - compared(places)).into_iter().flatten().collect();
        let usual = if named.is_empty() { BTreeMap::new() } else { usual_sources(nodes, places) };
        for outlier in named {
            let place = places[outlier.place];
            let reason = reason(&nodes[place], &usual, median);
            found.push((place, Difference { factor: outlier.factor, chance: outlier.chance, reason }));
        }
    }
    for (place, differs) in found {
        nodes[place].differs = Some(differs);
    }
    let mut ratios: Vec<f64> = groups.values().flatten().map(|place| nodes[*place].ratio).collect();
    (all, median_mid(&mut ratios).unwrap_or(0.0))
}

/// The indices of nodes that are each other's peers.
fn groups(nodes: &[FleetNode]) -> BTreeMap<Size, Vec<usize>> {
    let mut groups: BTreeMap<Size, Vec<usize>> = BTreeMap::new();
    for (place, node) in nodes.iter().enumerate().filter(|(_, node)| node.comparable) {
        groups.entry(node.size).or_default().push(place);
    }
    // If all groups are too small, the comparison reports that for all nodes together.
    if groups.values().any(|places| places.len() >= PEERS_MIN) {
        groups.retain(|_, places| places.len() >= PEERS_MIN);
    }
    groups
}

/// Reports nodes without peers, because too few have as many CPUs.
fn note_sizes(nodes: &[FleetNode], problems: &mut Vec<Problem>) {
    let groups = groups(nodes);
    for node in nodes.iter().filter(|node| node.comparable && !groups.contains_key(&node.size)) {
        let what = format!("fewer than {PEERS_MIN} nodes have as many CPUs; it is not compared");
        problems.push(Problem::from_comparison(&node.node, what));
    }
}

/// The median node's share of each source, without sources that it lacks.
fn usual_sources(nodes: &[FleetNode], places: &[usize]) -> BTreeMap<SourceName, f64> {
    let mut values: BTreeMap<&SourceName, Vec<f64>> = BTreeMap::new();
    for place in places {
        for (name, ratio) in &nodes[*place].sources {
            values.entry(name).or_default().push(*ratio);
        }
    }
    let usual =
        values.into_iter().filter(|(_, ratios)| ratios.len() * 2 >= places.len()).filter_map(|(name, mut ratios)| {
            ratios.resize(places.len(), 0.0);
            Some((name.clone(), median_mid(&mut ratios)?))
        });
    usual.collect()
}

/// The source with the largest excess over the median node (for a quiet node, the largest deficit), and its fraction of the difference in noise.
fn reason(node: &FleetNode, usual: &BTreeMap<SourceName, f64>, median: f64) -> Option<(SourceName, f64)> {
    let difference = node.ratio - median;
    let names: Vec<&SourceName> = if difference < 0.0 { usual.keys().collect() } else { node.sources.keys().collect() };
    let share = |sources: &BTreeMap<SourceName, f64>, name: &SourceName| sources.get(name).copied().unwrap_or(0.0);
    let parts = names.into_iter().map(|name| (name, (share(&node.sources, name) - share(usual, name)) / difference));
    let (name, part) = parts.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (part > 0.0).then(|| (name.clone(), part.min(1.0)))
}

#[cfg(test)]
mod tests;
