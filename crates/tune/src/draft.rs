//! An unfinished plan.

use std::path::Path;

use becalm_linux::file;
use becalm_units::CpuList;

use crate::machine::Machine;
use crate::request::{Division, PlanError, Request};
use crate::{BootParameter, Change, Family, Knob, Known, Meaning, NoiseSource, Note, Plan, knob, value};

/// The wanted value of a knob.
pub(crate) struct Wish<'a> {
    pub knob: Knob,
    pub to: String,
    pub reason: &'a str,
    pub risk: Option<&'a str>,
    pub removes: Vec<NoiseSource>,
}

/// The noise of some rows of the catalogue, in order.
pub(crate) fn noise(known: &[Known]) -> Vec<NoiseSource> {
    known.iter().copied().map(NoiseSource::from).collect()
}

/// The plan so far.
pub(crate) struct PlanDraft<'a> {
    pub machine: &'a dyn Machine,
    pub request: &'a Request,
    pub division: Division,
    /// The family whose changes are being added.
    family: Family,
    steps: Vec<Change>,
    notes: Vec<Note>,
}

impl<'a> PlanDraft<'a> {
    /// An empty plan for the requested CPUs. Fails if the request is invalid, or the machine's CPUs cannot be read.
    pub(crate) fn new(machine: &'a dyn Machine, request: &'a Request) -> Result<Self, PlanError> {
        let division = Division::new(machine, request)?;
        Ok(Self { machine, request, division, family: Family::Irq, steps: Vec::new(), notes: Vec::new() })
    }

    /// Starts the changes of a family.
    pub(crate) const fn begin(&mut self, family: Family) {
        self.family = family;
    }

    /// The complete plan, with the boot parameters.
    pub(crate) fn finish(self, boot: Vec<BootParameter>) -> Plan {
        let Division { cpus, left_idle, siblings, housekeeping, .. } = self.division;
        let Self { request, steps, notes, .. } = self;
        Plan { cpus, left_idle, siblings, housekeeping, profile: request.profile, steps, boot, notes }
    }

    /// The trimmed value of a file; `None` if there is no such file. An unreadable file is noted and treated as missing.
    pub(crate) fn read(&mut self, path: impl AsRef<Path>) -> Option<String> {
        self.present(&Knob::word(path.as_ref()))
    }

    /// The present value of a knob; see [`Self::read`].
    fn present(&mut self, knob: &Knob) -> Option<String> {
        match value::read(self.machine, knob) {
            Ok(value) => value.map(|value| value.trim().to_owned()),
            Err(error) => {
                self.note(format!("cannot read {knob}: {error}; it is left alone"));
                None
            }
        }
    }

    /// Adds a change of a knob, unless it does not exist or has that value already.
    pub(crate) fn change(&mut self, wish: Wish<'_>) {
        if let Some(from) = self.present(&wish.knob) {
            self.change_from(from, wish);
        }
    }

    /// Adds a change of a knob that gets the value `from` by an earlier change of the plan.
    pub(crate) fn change_from(&mut self, from: String, wish: Wish<'_>) {
        if knob::same(&wish.knob, &from, &wish.to, &self.division.online) {
            return;
        }
        self.steps.push(Change {
            family: self.family,
            knob: wish.knob,
            from,
            to: wish.to,
            or_else: Vec::new(),
            after: false,
            reason: wish.reason.to_owned(),
            risk: wish.risk.map(str::to_owned),
            removes: wish.removes,
        });
    }

    /// The last change, if it is of this family.
    pub(crate) fn last(&mut self) -> Option<&mut Change> {
        self.steps.last_mut().filter(|step| step.family == self.family)
    }

    /// Adds a change unmodified.
    pub(crate) fn push(&mut self, change: Change) {
        self.steps.push(change);
    }

    /// Adds a note.
    pub(crate) fn note(&mut self, text: String) {
        self.notes.push(Note { family: self.family, text });
    }

    /// Removes the cleared CPUs from a list or a mask.
    pub(crate) fn move_away(&mut self, knob: Knob, reason: &str, risk: Option<&str>, removes: Vec<NoiseSource>) {
        let Some(from) = self.present(&knob) else { return };
        let is_mask = matches!(knob, Knob::File { meaning: Meaning::CpuMask, .. });
        let now = if is_mask { CpuList::from_mask(&from).ok() } else { from.parse::<CpuList>().ok() };
        let Some(now) = now else {
            self.note(format!("{knob} holds no CPUs: '{from}'; it is left alone"));
            return;
        };
        if let Some(moved) = self.division.moved(&now) {
            let to = if is_mask { moved.to_mask() } else { moved.to_string() };
            self.change_from(from, Wish { knob, to, reason, risk, removes });
        }
    }

    /// The names in a directory, sorted; empty if it does not exist. An unreadable directory is noted and treated as empty.
    pub(crate) fn entries(&mut self, folder: impl AsRef<Path>) -> Vec<String> {
        file::names(self.machine.root(), folder).unwrap_or_else(|error| {
            self.note(format!("{error}; what it holds is left alone"));
            Vec::new()
        })
    }
}
