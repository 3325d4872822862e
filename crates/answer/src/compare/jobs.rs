//! Compares jobs of `becalm-mpi` with the first of them.

use std::path::{Path, PathBuf};

use becalm_analyze::job::JobPhases;
use becalm_bundle::{Contents, PhaseRun};
use becalm_model::phases::JobDoc;
use becalm_report::JobsReport;
use becalm_units::fault::{self, UsageError};

use crate::Asker;

/// Whether all of these are jobs. An unreadable file counts as none, and is refused later with its reason. Fails if only some are jobs.
pub fn are_jobs(paths: &[PathBuf]) -> fault::Result<bool> {
    let is_job = |path: &&PathBuf| matches!(Contents::read(path), Ok(Contents::Phases));
    let Some(job) = paths.iter().find(is_job) else { return Ok(false) };
    match paths.iter().find(|path| !is_job(path)) {
        Some(other) => Err(UsageError::new(format!(
            "{} holds {}, and {} does not: jobs are compared with jobs",
            job.display(),
            Contents::Phases.words(),
            other.display()
        ))
        .into()),
        None => Ok(true),
    }
}

/// Reads the jobs and shows them together.
pub(super) fn answer(paths: &[PathBuf], asker: &mut impl Asker) -> fault::Result<()> {
    let [_, _, ..] = paths else {
        return Err(UsageError::new("a second job is missing: becalm compare JOB_A JOB_B").into());
    };
    let jobs = paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    refuse_others(&jobs)?;
    asker.show(&JobsReport { jobs: &jobs })
}

fn read(path: &Path) -> fault::Result<(String, JobPhases)> {
    let run = PhaseRun::open(path)?;
    if !run.nodes.iter().any(|doc| doc.complete) {
        fault::bail!("{} holds nothing: the job ended before its last phase; measure again", path.display());
    }
    let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    let name = name.strip_suffix(".becalm").map(str::to_owned).unwrap_or(name);
    Ok((name, JobPhases::from_run(&run)?))
}

/// Refuses jobs with phases that differ from the first one's, and repeated jobs. Numbers of ranks may differ, as in a job that leaves a CPU
/// idle.
fn refuse_others(jobs: &[(String, JobPhases)]) -> fault::Result<()> {
    let phase = |job: &JobDoc| (job.grain_ns, job.collective, job.bytes);
    let start = |(_, phases): &(String, JobPhases)| phases.nodes.first().map(|doc| (phase(&doc.job), doc.origin));
    for (number, job) in jobs.iter().enumerate().skip(1) {
        if start(job).map(|(phase, _)| phase) != start(&jobs[0]).map(|(phase, _)| phase) {
            return Err(UsageError::new(format!(
                "{} and {} differ in what a phase is (its work, its collective or the bytes of that), and so in more than what \
                 slows them down",
                jobs[0].0, job.0
            ))
            .into());
        }
        if let Some(same) =
            jobs[..number].iter().find(|other| start(other) == start(job) && other.1.nodes == job.1.nodes)
        {
            let (one, other) = (&same.0, &job.0);
            let text = format!("{one} and {other} are the same job, which shows nothing against itself");
            return Err(UsageError::new(text).into());
        }
    }
    Ok(())
}
