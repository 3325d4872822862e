//! Time by source, as folded stacks and profiles of pprof. Also for runs in summary form, which has these times too.

use becalm_analyze::summary::{SummaryError, select};
use becalm_bundle::{Bundle, BundleError, Contents};
use becalm_command::arguments::run;
use becalm_command::progress::ReadingProgress;
use becalm_model::NodeDoc;
use becalm_model::digest::DigestDoc;
use becalm_units::fault;

use super::destination::Destination;
use super::{ExportArgs, ExportFormat, tell_unstored};
use crate::rows::{self, Stack, stacks_of_digest};
use crate::write::folded;
use crate::write::pprof::{self, About};

/// A recording in either form.
pub enum Source {
    /// With single detours: the documents of the nodes with the selected CPUs.
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

/// Opens the run in the form that it has. Fails if it cannot be read, or lacks something that is selected.
pub fn open(args: &ExportArgs) -> fault::Result<Source> {
    match run::open(&args.path) {
        Ok(bundle) => {
            let docs = args.selection().documents(&bundle)?;
            Ok(Source::Full(bundle, docs))
        }
        Err(BundleError::Contents { found: Contents::Summary, .. }) => {
            Ok(Source::Summary(select(&run::open_summary(&args.path)?, &args.selection())?))
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes the stacks. In memory are 65,536 rows, and an entry for each part of a source of each CPU.
pub fn export(args: &ExportArgs, destination: Destination<'_>) -> fault::Result<()> {
    let source = open(args)?;
    tell_unstored(source.docs());
    let stacks: Vec<Stack> = match &source {
        Source::Full(bundle, docs) => {
            let _reading = ReadingProgress::begin(bundle, 1);
            let found: Result<Vec<_>, SummaryError> = docs.iter().map(|doc| rows::stacks(bundle, doc)).collect();
            found?.concat()
        }
        Source::Summary(docs) => {
            let cpus = docs.iter().flat_map(|doc| doc.cpus.iter().map(|cpu| (&doc.run.node, cpu)));
            cpus.flat_map(|(node, cpu)| stacks_of_digest(node, cpu)).collect()
        }
    };
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
