//! /sys/devices/system/cpu/cpuN/cache: the caches in front of a CPU.

use std::path::Path;

use becalm_units::CpuId;

use crate::procfs::{FileError, FormatError, optional, parse, read, value};

/// What a cache holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Data alone.
    Data,
    /// Instructions alone.
    Instructions,
    /// Both.
    Unified,
}

/// One cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cache {
    /// 1 for the one next to the processor's core.
    pub level: u32,
    /// What it holds.
    pub content: Content,
    /// Its size.
    pub bytes: u64,
}

/// The caches of a CPU, in the kernel's order; none where it does not tell of them, as on some virtual machines and for
/// a CPU that is offline. A cache whose size the kernel does not know is left out.
///
/// # Errors
/// If a file exists and does not say what it should.
pub fn caches(root: &Path, cpu: CpuId) -> Result<Vec<Cache>, FileError> {
    let mut caches = Vec::new();
    for index in 0.. {
        let file = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}");
        let Some(level) = optional(value(root, &file("level"), "a cache's level"))? else { break };
        let content = parse(root, &file("type"), "a cache's type", |text| match text.trim() {
            "Data" => Ok(Content::Data),
            "Instruction" => Ok(Content::Instructions),
            "Unified" => Ok(Content::Unified),
            other => Err(FormatError::new("Data, Instruction or Unified was expected", other)),
        })?;
        let Some(size) = optional(read(root, &file("size"), "a cache's size"))? else { continue };
        let bytes = parse_size(size.trim());
        let bytes = bytes.ok_or_else(|| FormatError::new("a size like 1024K was expected", size.trim()));
        let bytes = parse(root, &file("size"), "a cache's size", |_| bytes)?;
        if bytes > 0 {
            caches.push(Cache { level, content, bytes });
        }
    }
    Ok(caches)
}

/// The kernel writes kibibytes: `1024K`.
fn parse_size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The size of the data cache of a level, the largest one if there are several.
#[must_use]
pub fn data_bytes(caches: &[Cache], level: u32) -> Option<u64> {
    let of = |cache: &&Cache| cache.level == level && cache.content != Content::Instructions;
    caches.iter().filter(of).map(|cache| cache.bytes).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procfs::write_tree;

    #[test]
    fn levels_and_sizes() {
        let root = tempfile::tempdir().unwrap();
        let base = "sys/devices/system/cpu/cpu2/cache";
        let cpu = CpuId::new(2);
        assert_eq!(caches(root.path(), cpu).unwrap(), []);
        let rows = [("1", "Data", "48K\n"), ("1", "Instruction", "64K\n"), ("2", "Unified", "2048K\n")];
        for (index, (level, content, size)) in rows.iter().enumerate() {
            let at = format!("{base}/index{index}");
            let files = [("level", level), ("type", content), ("size", size)];
            let files = files.map(|(name, text)| (format!("{at}/{name}"), (*text).to_string()));
            let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            write_tree(root.path(), &files);
        }
        let found = caches(root.path(), cpu).unwrap();
        assert_eq!((data_bytes(&found, 1), data_bytes(&found, 2)), (Some(48 << 10), Some(2 << 20)));
        assert_eq!(data_bytes(&found, 3), None);
        // A size that the kernel does not know reads 0.
        write_tree(root.path(), &[(&format!("{base}/index0/size"), "0K\n")]);
        assert_eq!(data_bytes(&caches(root.path(), cpu).unwrap(), 1), None);
        write_tree(root.path(), &[(&format!("{base}/index2/size"), "big\n")]);
        assert!(caches(root.path(), cpu).unwrap_err().to_string().contains("'big'"));
    }
}
