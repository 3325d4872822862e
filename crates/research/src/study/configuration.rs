//! The configurations of a study (D09), and the CPUs of each.

use std::path::Path;

use becalm_linux::file::FileError;
use becalm_linux::sysfs::cpu::siblings;
use becalm_units::{CpuList, UnknownName};

/// A way to run a job on a machine, in the order of recording.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
pub enum Configuration {
    /// Every CPU, as an ordinary process.
    Baseline,
    /// Every CPU, in a real-time class.
    Priority,
    /// On isolated CPUs.
    Isolated,
    /// One hardware thread of each core, the others idle.
    SiblingIdle,
    /// Every CPU except those of one core, which is left to everything else.
    OneLeftIdle,
    /// Isolated, in a real-time class, the siblings and one core idle.
    Combined,
}

impl Configuration {
    /// True if everything else is moved off its CPUs.
    #[must_use]
    pub const fn is_isolated(self) -> bool {
        matches!(self, Self::Isolated | Self::Combined)
    }

    const fn leaves_siblings(self) -> bool {
        matches!(self, Self::SiblingIdle | Self::Combined)
    }

    const fn leaves_core(self) -> bool {
        matches!(self, Self::OneLeftIdle | Self::Combined)
    }

    /// True if it runs in a real-time class.
    #[must_use]
    pub const fn has_priority(self) -> bool {
        matches!(self, Self::Priority | Self::Combined)
    }
}

fn unknown(text: &str) -> UnknownName {
    UnknownName::new::<Configuration>("configuration", text)
}

/// The CPUs of a study.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cpus {
    /// The CPUs of the baseline.
    pub(super) all: CpuList,
    /// Whether other CPUs are online, which can take everything else.
    spare: bool,
    /// The CPUs of the first core, which some configurations leave idle.
    pub(super) first_core: CpuList,
    /// The first hardware thread of each core.
    one_each: CpuList,
}

impl Cpus {
    /// Divides the baseline's CPUs, among those online. Fails if sysfs contains something other than lists of CPUs.
    pub fn find(root: &Path, all: &CpuList, online: &CpuList) -> Result<Self, FileError> {
        let mut seen = CpuList::default();
        let mut one_each = Vec::new();
        let mut first_core = None;
        for cpu in all.iter() {
            let own: CpuList = [cpu].into_iter().collect();
            let core = siblings(root, cpu)?.unwrap_or_else(|| own.clone()).intersection(all);
            if seen.intersection(&own).is_empty() {
                one_each.push(cpu);
            }
            seen = seen.iter().chain(core.iter()).collect();
            first_core.get_or_insert(core);
        }
        Ok(Self {
            all: all.clone(),
            spare: !online.without(all).is_empty(),
            first_core: first_core.unwrap_or_default(),
            one_each: one_each.into_iter().collect(),
        })
    }

    /// The CPUs that a configuration measures, or why this machine cannot do it.
    pub(super) fn measured(&self, configuration: Configuration) -> Result<CpuList, String> {
        let mut cpus = self.all.clone();
        if configuration.leaves_core() || (configuration.is_isolated() && !self.spare) {
            cpus = cpus.without(&self.first_core);
            if cpus.is_empty() {
                return Err("it needs a second core".to_owned());
            }
        }
        let threads = cpus.intersection(&self.one_each);
        match configuration.leaves_siblings() {
            true if configuration == Configuration::SiblingIdle && threads == cpus => {
                Err("no core of this machine runs two hardware threads".to_owned())
            }
            true => Ok(threads),
            false => Ok(cpus),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use becalm_units::Named;

    #[test]
    fn the_baseline_has_the_name_that_documents_know() {
        assert_eq!(Configuration::Baseline.name(), crate::study::BASELINE);
    }

    pub(in crate::study) fn machine(cores: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for core in cores {
            for cpu in core.parse::<CpuList>().unwrap().iter() {
                let folder = root.path().join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(folder.join("thread_siblings_list"), format!("{core}\n")).unwrap();
            }
        }
        root
    }

    fn measured(cores: &[&str], all: &str, online: &str) -> Vec<(Configuration, String)> {
        let root = machine(cores);
        let cpus = Cpus::find(root.path(), &all.parse().unwrap(), &online.parse().unwrap()).unwrap();
        let text = |configuration| cpus.measured(configuration).map_or_else(|why| why, |cpus| cpus.to_string());
        Configuration::ALL.iter().copied().map(|configuration| (configuration, text(configuration))).collect()
    }

    #[test]
    fn each_configuration_has_its_cpus() {
        use Configuration::{Baseline, Combined, Isolated, OneLeftIdle, Priority, SiblingIdle};
        let with_siblings = measured(&["0,4", "1,5", "2,6", "3,7"], "0-7", "0-7");
        let expected = [
            (Baseline, "0-7"),
            (Priority, "0-7"),
            (Isolated, "1-3,5-7"),
            (SiblingIdle, "0-3"),
            (OneLeftIdle, "1-3,5-7"),
            (Combined, "1-3"),
        ];
        assert_eq!(with_siblings, expected.map(|(configuration, cpus)| (configuration, cpus.to_owned())));
        // The other CPUs take everything that is moved off, and one core is left idle all the same.
        let with_spare = measured(&["0,4", "1,5", "2,6", "3,7"], "2-3,6-7", "0-7");
        assert_eq!(with_spare[2].1, "2-3,6-7");
        assert_eq!((with_spare[4].1.as_str(), with_spare[5].1.as_str()), ("3,7", "3"));
        let without = measured(&["0", "1"], "0-1", "0-1");
        assert_eq!(without[3].1, "no core of this machine runs two hardware threads");
        assert_eq!((without[2].1.as_str(), without[5].1.as_str()), ("1", "1"));
        let alone = measured(&["0"], "0", "0");
        for at in [2, 4, 5] {
            assert_eq!(alone[at].1, "it needs a second core");
        }
        assert_eq!(alone[0].1, "0");
    }
}
