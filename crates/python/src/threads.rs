//! The tables of observed threads.

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use becalm_bundle::{ObservedTables, load_documents, node_document};
use becalm_model::Labels;
use becalm_observe::document::{ObservedDoc, TakerDoc, ThreadDoc};
use becalm_observe::places::places;
use becalm_units::{Named, fault};

use crate::record_batch::{Names, int32, int64, table};

/// A bundle of `becalm observe`.
pub struct ObservedRun {
    path: PathBuf,
    docs: Vec<ObservedDoc>,
}

impl ObservedRun {
    /// Opens the bundle at a path. Fails if a document cannot be read.
    pub fn open(path: &Path) -> fault::Result<Self> {
        let docs = load_documents::<ObservedDoc>(path, None)?;
        let node = docs.first().map(|doc| doc.node.as_str());
        let path = node_document::load::<ObservedDoc>(path, node)?.bundle;
        Ok(Self { path, docs })
    }

    /// The directory of the bundle.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The documents of its nodes, sorted by name.
    pub fn documents(&self) -> &[ObservedDoc] {
        &self.docs
    }

    /// The documents of the chosen node, or of all. Fails if there is no such node.
    fn chosen(&self, node: Option<&str>) -> fault::Result<Vec<ObservedDoc>> {
        match node {
            // The bundle's own error lists the nodes.
            Some(_) => Ok(load_documents(&self.path, node)?),
            None => Ok(self.docs.clone()),
        }
    }

    fn tables(&self, doc: &ObservedDoc) -> ObservedTables {
        ObservedTables::new(&self.path, &doc.node, doc.rows)
    }

    /// The observed threads of the document; `thread` is the number in the table of stays, -1 without one.
    pub fn threads(&self, node: Option<&str>) -> fault::Result<RecordBatch> {
        let [mut nodes, mut names, mut commands, mut groups] = [(); 4].map(|()| Names::default());
        let (mut numbers, mut rows) = (Vec::new(), Vec::<ThreadDoc>::new());
        for doc in self.chosen(node)? {
            let mut of_doc = vec![-1; doc.threads.len()];
            if doc.tracing.is_some() {
                let threads = self.tables(&doc).threads(&mut Labels::new())?;
                for (thread, place) in places(&threads, doc.threads.iter()) {
                    of_doc[place] = i32::try_from(thread.0).unwrap_or(-1);
                }
            }
            numbers.extend(of_doc);
            for thread in doc.threads {
                nodes.push(&doc.node);
                names.push(&thread.name);
                commands.push(&thread.command);
                groups.push(&thread.cgroup);
                rows.push(thread);
            }
        }
        let whole = |of: fn(&ThreadDoc) -> i64| int64(rows.iter().map(of).collect());
        let short = |of: fn(&ThreadDoc) -> i32| int32(rows.iter().map(of).collect());
        table(vec![
            ("node", nodes.array()),
            ("thread", int32(numbers)),
            ("tid", short(|row| row.tid)),
            ("process", short(|row| row.process)),
            ("name", names.array()),
            ("command", commands.array()),
            ("cgroup", groups.array()),
            ("rank", short(|row| row.rank.and_then(|rank| rank.try_into().ok()).unwrap_or(-1))),
            ("start_ns", whole(|row| row.start_ns.get())),
            ("wall_ns", whole(|row| row.wall_ns.get())),
            ("ran_ns", whole(|row| row.ran_ns.get())),
            ("waited_ns", whole(|row| row.waited_ns.get())),
            ("queued_ns", whole(|row| row.queued_ns.get())),
            ("on_the_way_ns", whole(|row| row.on_the_way_ns.get())),
            ("quota_ns", whole(|row| row.quota_ns.get())),
            ("asleep_ns", whole(|row| row.asleep_ns.get())),
            ("stopped_ns", whole(|row| row.stopped_ns.get())),
            ("unknown_ns", whole(|row| row.unknown_ns.get())),
            ("switches", whole(|row| row.switches.try_into().unwrap_or(i64::MAX))),
        ])
    }

    /// The parts of their lives, in the order of the bundle.
    pub fn stays(&self, node: Option<&str>) -> fault::Result<RecordBatch> {
        let [mut nodes, mut states, mut reasons, mut contexts] = [(); 4].map(|()| Names::default());
        let [mut threads, mut cpus, mut wakers] = [(); 3].map(|()| Vec::new());
        let (mut starts, mut durations) = (Vec::new(), Vec::new());
        for doc in self.chosen(node)?.iter().filter(|doc| doc.tracing.is_some()) {
            self.tables(doc).stays(&mut Labels::new(), &mut |stay, labels| {
                let number = |number: u32| i32::try_from(number).unwrap_or(-1);
                nodes.push(&doc.node);
                threads.push(number(stay.thread.0));
                cpus.push(number(stay.cpu.get()));
                starts.push(stay.start.get());
                durations.push(stay.duration.get());
                states.push(stay.part.name());
                reasons.push(stay.reason.name());
                contexts.push(labels.text(stay.context));
                wakers.push(stay.by.map_or(-1, |waker| number(waker.0)));
            })?;
        }
        table(vec![
            ("node", nodes.array()),
            ("thread", int32(threads)),
            ("cpu", int32(cpus)),
            ("start_ns", int64(starts)),
            ("duration_ns", int64(durations)),
            ("state", states.array()),
            ("why", reasons.array()),
            ("context", contexts.array()),
            ("waker", int32(wakers)),
        ])
    }

    /// The takers of the CPU while observed threads waited, the most costly of a node first; `process` is -1 for several or none.
    pub fn takers(&self, node: Option<&str>) -> fault::Result<RecordBatch> {
        let [mut nodes, mut kinds, mut sources, mut owners, mut commands, mut groups] =
            [(); 6].map(|()| Names::default());
        let mut rows = Vec::<TakerDoc>::new();
        for doc in self.chosen(node)? {
            for taker in doc.takers {
                nodes.push(&doc.node);
                kinds.push(taker.kind.name());
                sources.push(&taker.source);
                owners.push(taker.owner.name());
                commands.push(&taker.command);
                groups.push(&taker.cgroup);
                rows.push(taker);
            }
        }
        let whole = |of: fn(&TakerDoc) -> i64| int64(rows.iter().map(of).collect());
        table(vec![
            ("node", nodes.array()),
            ("kind", kinds.array()),
            ("source", sources.array()),
            ("owner", owners.array()),
            ("ns", whole(|row| row.ns.get())),
            ("count", whole(|row| row.count.try_into().unwrap_or(i64::MAX))),
            ("longest_ns", whole(|row| row.longest_ns.get())),
            ("process", int32(rows.iter().map(|row| row.process.unwrap_or(-1)).collect())),
            ("command", commands.array()),
            ("cgroup", groups.array()),
        ])
    }
}
