//! Turns histograms and statistics into a distribution.

use std::collections::BTreeSet;

use becalm_bundle::store_document;
use becalm_command::Exit;
use becalm_command::progress::{Bar, Tail};
use becalm_units::fault::{self, Context, UsageError};
use becalm_units::{CpuId, printable};

use super::files::{self, InputFile};
use super::{ImportArgs, cpus};
use crate::distribution::{DistributionDoc, Series};
use crate::document::add_warnings;
use crate::read::{self, Format};

/// The largest size of all files together, in bytes: JSON takes up to twenty times its size of memory.
const LARGEST: u64 = 64 << 20;

/// Reads the files and writes the distribution of the node. Fails if a file is not in the format or too large, two have series of the same
/// name, or the bundle cannot be written.
pub fn run(args: &ImportArgs, format: Format, files: &[InputFile]) -> fault::Result<Exit> {
    args.refuse_length(format, "a distribution")?;
    let size = files::size(files, LARGEST, "histograms and statistics")?;
    let progress = Bar::new("reading", size, Tail::TimeLeft);
    let mut found: Option<DistributionDoc> = None;
    for file in files {
        let told = &mut |bytes| progress.advance(bytes);
        let read = read::distribution(format, file.source(), args.known(), told);
        let read = read.with_context(|| format!("cannot import {}", file.path.display()))?;
        found = Some(match found {
            None => read,
            Some(all) => joined(all, read, file)?,
        });
    }
    let mut doc = found.context("there is no file to read")?;
    doc.node = args.node(Some(&doc.node));
    doc.series = with_cpus(args, doc.series)?;
    check_names(&doc.series)?;
    for text in [Some(&mut doc.tool), doc.command.as_mut(), doc.kernel.as_mut(), doc.begun.as_mut(), doc.ended.as_mut()]
    {
        text.into_iter().for_each(|text| *text = printable(text).into_owned());
    }
    store_document(&args.output, &doc)?;
    Ok(Exit::Done)
}

/// Adds the series of another file.
fn joined(mut all: DistributionDoc, read: DistributionDoc, file: &InputFile) -> fault::Result<DistributionDoc> {
    if (all.quantity, all.loop_subtracted) != (read.quantity, read.loop_subtracted) {
        let text =
            format!("{} is of other lengths than the files before it; import it as another run", file.path.display());
        return Err(UsageError::new(text).into());
    }
    all.series.extend(read.series);
    add_warnings(&mut all.warnings, &read.warnings);
    Ok(all)
}

/// Puts the series on the CPUs that the user names: one for each series, or for each CPU of the file.
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
