//! How a job ends where something fails: all ranks together, with one message and one exit code.

/// Arguments that parse but cannot be meant, found where they are used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Another rank failed, and says why.
#[derive(Debug, thiserror::Error)]
#[error("rank {rank} failed")]
pub struct Elsewhere {
    /// The rank that failed.
    pub rank: i32,
    /// The exit code that it ends with.
    pub code: u8,
}

/// The exit code of an error: 2 for wrong usage, else 1.
pub fn code_of(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<Elsewhere>() {
        Some(elsewhere) => elsewhere.code,
        None if error.chain().any(|cause| cause.is::<UsageError>()) => 2,
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ranks_end_with_the_same_code() {
        let usage = anyhow::Error::from(UsageError("x".to_owned())).context("y");
        assert_eq!(code_of(&usage), 2);
        assert_eq!(code_of(&anyhow::anyhow!("z")), 1);
        assert_eq!(code_of(&Elsewhere { rank: 3, code: 2 }.into()), 2);
    }
}
