//! Chooses the CPUs that should be quiet: the named ones, else those already isolated, else all but the first.

use std::path::Path;

use becalm_linux::file::FileError;
use becalm_linux::sysfs::cpu::CpuSets;
use becalm_linux::sysfs::partition::partitions;
use becalm_units::CpuList;
use becalm_units::fault::Fault;

use super::words::are;
use crate::document::{Chosen, CpuChoice};

/// No CPUs could be chosen.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// The machine does not list its CPUs.
    #[error(transparent)]
    File(#[from] FileError),
    /// Some of the named CPUs are not online.
    #[error("{} not online; online are {online}", are(missing))]
    NotOnline {
        /// The CPUs that are not online.
        missing: CpuList,
        /// The online CPUs.
        online: CpuList,
    },
    /// According to the machine none is online.
    #[error("the machine says that no CPU is online")]
    NoneOnline,
    /// The user named an empty list of CPUs.
    #[error("the list of CPUs is empty; name at least one")]
    Empty,
}

impl Fault for ChoiceError {
    fn is_usage(&self) -> bool {
        !matches!(self, Self::File(_))
    }
}

/// Chooses the CPUs. Fails if the list of online CPUs cannot be read, or a named CPU is not in it.
pub fn choose(root: &Path, named: Option<&CpuList>) -> Result<CpuChoice, ChoiceError> {
    let sets = CpuSets::read(root)?;
    let online = sets.online;
    if online.is_empty() {
        return Err(ChoiceError::NoneOnline);
    }
    let choice = |cpus: CpuList, chosen| CpuChoice { others: online.without(&cpus), cpus, chosen };
    if let Some(named) = named {
        let missing = named.without(&online);
        return match (named.is_empty(), missing.is_empty()) {
            (true, _) => Err(ChoiceError::Empty),
            (_, false) => Err(ChoiceError::NotOnline { missing, online }),
            _ => Ok(choice(named.clone(), Chosen::Named)),
        };
    }
    // The check itself reports files that cannot be read here.
    let groups = partitions(root).unwrap_or_default();
    let grouped = groups.iter().filter(|group| group.is_isolated()).flat_map(|group| group.cpus.iter());
    let apart: CpuList = sets.isolated.iter().chain(sets.nohz_full.iter()).chain(grouped).collect();
    let apart = apart.intersection(&online);
    if !apart.is_empty() {
        return Ok(choice(apart, Chosen::KeptApart));
    }
    let rest: CpuList = online.iter().skip(1).collect();
    Ok(if rest.is_empty() { choice(online.clone(), Chosen::OnlyOne) } else { choice(rest, Chosen::AllButFirst) })
}
