//! `becalm tune plan`: every change that would make CPUs quiet, with reason, risk and expected gain. Changes nothing.

use std::io::Write;
use std::path::PathBuf;

use becalm_command::Exit;
use becalm_command::arguments::{FormArgs, some_grains};
use becalm_command::output::emit;
use becalm_units::fault;
use becalm_units::{Count, Nanos};
use clap::Args;

use super::formats::FormatArgs;
use super::gain;
use super::planning::{PlanningArgs, say_notes};
use crate::Machine;
use crate::plan;
use crate::report::TunePlanReport;

/// Show the changes that would make CPUs quiet
///
/// Lists every change in order, with its reason, risk and expected gain, and the changes that need a reboot. Changes
/// nothing and needs no rights, but only root can read some files.
#[derive(Args, Debug)]
pub struct PlanArgs {
    #[command(flatten)]
    planning: PlanningArgs,

    /// Predict the gain of each change from the noise in this recording of the CPUs
    #[arg(long, value_name = "RUN")]
    run: Option<PathBuf>,

    /// Numbers of ranks (processes) of the jobs to predict the gain for
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "64,1Ki,16Ki", requires = "run")]
    ranks: Vec<Count>,

    /// Compute times between synchronizations of these jobs, such as 100us,1ms
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1ms", requires = "run")]
    grain: Vec<Nanos>,

    /// Show every change, also similar ones
    #[arg(long)]
    full: bool,

    #[command(flatten)]
    form: FormArgs,

    #[command(flatten)]
    files: FormatArgs,
}

/// Plans and prints. Fails if the request is invalid, the machine or the recording cannot be read, or `out` cannot be written.
pub fn run(args: &PlanArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    some_grains(&args.grain)?;
    let plan = plan(&args.planning.machine(), &args.planning.request())?;
    if args.files.are_wanted() {
        say_notes(&plan);
        return args.files.write(&plan, args.planning.machine().root(), out);
    }
    let gains = |run: &PathBuf| {
        let ranks: Vec<u64> = args.ranks.iter().map(|ranks| ranks.get()).collect();
        gain::gains(&plan, run, &ranks, &args.grain)
    };
    let gains = args.run.as_ref().map(gains).transpose()?;
    let report = TunePlanReport { plan: &plan, gains: gains.as_ref() };
    emit(&report, args.form.output(args.full)?, out)?;
    Ok(Exit::Done)
}
