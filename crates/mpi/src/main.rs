//! The `becalm-mpi` binary: a parallel benchmark under noise, and a comparison with predictions. Every rank of the job runs it; rank 0
//! prints.

#![forbid(unsafe_code)]

mod bench;
mod calls;
mod clocks;
mod job;
mod network;
mod node;
mod outcome;
mod place;
mod round_trips;
mod validate;

use std::io::{self, Write};
use std::process::ExitCode;

use becalm_linux::limits;
use becalm_units::fault::{self, UsageError};
use becalm_units::printable;
use clap::{Parser, Subcommand};

use crate::job::Job;
use crate::outcome::{code_of, elsewhere};

/// Measure how noise slows a parallel job
///
/// Every rank (process) computes for a calibrated time and then synchronizes with all others in a collective, again and
/// again. Run it under mpirun or srun.
#[derive(Parser, Debug)]
#[command(version, max_term_width = 100, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    bench: bench::BenchArgs,
}

#[derive(Subcommand, Debug)]
enum Command {
    Network(network::NetworkArgs),
    Validate(validate::ValidateArgs),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    limits::report_file_size();
    // If a rank panics, the others wait for it: the launcher must end them.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
    let Some(job) = Job::join(match &arguments.command {
        None => arguments.bench.ranks_per_node,
        Some(Command::Network(_)) => None,
        Some(Command::Validate(args)) => args.ranks_per_node,
    }) else {
        let _ = writeln!(io::stderr(), "becalm-mpi: MPI cannot be initialized");
        return ExitCode::from(1);
    };
    let mut out = io::stdout().lock();
    let result = together(&job).and_then(|()| match &arguments.command {
        None => bench::run(&arguments.bench, &job, &mut out),
        Some(Command::Network(args)) => network::run(args, &job, &mut out),
        Some(Command::Validate(args)) => validate::run(args, &job, &mut out),
    });
    let result = result.and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if elsewhere(&error).is_none() {
                let _ = writeln!(io::stderr(), "becalm-mpi: {}", printable(&error.message(fault::option)));
            }
            ExitCode::from(code_of(&error))
        }
    }
}

/// Checks that the ranks share a job: the launcher of another MPI starts many jobs with one rank each. Fails in that case.
fn together(job: &Job) -> fault::Result<()> {
    match job::launched() {
        Some((name, launched)) if launched > 1 && job.ranks() == 1 => Err(UsageError::new(format!(
            "{launched} ranks were started ({name}) and do not find each other: this program was built with {}, start it with \
             that one's mpirun, or with srun --mpi=pmix or pmi2 (srun --mpi=list shows what there is)",
            job::library()
        ))
        .into()),
        _ => Ok(()),
    }
}
