//! Changes as rows of a report.

use becalm_report::{BootRow, DoneRow, PlannedRow, TunePlanReport};
use becalm_tune::{Change, Knob, Made, Outcome, Plan, PutBack, Step, Undone};

/// What changes that may be shown as one row have in common.
fn alike(change: &Change) -> String {
    match &change.knob {
        Knob::Affinity { .. } => "tasks and kernel threads".to_owned(),
        Knob::File { path, .. } => {
            let text = path.to_string_lossy();
            if text.starts_with("/proc/irq/") && text.ends_with("_list") {
                "interrupts".to_owned()
            } else {
                // Of files that differ by the CPU or the queue alone, the name.
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                match change.family {
                    becalm_tune::Family::Cpuset | becalm_tune::Family::Workqueue => String::new(),
                    _ => format!("files {name}"),
                }
            }
        }
        _ => String::new(),
    }
}

/// A plan as a report, without gains.
pub fn plan_report(plan: &Plan) -> TunePlanReport {
    let row = |(at, change): (usize, &Change)| PlannedRow {
        number: at as u64 + 1,
        family: change.family.to_string(),
        knob: change.knob.to_string(),
        alike: alike(change),
        count: 1,
        from: change.from.clone(),
        to: change.to.clone(),
        or_else: change.or_else.clone(),
        reason: change.reason.clone(),
        risk: change.risk.clone(),
        sources: Vec::new(),
        without: Vec::new(),
    };
    TunePlanReport {
        cpus: plan.cpus.to_string(),
        left_idle: plan.left_idle.to_string(),
        siblings: plan.siblings.to_string(),
        housekeeping: plan.housekeeping.to_string(),
        profile: plan.profile.to_string(),
        changes: plan.steps.iter().enumerate().map(row).collect(),
        boot: plan
            .boot
            .iter()
            .map(|parameter| BootRow {
                name: parameter.name.clone(),
                value: parameter.value.clone(),
                from: parameter.from.clone(),
                reason: parameter.reason.clone(),
                risk: parameter.risk.clone(),
            })
            .collect(),
        command_line: plan.command_line(),
        notes: plan.notes.iter().map(|note| (note.family.to_string(), note.text.clone())).collect(),
        gains: Vec::new(),
        gains_from: String::new(),
    }
}

fn row(change: &Change, before: &str, after: &str, outcome: &'static str, why: &str) -> DoneRow {
    DoneRow {
        family: change.family.to_string(),
        knob: change.knob.to_string(),
        alike: alike(change),
        before: before.trim().to_owned(),
        after: after.trim().to_owned(),
        outcome,
        why: why.to_owned(),
    }
}

/// A change that was tried.
pub fn made(made: &Made) -> DoneRow {
    let change = &made.change;
    match &made.outcome {
        Outcome::Made(value) => row(change, &change.from, value, "changed", ""),
        Outcome::Already => row(change, &change.to, &change.to, "already", ""),
        Outcome::Gone => row(change, &change.from, "", "gone", ""),
        Outcome::Refused(why) => row(change, &change.from, &change.from, "refused", why),
        Outcome::Needless => row(change, &change.from, &change.from, "left_out", "a change that it needs was refused"),
    }
}

/// A change that was undone.
pub fn undone(undone: &Undone) -> DoneRow {
    let (change, original) = (&undone.change, undone.original.as_str());
    match &undone.outcome {
        PutBack::Restored => row(change, &change.to, original, "restored", ""),
        PutBack::Unchanged => row(change, original, original, "unchanged", ""),
        PutBack::Gone => row(change, &change.to, "", "gone", ""),
        PutBack::Foreign(now) => {
            row(change, &change.to, now, "foreign", &format!("others changed it; it was {original}"))
        }
        PutBack::Failed(why) => row(change, &change.to, original, "failed", why),
    }
}

/// A change that is in force; nothing for one that is not.
pub fn open(step: &Step) -> Option<DoneRow> {
    let original = step.original.as_deref().filter(|_| step.is_open())?;
    let value = step.done.as_deref().unwrap_or(&step.change.to);
    Some(row(&step.change, original, value, "changed", ""))
}
