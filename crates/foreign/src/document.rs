//! The document of an imported recording: files of other programs contain almost nothing about the machine.

use becalm_model::node::{ClockDoc, CpuDoc, Ended, MachineDoc, NodeDoc, Rung, SCHEMA, SettingsDoc, Warning};
use becalm_model::warning;
use becalm_observe::document::ObservedDoc;

use crate::read::Format;

/// The name of a node that neither its files nor the user name.
pub const UNNAMED: &str = "imported";

/// Describes a node that another program recorded on these CPUs.
pub fn recording(node: String, format: Format, cpus: Vec<CpuDoc>) -> NodeDoc {
    let unknown = || "unknown".to_owned();
    NodeDoc {
        schema: SCHEMA.to_owned(),
        node,
        program: importer(format),
        origin: None,
        ended: Some(Ended::Unknown),
        machine: MachineDoc {
            kernel: unknown(),
            online: cpus.iter().map(|cpu| cpu.cpu).collect(),
            ..MachineDoc::default()
        },
        clock: ClockDoc { counter: unknown(), rate_error_ratio: 1.0, ..ClockDoc::default() },
        settings: SettingsDoc { sched: unknown(), threshold: unknown(), ..SettingsDoc::default() },
        rung: Rung::Loop,
        cpus,
        tracing: None,
        stored: None,
        counters: Vec::new(),
        warnings: vec![warning::imported()],
    }
}

/// An observation of threads in a trace that another program recorded.
pub fn observation(node: String, format: Format) -> ObservedDoc {
    let mut doc = ObservedDoc::new(node, importer(format));
    doc.machine.kernel = "unknown".to_owned();
    doc.clock.rate_error_ratio = 1.0;
    doc
}

/// The program that writes a document about a file of this format.
fn importer(format: Format) -> String {
    format!("becalm {}, import of {format}", env!("CARGO_PKG_VERSION"))
}

/// Adds warnings about files, each once.
pub(crate) fn add_warnings<'a>(to: &mut Vec<Warning>, warnings: impl IntoIterator<Item = &'a Warning>) {
    for warning in warnings {
        if !to.contains(warning) {
            to.push(warning.clone());
        }
    }
}
