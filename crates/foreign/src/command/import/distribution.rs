//! Histograms and statistics become a distribution.

use std::collections::BTreeSet;

use crate::distribution::{DistributionDoc, SCHEMA, Series};
use crate::read::{self, Distribution, Format};
use becalm_bundle::store_document;
use becalm_command::Exit;
use becalm_command::progress::{Bar, Tail};
use becalm_model::node::Warning;
use becalm_units::fault::{self, Context, UsageError};
use becalm_units::{CpuId, printable};

use super::files::InputFile;
use super::{ImportArgs, cpus};

/// No larger files are read, in bytes: JSON takes up to twenty times its size of memory.
const LARGEST: u64 = 64 << 20;

/// Reads the files and writes the distribution of the node.
///
/// # Errors
/// If a file is not in the format or too large, two hold series of the same name, and if the bundle cannot be written.
pub fn run(args: &ImportArgs, format: Format, files: &[InputFile]) -> fault::Result<Exit> {
    if args.length.is_some() {
        let text = format!("--length is for detours, and {format} holds a distribution; leave it out");
        return Err(UsageError::new(text).into());
    }
    let size: u64 = files.iter().map(InputFile::size).sum();
    fault::ensure!(
        size <= LARGEST,
        "the files have {} MiB, and of histograms and statistics at most {} MiB are read",
        size >> 20,
        LARGEST >> 20
    );
    let progress = Bar::new("reading", size, Tail::TimeLeft);
    let mut found: Option<Distribution> = None;
    for file in files {
        let told = &mut |bytes| progress.advance(bytes);
        let read = read::distribution(format, file.source(), args.known(), told);
        let read = read.with_context(|| format!("cannot import {}", file.path.display()))?;
        found = Some(match found {
            None => read,
            Some(all) => joined(all, read, file)?,
        });
    }
    let found = found.context("there is no file to read")?;
    let series = with_cpus(args, found.series)?;
    check_names(&series)?;
    let text = |text: Option<String>| text.map(|text| printable(&text).into_owned());
    let doc = DistributionDoc {
        schema: SCHEMA.to_owned(),
        node: args.node(found.host.as_deref()),
        program: format!("becalm {}, import", env!("CARGO_PKG_VERSION")),
        format: format.to_string(),
        tool: printable(&found.tool).into_owned(),
        command: text(found.command),
        kernel: text(found.kernel),
        begun: text(found.begun),
        ended: text(found.ended),
        quantity: found.quantity,
        loop_subtracted: found.loop_subtracted,
        series,
        warnings: found.warnings,
    };
    store_document(&args.output, &doc)?;
    Ok(Exit::Done)
}

/// The series of a further file to those before.
fn joined(mut all: Distribution, read: Distribution, file: &InputFile) -> fault::Result<Distribution> {
    if (all.quantity, all.loop_subtracted) != (read.quantity, read.loop_subtracted) {
        let text =
            format!("{} is of other lengths than the files before it; import it as another run", file.path.display());
        return Err(UsageError::new(text).into());
    }
    all.series.extend(read.series);
    let new = |warning: &Warning| !all.warnings.contains(warning);
    let warnings: Vec<Warning> = read.warnings.into_iter().filter(new).collect();
    all.warnings.extend(warnings);
    Ok(all)
}

/// The series on the CPUs that the user names: one for each, or for each CPU that the file tells of.
fn with_cpus(args: &ImportArgs, mut series: Vec<Series>) -> Result<Vec<Series>, UsageError> {
    let Some(chosen) = &args.cpu else { return Ok(series) };
    let said: Vec<Option<CpuId>> = series.iter().map(|series| series.cpu).collect();
    for (series, cpu) in series.iter_mut().zip(cpus::assigned(Some(chosen), &said)?) {
        series.cpu = Some(cpu);
        series.name = format!("CPU {cpu}");
    }
    Ok(series)
}

fn check_names(series: &[Series]) -> Result<(), UsageError> {
    let mut names = BTreeSet::new();
    match series.iter().find(|series| !names.insert(&series.name)) {
        Some(series) => Err(UsageError::new(format!(
            "the files hold '{}' twice; say which CPUs they are of with --cpu, or import them as several nodes with --node",
            series.name
        ))),
        None => Ok(()),
    }
}
