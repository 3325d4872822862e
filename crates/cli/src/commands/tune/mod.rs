//! `becalm tune`: finds what keeps CPUs from being quiet, and removes it as a transaction.

mod check;

use std::io::Write;

use clap::{Args, Subcommand};

use crate::exit::Exit;

/// Make CPUs quiet, and prove it
#[derive(Args, Debug)]
pub struct TuneArgs {
    #[command(subcommand)]
    command: TuneCommand,
}

#[derive(Subcommand, Debug)]
enum TuneCommand {
    Check(check::CheckArgs),
}

/// Does what was asked.
///
/// # Errors
/// Those of the command.
pub fn run(args: &TuneArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match &args.command {
        TuneCommand::Check(args) => check::run(args, out),
    }
}
