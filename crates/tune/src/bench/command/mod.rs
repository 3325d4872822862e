//! `becalm bench`: a benchmark on quiet CPUs, and which of its repetitions were disturbed.

mod choice;
mod observer;
mod repetition;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use becalm_bundle::Draft;
use becalm_command::Exit;
use becalm_command::Task;
use becalm_command::arguments::{FormArgs, refuse_missing, some_cpus};
use becalm_command::messages::say;
use becalm_command::output::emit;
use becalm_command::rights::CommandUserArgs;
use becalm_linux::janitor::Janitor;
use becalm_linux::placed::{ProgramStart, adopt_orphans, begin_in};
use becalm_linux::relay::Relay;
use becalm_linux::rights::User;
use becalm_linux::sched::{AffinityGuard, Policy};
use becalm_model::tune::Profile;
use becalm_units::CpuList;
use becalm_units::fault::{Context, Result, UsageError};
use clap::Args;

use self::observer::Observer;
use super::repetitions::{Repetition, judge};
use super::report::{BenchReport, SeenBy};
use crate::command::planning::{JournalArgs, need_rights};
use crate::command::stage::{Say, Stage};
use crate::document::Plan;
use crate::{Folder, LiveMachine, Request, plan};

/// Run a benchmark on a quiet CPU; find disturbed repetitions
///
/// Makes CPUs quiet like `becalm tune run`, repeats the command on them and traces what interrupts it. Shows what each
/// repetition lost to noise, and whether the machine or the program causes the variation. Without root, it binds the
/// command to the quietest CPU and counts how long it waited.
///
/// Exit code: that of the first repetition that fails, which ends the benchmark; else 0, or 1 if not everything could
/// be restored.
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// Number of repetitions
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    runs: u64,

    /// Number of repetitions before these, which do not count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    warmup: u64,

    /// CPUs to run on, such as 1 or 2-3 [default: the quietest one]
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus, allow_hyphen_values = true)]
    cpus: Option<CpuList>,

    /// Purpose of the changes: benchmark keeps a constant speed; hpc, rt and cloud-guest as in `becalm tune plan`
    #[arg(long, value_name = "PROFILE", default_value = "benchmark")]
    profile: Profile,

    /// Change no settings; only bind the command to its CPUs
    #[arg(long)]
    no_tune: bool,

    /// Continue after a repetition fails
    #[arg(long)]
    ignore_failure: bool,

    /// Show the command's standard output
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    show_output: bool,

    /// Write the times to this file in hyperfine's JSON format
    #[arg(long, value_name = "FILE")]
    export_json: Option<PathBuf>,

    #[command(flatten)]
    form: FormArgs,

    #[command(flatten)]
    journal: JournalArgs,

    #[command(flatten)]
    command_user: CommandUserArgs,

    /// Command to run; it runs with the rights of the user who called sudo, if any
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Task for BenchArgs {
    fn run(self: Box<Self>, out: &mut dyn Write) -> Result<Exit> {
        run(&self, out)
    }
}

/// Runs the benchmark, and reports. Fails if the command is missing or cannot be started, or not all could be restored.
fn run(args: &BenchArgs, out: &mut dyn Write) -> Result<Exit> {
    let Some(program) = args.command.first() else {
        return Err(UsageError::new("a command is missing: becalm bench -- COMMAND").into());
    };
    refuse_missing(program)?;
    let export = args.export_json.as_deref().map(|file| Draft::replace(file).map(|draft| (draft, file))).transpose()?;
    let output = args.form.output(false)?;
    let root = Path::new("/");
    // While the process has only one thread.
    let janitor = Janitor::spawn(&root.join("proc")).map(Arc::new).map_err(|error| error.to_string());
    let cpus = match &args.cpus {
        Some(cpus) => cpus.clone(),
        None => choice::quietest(root)?,
    };
    let mut bench = Bench { args, cpus, user: args.command_user.user(), janitor, not_done: Vec::new() };
    let machine = LiveMachine::for_root(root);
    let folder = args.journal.folder();
    let planned = bench.plan(&machine);
    let signals = Relay::block().context("cannot block signals")?;
    // becalm's own work runs on other CPUs, if there are any.
    let _elsewhere = AffinityGuard::keep_off(&bench.cpus)?;
    let (ended, is_tuned) = bench.on_quiet_cpus(&machine, &folder, planned.as_ref(), &signals)?;
    drop(signals);
    let Ended { exit, runs, seen_by } = ended;
    if exit != Exit::Done || runs.is_empty() {
        return Ok(exit);
    }
    let judged = judge(&runs, bench.cpus.len());
    let report = BenchReport {
        command: &args.command,
        cpus: &bench.cpus,
        is_tuned,
        seen_by,
        not_done: &bench.not_done,
        warmup: args.warmup,
        runs: &runs,
        judged: &judged,
    };
    if let Some((mut draft, file)) = export {
        let text = report.hyperfine();
        draft.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", file.display()))?;
        draft.finish()?;
    }
    emit(&report, output, out)?;
    Ok(Exit::Done)
}

/// The results of the repetitions.
struct Ended {
    exit: Exit,
    runs: Vec<Repetition>,
    seen_by: SeenBy,
}

/// The benchmark and its CPUs.
struct Bench<'a> {
    args: &'a BenchArgs,
    cpus: CpuList,
    user: Option<User>,
    janitor: Result<Arc<Janitor>, String>,
    /// Limitations, in sentences.
    not_done: Vec<String>,
}

impl Bench<'_> {
    /// The plan of changes; `None` if nothing can or should be changed.
    fn plan(&mut self, machine: &LiveMachine) -> Option<Plan> {
        if self.args.no_tune {
            return None;
        }
        let request = Request {
            cpus: self.cpus.clone(),
            profile: self.args.profile,
            leave_idle: 0,
            only: [].into(),
            skip: [].into(),
            realtime: false,
        };
        let planned = need_rights().and_then(|()| Ok(plan(machine, &request)?));
        planned.map_err(|error| self.not_done.push(format!("the CPUs are not isolated: {error}"))).ok()
    }

    /// Makes the CPUs quiet if planned, runs the command, and restores. Returns whether they were made quiet.
    fn on_quiet_cpus(
        &mut self,
        machine: &LiveMachine,
        folder: &Folder,
        plan: Option<&Plan>,
        signals: &Relay,
    ) -> Result<(Ended, bool)> {
        let Some(plan) = plan else { return Ok((self.repeat(None, signals)?, false)) };
        let named = Some("becalm tune apply lists them");
        let stage = Stage { machine, folder, plan, require: false, quiet: named };
        match stage.tune(Say::All) {
            Err(error) => {
                self.not_done.push(format!("the CPUs are not isolated: {error}"));
                Ok((self.repeat(None, signals)?, false))
            }
            Ok(tuned) => {
                let ended = self.repeat(Some(&stage), signals);
                let restored = tuned.restore();
                let ended = ended?;
                match restored {
                    Err(error) if ended.exit != Exit::Done => say(format_args!("{error}")),
                    restored => restored?,
                }
                Ok((ended, true))
            }
        }
    }

    /// Runs the command as often as requested, until a run fails or a signal arrives.
    fn repeat(&mut self, stage: Option<&Stage<'_>>, signals: &Relay) -> Result<Ended> {
        adopt_orphans().context("cannot track the command's children")?;
        let mut observer = match Observer::trace(&self.cpus, &self.janitor) {
            Ok(observer) => observer,
            Err(why) => {
                self.not_done.push(format!("sources of interruptions are unknown: {why}"));
                Observer::counters(&self.cpus)
            }
        };
        let mut runs = Vec::new();
        for number in 0..self.args.warmup + self.args.runs {
            let command = self.command(stage, signals)?;
            let was_changed = observer.changed().is_some();
            let (run, stopped) = repetition::run(command, &self.args.command[0], &mut observer, signals)?;
            if let Some(disturbance) = observer.changed().filter(|_| !was_changed) {
                self.not_done.push(format!(
                    "interruptions are unknown from run {} on: {disturbance}; repeat without other tracing programs",
                    number + 1
                ));
            }
            let exit = stopped.map_or(Exit::As(run.exit_code), Exit::from_signal);
            let failed = run.exit_code != 0 && !self.args.ignore_failure;
            if stopped.is_some() || failed {
                if stopped.is_none() {
                    say(format_args!(
                        "run {} ended with exit code {}; to continue after failures: --ignore-failure",
                        number + 1,
                        run.exit_code
                    ));
                }
                return Ok(Ended { exit, runs, seen_by: observer.seen_by() });
            }
            if number >= self.args.warmup {
                runs.push(run);
            }
        }
        Ok(Ended { exit: Exit::Done, runs, seen_by: observer.seen_by() })
    }

    /// The command, set up to start on its CPUs.
    fn command(&self, stage: Option<&Stage<'_>>, signals: &Relay) -> Result<Command> {
        let (program, arguments) = self.args.command.split_first().context("a command is missing")?;
        let mut command = match stage {
            Some(stage) => stage.prepare(program, Policy::Other, self.user.as_ref(), signals)?,
            None => {
                let mut command = Command::new(program);
                let start =
                    ProgramStart { group: None, cpus: Some(&self.cpus), policy: None, user: self.user.as_ref() };
                begin_in(&mut command, start, Some(signals))?;
                command
            }
        };
        command.args(arguments).stdin(Stdio::null());
        if !self.args.show_output {
            command.stdout(Stdio::null());
        }
        Ok(command)
    }
}
