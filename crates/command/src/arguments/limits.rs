//! What a CPU may lose, for commands that end in exit code 3 where it loses more.

use becalm_analyze::limits::Limits;
use becalm_units::{Nanos, Share};
use clap::Args;

/// Limits on each CPU.
#[derive(Args, Clone, Copy, Debug)]
pub struct LimitArgs {
    /// Exit with code 3 if a detour is longer than this
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    max_detour: Option<Nanos>,

    /// Exit with code 3 if a CPU loses a larger share of its time than this, like 0.1%
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    max_noise: Option<Share>,
}

impl LimitArgs {
    /// What was asked.
    pub const fn limits(self) -> Limits {
        Limits { max_noise: self.max_noise, max_detour: self.max_detour }
    }

    /// Whether anything was asked.
    pub const fn are_given(self) -> bool {
        self.max_noise.is_some() || self.max_detour.is_some()
    }
}
