//! Shared arguments: values of options, and early checks of them.

mod cpus;
mod form;
mod grains;
mod limits;
mod place;
mod program;
mod ranks;
mod rate;
pub mod run;
mod share;

pub use cpus::{cpu_id, some_cpus};
pub use form::FormArgs;
pub use grains::some_grains;
pub use limits::LimitArgs;
pub use place::{FolderArgs, refuse_existing};
pub use program::refuse_missing;
pub use ranks::RanksArgs;
pub use rate::added_rate;
pub use run::RunArgs;
pub use share::tolerable;
