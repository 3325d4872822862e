//! Which CPUs can be measured.

use std::io;
use std::path::Path;
use std::thread;

use becalm_linux::sched;
use becalm_units::fault::{Fault, Wording};
use becalm_units::{CpuId, CpuList, cpus_are, plural};

use super::description::cpu_list;

/// CPUs that cannot be measured as requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuError {
    /// None of the online CPUs can be used.
    #[error("no CPU to measure: this process may run on none of the online CPUs {0}")]
    None(CpuList),
    /// The user named an empty list of CPUs.
    #[error("no CPU to measure: the list of CPUs is empty; name at least one")]
    Empty,
    /// CPUs that the machine does not have.
    #[error("this machine does not have {}; it has {}", becalm_units::cpus(cpus), becalm_units::cpus(possible))]
    Unknown {
        /// The named CPUs that do not exist.
        cpus: CpuList,
        /// The CPUs that the machine can have.
        possible: CpuList,
    },
    /// CPUs that are offline.
    #[error(
        "{} offline: bring {it} up (echo 1 > /sys/devices/system/cpu/cpuN/online) or leave {it} out; online are {online}",
        cpus_are(cpus), it = plural(cpus.len() as u64, "it", "them")
    )]
    Offline {
        /// The named CPUs that are offline.
        cpus: CpuList,
        /// The CPUs that are online.
        online: CpuList,
    },
    /// CPUs outside of the cgroup's cpuset.
    #[error(
        "this process may not use {}: its cgroup's cpuset does not hold {}; run becalm outside of that cgroup or container, or \
         measure other CPUs", becalm_units::cpus(.0), plural(.0.len() as u64, "it", "them")
    )]
    NotAllowed(CpuList),
    /// The system cannot create another thread.
    #[error("cannot try whether the CPUs can be used: no thread can be started: {0}")]
    Thread(String),
}

impl Fault for CpuError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Empty | Self::Unknown { .. })
    }

    fn hint(&self) -> Option<Wording> {
        matches!(self, Self::Empty).then(|| Wording::new(", like {cpus=}").with(1))
    }
}

/// The CPUs to measure, and online ones that were left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuSelection {
    /// The CPUs to measure.
    pub cpus: CpuList,
    /// Online CPUs that this process may not use; empty if the user chose CPUs by number.
    pub left_out: CpuList,
}

/// Selects the CPUs. Tries each by pinning a thread to it, because the inherited affinity mask lacks isolated CPUs that the process may still use.
/// Fails if a CPU chosen by number cannot be used, or if none can.
pub fn select(root: &Path, wanted: Option<&CpuList>) -> Result<CpuSelection, CpuError> {
    let mut online = cpu_list(root, "online");
    if online.is_empty() {
        // A container without sysfs.
        online = sched::allowed_cpus().unwrap_or_default();
    }
    let candidates = match wanted {
        None => online.clone(),
        Some(list) if list.is_empty() => return Err(CpuError::Empty),
        Some(list) => {
            let possible = cpu_list(root, "possible");
            let unknown = list.without(if possible.is_empty() { &online } else { &possible });
            if !unknown.is_empty() {
                let possible = if possible.is_empty() { online } else { possible };
                return Err(CpuError::Unknown { cpus: unknown, possible });
            }
            let offline = list.without(&online);
            if !offline.is_empty() {
                return Err(CpuError::Offline { cpus: offline, online });
            }
            list.clone()
        }
    };
    // In a separate thread, because its affinity changes.
    let usable = |cpus: &CpuList| -> io::Result<CpuList> {
        thread::scope(|scope| {
            let tried = thread::Builder::new().spawn_scoped(scope, || {
                let free = |cpu: &CpuId| sched::set_affinity(&[*cpu].into_iter().collect()).is_ok();
                cpus.iter().filter(free).collect()
            })?;
            Ok(tried.join().unwrap_or_default())
        })
    };
    let cpus = usable(&candidates).map_err(|error| CpuError::Thread(error.to_string()))?;
    let left_out = candidates.without(&cpus);
    match wanted {
        Some(_) if !left_out.is_empty() => Err(CpuError::NotAllowed(left_out)),
        _ if cpus.is_empty() => Err(CpuError::None(online)),
        _ => Ok(CpuSelection { cpus, left_out }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(online: &str, possible: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("online"), online).unwrap();
        std::fs::write(folder.join("possible"), possible).unwrap();
        root
    }

    #[test]
    fn each_reason_has_its_own_message() {
        let root = machine("0-1\n", "0-3\n");
        let ask = |list: &str| select(root.path(), Some(&list.parse().unwrap())).unwrap_err().to_string();
        assert!(ask("7").contains("this machine does not have CPU 7; it has CPUs 0-3"));
        assert!(ask("1-2").contains("CPU 2 is offline"));
        assert!(ask("").contains("the list of CPUs is empty"));
    }

    #[test]
    fn online_cpus_that_the_kernel_refuses_are_left_out_unless_asked_for() {
        // CPU 4,000 does not exist, although the fake tree lists it.
        let root = machine("0,4000\n", "0-4095\n");
        let all = select(root.path(), None).unwrap();
        assert_eq!((all.cpus.to_string(), all.left_out.to_string()), ("0".to_owned(), "4000".to_owned()));
        let error = select(root.path(), Some(&"4000".parse().unwrap())).unwrap_err();
        assert!(matches!(error, CpuError::NotAllowed { .. }), "{error}");
    }
}
