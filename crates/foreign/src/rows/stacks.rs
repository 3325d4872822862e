//! The time of the sources of each CPU as stacks: the root, and the part that belongs to it.

use std::collections::HashMap;

use becalm_account::{BatchOwners, CpuAccount, SourceId, SourceIds};
use becalm_analyze::summary::SummaryError;
use becalm_bundle::{ActivityBatch, Bundle};
use becalm_model::Kind;
use becalm_model::digest::CpuDigest;
use becalm_model::node::{NodeDoc, Rung};
use becalm_units::CpuId;

/// The time that one part of a source took on a CPU. All stacks of a root add up to its total.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stack {
    /// The node that lost the time.
    pub node: String,
    /// The CPU that lost it.
    pub cpu: CpuId,
    /// Kind and name of the source that is charged; `None` for detours or parts of them without activities.
    pub root: Option<(Kind, String)>,
    /// Kind and name of the part, unless it is the root itself.
    pub part: Option<(Kind, String)>,
    /// The number of activities; without activities, of detours.
    pub count: u64,
    /// Their own time, in nanoseconds.
    pub ns: i64,
}

/// The frame of time without a root.
const NOT_BOOKED: &str = "not attributed";

impl Stack {
    /// Its frames, outermost first: the node if `with_node`, the CPU, kind and name of the root, the part.
    pub fn frames(&self, with_node: bool) -> Vec<String> {
        let mut frames = Vec::with_capacity(5);
        if with_node {
            frames.push(self.node.clone());
        }
        frames.push(format!("cpu{}", self.cpu));
        match &self.root {
            Some((kind, name)) => frames.extend([kind.name().to_owned(), name.clone()]),
            None => frames.push(NOT_BOOKED.to_owned()),
        }
        frames.extend(self.part.as_ref().map(|(kind, name)| format!("{kind} {name}")));
        frames
    }
}

/// The time of the sources on the CPUs of a recording, without becalm's own, in the order of CPUs and names.
///
/// In memory are 65,536 rows, an entry for each part of a source of each CPU, and one for each detour with time of becalm.
pub fn stacks(bundle: &Bundle, doc: &NodeDoc) -> Result<Vec<Stack>, SummaryError> {
    let mut sums = Sums::new(doc);
    if doc.rung == Rung::Tracepoints {
        for batch in bundle.activities(&doc.node)? {
            sums.add(&batch?);
        }
    }
    for batch in bundle.detours(&doc.node)? {
        let batch = batch?;
        for (cpu, duration) in batch.cpus().iter().zip(batch.durations()) {
            if let Some(place) = sums.place(*cpu)
                && let Some(noise) = sums.accounts[place].detour(*duration)
            {
                let left = &mut sums.left[place];
                *left = (left.0 + 1, left.1.saturating_add(noise));
            }
        }
    }
    Ok(sums.finish())
}

/// The same for a recording in summary form, which only has totals.
pub fn stacks_of_digest(node: &str, cpu: &CpuDigest) -> Vec<Stack> {
    let of_sources = cpu.sources.iter().filter(|source| source.whole_ns > 0).map(|source| Stack {
        node: node.to_owned(),
        cpu: cpu.cpu,
        root: Some((source.kind, source.source.clone())),
        part: None,
        count: source.lengths.count(),
        ns: source.whole_ns,
    });
    let mut stacks: Vec<Stack> = of_sources.collect();
    let left = cpu.durations.total_ns - stacks.iter().map(|stack| stack.ns).sum::<i64>();
    if left > 0 {
        let (root, part, count) = (None, None, cpu.durations.count);
        stacks.push(Stack { node: node.to_owned(), cpu: cpu.cpu, root, part, count, ns: left });
    }
    stacks.sort();
    stacks
}

struct Sums {
    node: String,
    cpus: Vec<CpuId>,
    names: SourceIds,
    /// Count and time by the CPU's position, root and source.
    sums: HashMap<(usize, SourceId, SourceId), (u64, i64)>,
    /// By CPU: the number of detours, and the noise that no activity accounts for.
    left: Vec<(u64, i64)>,
    accounts: Vec<CpuAccount>,
}

impl Sums {
    fn new(doc: &NodeDoc) -> Self {
        let cpus: Vec<CpuId> = doc.cpus.iter().map(|cpu| cpu.cpu).collect();
        let (left, accounts) = (vec![(0, 0); cpus.len()], vec![CpuAccount::default(); cpus.len()]);
        Self { node: doc.node.clone(), cpus, names: SourceIds::default(), sums: HashMap::new(), left, accounts }
    }

    fn place(&self, cpu: i32) -> Option<usize> {
        self.cpus.binary_search(&CpuId::new(u32::try_from(cpu).ok()?)).ok()
    }

    fn add(&mut self, batch: &ActivityBatch) {
        let (sources, details) = (batch.source_values(), batch.detail_values());
        let mut owners = BatchOwners::new(&sources, &details);
        let mut at = (None, None);
        for row in 0..batch.len() {
            let cpu = batch.cpus()[row];
            if at.0 != Some(cpu) {
                at = (Some(cpu), self.place(cpu));
            }
            let Some(place) = at.1 else { continue };
            let owner = owners.owner(&mut self.names, batch.kind(row), batch.source_key(row), batch.detail_key(row));
            let self_time = batch.self_times()[row];
            if self.accounts[place].activity(batch.detours()[row] as u64, self_time, owner) {
                let sum = self.sums.entry((place, owner.root, owner.source)).or_default();
                *sum = (sum.0 + 1, sum.1.saturating_add(self_time));
                let (_, left) = &mut self.left[place];
                *left = left.saturating_sub(self_time);
            }
        }
    }

    fn finish(self) -> Vec<Stack> {
        let Self { node, cpus, names, sums, left, .. } = self;
        let stack = |cpu, root, part, (count, ns)| Stack { node: node.clone(), cpu, root, part, count, ns };
        let booked = sums.into_iter().map(|((place, root, source), sum)| {
            let name = |id| (names.name(id).0, names.name(id).1.to_owned());
            let part = (source != root).then(|| name(source));
            stack(cpus[place], Some(name(root)), part, sum)
        });
        let open = cpus.iter().zip(&left).filter(|(_, (_, ns))| *ns > 0);
        let open = open.map(|(cpu, left)| stack(*cpu, None, None, *left));
        let mut stacks: Vec<Stack> = booked.chain(open).collect();
        stacks.sort();
        stacks
    }
}
