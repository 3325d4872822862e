//! The programs of steps: this becalm, or becalm-mpi under the launcher of an MPI library. Either of the latter may be missing.

use std::env;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use becalm_command::child::{self, without_defaults};
use becalm_linux::sysfs::cpu::{self, CpuSets};
use becalm_units::CpuList;
use becalm_units::fault::{self, Context, UsageError};

use crate::paper::catalogue::{Quieted, Ranks, Step};

/// Why no CPU is left for other programs.
const ONE_CORE: &str = "all CPUs of this machine belong to one core, so none can be left to other programs";

/// The program of jobs.
const JOB: &str = "becalm-mpi";

/// Programs and CPUs of this machine.
pub struct Launch {
    becalm: PathBuf,
    /// `None` if it is missing.
    job: Option<PathBuf>,
    /// The launcher with its options, up to `-n`.
    launcher: Vec<String>,
    /// Every CPU that is online.
    all: CpuList,
    /// The CPUs of all cores but the first.
    rest: CpuList,
}

/// The words of a step's command line, program first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepCommand {
    words: Vec<String>,
    is_job: bool,
}

impl fmt::Display for StepCommand {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.words.join(" "))
    }
}

impl Launch {
    /// Finds the programs and CPUs of this machine, with this launcher. Fails if the launcher has no words, or this becalm or the machine's
    /// CPUs are not found.
    pub fn here(launcher: &str) -> fault::Result<Self> {
        let launcher: Vec<String> = launcher.split_whitespace().map(str::to_owned).collect();
        if launcher.is_empty() {
            return Err(UsageError::new("--mpirun takes a program and its options, like mpirun").into());
        }
        let becalm = PathBuf::from(child::becalm()?.get_program());
        let root = Path::new("/");
        let all = CpuSets::read(root)?.online;
        let first = all.iter().next();
        let core = first.and_then(|first| cpu::siblings(root, first).ok().flatten());
        let rest = all.without(&core.or_else(|| first.map(CpuList::from)).unwrap_or_default());
        let job = Some(becalm.with_file_name(JOB)).filter(|path| is_program(path)).or_else(|| in_path(JOB));
        Ok(Self { becalm, job, launcher, all, rest })
    }

    /// The command of a step with these arguments, and recordings after them. Fails if this machine lacks the CPUs for it.
    pub fn command(&self, step: &Step, arguments: &str, gathered: &[String]) -> Result<StepCommand, String> {
        let mut words: Vec<String> = Vec::new();
        let mut say = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
        match step.job {
            None => {
                if let Some(quieted) = step.quieted {
                    let cpu = self.last_of_rest()?;
                    say(&["becalm", "tune", "run", "--cpus", &cpu, "--quiet", "--as-root"]);
                    if quieted == Quieted::Throttling {
                        say(&["--only", "throttling"]);
                    }
                    say(&["--"]);
                }
                say(&["becalm"]);
            }
            Some(ranks) => {
                let cpus = if ranks == Ranks::All { &self.all } else { &self.rest };
                if cpus.is_empty() {
                    return Err(ONE_CORE.to_owned());
                }
                if ranks == Ranks::Isolated {
                    say(&["becalm", "tune", "run", "--cpus", &cpus.to_string(), "--"]);
                }
                if let Some(noise) = &step.inject {
                    say(&["becalm", "inject"]);
                    noise.split_whitespace().for_each(|word| say(&[word]));
                    say(&["--cpus", &cpus.to_string(), "--quiet", "--"]);
                }
                self.launcher.iter().for_each(|word| say(&[word]));
                say(&["-n", &cpus.len().to_string(), JOB]);
            }
        }
        arguments.split_whitespace().for_each(|word| say(&[word]));
        if step.each_cpu {
            say(&["--cpus", &self.all.to_string()]);
        } else if step.job.is_none() && step.quieted.is_some() {
            say(&["--cpus", &self.last_of_rest()?]);
        }
        gathered.iter().for_each(|run| say(&[run]));
        Ok(StepCommand { words, is_job: step.job.is_some() })
    }

    /// The last CPU outside of the first core.
    fn last_of_rest(&self) -> Result<String, String> {
        self.rest.iter().last().map(|cpu| cpu.to_string()).ok_or_else(|| ONE_CORE.to_owned())
    }

    /// The missing program of a step, in words, with how to get it.
    pub fn lacking(&self, step: &Step) -> Option<String> {
        step.job?;
        if self.job.is_none() {
            return Some(format!(
                "{JOB} is neither beside becalm nor in a folder of PATH; install an MPI library (on Debian libopenmpi-dev and \
                 openmpi-bin), and build it with make mpi"
            ));
        }
        let launcher = &self.launcher[0];
        let is_there =
            if launcher.contains('/') { is_program(Path::new(launcher)) } else { in_path(launcher).is_some() };
        (!is_there).then(|| {
            format!(
                "no folder of PATH holds {launcher}, which starts parallel jobs; install that of the MPI library which {JOB} was built \
                 with (on Debian openmpi-bin), or name another launcher by --mpirun"
            )
        })
    }

    /// The process of a command, not started yet. Fails if it has no words.
    pub fn process(&self, command: &StepCommand) -> fault::Result<Command> {
        // Programs are the first word, and the command of `becalm tune run`.
        let before = std::iter::once("--").chain(command.words.iter().map(String::as_str));
        let own = |(before, word): (&str, &String)| match (word.as_str(), &self.job) {
            ("becalm", _) if before == "--" => self.becalm.clone().into_os_string(),
            (JOB, Some(job)) if command.is_job => job.clone().into_os_string(),
            _ => word.into(),
        };
        let mut words = before.zip(&command.words).map(own);
        let mut process = Command::new(words.next().context("a step has no command")?);
        process.args(words);
        without_defaults(&mut process);
        if command.is_job {
            // Open MPI refuses root unless two variables allow it; other libraries ignore them. A hardware thread counts as a CPU here.
            process.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            process.env("OMPI_MCA_hwloc_base_use_hwthreads_as_cpus", "1");
        }
        Ok(process)
    }
}

/// True if the file exists and is executable.
fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

/// The first program of this name in the directories of PATH.
fn in_path(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| is_program(path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn launch(all: &str, rest: &str) -> Launch {
        Launch {
            becalm: PathBuf::from("/opt/becalm"),
            job: Some(PathBuf::from("/opt/becalm-mpi")),
            launcher: vec!["srun".to_owned(), "--mpi=pmix".to_owned()],
            all: all.parse().unwrap(),
            rest: rest.parse().unwrap_or_default(),
        }
    }

    fn step(job: serde_json::Value) -> Step {
        let step = json!({ "name": "job", "command": "--phases 10", "job": job, "seconds": 1.0 });
        serde_json::from_value(step).unwrap()
    }

    #[test]
    fn jobs_get_the_cpus_of_their_configuration() {
        let launch = launch("0-7", "1-3,5-7");
        let shown = |job: &str| launch.command(&step(json!(job)), "--phases 10", &[]).unwrap().to_string();
        assert_eq!(shown("all"), "srun --mpi=pmix -n 8 becalm-mpi --phases 10");
        assert_eq!(shown("one_left_idle"), "srun --mpi=pmix -n 6 becalm-mpi --phases 10");
        let isolated = "becalm tune run --cpus 1-3,5-7 -- srun --mpi=pmix -n 6 becalm-mpi --phases 10";
        assert_eq!(shown("isolated"), isolated);
        let mut noisy = step(json!("all"));
        noisy.inject = Some("--rate 1Hz --detour 1ms".to_owned());
        let injected = "becalm inject --rate 1Hz --detour 1ms --cpus 0-7 --quiet -- srun --mpi=pmix -n 8 becalm-mpi x";
        assert_eq!(launch.command(&noisy, "x", &[]).unwrap().to_string(), injected);
        let command = launch.command(&step(json!("isolated")), "--phases 10", &[]).unwrap();
        let process = launch.process(&command).unwrap();
        assert_eq!(process.get_program(), "/opt/becalm");
        assert!(process.get_args().any(|word| word == "/opt/becalm-mpi"));
        let mut quieted = step(json!(null));
        quieted.quieted = Some(Quieted::Throttling);
        let command = launch.command(&quieted, "work", &[]).unwrap();
        let shown = "becalm tune run --cpus 7 --quiet --as-root --only throttling -- becalm work --cpus 7";
        assert_eq!(command.to_string(), shown);
        let process = launch.process(&command).unwrap();
        assert_eq!(process.get_args().filter(|word| *word == "/opt/becalm").count(), 1);
        let mut everywhere = step(json!(null));
        everywhere.each_cpu = true;
        assert_eq!(launch.command(&everywhere, "work", &[]).unwrap().to_string(), "becalm work --cpus 0-7");
        let compared = launch.command(&step(json!(null)), "compare", &["a.becalm".to_owned(), "b.becalm".to_owned()]);
        assert_eq!(compared.unwrap().to_string(), "becalm compare a.becalm b.becalm");
    }

    #[test]
    fn what_a_machine_lacks_for_a_job_is_said() {
        let mut launch = launch("0-1", "");
        assert!(launch.command(&step(json!("all")), "", &[]).is_ok());
        assert!(launch.command(&step(json!("isolated")), "", &[]).unwrap_err().contains("one core"));
        launch.launcher = vec!["/no/such/launcher".to_owned()];
        assert!(launch.lacking(&step(json!("all"))).unwrap().contains("--mpirun"));
        launch.job = None;
        assert!(launch.lacking(&step(json!("all"))).unwrap().contains("make mpi"));
        assert_eq!(launch.lacking(&step(json!(null))), None);
    }
}
