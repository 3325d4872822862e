//! What the sources of each CPU took, as stacks: the root, and what belongs to it.

use std::collections::HashMap;

use becalm_bundle::{ActivityBatch, Bundle};
use becalm_model::digest::CpuDigest;
use becalm_model::node::{NodeDoc, Rung};
use becalm_model::{Kind, root};
use becalm_units::CpuId;

use crate::summary::SummaryError;

/// What one part of a source took on a CPU. Over all stacks of a root the times add up to its whole.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stack {
    /// The CPU that lost the time.
    pub cpu: CpuId,
    /// The kind and the name of the source that goes with all of it; `None` of time in detours of which nothing is booked.
    pub root: Option<(Kind, String)>,
    /// The kind and the name of what took it, where that is not the root itself.
    pub part: Option<(Kind, String)>,
    /// How many activities these were; of time that is not booked, how many detours.
    pub count: u64,
    /// Their own time, in nanoseconds.
    pub ns: i64,
}

/// A root, and the part of it.
type Names = (Option<(Kind, String)>, Option<(Kind, String)>);

/// What the sources took on the CPUs of a recording, without becalm's own time, in the order of CPUs and names.
///
/// In memory are 65,536 rows, and an entry for each part of a source of each CPU.
///
/// # Errors
/// If a file cannot be read.
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
            if let Some(place) = sums.place(*cpu) {
                let left = &mut sums.left[place];
                *left = (left.0 + 1, left.1.saturating_add(*duration));
            }
        }
    }
    Ok(sums.finish())
}

/// The same of a recording in summary form, which knows only the wholes.
#[must_use]
pub fn stacks_of_digest(cpu: &CpuDigest) -> Vec<Stack> {
    let of_sources = cpu.sources.iter().filter(|source| source.whole_ns > 0).map(|source| Stack {
        cpu: cpu.cpu,
        root: Some((source.kind, source.source.clone())),
        part: None,
        count: source.lengths.count(),
        ns: source.whole_ns,
    });
    let mut stacks: Vec<Stack> = of_sources.collect();
    let left = cpu.durations.total_ns - stacks.iter().map(|stack| stack.ns).sum::<i64>();
    if left > 0 {
        stacks.push(Stack { cpu: cpu.cpu, root: None, part: None, count: cpu.durations.count, ns: left });
    }
    stacks.sort();
    stacks
}

struct Sums {
    cpus: Vec<CpuId>,
    names: Vec<Names>,
    ids: HashMap<Names, u32>,
    /// Count and time by the CPU's place and the number of the names.
    sums: HashMap<(usize, u32), (u64, i64)>,
    /// By CPU: how many detours there are, and how long they are together, less what is booked.
    left: Vec<(u64, i64)>,
}

impl Sums {
    fn new(doc: &NodeDoc) -> Self {
        let cpus: Vec<CpuId> = doc.cpus.iter().map(|cpu| cpu.cpu).collect();
        let left = vec![(0, 0); cpus.len()];
        Self { cpus, names: Vec::new(), ids: HashMap::new(), sums: HashMap::new(), left }
    }

    fn place(&self, cpu: i32) -> Option<usize> {
        self.cpus.binary_search(&CpuId::new(u32::try_from(cpu).ok()?)).ok()
    }

    fn id(&mut self, names: Names) -> u32 {
        if let Some(id) = self.ids.get(&names) {
            return *id;
        }
        let id = self.names.len() as u32;
        self.names.push(names.clone());
        self.ids.insert(names, id);
        id
    }

    fn add(&mut self, batch: &ActivityBatch) {
        let (sources, details) = (batch.source_values(), batch.detail_values());
        // Names are looked up once a batch and combination, not once a row. Only details of these kinds name a root.
        let mut known: HashMap<(Kind, usize, usize), Option<u32>> = HashMap::new();
        let mut at = (None, None);
        for row in 0..batch.len() {
            let cpu = batch.cpus()[row];
            if at.0 != Some(cpu) {
                at = (Some(cpu), self.place(cpu));
            }
            let Some(place) = at.1 else { continue };
            let kind = batch.kind(row);
            let detail = if root::may_be_anothers(kind) { batch.detail_key(row) } else { usize::MAX };
            let key = (kind, batch.source_key(row), detail);
            let id = match known.get(&key) {
                Some(id) => *id,
                None => {
                    let source = sources[key.1];
                    let of = root::of_row(kind, source, details.get(detail).copied().unwrap_or_default());
                    let part = (of != (kind, source)).then(|| (kind, source.to_owned()));
                    // What becalm itself takes is no noise of the machine.
                    let is_noise = of.0 != Kind::Becalm;
                    let id = is_noise.then(|| self.id((Some((of.0, of.1.to_owned())), part)));
                    *known.entry(key).or_insert(id)
                }
            };
            let self_time = batch.self_times()[row];
            self.left[place].1 = self.left[place].1.saturating_sub(self_time);
            if let Some(id) = id {
                let sum = self.sums.entry((place, id)).or_default();
                *sum = (sum.0 + 1, sum.1.saturating_add(self_time));
            }
        }
    }

    fn finish(self) -> Vec<Stack> {
        let Self { cpus, names, sums, left, .. } = self;
        let booked = sums.into_iter().map(|((place, id), (count, ns))| {
            let (root, part) = names[id as usize].clone();
            Stack { cpu: cpus[place], root, part, count, ns }
        });
        let open = cpus.iter().zip(&left).filter(|(_, (_, ns))| *ns > 0);
        let open = open.map(|(cpu, (count, ns))| Stack { cpu: *cpu, root: None, part: None, count: *count, ns: *ns });
        let mut stacks: Vec<Stack> = booked.chain(open).collect();
        stacks.sort();
        stacks
    }
}
