//! The stored run that a command reads.

use std::path::{Path, PathBuf};

use becalm_analyze::summary::Selection;
use becalm_bundle::{Bundle, BundleError, SummaryBundle};
use becalm_units::CpuList;
use clap::Args;

use crate::arguments::some_cpus;
use crate::messages;

/// Opens a recording. Reports unreadable nodes and reads the others.
pub fn open(path: &Path) -> Result<Bundle, BundleError> {
    becalm_answer::open::recording(path, messages::say)
}

/// Opens a recording in summary form in the same way.
pub fn open_summary(path: &Path) -> Result<SummaryBundle, BundleError> {
    becalm_answer::open::summary(path, messages::say)
}

/// Which run, and which part of it.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Recording: the directory that `becalm record` wrote, with or without .becalm
    #[arg(value_name = "RUN")]
    pub path: PathBuf,

    /// Show only these CPUs, such as 0-3,8
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus)]
    pub cpus: Option<CpuList>,

    /// Show only this node of a recording of several
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,

    /// Count the CPU time of becalm's own threads as noise
    #[arg(long)]
    pub with_self: bool,
}

impl RunArgs {
    /// Opens the run, of detours or of work. Reports unreadable nodes and reads the others.
    pub fn open(&self) -> Result<Bundle, BundleError> {
        open(&self.path)
    }

    /// Opens the run, in summary form, in the same way.
    pub fn open_summary(&self) -> Result<SummaryBundle, BundleError> {
        open_summary(&self.path)
    }

    /// The requested part.
    pub fn selection(&self) -> Selection {
        let Self { node, cpus, with_self, .. } = self;
        Selection { node: node.clone(), cpus: cpus.clone(), with_self: *with_self, ..Selection::default() }
    }
}
