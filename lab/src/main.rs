//! Boots one scenario of the lab and shows its console, for `make lab`.
//!
//! It checks nothing; the tests do.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the console of a guest is its output")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use becalm_lab::{
    Console, Flavor, Guest, Kernel, LIMITS, MATRIX, Matrix, Row, SETTINGS, Scenario, Setting, parse_cpus,
};
use becalm_units::Named;
use clap::Parser;

/// Long enough for a user who experiments with the guest.
const LIMIT: Duration = Duration::from_secs(600);

/// Boot a scenario of the lab and show its console.
#[derive(Debug, Parser)]
struct Arguments {
    /// Its name; without one, all are listed
    scenario: Option<String>,
    /// Another kernel than its own
    #[arg(long, value_name = "rt|stock|cloud")]
    kernel: Option<Flavor>,
    /// Another number of CPUs, from 2 to 4
    #[arg(long, value_name = "N", value_parser = parse_cpus)]
    cpus: Option<u32>,
    /// Other kernel parameters, all of them in one word; an empty one for none
    #[arg(long, value_name = "PARAMETERS", allow_hyphen_values = true)]
    cmdline: Option<String>,
    /// Only say what would be booted
    #[arg(long)]
    dry_run: bool,
    /// Boot the kernel matrix instead: the same recording under kernels and parameters that differ in one thing each. All
    /// settings, or those named, with commas between them
    #[arg(long, value_name = "NAMES", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with_all = ["scenario", "kernel", "cmdline"])]
    matrix: Option<String>,
    /// Only fetch the kernels that are not in the cache
    #[arg(long)]
    fetch: bool,
}

fn main() -> ExitCode {
    run(Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("becalm-lab: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(arguments: Arguments) -> Result<ExitCode> {
    if arguments.fetch {
        for flavor in [Flavor::Stock, Flavor::Realtime] {
            Kernel::debian(flavor, &path("BECALM_LAB_CACHE")?)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(names) = &arguments.matrix {
        return matrix(&chosen(names)?, arguments.dry_run);
    }
    let Some(name) = arguments.scenario else {
        eprintln!("Which scenario? There are:");
        for scenario in Scenario::all()? {
            eprintln!("  {:<12} {}", scenario.name, scenario.summary);
        }
        return Ok(ExitCode::from(2));
    };
    let mut scenario = Scenario::named(&name)?;
    if let Some(flavor) = arguments.kernel {
        scenario.flavor = flavor;
    }
    if let Some(cpus) = arguments.cpus {
        scenario.cpus = cpus;
    }
    if let Some(parameters) = arguments.cmdline {
        scenario.parameters = parameters;
    }
    println!("{}: {}", scenario.name, scenario.summary);
    let parameters = if scenario.parameters.is_empty() { "no parameters" } else { &scenario.parameters };
    println!("kernel {}, {} CPUs, {parameters}", scenario.flavor.name(), scenario.cpus);
    if arguments.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    boot(&scenario)
}

fn boot(scenario: &Scenario) -> Result<ExitCode> {
    let kernel = Kernel::debian(scenario.flavor, &path("BECALM_LAB_CACHE")?)?;
    let becalm = path("BECALM_LAB_PROGRAM")?;
    let console = Console::Shown;
    let guest = Guest { scenario, kernel: &kernel, becalm: &becalm, console, limit: LIMIT, boot_limit: LIMIT };
    let outcome = guest.run()?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/lab").join(&scenario.name);
    outcome.keep(&folder)?;
    let folder = folder.canonicalize().unwrap_or(folder);
    println!(
        "{}: exit status {} after {:.1} s; what it left is in {}",
        scenario.name,
        outcome.status(),
        outcome.wall().as_secs_f64(),
        folder.display()
    );
    Ok(if outcome.status() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The settings with these names; all of them without names.
fn chosen(names: &str) -> Result<Vec<Setting>> {
    if names.is_empty() {
        return Ok(SETTINGS.to_vec());
    }
    let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    let setting = |name: &str| {
        let found = SETTINGS.into_iter().find(|setting| setting.name == name);
        found.with_context(|| format!("the matrix has no setting '{name}'; choose of {}", known.join(",")))
    };
    names.split(',').map(setting).collect()
}

/// Boots every setting, and prints and stores the results after each.
fn matrix(settings: &[Setting], dry_run: bool) -> Result<ExitCode> {
    let scenario = Scenario::named(MATRIX)?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/lab").join(MATRIX);
    let mut rows = Vec::new();
    for (number, setting) in settings.iter().enumerate() {
        let scenario = setting.apply(&scenario);
        let parameters = if scenario.parameters.is_empty() { "no parameters" } else { &scenario.parameters };
        eprintln!(
            "{} of {}: {}: kernel {}, {parameters}",
            number + 1,
            settings.len(),
            setting.name,
            scenario.flavor.name()
        );
        if dry_run {
            continue;
        }
        let kernel = Kernel::debian(scenario.flavor, &path("BECALM_LAB_CACHE")?)?;
        let becalm = path("BECALM_LAB_PROGRAM")?;
        let console = Console::Kept;
        let guest =
            Guest { scenario: &scenario, kernel: &kernel, becalm: &becalm, console, limit: LIMIT, boot_limit: LIMIT };
        let outcome = guest.run()?;
        let name: String = setting.name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
        outcome.keep(&folder.join(name))?;
        rows.push(Row::from_outcome(setting.name, &kernel.config()?, &outcome, &becalm)?);
        let matrix = Matrix::new(rows.clone());
        fs::write(folder.join("matrix.json"), serde_json::to_vec_pretty(&matrix)?)?;
        fs::write(folder.join("matrix.txt"), matrix.table())?;
    }
    if !rows.is_empty() {
        println!("{}\n{LIMITS}.", Matrix::new(rows).table());
        println!("The documents and recordings are in {}", folder.canonicalize().unwrap_or(folder).display());
    }
    Ok(ExitCode::SUCCESS)
}

fn path(variable: &str) -> Result<PathBuf> {
    env::var_os(variable).map(PathBuf::from).with_context(|| format!("{variable} is not set; `make lab` sets it"))
}
