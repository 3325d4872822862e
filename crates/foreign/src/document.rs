//! The document of an imported recording: files of other programs contain almost nothing about the machine.

use becalm_model::node::{ClockDoc, CpuDoc, Ended, MachineDoc, NodeDoc, Rung, SCHEMA, SettingsDoc, Warning};
use becalm_model::warning;

use crate::read::Format;

/// The name of a node that neither its files nor the user name.
pub const UNNAMED: &str = "imported";

/// Describes a node that another program recorded on these CPUs.
pub fn recording(node: String, format: Format, cpus: Vec<CpuDoc>) -> NodeDoc {
    let unknown = || "unknown".to_owned();
    NodeDoc {
        schema: SCHEMA.to_owned(),
        node,
        program: format!("becalm {}, import of {format}", env!("CARGO_PKG_VERSION")),
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

/// Adds warnings about files, each once.
pub(crate) fn add_warnings<'a>(to: &mut Vec<Warning>, warnings: impl IntoIterator<Item = &'a Warning>) {
    for warning in warnings {
        if !to.contains(warning) {
            to.push(warning.clone());
        }
    }
}
