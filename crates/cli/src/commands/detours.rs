//! `becalm detours`: single detours as timelines, or on several CPUs at once.

use std::io::Write;

use becalm_answer::sources::{DetourName, SourcesQuestion, SourcesWanted};
use becalm_bundle::Contents;
use becalm_command::arguments::{FormArgs, RunArgs};
use becalm_command::reader::Reader;
use becalm_command::{Exit, reading_task};
use becalm_units::{Nanos, fault};
use clap::Args;

/// Show single interruptions as timelines
///
/// A detour is an interruption of a CPU. Each line of a timeline is one kernel activity, or a remainder: `edge` is kernel entry, exit and cold
/// caches, `unseen` is time without a kernel event (hypervisor, firmware, hardware), and `self` is becalm's own work.
///
/// Of a recording of becalm observe, it shows single waits and interruptions of threads, and who had the CPU meanwhile.
#[derive(Args, Debug)]
pub struct DetoursArgs {
    #[command(flatten)]
    run: RunArgs,

    /// Show the K longest detours
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    longest: u32,

    /// Show detour N of a CPU, counted from 0; "CPU:" is optional if there is only one
    #[arg(long, value_name = "CPU:N", conflicts_with = "longest")]
    detour: Option<DetourName>,

    /// Show detours that hit several CPUs of a node at once, compared with chance
    #[arg(long, conflicts_with_all = ["detour", "longest"])]
    together: bool,

    /// With --together: also count detours less than this apart, such as 10us
    #[arg(long, value_name = "TIME", default_value = "0ns", requires = "together")]
    within: Nanos,

    /// With --together: show all sources instead of the first 20
    #[arg(long, conflicts_with_all = ["detour", "longest"])]
    full: bool,

    #[command(flatten)]
    form: FormArgs,
}

reading_task!(DetoursArgs);

/// Reads the run and prints the requested view.
fn run(args: &DetoursArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let wanted = match (args.together, args.detour) {
        (true, _) => SourcesWanted::Together { within: args.within },
        (_, Some(detour)) => SourcesWanted::Detour(detour),
        _ => SourcesWanted::Longest(args.longest),
    };
    let question = SourcesQuestion { run: args.run.path.clone(), selection: args.run.selection(), wanted };
    answer(&question, &mut Reader::new(args.form.output(args.full)?, out))?;
    Ok(Exit::Done)
}

/// Answers a question about the sources of a recording, of CPUs or of observed threads.
pub fn answer(question: &SourcesQuestion, reader: &mut Reader<'_>) -> fault::Result<()> {
    match Contents::read(&question.run)? {
        #[cfg(feature = "observe")]
        Contents::Observed => becalm_observe::detours::answer(question, reader),
        #[cfg(not(feature = "observe"))]
        Contents::Observed => Err(becalm_command::built_without("observe").into()),
        _ => question.answer(reader),
    }
}
