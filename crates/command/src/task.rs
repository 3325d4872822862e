//! A command as a value.

use std::io::Write;

use becalm_units::fault::{self, UsageError};

use crate::Exit;
use crate::pager::Paging;
use crate::rights::RightsKept;

/// A command with its arguments.
pub trait Task {
    /// The rights that it keeps from the start. It drops those not needed after setup itself.
    fn rights(&self) -> RightsKept {
        RightsKept::All
    }

    /// When its text may go through a pager.
    fn paging(&self) -> Paging {
        Paging::Never
    }

    /// Whether it must end even if no one reads its messages.
    fn is_service(&self) -> bool {
        false
    }

    /// Runs the command. Fails if that fails, or `out` cannot be written.
    fn run(self: Box<Self>, out: &mut dyn Write) -> fault::Result<Exit>;
}

/// Implements `Task` for a command that only reads, has a `form` of its report, and prints long texts.
#[macro_export]
macro_rules! reading_task {
    ($args:ty) => {
        impl $crate::Task for $args {
            fn rights(&self) -> $crate::rights::RightsKept {
                $crate::rights::RightsKept::to_read(self.form.writes_page())
            }

            fn paging(&self) -> $crate::pager::Paging {
                $crate::pager::Paging::Long
            }

            fn run(self: Box<Self>, out: &mut dyn std::io::Write) -> becalm_units::fault::Result<$crate::Exit> {
                run(&self, out)
            }
        }
    };
}
/// The error for a missing feature.
pub fn built_without(feature: &str) -> UsageError {
    UsageError::new(format!(
        "this becalm was built without `{feature}`; install a package of becalm, which has it, or build with --features {feature}"
    ))
}
