//! Makes a plan: each requested family of knobs adds its changes.

use becalm_units::Named;

use crate::draft::PlanDraft;
use crate::machine::Machine;
use crate::request::{PlanError, Request};
use crate::{Family, Plan, boot, families};

/// Plans the requested changes for this machine. Changes nothing. Fails if the request is invalid, or the machine's CPUs cannot be read. Anything
/// else that cannot be read becomes a note of the plan.
pub fn plan(machine: &dyn Machine, request: &Request) -> Result<Plan, PlanError> {
    let mut draft = PlanDraft::new(machine, request)?;
    for family in Family::ALL.iter().copied() {
        if request.wants(family) {
            draft.begin(family);
            families::add(family, &mut draft);
        }
    }
    let (boot, notes) = boot::parameters(machine, request, &draft.division);
    draft.begin(Family::Cpuset);
    notes.into_iter().for_each(|note| draft.note(note));
    Ok(draft.finish(boot))
}
