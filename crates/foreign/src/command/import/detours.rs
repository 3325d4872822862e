//! Turns lists of detours into a run of detours.

use becalm_bundle::BundleWriter;
use becalm_command::Exit;
use becalm_command::progress::{Bar, Tail};
use becalm_model::node::{CpuDoc, NodeDoc};
use becalm_model::{Detour, Labels};
use becalm_units::fault::{self, Context, UsageError};
use becalm_units::{CpuId, Nanos};

use super::files::InputFile;
use super::{ImportArgs, cpus};
use crate::document;
use crate::read::{self, DetourList, Format};

/// The number of detours per segment of the run.
const SEGMENT: usize = 1 << 20;

/// Reads the files, one CPU each, and writes the run. Fails if a file is not in the format, its detours last longer than the measurement,
/// or the run cannot be written.
pub fn run(args: &ImportArgs, format: Format, files: &[InputFile]) -> fault::Result<Exit> {
    let size: u64 = files.iter().map(InputFile::size).sum();
    // Reading and storing take about the same time.
    let progress = Bar::new("reading", 2 * size, Tail::TimeLeft);
    let mut lists = Vec::with_capacity(files.len());
    for file in files {
        let told = &mut |bytes| progress.advance(bytes);
        let list = read::detours(format, file.source(), args.known(), told);
        lists.push(list.with_context(|| format!("cannot import {}", file.path.display()))?);
    }
    let said: Vec<Option<CpuId>> = lists.iter().map(|list| list.cpu).collect();
    let mut of_cpus = Vec::with_capacity(lists.len());
    for ((file, list), cpu) in files.iter().zip(lists).zip(cpus::assigned(args.cpu.as_ref(), &said)?) {
        of_cpus.push((cpu, length(args, file, &list)?, list));
    }
    of_cpus.sort_by_key(|(cpu, ..)| *cpu);
    progress.say("storing");
    store(args, format, &of_cpus, size, &progress)?;
    Ok(Exit::Done)
}

/// The length of the measurement: from the user, from the file, or until the end of the last detour.
fn length(args: &ImportArgs, file: &InputFile, list: &DetourList) -> fault::Result<Nanos> {
    let end = list.end();
    // The file's length may be rounded, and so end before the last detour.
    let length = args.length.unwrap_or_else(|| list.length.unwrap_or(end).max(end));
    if length < end {
        return Err(
            UsageError::new(format!("--length {length} ends before the last detour, which ends at {end}")).into()
        );
    }
    if length <= Nanos::ZERO {
        fault::bail!("{} holds no detour; say how long was measured with --length", file.path.display());
    }
    Ok(length)
}

/// Writes the run, which is complete when all of it is stored.
fn store(
    args: &ImportArgs,
    format: Format,
    of_cpus: &[(CpuId, Nanos, DetourList)],
    size: u64,
    progress: &Bar,
) -> fault::Result<()> {
    let cpus = of_cpus.iter().map(|(cpu, length, list)| cpu_doc(*cpu, *length, list)).collect();
    let mut doc = document::recording(args.node(None), format, cpus);
    document::add_warnings(&mut doc.warnings, of_cpus.iter().flat_map(|(.., list)| &list.warnings));
    let mut writer = BundleWriter::create(&args.output, &NodeDoc { ended: None, ..doc.clone() })?;
    let rows: usize = of_cpus.iter().map(|(.., list)| list.detours.len()).sum();
    for (cpu, _, list) in of_cpus {
        for segment in list.detours.chunks(SEGMENT) {
            let detour = |&(start, duration)| Detour { cpu: *cpu, start, duration, incomplete: false };
            let segment: Vec<Detour> = segment.iter().map(detour).collect();
            writer.write_segment(&segment, &[], &Labels::new())?;
            progress.advance((size as f64 * segment.len() as f64 / rows as f64) as u64);
        }
    }
    Ok(writer.write_doc(&doc)?)
}

fn cpu_doc(cpu: CpuId, length: Nanos, list: &DetourList) -> CpuDoc {
    let durations = || list.detours.iter().map(|(_, duration)| *duration);
    CpuDoc {
        duration_ns: length,
        t_min_ns: list.t_min.unwrap_or(Nanos::ZERO),
        // If the file has no threshold, the shortest detour bounds it.
        threshold_ns: list.threshold.or_else(|| durations().min()).unwrap_or(Nanos::ZERO),
        detours: list.detours.len() as u64,
        total_ns: durations().sum(),
        max_ns: durations().max().unwrap_or(Nanos::ZERO),
        ..CpuDoc::new(cpu)
    }
}
