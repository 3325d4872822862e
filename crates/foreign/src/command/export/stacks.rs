//! Time by source: folded stacks, and profiles of pprof. And runs that may be in summary form, which says that as well.

use crate::rows::{self, stacks_of_digest};
use crate::write::pprof::{self, About};
use crate::write::{folded, stacks::Stack};
use becalm_analyze::summary::SummaryError;
use becalm_bundle::{Bundle, BundleError, Contents};
use becalm_command::arguments::run::open_summary;
use becalm_command::progress::ReadingProgress;
use becalm_model::digest::DigestDoc;
use becalm_model::{Kind, NodeDoc};
use becalm_units::CpuList;
use becalm_units::fault;

use super::destination::Destination;
use super::{ExportArgs, ExportFormat, tell_unstored};

/// What was recorded, in either form.
pub enum Source {
    /// With its single detours: the documents of the nodes with the selected CPUs.
    Full(Bundle, Vec<NodeDoc>),
    /// In summary form, with the selected CPUs.
    Summary(Vec<DigestDoc>),
}

impl Source {
    /// The documents of the recording.
    pub fn docs(&self) -> Box<dyn Iterator<Item = &NodeDoc> + '_> {
        match self {
            Self::Full(_, docs) => Box::new(docs.iter()),
            Self::Summary(docs) => Box::new(docs.iter().map(|doc| &doc.run)),
        }
    }
}

/// Opens the run in the form that it has.
///
/// # Errors
/// If it cannot be read, or does not hold what is selected.
pub fn open(args: &ExportArgs) -> fault::Result<Source> {
    match becalm_command::arguments::run::open(&args.path) {
        Ok(bundle) => {
            let docs = args.selection().documents(&bundle)?;
            Ok(Source::Full(bundle, docs))
        }
        Err(BundleError::Contents { found: Contents::Summary, .. }) => summary(args),
        Err(error) => Err(error.into()),
    }
}

fn summary(args: &ExportArgs) -> fault::Result<Source> {
    let bundle = open_summary(&args.path)?;
    let mut docs = bundle.nodes().to_vec();
    if let Some(name) = &args.node {
        docs.retain(|doc| doc.run.node == *name);
        if docs.is_empty() {
            let nodes: Vec<&str> = bundle.nodes().iter().map(|doc| doc.run.node.as_str()).collect();
            let (bundle, node, nodes) = (bundle.path().to_owned(), name.clone(), nodes.join(", "));
            return Err(BundleError::NoSuchNode { bundle, node, nodes }.into());
        }
    }
    if let Some(cpus) = &args.cpus {
        let measured: CpuList = docs.iter().flat_map(|doc| &doc.cpus).map(|cpu| cpu.cpu).collect();
        let missing = cpus.without(&measured);
        if !missing.is_empty() {
            return Err(SummaryError::NotMeasured { missing, measured }.into());
        }
        for doc in &mut docs {
            doc.cpus.retain(|cpu| cpus.contains(cpu.cpu));
            doc.run.cpus.retain(|cpu| cpus.contains(cpu.cpu));
        }
    }
    Ok(Source::Summary(docs))
}

/// Writes the stacks. In memory are 65,536 rows, and an entry for each part of a source of each CPU.
pub fn export(args: &ExportArgs, destination: Destination<'_>) -> fault::Result<()> {
    let source = open(args)?;
    tell_unstored(source.docs());
    let found: Vec<(&str, Vec<rows::Stack>)> = match &source {
        Source::Full(bundle, docs) => {
            let _reading = ReadingProgress::begin(bundle, 1);
            let of_node = |doc| Ok((doc, rows::stacks(bundle, doc)?));
            let found: Result<Vec<(&NodeDoc, _)>, SummaryError> = docs.iter().map(of_node).collect();
            found?.into_iter().map(|(doc, found)| (doc.node.as_str(), found)).collect()
        }
        Source::Summary(docs) => {
            let of_node = |doc: &DigestDoc| doc.cpus.iter().flat_map(stacks_of_digest).collect();
            docs.iter().map(|doc| (doc.run.node.as_str(), of_node(doc))).collect()
        }
    };
    fn borrowed(name: &Option<(Kind, String)>) -> Option<(Kind, &str)> {
        name.as_ref().map(|(kind, name)| (*kind, name.as_str()))
    }
    let stacks = found.iter().flat_map(|(node, found)| {
        found.iter().map(|stack| Stack {
            node,
            cpu: stack.cpu,
            root: borrowed(&stack.root),
            part: borrowed(&stack.part),
            count: stack.count,
            ns: stack.ns,
        })
    });
    let stacks: Vec<Stack<'_>> = stacks.collect();
    destination.write(|out| {
        if args.to == ExportFormat::Folded {
            return Ok(folded::write(&stacks, out)?);
        }
        let origin = source.docs().map(|doc| doc.origin_ns()).min().unwrap_or(0);
        let cpus = source.docs().flat_map(|doc| &doc.cpus);
        let about = About {
            time_ns: i64::try_from(origin).unwrap_or(0),
            duration_ns: cpus.map(|cpu| cpu.duration_ns.get()).max().unwrap_or(0),
            comment: concat!("written by becalm ", env!("CARGO_PKG_VERSION")),
        };
        Ok(out.write_all(&pprof::encoded(&stacks, about))?)
    })
}
