//! The state of the settings, in words.

use crate::{Damage, LiveMachine, Owner, Stage, State};

/// The advice if settings are changed.
pub(crate) const RESTORE: &str = "becalm tune restore brings back what was";

/// The advice if everything readable in a damaged journal is restored.
pub(crate) const FORGET: &str = "becalm tune restore --keep leaves the rest as it is, and puts the journal away";

/// The number of damaged lines of a journal, and the first of them.
pub(crate) fn damaged_lines(damage: &[Damage]) -> String {
    match damage {
        [only] => format!("line {} of the journal is damaged", only.line),
        [first, ..] => format!("{} lines of the journal are damaged, from line {} on", damage.len(), first.line),
        [] => String::new(),
    }
}

/// The state of the settings in a journal.
#[derive(Debug)]
pub struct Standing {
    /// The stage of the settings.
    pub stage: Stage,
    /// The stage in a sentence.
    pub sentence: String,
    /// The next step, if there is one.
    pub advice: Option<&'static str>,
}

impl Standing {
    /// Determines it from a journal with its owner.
    pub fn new(machine: &LiveMachine, owner: &Owner, state: &State) -> Self {
        if matches!(owner.is_of_this_boot(machine), Ok(false)) {
            let sentence = "the journal is of an earlier boot: its settings are gone, and there is nothing to restore";
            let advice = Some("becalm tune restore puts the journal away");
            return Self { stage: Stage::EarlierBoot, sentence: sentence.to_owned(), advice };
        }
        let open = state.steps.iter().filter(|step| step.is_open()).count();
        let mut knobs = if open == 1 { "1 knob is changed".to_owned() } else { format!("{open} knobs are changed") };
        if !state.damage.is_empty() {
            knobs += &format!(", and perhaps others: {}", damaged_lines(&state.damage));
            if open == 0 {
                return Self { stage: Stage::PartlyRestored, sentence: knobs, advice: Some(FORGET) };
            }
        }
        let (stage, rest) = match (owner.runs_command, owner.is_alive(machine)) {
            (true, true) => {
                (Stage::Running, format!("; {owner} runs a command on them, and restores them when it ends"))
            }
            (true, false) => (Stage::Unfinished, format!("; {owner}, which ran a command on them, is dead")),
            (false, true) if !state.applied => (Stage::Unfinished, format!("; {owner} is applying changes")),
            (false, false) if !state.applied => (Stage::Unfinished, format!("; {owner} died while applying them")),
            (false, _) => (Stage::Tuned, String::new()),
        };
        let advice = (stage != Stage::Running).then_some(RESTORE);
        Self { stage, sentence: knobs + &rest, advice }
    }
}
