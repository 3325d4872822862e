//! Limits on the loss of a CPU, for commands that exit with code 3 above them.

use becalm_analyze::limits::Limits;
use becalm_units::{Nanos, Share};
use clap::Args;

/// Limits on each CPU.
#[derive(Args, Clone, Copy, Debug)]
pub struct LimitArgs {
    /// Exit with code 3 if an interruption (detour) is longer than this, such as 100us
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    max_detour: Option<Nanos>,

    /// Exit with code 3 if a CPU loses more than this share of its time, such as 0.1%
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    max_noise: Option<Share>,
}

impl LimitArgs {
    /// The limits as values.
    pub const fn limits(self) -> Limits {
        Limits { max_noise: self.max_noise, max_detour: self.max_detour }
    }

    /// Whether any limit was given.
    pub const fn are_given(self) -> bool {
        self.max_noise.is_some() || self.max_detour.is_some()
    }
}
