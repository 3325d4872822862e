//! Errors of a whole transaction. A refused change is an outcome, not an error.

use std::path::PathBuf;

use becalm_units::fault::{Fault, Wording};

use crate::journal::{Damage, JournalError, Owner};

/// The transaction failed, or is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Settings are already changed.
    #[error("settings are changed already, by {owner}, as {} says", journal.display())]
    AlreadyTuned {
        /// The process that changed them.
        owner: Owner,
        /// The file of the journal.
        journal: PathBuf,
    },
    /// A plan cannot be added, because damage of the journal hides what was changed.
    #[error(
        "line {} of the journal {} is damaged: {}. Restore before you change more",
        damage.line, journal.display(), damage.why
    )]
    Damaged {
        /// The first damaged line.
        damage: Damage,
        /// The file of the journal.
        journal: PathBuf,
    },
    /// A command runs on the changed settings.
    #[error("{owner} runs a command with these settings; it restores them when the command ends")]
    InUse {
        /// The process that runs the command.
        owner: Owner,
    },
}

impl Fault for TuneError {
    fn hint(&self) -> Option<Wording> {
        let help = match self {
            Self::AlreadyTuned { .. } => "; undo them first with becalm tune restore, or add to them with {extend!}",
            Self::InUse { .. } => ". {force!} restores them now",
            Self::Damaged { .. } => ": becalm tune restore",
            Self::Journal(_) => return None,
        };
        Some(Wording::new(help))
    }
}
