//! Requests for plans, and their validation.

use std::collections::BTreeSet;

use becalm_linux::file::FileError;
use becalm_linux::sysfs::cpu::{CpuSets, siblings};
use becalm_units::fault::{Fault, Wording};
use becalm_units::{CpuList, counted, cpus_are};

use crate::{Family, Machine, Plan, Profile};

/// The user's request: the CPUs to make quiet, and how.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// The CPUs to make quiet.
    pub cpus: CpuList,
    /// The purpose of the CPUs.
    pub profile: Profile,
    /// How many of them, the last ones, to leave idle for the system.
    pub leave_idle: usize,
    /// Only knobs of these families; all if empty.
    pub only: BTreeSet<Family>,
    /// No knobs of these families.
    pub skip: BTreeSet<Family>,
    /// Whether a real-time command will run there, which the kernel's throttling would stop.
    pub realtime: bool,
}

impl Request {
    /// Whether to change knobs of a family.
    pub fn wants(&self, family: Family) -> bool {
        let asked = if self.only.is_empty() {
            self.profile.wants(family) || (family == Family::Throttling && self.realtime)
        } else {
            self.only.contains(&family)
        };
        asked && !self.skip.contains(&family)
    }
}

/// No plan can be made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// No CPUs were named.
    #[error("the list of CPUs to isolate is empty")]
    NoCpus,
    /// Some are not online.
    #[error("{} not online; online are {online}", cpus_are(missing))]
    NotOnline {
        /// The CPUs that are not online.
        missing: CpuList,
        /// The CPUs that are online.
        online: CpuList,
    },
    /// No housekeeping CPU would be left.
    #[error("no housekeeping CPU would be left: online are {online}, to isolate are {cpus}{}", siblings_text(siblings))]
    NoHousekeeping {
        /// The CPUs that are online.
        online: CpuList,
        /// The CPUs to isolate.
        cpus: CpuList,
        /// Their siblings, which would go offline; empty if none would.
        siblings: CpuList,
    },
    /// All of them were to be left idle.
    #[error("leaving {} idle would leave none of {} to run on", counted(*idle as u64, "CPU", "CPUs"), becalm_units::cpus(cpus))]
    AllIdle {
        /// How many were to be left idle.
        idle: usize,
        /// The requested CPUs.
        cpus: CpuList,
    },
    /// The machine cannot be examined.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Fault for PlanError {
    fn is_usage(&self) -> bool {
        !matches!(self, Self::File(_))
    }

    fn hint(&self) -> Option<Wording> {
        match self {
            Self::AllIdle { .. } => Some(Wording::new(" ({leave_idle})")),
            Self::NoHousekeeping { siblings, .. } if !siblings.is_empty() => {
                Some(Wording::new("; {skip=} leaves those online").with("smt"))
            }
            _ => None,
        }
    }
}

fn siblings_text(siblings: &CpuList) -> String {
    if siblings.is_empty() {
        return String::new();
    }
    format!(", with their siblings {siblings} offline")
}

/// The division of the CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Division {
    /// The online CPUs.
    pub online: CpuList,
    /// The CPUs that become quiet.
    pub cpus: CpuList,
    /// The requested CPUs that are left to the system.
    pub left_idle: CpuList,
    /// The siblings that go offline.
    pub siblings: CpuList,
    /// The housekeeping CPUs.
    pub housekeeping: CpuList,
}

impl Division {
    /// Divides the machine's CPUs. Fails if the request leaves no housekeeping CPU or is otherwise invalid, or the machine's CPUs cannot be read.
    pub(crate) fn new(machine: &dyn Machine, request: &Request) -> Result<Self, PlanError> {
        let online = CpuSets::read(machine.root())?.online;
        let asked = request.cpus.clone();
        if asked.is_empty() {
            return Err(PlanError::NoCpus);
        }
        let missing = asked.without(&online);
        if !missing.is_empty() {
            return Err(PlanError::NotOnline { missing, online });
        }
        let count = asked.len();
        if request.leave_idle >= count {
            return Err(PlanError::AllIdle { idle: request.leave_idle, cpus: asked });
        }
        let cpus: CpuList = asked.iter().take(count - request.leave_idle).collect();
        let left_idle = asked.without(&cpus);
        let mut others = Vec::new();
        if request.wants(Family::Smt) {
            for cpu in cpus.iter() {
                // A requested CPU is never a sibling to take offline, whether it runs the command or stays idle.
                let found = siblings(machine.root(), cpu)?.unwrap_or_default();
                others.extend(found.without(&asked).intersection(&online).iter());
            }
        }
        let siblings: CpuList = others.into_iter().collect();
        let housekeeping = online.without(&cpus).without(&siblings);
        if housekeeping.is_empty() {
            return Err(PlanError::NoHousekeeping { online, cpus, siblings });
        }
        Ok(Self { online, cpus, left_idle, siblings, housekeeping })
    }

    /// The division of an existing plan.
    pub(crate) fn from_plan(plan: &Plan, online: CpuList) -> Self {
        Self {
            online,
            cpus: plan.cpus.clone(),
            left_idle: plan.left_idle.clone(),
            siblings: plan.siblings.clone(),
            housekeeping: plan.housekeeping.clone(),
        }
    }

    /// The CPUs to clear of everything else.
    pub(crate) fn cleared(&self) -> CpuList {
        self.cpus.iter().chain(self.siblings.iter()).collect()
    }

    /// The new CPUs for a task that has `now`: those of them that are housekeeping CPUs, or all housekeeping CPUs if there are none. `None` if it has
    /// no cleared CPU.
    pub(crate) fn moved(&self, now: &CpuList) -> Option<CpuList> {
        let cleared = self.cleared();
        if now.intersection(&cleared).is_empty() {
            return None;
        }
        let rest = now.intersection(&self.housekeeping);
        Some(if rest.is_empty() { self.housekeeping.clone() } else { rest })
    }
}
