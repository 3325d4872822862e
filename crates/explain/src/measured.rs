//! Recordings of CPUs: what spans on them need to be explained.

use std::collections::HashSet;
use std::path::Path;

use becalm_bundle::Bundle;
use becalm_model::node::NodeDoc;
use becalm_units::fault::{self, UsageError, Wording};
use becalm_units::{CpuId, CpuList, cpus};

use crate::joined::{PlacedSpan, threads_of};
use crate::lives::{Lives, MeasuredCpu, OwnThreads};
use crate::subjects::Subjects;

/// A recording of CPUs.
pub struct Measured {
    bundle: Bundle,
    cpus: Vec<MeasuredCpu>,
}

impl Measured {
    /// Opens a recording, with the CPUs of one of its nodes or of all. Fails if it cannot be read, has no such node, or lacks what explains spans.
    pub fn open(path: &Path, node: Option<&str>) -> fault::Result<Self> {
        let bundle = Bundle::open(path)?;
        let is_wanted = |doc: &&NodeDoc| node.is_none_or(|node| doc.node == node);
        let docs: Vec<&NodeDoc> = bundle.nodes().iter().filter(is_wanted).collect();
        if docs.is_empty() {
            let names: Vec<&str> = bundle.nodes().iter().map(|doc| doc.node.as_str()).collect();
            let text = format!("{} has no node '{}', only {}", path.display(), node.unwrap_or(""), names.join(", "));
            return Err(UsageError::new(text).into());
        }
        for doc in &docs {
            let lacks = if doc.settings.work.is_some() {
                "it is a run of work, which has samples and no detours"
            } else if doc.ended.is_none() {
                "it has not come to its end, or becalm record was killed"
            } else {
                continue;
            };
            let text = format!("{} cannot explain spans: {lacks}; record with becalm record", path.display());
            return Err(UsageError::new(text).into());
        }
        let of_node = |doc: &&NodeDoc| {
            let (node, has_loop) = (doc.node.clone(), doc.has_loop());
            let all = doc.cpus.clone().into_iter();
            all.map(move |doc| MeasuredCpu { node: node.clone(), doc, has_loop }).collect::<Vec<_>>()
        };
        let cpus = docs.iter().flat_map(of_node).collect();
        Ok(Self { bundle, cpus })
    }

    /// The documents of all nodes.
    pub fn nodes(&self) -> &[NodeDoc] {
        self.bundle.nodes()
    }

    /// The CPUs.
    pub fn cpus(&self) -> &[MeasuredCpu] {
        &self.cpus
    }

    /// The document of the only node. Fails if there are several.
    pub fn only_node(&self) -> fault::Result<&NodeDoc> {
        let names: std::collections::BTreeSet<&str> = self.cpus.iter().map(|cpu| cpu.node.as_str()).collect();
        let doc = self.nodes().iter().find(|doc| names.contains(doc.node.as_str()));
        match doc.filter(|_| names.len() == 1) {
            Some(doc) => Ok(doc),
            None => {
                let text = Wording::new("the recording has several nodes; name one of them with {node}: {}");
                Err(UsageError::new(text.with(names.into_iter().collect::<Vec<_>>().join(", "))).into())
            }
        }
    }

    /// The start of the first loop, and the end of the last one.
    pub fn books(&self) -> (i64, i64) {
        let starts = self.cpus.iter().map(|cpu| cpu.doc.start_ns.get());
        let ends = self.cpus.iter().map(|cpu| (cpu.doc.start_ns + cpu.doc.duration_ns).get());
        (starts.min().unwrap_or(0), ends.max().unwrap_or(0))
    }

    /// The CPUs as subjects of spans, which are on `wanted` or on the only one if they name none. Fails if that CPU was not measured.
    pub fn subjects(&self, wanted: Option<CpuId>) -> Result<Subjects, UsageError> {
        let list: CpuList = self.cpus.iter().map(|cpu| cpu.doc.cpu).collect();
        if let Some(cpu) = wanted.filter(|cpu| !list.contains(*cpu)) {
            return Err(UsageError::new(format!("CPU {cpu} was not measured; the recording has {}", cpus(&list))));
        }
        let only = self.cpus.first().filter(|_| self.cpus.len() == 1).map(|cpu| cpu.doc.cpu);
        Ok(Subjects::cpus(self.cpus.iter().map(|cpu| cpu.doc.clone()).collect(), wanted.or(only)))
    }

    /// The lives of the CPUs of spans, and what the reader must know of them. `own` are the program's threads.
    pub fn lives(&self, spans: &[PlacedSpan], own: &OwnThreads) -> fault::Result<(Lives, Vec<String>)> {
        let pieces = || spans.iter().flat_map(|span| &span.pieces);
        let from = pieces().map(|piece| piece.start).min().unwrap_or(0);
        let to = pieces().map(|piece| piece.end).max().unwrap_or(0);
        let wanted = threads_of(spans);
        let (lives, shows_program) = Lives::of_cpus(&self.bundle, &self.cpus, &wanted, (from, to), own)?;
        let known = "the recording knows what interrupted these CPUs, and not what the program did";
        let nodes: HashSet<&str> =
            wanted.iter().filter_map(|place| self.cpus.get(place.0 as usize)).map(|cpu| cpu.node.as_str()).collect();
        let docs = || self.nodes().iter().filter(|doc| nodes.contains(doc.node.as_str()));
        let mut notes = vec![if shows_program && docs().any(NodeDoc::has_loop) {
            format!("{known}: it slept, or waited, while becalm's measuring loop had the CPU")
        } else {
            format!("{known}: its sleep, and its time on other CPUs, count as its own")
        }];
        if docs().any(|doc| doc.tracing.is_none()) {
            notes.push("it was recorded without the kernel's trace, so interruptions have no names".to_owned());
        }
        let lost: u64 = docs().flat_map(|doc| &doc.cpus).map(|cpu| cpu.lost_events).sum();
        notes.extend(lost_note(lost));
        Ok((lives, notes))
    }
}

/// A note on dropped events, if there are any.
pub fn lost_note(lost: u64) -> Option<String> {
    (lost > 0)
        .then(|| format!("the recording lacks {}", becalm_units::counted(lost, "dropped event", "dropped events")))
}
