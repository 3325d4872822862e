//! How a job ends after an error: all ranks together, with one message and one exit code.

use becalm_units::fault;

/// Another rank failed, and prints the reason.
#[derive(Debug, thiserror::Error)]
#[error("rank {rank} failed")]
pub struct Elsewhere {
    /// The rank that failed.
    pub rank: i32,
    /// Its exit code.
    pub code: u8,
}

fault::faultless!(Elsewhere);

/// The failure of another rank, if that is the error.
pub fn elsewhere(error: &fault::Error) -> Option<&Elsewhere> {
    error.causes().find_map(|cause| cause.downcast_ref())
}

/// The exit code of an error: 2 for wrong usage, else 1.
pub fn code_of(error: &fault::Error) -> u8 {
    match elsewhere(error) {
        Some(elsewhere) => elsewhere.code,
        None if error.is_usage() => 2,
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use becalm_scale::ScaleError;
    use becalm_units::fault::UsageError;

    use super::*;

    #[test]
    fn all_ranks_end_with_the_same_code() {
        let usage = fault::Error::from(UsageError::new("x")).context("y");
        assert_eq!(code_of(&usage), 2);
        assert_eq!(code_of(&ScaleError::NoRanks.into()), 2);
        assert_eq!(code_of(&fault::Error::new("z")), 1);
        assert_eq!(code_of(&Elsewhere { rank: 3, code: 2 }.into()), 2);
    }
}
