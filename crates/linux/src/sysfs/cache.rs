//! /sys/devices/system/cpu/cpuN/cache: the caches of a CPU.

use std::path::Path;

use becalm_units::{CpuId, CpuList};

use crate::file::{FileError, FormatError, optional, parse, parse_cpus, read, value};

/// Whether a cache holds data, instructions or both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheKind {
    /// The cache holds data only.
    Data,
    /// The cache holds instructions only.
    Instruction,
    /// The cache holds data and instructions.
    Unified,
}

/// One cache of a CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cache {
    /// The distance from the core: 1 is the nearest.
    pub level: u32,
    /// Whether it holds data, instructions or both.
    pub kind: CacheKind,
    /// The size of the whole cache, in bytes.
    pub bytes: usize,
    /// The CPUs that share it, including this one; empty if the kernel does not report them.
    pub shared: CpuList,
}

/// The caches of a CPU in the kernel's order; empty if the kernel does not know them, as in some virtual machines, or the CPU is offline. Skips
/// entries without a valid level or size, which becalm cannot use. Fails if a cache's kind cannot be read.
pub fn caches(root: &Path, cpu: CpuId) -> Result<Vec<Cache>, FileError> {
    let mut caches = Vec::new();
    // The kernel numbers them without gaps; no processor has nearly as many.
    for index in 0..64 {
        let file = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}");
        let Some(kind) = optional(read(root, file("type"), "what a cache holds"))? else { break };
        let kind = match kind.trim() {
            "Data" => CacheKind::Data,
            "Instruction" => CacheKind::Instruction,
            _ => CacheKind::Unified,
        };
        let Ok(level) = value(root, file("level"), "a cache's level") else { continue };
        let Ok(bytes) = parse(root, file("size"), "a cache's size", bytes) else { continue };
        let shared = parse(root, file("shared_cpu_list"), "who shares a cache", parse_cpus).unwrap_or_default();
        if bytes > 0 {
            caches.push(Cache { level, kind, bytes, shared });
        }
    }
    Ok(caches)
}

/// The sizes of the caches that hold data, one per level, from the nearest on and each larger than the previous one.
pub fn data_levels(caches: &[Cache]) -> Vec<(u32, usize)> {
    let mut levels: Vec<(u32, usize)> = caches
        .iter()
        .filter(|cache| cache.kind != CacheKind::Instruction)
        .map(|cache| (cache.level, cache.bytes))
        .collect();
    levels.sort_unstable();
    // If a hypervisor invents a level that is no larger than the one below, it gets no hits.
    let mut kept: Vec<(u32, usize)> = Vec::new();
    for (level, bytes) in levels {
        if kept.last().is_none_or(|(below, smaller)| level > *below && bytes > *smaller) {
            kept.push((level, bytes));
        }
    }
    kept
}

/// The size of the cache of a level that holds data; the largest one if there are several.
pub fn data_bytes(caches: &[Cache], level: u32) -> Option<u64> {
    let holds_data = |cache: &&Cache| cache.level == level && cache.kind != CacheKind::Instruction;
    caches.iter().filter(holds_data).map(|cache| cache.bytes as u64).max()
}

/// Parses a size in the kernel's format: `48K`.
fn bytes(text: &str) -> Result<usize, FormatError> {
    let trimmed = text.trim();
    let (number, unit) = match trimmed.as_bytes().last() {
        Some(b'K') => (&trimmed[..trimmed.len() - 1], 1 << 10),
        Some(b'M') => (&trimmed[..trimmed.len() - 1], 1 << 20),
        Some(b'G') => (&trimmed[..trimmed.len() - 1], 1 << 30),
        _ => (trimmed, 1),
    };
    let number = number.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    number.ok_or_else(|| FormatError::new("a size like 48K was expected", trimmed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::write_tree;
    use proptest::prelude::*;

    fn tree(cpu: u32, caches: &[(&str, &str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (index, (level, kind, size)) in caches.iter().enumerate() {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            let all = [("level", level), ("type", kind), ("size", size)];
            for (name, text) in all.into_iter().filter(|(_, text)| !text.is_empty()) {
                write_tree(root.path(), &[(&format!("{folder}/{name}"), &format!("{text}\n"))]);
            }
        }
        root
    }

    fn levels(root: &Path, cpu: u32) -> Vec<(u32, usize)> {
        data_levels(&caches(root, CpuId::new(cpu)).unwrap())
    }

    #[test]
    fn the_caches_of_a_usual_machine_are_told_apart() {
        let all =
            [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "1024K"), ("3", "Unified", "32M")];
        let root = tree(0, &all);
        assert_eq!(caches(root.path(), CpuId::new(0)).unwrap().len(), 4);
        assert_eq!(levels(root.path(), 0), [(1, 48 << 10), (2, 1 << 20), (3, 32 << 20)]);
        assert!(levels(root.path(), 1).is_empty());
    }

    #[test]
    fn the_last_of_4096_cpus() {
        let root = tree(4095, &[("1", "Data", "32K")]);
        write_tree(root.path(), &[("sys/devices/system/cpu/cpu4095/cache/index0/shared_cpu_list", "2047,4095\n")]);
        let caches = caches(root.path(), CpuId::new(4095)).unwrap();
        assert_eq!(caches[0].shared.to_string(), "2047,4095");
    }

    #[test]
    fn missing_sizes_and_made_up_levels_are_left_out() {
        let root = tree(0, &[("1", "Data", ""), ("2", "Unified", "512K"), ("3", "Unified", "0K")]);
        assert_eq!(levels(root.path(), 0), [(2, 512 << 10)]);
        let root = tree(0, &[("1", "Data", "32K"), ("2", "Unified", "4M"), ("3", "Unified", "4M")]);
        assert_eq!(levels(root.path(), 0), [(1, 32 << 10), (2, 4 << 20)]);
    }

    #[test]
    fn a_cache_that_cannot_be_understood_costs_no_other() {
        let root = tree(0, &[("1", "Data", "large"), ("2", "Unified", "512K"), ("third", "Unified", "4M")]);
        write_tree(root.path(), &[("sys/devices/system/cpu/cpu0/cache/index1/shared_cpu_list", "all\n")]);
        let caches = caches(root.path(), CpuId::new(0)).unwrap();
        assert_eq!(data_levels(&caches), [(2, 512 << 10)]);
        assert!(caches[0].shared.is_empty());
    }

    proptest! {
        #[test]
        fn sizes_never_panic(text in "\\PC{0,12}") {
            let _ = bytes(&text);
        }

        #[test]
        fn caches_grow_with_their_level(sizes in proptest::collection::vec((1_u32..5, 1_usize..1 << 30), 0..8)) {
            let cache = |&(level, bytes): &(u32, usize)| {
                Cache { level, kind: CacheKind::Unified, bytes, shared: CpuList::default() }
            };
            let levels = data_levels(&sizes.iter().map(cache).collect::<Vec<_>>());
            prop_assert!(levels.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
            prop_assert_eq!(levels.is_empty(), sizes.is_empty());
        }
    }

    #[test]
    fn the_caches_of_this_machine_are_read() {
        let all = caches(Path::new("/"), CpuId::new(0)).unwrap();
        assert!(data_levels(&all).len() <= all.len());
    }
}
