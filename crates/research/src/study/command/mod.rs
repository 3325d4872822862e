//! `becalm study`: records configurations of a machine in turns, and reports their cost to a job of many ranks, and whether they
//! differ from the baseline.
//!
//! Each is recorded by its own process, started like a user's command.

mod recording;
mod turns;

use std::io::Write;
use std::path::{Path, PathBuf};

use becalm_bundle::Bundle;
use becalm_command::arguments::{FormArgs, some_cpus, some_grains};
use becalm_command::messages::say;
use becalm_command::output::emit;
use becalm_command::progress::ReadingProgress;
use becalm_command::rights;
use becalm_command::{Exit, Task};
use becalm_linux::sched::Policy;
use becalm_model::tune::Profile;
use becalm_scale::collective::Collective;
use becalm_scale::predict::Question;
use becalm_units::fault::{Context, Result, UsageError};
use becalm_units::{Count, CpuList, Named, Nanos};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::study::analysis::{ranks_per_node, study};
use crate::study::configuration::Configuration;
use crate::study::document::StudyDoc;
use crate::study::file::{self, FILE};
use crate::study::record_command;
use crate::study::report::StudyReport;

/// Record a machine under several configurations (De 2009)
///
/// Configurations: unchanged, real-time priority, isolated CPUs, idle siblings, one idle core, and all combined. They
/// are recorded in turn. Then becalm simulates a job of many ranks (processes) under the noise of each, and tests
/// whether the noise differs from the baseline. Configurations that this machine cannot run are skipped with the
/// reason. Isolation is undone after each. The results are stored in a directory; --from shows them again.
#[derive(Args, Debug)]
pub struct StudyArgs {
    /// Record only these configurations
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = configurations(), conflicts_with_all = ["from", "resume"])]
    only: Vec<Configuration>,

    /// CPUs that a job would use, such as 0-3,8 [default: all online]
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus, allow_hyphen_values = true, conflicts_with_all = ["from", "resume"])]
    cpus: Option<CpuList>,

    /// Total recording time of each configuration, from 100ms per turn to 24h
    #[arg(short, long, value_name = "TIME", default_value = "30s", allow_hyphen_values = true, conflicts_with_all = ["from", "resume"])]
    duration: Nanos,

    /// Number of turns through all configurations; comparisons need at least 2
    #[arg(
        long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100), conflicts_with_all = ["from", "resume"]
    )]
    turns: u32,

    /// Real-time class of the configurations that use one
    #[arg(long, value_name = "CLASS", default_value = "rr:80", conflicts_with_all = ["from", "resume"])]
    priority: Policy,

    /// Profile to isolate CPUs with, as in becalm tune plan
    #[arg(long, value_name = "PROFILE", default_value = "hpc", conflicts_with_all = ["from", "resume"])]
    profile: Profile,

    /// Record only interruptions (detours); do not trace the kernel for their sources
    #[arg(long, conflicts_with_all = ["from", "resume"])]
    no_sources: bool,

    /// Directory for the recordings [default: HOST-TIME.study]
    #[arg(short, long, value_name = "FOLDER", conflicts_with_all = ["from", "resume"])]
    output: Option<PathBuf>,

    /// Continue the stopped or killed study in this directory: make its missing recordings
    #[arg(long, value_name = "FOLDER", conflicts_with = "from")]
    resume: Option<PathBuf>,

    /// Measure nothing; show the study in this directory
    #[arg(long, value_name = "FOLDER")]
    from: Option<PathBuf>,

    /// Numbers of ranks of the job, in ascending order
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "64,256,1Ki,4Ki,16Ki")]
    ranks: Vec<Count>,

    /// Compute time per phase, or a list; answers are about the first
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1ms", allow_hyphen_values = true)]
    grain: Vec<Nanos>,

    /// Number of phases (compute, then synchronize) to simulate
    #[arg(long, value_name = "N", default_value = "10000")]
    phases: Count,

    /// Number of simulations, each with other random offsets
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    replicas: u64,

    /// Seed of the random offsets
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    form: FormArgs,
}

impl StudyArgs {
    /// The recording time of a configuration per turn, in whole milliseconds.
    fn turn(&self) -> Nanos {
        record_command::turn(self.duration, self.turns)
    }
}

/// The configurations, each with a description.
fn configurations() -> impl TypedValueParser<Value = Configuration> {
    let values = Configuration::ALL.iter().map(|configuration| {
        let help = match configuration {
            Configuration::Baseline => "All CPUs, as an ordinary process",
            Configuration::Priority => "All CPUs, in a real-time class",
            Configuration::Isolated => "CPUs isolated by becalm tune run",
            Configuration::SiblingIdle => "One hardware thread per core, the others idle",
            Configuration::OneLeftIdle => "All CPUs except one core, which is left for everything else",
            Configuration::Combined => "Isolated, in a real-time class, with siblings and one core idle",
        };
        PossibleValue::new(configuration.name()).help(help)
    });
    PossibleValuesParser::new(values).try_map(|name| name.parse())
}

impl Task for StudyArgs {
    fn run(self: Box<Self>, out: &mut dyn Write) -> Result<Exit> {
        run(&self, out)
    }
}

/// Records what is to be recorded, and shows the results. Fails if nothing can be recorded or read, or the output cannot be written.
fn run(args: &StudyArgs, out: &mut dyn Write) -> Result<Exit> {
    let question = question(args)?;
    // Finds out before the measurement whether the output can be written.
    let output = args.form.output(false)?;
    let recorded = match (&args.from, &args.resume) {
        (Some(_), _) => None,
        (None, Some(folder)) => Some(turns::resume(folder)?),
        (None, None) => Some(turns::record_all(args)?),
    };
    // From here on it only reads recordings.
    if args.form.writes_page() {
        rights::only_files()?
    } else {
        rights::only_read()?
    }
    let (folder, doc, exit) = match (recorded, &args.from) {
        (Some(recorded), _) => recorded,
        (None, Some(folder)) => (folder.clone(), file::load(folder)?, Exit::Done),
        (None, None) => unreachable!("it is recorded where it is not read"),
    };
    let bundles = open(&folder, &doc)?;
    let question = Question { per_node: ranks_per_node(&bundles)?, ..question };
    let reading = ReadingProgress::to_study(&bundles);
    let ranks: Vec<u64> = args.ranks.iter().map(|ranks| ranks.get()).collect();
    let questions: Vec<Question> = args.grain.iter().map(|grain| Question { grain: *grain, ..question }).collect();
    let studied = study(&doc, &bundles, &questions, &ranks)?;
    drop(reading);
    let report = StudyReport { doc: &doc, studied: &studied, question };
    emit(&report, output, out)?;
    if args.from.is_none() {
        say(format_args!("the recordings are in {}", folder.display()));
    }
    Ok(if studied.iter().all(Option::is_none) { Exit::Failed } else { exit })
}

/// The job to simulate; an impossible one is refused before the measurement.
fn question(args: &StudyArgs) -> Result<Question> {
    let usage = |text: String| Err(UsageError::new(text).into());
    some_grains(&args.grain)?;
    if args.ranks.iter().any(|ranks| ranks.get() == 0) {
        return usage("--ranks has 0, but a job has at least one rank".to_owned());
    }
    if !args.ranks.is_sorted() {
        return usage("the numbers of --ranks must be in ascending order".to_owned());
    }
    if let Some(most) = args.ranks.iter().find(|ranks| ranks.get() > becalm_scale::placement::RANKS_LIMIT) {
        return usage(format!("{most} ranks are too many for a replay; use becalm predict"));
    }
    if args.turn() < Nanos::from_millis(100) || args.duration > Nanos::from_secs(86_400) {
        return usage(format!(
            "--duration must be at least 100ms per turn, {} in total, and at most 24h",
            Nanos::from_millis(100 * i64::from(args.turns))
        ));
    }
    Ok(Question {
        grain: args.grain[0],
        phases: args.phases.get(),
        collective: Collective::Ideal,
        network: "infiniband".parse()?,
        bytes: 8,
        // Set to the number of recorded CPUs later.
        per_node: 1,
        synchronized: false,
        seed: args.seed,
        replicas: args.replicas,
    })
}

/// Opens the recordings of each configuration, turn by turn; an empty list for those without.
fn open(folder: &Path, doc: &StudyDoc) -> Result<Vec<Vec<Bundle>>> {
    let one = |run: &String| {
        Bundle::open(&folder.join(run))
            .with_context(|| format!("cannot read {run}, which {} of the study names", folder.join(FILE).display()))
    };
    doc.configurations.iter().map(|configuration| configuration.runs().iter().map(one).collect()).collect()
}
