//! /proc/softirqs: how often each CPU ran each softirq.
//!
//! There is a column for every possible CPU, even if offline. The counts include the softirqs that ksoftirqd ran.

use std::path::Path;

use becalm_units::CpuId;

use super::columns;
use crate::file::{self, FileError, FormatError, parse};

/// A snapshot, or the growth between two.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Softirqs {
    /// The CPUs of the columns.
    pub cpus: Vec<CpuId>,
    /// Name (`NET_RX`) and one count per CPU, in the kernel's order. Lines of another format are left out.
    pub lines: Vec<(String, Vec<u64>)>,
}

impl Softirqs {
    /// Parses the file's text. Fails if the header names no CPUs, or no line is a name with a count for each of them.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let mut text = text.lines();
        let cpus = columns::header(text.next().unwrap_or_default())?;
        let line = |line: &str| {
            let (name, rest) = columns::name(line)?;
            match columns::counts(rest, cpus.len()) {
                (counts, "") if counts.len() == cpus.len() => Ok((name.to_owned(), counts)),
                _ => Err(FormatError::new("a count for each CPU of the header was expected", line.trim())),
            }
        };
        let (lines, _) = file::lines(text, line)?;
        if lines.is_empty() {
            return Err(columns::no_counts());
        }
        Ok(Self { cpus, lines })
    }

    /// Reads `proc/softirqs`.
    pub fn read(root: &Path) -> Result<Self, FileError> {
        parse(root, "proc/softirqs", "the counts of softirqs", Self::parse)
    }

    /// How often a CPU ran a softirq; `None` if the snapshot lacks either.
    pub fn count(&self, name: &str, cpu: CpuId) -> Option<u64> {
        let column = self.cpus.iter().position(|candidate| *candidate == cpu)?;
        self.lines.iter().find(|(candidate, _)| candidate == name)?.1.get(column).copied()
    }

    /// The number of softirqs of all kinds that a CPU ran; 0 if the snapshot lacks it.
    pub fn cpu_count(&self, cpu: CpuId) -> u64 {
        let column = self.cpus.iter().position(|candidate| *candidate == cpu);
        column.map_or(0, |column| self.lines.iter().map(|(_, counts)| counts[column]).fold(0, u64::saturating_add))
    }

    /// The growth of the counts since an earlier snapshot, for CPUs and softirqs in both.
    pub fn since(&self, earlier: &Self) -> Self {
        let columns = columns::common(&self.cpus, &earlier.cpus);
        let lines = self.lines.iter().filter_map(|(name, counts)| {
            let (_, before) = earlier.lines.iter().find(|(candidate, _)| candidate == name)?;
            Some((name.clone(), columns.iter().map(|(n, t)| columns::growth(before[*t], counts[*n])).collect()))
        });
        Self { cpus: columns.iter().map(|(now, _)| self.cpus[*now]).collect(), lines: lines.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_compares() {
        let parse = |text| Softirqs::parse(text).unwrap();
        let earlier = parse("   CPU0   CPU1\n  HI:  0  1\n NET_RX:  6369   4294967295\n");
        let later = parse("   CPU1   CPU2\n NET_RX:  3   8\n HRTIMER: 1 1\n");
        assert_eq!(earlier.count("NET_RX", CpuId::new(0)), Some(6369));
        assert_eq!(later.since(&earlier), parse("CPU1\nNET_RX: 4\n"));
    }

    #[test]
    fn a_line_of_another_form_costs_no_other_line() {
        let it = Softirqs::parse("CPU0 CPU1\nHI: 1\nNET_RX: 4 5\nRCU: 1 2 3\nlater\n").unwrap();
        assert_eq!(it.lines, [("NET_RX".to_owned(), vec![4, 5])]);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "CPU0 CPU1\n", "CPU0 CPU1\nHI: 1\n", "CPU0\nHI: 1 2\n", "CPU0\nHI 1\n", "CPUx\n"] {
            assert!(Softirqs::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_softirqs_of_this_machine_are_read() {
        let it = Softirqs::read(Path::new("/")).unwrap();
        assert!(it.lines.iter().any(|(name, _)| name == "NET_RX"));
    }
}
