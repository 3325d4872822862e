//! Lengths of phases.

use becalm_units::Nanos;
use becalm_units::fault::UsageError;

/// Fails if a grain is invalid or repeated.
pub fn some_grains(grains: &[Nanos]) -> Result<(), UsageError> {
    if grains.iter().any(|grain| *grain <= Nanos::ZERO) {
        return Err(UsageError::new("--grain is 0: a phase without work says nothing about noise"));
    }
    match grains.iter().enumerate().find(|(at, grain)| grains[..*at].contains(grain)) {
        Some((_, twice)) => Err(UsageError::new(format!("--grain holds {twice} twice"))),
        None => Ok(()),
    }
}
