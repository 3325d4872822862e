//! The table of the causes of activities.

use std::path::Path;

use becalm_model::cause::{Cause, Requester};
use becalm_model::{Labels, Pid};
use becalm_units::{CpuId, Nanos};

use crate::BundleError;
use crate::node_tables::{NodeTables, by_key, interned, kind, length, named};
use crate::schema::CAUSES;

/// The causes of the activities of a node.
#[derive(Clone, Debug)]
pub struct CauseTable {
    tables: NodeTables,
    rows: u64,
}

impl CauseTable {
    /// The table of a node of the bundle in this directory, with this number of rows according to its document.
    pub fn new(bundle: &Path, node: &str, rows: u64) -> Self {
        Self { tables: NodeTables::new(bundle, node), rows }
    }

    /// Calls `each` for every cause, roughly in the order of their ends. Fails if the table is missing, damaged, of another version, or contradicts the
    /// document.
    pub fn read(&self, labels: &mut Labels, each: &mut dyn FnMut(Cause)) -> Result<(), BundleError> {
        self.tables.read(&CAUSES, self.rows, &mut |mut rows| {
            let (cpus, tasks, threads) = (rows.int32("cpu")?, rows.int32("tid")?, rows.int32("by_tid")?);
            let (starts, lengths, delays) =
                (rows.int64("start_ns")?, rows.int64("duration_ns")?, rows.int64("delay_ns")?);
            let (kinds, owners) = (rows.names("kind")?, rows.names("owner")?);
            let (kinds_by_key, owners_by_key) = (by_key(&kinds, kind), by_key(&owners, named::<Requester>));
            let mut texts = |name| -> Result<_, String> { Ok(interned(&rows.names(name)?, cpus.len(), labels)) };
            let (sources, names) = (texts("source")?, texts("by")?);
            let (contexts, sites) = (texts("context")?, texts("site")?);
            for row in 0..cpus.len() {
                let known = kinds_by_key[kinds.key(row)].zip(owners_by_key[owners.key(row)]);
                let Some((kind, requester)) = known else {
                    return Err(format!("a cause is of '{}', by '{}'", kinds.name(row), owners.name(row)));
                };
                let cpu = u32::try_from(cpus[row]).ok().filter(|cpu| *cpu < CpuId::LIMIT);
                each(Cause {
                    cpu: CpuId::new(cpu.ok_or_else(|| format!("{} is no number of a CPU", cpus[row]))?),
                    start: Nanos::new(starts[row]),
                    duration: length(starts[row], lengths[row])?,
                    kind,
                    source: sources[row],
                    task: Pid(tasks[row].max(0)),
                    requester,
                    by: names[row],
                    thread: Pid(threads[row].max(0)),
                    context: contexts[row],
                    site: sites[row],
                    delay: (delays[row] >= 0).then(|| Nanos::new(delays[row])),
                });
            }
            Ok(cpus.len())
        })
    }
}
