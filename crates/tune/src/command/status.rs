//! `becalm tune status`: the present changes, and their owner.

use std::io::Write;
use std::path::PathBuf;

use becalm_command::Exit;
use becalm_command::arguments::FormArgs;
use becalm_command::output::emit;
use becalm_units::CpuList;
use becalm_units::fault;
use clap::Args;

use super::planning::JournalArgs;
use super::standing::Standing;
use crate::report::{TuneDoing, TuneDoneReport};
use crate::{LiveMachine, Stage};

/// Show what is changed now, and by whom
#[derive(Args, Debug)]
pub struct StatusArgs {
    #[command(flatten)]
    journal: JournalArgs,

    /// Show every setting, also similar ones
    #[arg(long)]
    full: bool,

    #[command(flatten)]
    form: FormArgs,

    /// Directory with the machine's files
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// Reads the journal and prints it. Fails if the journal cannot be read, or `out` cannot be written.
pub fn run(args: &StatusArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let folder = args.journal.folder();
    let mut report = TuneDoneReport {
        doing: TuneDoing::Status,
        stage: Stage::Untuned,
        summary: "nothing is changed".to_owned(),
        cpus: CpuList::default(),
        attempts: Vec::new(),
        journal: None,
        advice: None,
    };
    if let Some(state) = folder.read()?.filter(|state| !state.is_spent()) {
        let Standing { stage, sentence, advice } =
            Standing::new(&LiveMachine::for_root(&args.root), &state.owner, &state);
        report = TuneDoneReport {
            stage,
            summary: sentence,
            cpus: state.quiet(),
            attempts: state.in_force(),
            journal: Some(folder.journal()),
            advice,
            ..report
        };
    }
    emit(&report, args.form.output(args.full)?, out)?;
    Ok(Exit::Done)
}
