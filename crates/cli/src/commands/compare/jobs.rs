//! Jobs of `becalm-mpi` against the first of them.

use std::io::Write;
use std::path::{Path, PathBuf};

use becalm_analyze::job::JobPhases;
use becalm_bundle::{Contents, PhaseRun};
use becalm_model::phases::JobDoc;
use becalm_report::JobsReport;

use super::CompareArgs;
use crate::exit::{Exit, UsageError};
use crate::output::{Output, emit};

/// Whether all of these are jobs; some among others are refused. What cannot be read is refused with its reason later.
pub fn are_jobs(paths: &[PathBuf]) -> Result<bool, UsageError> {
    let is_job = |path: &&PathBuf| matches!(Contents::read(path), Ok(Contents::Phases));
    let Some(job) = paths.iter().find(is_job) else { return Ok(false) };
    match paths.iter().find(|path| !is_job(path)) {
        Some(other) => Err(UsageError(format!(
            "{} holds {}, and {} does not: jobs are compared with jobs",
            job.display(),
            Contents::Phases.words(),
            other.display()
        ))),
        None => Ok(true),
    }
}

/// Reads the jobs and prints them beside each other, or writes their page.
///
/// # Errors
/// If a job cannot be read or did something else than the first, options are given that jobs have no use for, or the output cannot be
/// written.
pub fn run(args: &CompareArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let unused = [
        ("--", !args.after.is_empty()),
        ("--cpus", args.cpus.is_some()),
        ("--cpus-a", args.cpus_a.is_some()),
        ("--cpus-b", args.cpus_b.is_some()),
        ("--node-a", args.node_a.is_some()),
        ("--node-b", args.node_b.is_some()),
        ("--fail-if-worse", args.fail_if_worse.is_some()),
        ("--with-self", args.with_self),
    ];
    if let Some((option, _)) = unused.iter().find(|(_, is_given)| *is_given) {
        let text =
            format!("{option} is for recordings of detours: each job is held against the first one; leave it out");
        return Err(UsageError(text).into());
    }
    let [_, _, ..] = args.runs.as_slice() else {
        return Err(UsageError("a second job is missing: becalm compare JOB_A JOB_B".to_owned()).into());
    };
    let jobs = args.runs.iter().map(|path| read(path)).collect::<anyhow::Result<Vec<_>>>()?;
    refuse_others(&jobs)?;
    let output = match &args.html {
        Some(file) => Output::page(file)?,
        None => Output::new(args.json, args.all),
    };
    emit(&JobsReport { jobs: &jobs }, output, out)?;
    Ok(Exit::Done)
}

/// A job with its name.
fn read(path: &Path) -> anyhow::Result<(String, JobPhases)> {
    let run = PhaseRun::open(path)?;
    anyhow::ensure!(
        run.nodes.iter().any(|doc| doc.complete),
        "{} holds nothing: the job ended before its last phase; measure again",
        path.display()
    );
    let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    let name = name.strip_suffix(".becalm").map(str::to_owned).unwrap_or(name);
    Ok((name, JobPhases::of_run(&run)?))
}

/// Refuses jobs that did something else in a phase than the first, and one that stands there twice. Jobs may have other numbers of ranks, as
/// one that leaves a CPU idle has.
fn refuse_others(jobs: &[(String, JobPhases)]) -> Result<(), UsageError> {
    let phase = |job: &JobDoc| (job.grain_ns, job.collective, job.bytes);
    let of = |(_, phases): &(String, JobPhases)| phases.nodes.first().map(|doc| (phase(&doc.job), doc.origin));
    for (number, job) in jobs.iter().enumerate().skip(1) {
        if of(job).map(|(phase, _)| phase) != of(&jobs[0]).map(|(phase, _)| phase) {
            return Err(UsageError(format!(
                "{} and {} differ in what a phase is (its work, its collective or the bytes of that), and so in more than what \
                 slows them down",
                jobs[0].0, job.0
            )));
        }
        if let Some(same) = jobs[..number].iter().find(|other| of(other) == of(job) && other.1.nodes == job.1.nodes) {
            let (one, other) = (&same.0, &job.0);
            return Err(UsageError(format!("{one} and {other} are the same job, which shows nothing against itself")));
        }
    }
    Ok(())
}
