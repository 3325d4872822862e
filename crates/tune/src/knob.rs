//! Knobs: the things that a change changes, and when two values of one mean the same.

use std::fmt;
use std::path::PathBuf;

use becalm_linux::file::chosen;
use becalm_units::CpuList;
use serde::{Deserialize, Serialize};

/// Something with a value that can be read, changed and put back.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Knob {
    /// A file of the kernel.
    File {
        /// Its path, from the root.
        path: PathBuf,
        /// What its text means.
        meaning: Meaning,
    },
    /// The CPUs on which a thread may run: a list.
    Affinity {
        /// The thread's number.
        tid: i32,
        /// When it was started, in clock ticks since boot; tells it from a later one with its number.
        start_ticks: u64,
        /// Its name.
        comm: String,
    },
    /// A control group: `there` or `absent`.
    Group {
        /// Its folder, from the root.
        path: PathBuf,
    },
    /// Whether a control group of version 2 lets its children use a controller: `on` or `off`.
    Controller {
        /// The group's folder, from the root.
        path: PathBuf,
        /// The controller: `cpuset`.
        name: String,
    },
    /// A property of a unit of systemd, set for as long as the machine runs.
    Property {
        /// The unit: `system.slice`.
        unit: String,
        /// The property: `AllowedCPUs`.
        name: String,
    },
    /// Whether a unit of systemd runs: `active` or `inactive`.
    Unit {
        /// The unit.
        unit: String,
    },
}

/// What the text of a file means: when two texts are the same value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Meaning {
    /// A word or a number.
    Word,
    /// A list of CPUs, `0-3,8`.
    CpuList,
    /// A mask of CPUs in hexadecimal words, `ff,ffffffff`.
    CpuMask,
    /// One of several words, of which the file shows the present one in brackets: `always [madvise] never`.
    Choice,
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, .. } => write!(f, "{}", path.display()),
            Self::Affinity { tid, comm, .. } => write!(f, "CPUs of {comm} ({tid})"),
            Self::Group { path } => write!(f, "{}/", path.display()),
            Self::Controller { path, name } => write!(f, "{}/cgroup.subtree_control: {name}", path.display()),
            Self::Property { unit, name } => write!(f, "{name} of {unit}"),
            Self::Unit { unit } => f.write_str(unit),
        }
    }
}

impl Knob {
    /// A file whose text is a word or a number.
    pub fn word(path: impl Into<PathBuf>) -> Self {
        Self::File { path: path.into(), meaning: Meaning::Word }
    }

    /// A file that holds a list of CPUs.
    pub fn cpu_list(path: impl Into<PathBuf>) -> Self {
        Self::File { path: path.into(), meaning: Meaning::CpuList }
    }

    /// A file that holds a mask of CPUs.
    pub fn cpu_mask(path: impl Into<PathBuf>) -> Self {
        Self::File { path: path.into(), meaning: Meaning::CpuMask }
    }

    /// A file that shows its value among the possible ones.
    pub fn choice(path: impl Into<PathBuf>) -> Self {
        Self::File { path: path.into(), meaning: Meaning::Choice }
    }

    /// Whether two texts are the same value of this knob, as the kernel prints values in its own way.
    ///
    /// Of a thread's CPUs only those that are online count: the kernel forgets the others.
    #[must_use]
    pub fn same(&self, a: &str, b: &str, online: &CpuList) -> bool {
        let (a, b) = (a.trim(), b.trim());
        let lists = |read: fn(&str) -> Option<CpuList>| read(a).zip(read(b));
        let list = |text: &str| text.parse::<CpuList>().ok();
        let equal = match self {
            Self::File { meaning: Meaning::CpuList, .. } => lists(list).map(|(a, b)| a == b),
            Self::File { meaning: Meaning::CpuMask, .. } => {
                lists(|text| CpuList::from_mask(text).ok()).map(|(a, b)| a == b)
            }
            Self::File { meaning: Meaning::Choice, .. } => Some(chosen(a) == chosen(b)),
            Self::Affinity { .. } => lists(list).map(|(a, b)| a.intersection(online) == b.intersection(online)),
            Self::Property { .. } => {
                // systemd separates the parts of a list of CPUs by blanks.
                let list = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(",").parse::<CpuList>().ok();
                list(a).zip(list(b)).map(|(a, b)| a == b)
            }
            _ => None,
        };
        equal.unwrap_or(a == b)
    }

    /// The text to write in order to bring back a text that was read.
    #[must_use]
    pub fn writable<'a>(&self, text: &'a str) -> &'a str {
        match self {
            Self::File { meaning: Meaning::Choice, .. } => chosen(text),
            _ => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_units::CpuId;
    use proptest::prelude::*;

    fn cpus(text: &str) -> CpuList {
        text.parse().unwrap()
    }

    #[test]
    fn values_are_compared_by_what_they_mean() {
        let online = cpus("0-3");
        let same = |knob: &Knob, a: &str, b: &str| knob.same(a, b, &online);
        let list = Knob::cpu_list("/x");
        assert!(same(&list, "0,1,2\n", "0-2") && !same(&list, "0-2", "0-3") && same(&list, "\n", ""));
        let mask = Knob::cpu_mask("/x");
        assert!(same(&mask, "00000003", "3\n") && same(&mask, "00000000,00000003", "3") && !same(&mask, "3", "7"));
        let choice = Knob::choice("/x");
        assert!(same(&choice, "always [madvise] never\n", "madvise") && !same(&choice, "[always] never", "never"));
        let task = Knob::Affinity { tid: 1, start_ticks: 0, comm: "init".into() };
        assert!(same(&task, "0-127", "0-3") && !same(&task, "0-127", "0-2"));
        let property = Knob::Property { unit: "system.slice".into(), name: "AllowedCPUs".into() };
        assert!(same(&property, "0-1 3", "0,1,3") && same(&property, "", ""));
        assert!(same(&Knob::word("/x"), "root\n", "root") && !same(&Knob::word("/x"), "root", "root invalid (x)"));
        // What cannot be understood is compared as it is.
        assert!(same(&list, "what\n", "what") && !same(&list, "what", "0"));
    }

    #[test]
    fn what_is_put_back_is_the_chosen_word() {
        assert_eq!(Knob::choice("/x").writable("always [madvise] never\n"), "madvise");
        assert_eq!(Knob::word("/x").writable("1\n"), "1\n");
    }

    proptest! {
        #[test]
        fn masks_read_back(ids in proptest::collection::btree_set(0_u32..5000, 0..40)) {
            let list: CpuList = ids.into_iter().map(CpuId::new).collect();
            prop_assert_eq!(CpuList::from_mask(&list.to_mask()).ok(), Some(list));
        }

        #[test]
        fn comparing_never_panics(a in "[0-9a-f,\\[\\] -]{0,12}", b in "[0-9a-f,\\[\\] -]{0,12}") {
            for knob in [Knob::word("/x"), Knob::cpu_list("/x"), Knob::cpu_mask("/x"), Knob::choice("/x")] {
                prop_assert!(knob.same(&a, &a, &CpuList::default()));
                let _ = knob.same(&a, &b, &CpuList::default());
            }
        }
    }
}
