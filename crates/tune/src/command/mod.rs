//! `becalm tune`: finds and removes noise sources on CPUs in a transaction. One file per subcommand.

mod apply;
mod audit;
mod formats;
mod gain;
mod patience;
mod plan;
pub(crate) mod planning;
mod restore;
mod run;
pub(crate) mod stage;
mod standing;
mod status;
mod verify;
mod watch;
mod watcher;

use std::io::Write;

use becalm_command::Exit;
use becalm_command::Task;
use becalm_command::pager::Paging;
use becalm_units::fault;
use clap::{Args, Subcommand};

pub use standing::Standing;

/// Audit, plan, apply and undo what makes CPUs quiet
#[derive(Args, Debug)]
pub struct TuneArgs {
    #[command(subcommand)]
    command: TuneCommand,
}

#[derive(Subcommand, Debug)]
enum TuneCommand {
    Audit(audit::AuditArgs),
    Plan(plan::PlanArgs),
    Apply(apply::ApplyArgs),
    Restore(restore::RestoreArgs),
    Status(status::StatusArgs),
    Run(run::TuneRunArgs),
    #[command(hide = true)]
    Watch(watch::WatchArgs),
}

impl Task for TuneArgs {
    fn paging(&self) -> Paging {
        match self.command {
            TuneCommand::Audit(_) | TuneCommand::Plan(_) | TuneCommand::Status(_) => Paging::Long,
            _ => Paging::Never,
        }
    }

    fn run(self: Box<Self>, out: &mut dyn Write) -> fault::Result<Exit> {
        run(&self, out)
    }
}

/// Runs the subcommand.
fn run(args: &TuneArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    match &args.command {
        TuneCommand::Audit(args) => audit::run(args, out),
        TuneCommand::Plan(args) => plan::run(args, out),
        TuneCommand::Apply(args) => apply::run(args, out),
        TuneCommand::Restore(args) => restore::run(args, out),
        TuneCommand::Status(args) => status::run(args, out),
        TuneCommand::Run(args) => run::run(args, out),
        TuneCommand::Watch(args) => watch::run(args),
    }
}
