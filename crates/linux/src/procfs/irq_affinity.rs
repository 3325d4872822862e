//! /proc/irq/N: where each device interrupt may be handled, and where it is handled.

use std::path::Path;

use becalm_units::CpuList;

use crate::file::{self, FileError, optional, parse, parse_cpus};

/// The CPUs that one interrupt may go to, and the CPUs that it goes to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IrqAffinity {
    /// The interrupt's number, as in /proc/interrupts.
    pub irq: u32,
    /// The names of its handlers; empty if it was never requested.
    pub handlers: Vec<String>,
    /// The CPUs that it may go to.
    pub allowed: CpuList,
    /// The CPUs that it goes to; equal to `allowed` on kernels that do not report them.
    pub effective: CpuList,
}

/// The affinity of every interrupt, by number; empty without /proc/irq. Skips interrupts whose file cannot be read or parsed.
pub fn irq_affinities(root: &Path) -> Result<Vec<IrqAffinity>, FileError> {
    let mut numbers: Vec<u32> = file::names(root, "proc/irq")?.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    let mut found = Vec::new();
    for irq in numbers {
        let folder = format!("proc/irq/{irq}");
        // An interrupt may be freed at any time.
        let Ok(Some(allowed)) = list(root, &format!("{folder}/smp_affinity_list")) else { continue };
        let effective = list(root, &format!("{folder}/effective_affinity_list"));
        let effective = effective.ok().flatten().unwrap_or_else(|| allowed.clone());
        // Each handler has a directory with its name.
        let handlers = file::names(root, &folder)?;
        let handlers = handlers.into_iter().filter(|name| file::path_below(root, format!("{folder}/{name}")).is_dir());
        found.push(IrqAffinity { irq, handlers: handlers.collect(), allowed, effective });
    }
    Ok(found)
}

fn list(root: &Path, name: &str) -> Result<Option<CpuList>, FileError> {
    optional(parse(root, name, "the affinity of an interrupt", parse_cpus))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::write_tree;

    #[test]
    fn reads_what_is_there() {
        let root = tempfile::tempdir().unwrap();
        assert!(irq_affinities(root.path()).unwrap().is_empty());
        write_tree(
            root.path(),
            &[
                ("proc/irq/default_smp_affinity", "3\n"),
                ("proc/irq/10/smp_affinity_list", "0-4095\n"),
                ("proc/irq/10/effective_affinity_list", "4095\n"),
                ("proc/irq/10/eth0/.keep", ""),
                ("proc/irq/9/smp_affinity_list", "0\n"),
                ("proc/irq/11/spurious", ""),
            ],
        );
        let found = irq_affinities(root.path()).unwrap();
        assert_eq!(found.iter().map(|irq| irq.irq).collect::<Vec<_>>(), [9, 10]);
        assert_eq!((found[1].allowed.len(), found[1].effective.to_string()), (4096, "4095".to_owned()));
        assert_eq!((found[1].handlers.clone(), found[0].effective.to_string()), (vec!["eth0".to_owned()], "0".into()));
        write_tree(root.path(), &[("proc/irq/9/smp_affinity_list", "many\n")]);
        let found = irq_affinities(root.path()).unwrap();
        assert_eq!(found.iter().map(|irq| irq.irq).collect::<Vec<_>>(), [10]);
    }
}
