//! Turns samples of fixed work or fixed time into a run of samples, as `becalm work` records them.

use becalm_bundle::BundleWriter;
use becalm_command::Exit;
use becalm_command::progress::{Bar, Tail};
use becalm_model::node::{CpuDoc, Ended, NodeDoc, WorkDoc, WorkLoopDoc, WorkSession};
use becalm_model::{Labels, Sample, warning};
use becalm_stats::median_low;
use becalm_units::fault::{self, Context, UsageError};
use becalm_units::{CpuId, Nanos};

use super::files::{self, InputFile};
use super::{ImportArgs, cpus};
use crate::document;
use crate::read::ftq_ticks::{self, Part};
use crate::read::{self, Format, SampleList};

/// The number of samples per segment of the run.
const SEGMENT: usize = 1 << 20;

/// The largest size of all files together, in bytes: samples of one digit take up to 25 times their size of memory.
const LARGEST: u64 = 256 << 20;

/// Reads the files, each with the samples of one or several loops, and writes the run. Fails if a file is not in the format, too large or
/// without samples, if its loops differ in what they do, or the run cannot be written.
pub fn run(args: &ImportArgs, format: Format, files: &[InputFile]) -> fault::Result<Exit> {
    args.refuse_length(format, "samples")?;
    let size = files::size(files, LARGEST, "samples")?;
    let progress = Bar::new("reading", 2 * size, Tail::TimeLeft);
    let mut lists = Vec::new();
    for file in files {
        let path = file.path.display();
        let read = match ftq_ticks::part(file.source().name) {
            Part::Times(prefix) if format == Format::FtqTicks => from_two_files(args, files, file, prefix, &progress)?,
            // It is read together with its times.
            Part::Counts(_) if format == Format::FtqTicks && times_of(files, file).is_some() => continue,
            _ => {
                let told = &mut |bytes| progress.advance(bytes);
                let read = read::samples(format, file.source(), args.known(), told);
                read.with_context(|| format!("cannot import {path}"))?
            }
        };
        for list in read {
            fault::ensure!(!list.samples.is_empty(), "{path} holds no sample whose length is known");
            lists.push(list);
        }
    }
    let said: Vec<Option<CpuId>> = lists.iter().map(|list| list.cpu).collect();
    let cpus = cpus::assigned(args.cpu.as_ref(), &said)?;
    let mut loops: Vec<(CpuId, SampleList)> = cpus.into_iter().zip(lists).collect();
    loops.sort_by_key(|(cpu, _)| *cpu);
    progress.say("storing");
    store(args, format, &loops)?;
    Ok(Exit::Done)
}

/// The samples of two files, one of times and one of counts.
fn from_two_files(
    args: &ImportArgs,
    files: &[InputFile],
    times: &InputFile,
    prefix: &str,
    progress: &Bar,
) -> fault::Result<Vec<SampleList>> {
    let cannot = |file: &InputFile| format!("cannot import {}", file.path.display());
    let counts = files.iter().find(|file| times_of(files, file).is_some_and(|found| found.path == times.path));
    let counts = counts.with_context(|| {
        let other = times.path.with_file_name(format!("{prefix}_counts.dat"));
        format!("{} holds times alone; give the counts as well: {}", times.path.display(), other.display())
    })?;
    let column = |file: &InputFile| {
        ftq_ticks::column(file.source(), &mut |bytes| progress.advance(bytes)).with_context(|| cannot(file))
    };
    let (begins, work) = (column(times)?, column(counts)?);
    let lists = ftq_ticks::joined(prefix, &begins.numbers, &work.numbers, args.known().rate_hz);
    let mut lists = lists.with_context(|| cannot(times))?;
    for list in &mut lists {
        list.warnings.extend(begins.warnings.iter().chain(&work.warnings).cloned());
    }
    Ok(lists)
}

/// The file of times that belongs to a file of counts, in the same directory.
fn times_of<'a>(files: &'a [InputFile], counts: &InputFile) -> Option<&'a InputFile> {
    let Part::Counts(prefix) = ftq_ticks::part(counts.source().name) else { return None };
    let is_it = |file: &&InputFile| {
        ftq_ticks::part(file.source().name) == Part::Times(prefix) && file.path.parent() == counts.path.parent()
    };
    files.iter().find(is_it)
}

/// Writes the run, which is complete when all of it is stored.
fn store(args: &ImportArgs, format: Format, loops: &[(CpuId, SampleList)]) -> fault::Result<()> {
    let (_, first) = loops.first().context("there is no sample")?;
    if loops.iter().any(|(_, list)| (list.fixed, list.grain) != (first.fixed, first.grain)) {
        let text = "the files are of different work: one run holds samples of the same grain, all of fixed work or all of fixed time";
        return Err(UsageError::new(text.to_owned()).into());
    }
    let mut doc =
        document::recording(args.node(None), format, loops.iter().map(|(cpu, list)| cpu_doc(*cpu, list)).collect());
    if !first.has_starts {
        doc.warnings.push(warning::imported_end_to_end());
    }
    document::add_warnings(&mut doc.warnings, loops.iter().flat_map(|(_, list)| &list.warnings));
    doc.settings.work = Some(work(first, loops));
    let mut writer = BundleWriter::create(&args.output, &NodeDoc { ended: None, ..doc.clone() })?;
    for (cpu, list) in loops {
        for segment in list.samples.chunks(SEGMENT) {
            let sample = |row: &read::SampleRow| Sample {
                cpu: *cpu,
                start: row.start,
                duration: row.duration,
                work: row.work,
                incomplete: false,
            };
            let segment: Vec<Sample> = segment.iter().map(sample).collect();
            writer.write_samples(&segment, &[], &Labels::new())?;
        }
    }
    Ok(writer.write_doc(&doc)?)
}

/// The median of a loop's samples, used as its grain if the file has none.
fn median(list: &SampleList) -> Nanos {
    let mut durations: Vec<i64> = list.samples.iter().map(|sample| sample.duration.get()).collect();
    Nanos::new(median_low(&mut durations).unwrap_or(0))
}

fn work(first: &SampleList, loops: &[(CpuId, SampleList)]) -> WorkDoc {
    let of_loop = |(cpu, list): &(CpuId, SampleList)| WorkLoopDoc {
        cpu: *cpu,
        // No file of fixed work has the number of iterations per sample.
        iterations: 0,
        calibrated_ns: median(list),
        others_iterations: 0,
        core_clock: None,
    };
    WorkDoc {
        body: first.body.to_owned(),
        iteration: first.iteration.to_owned(),
        bodies: Vec::new(),
        fixed: first.fixed,
        grain_ns: first.grain.unwrap_or_else(|| median(first)),
        copies: 1,
        added_hz: 0,
        samples: None,
        memory_bytes: 0,
        cache_bytes: None,
        cache_known: true,
        loops: loops.iter().map(of_loop).collect(),
        sessions: vec![WorkSession { start_ns: Nanos::ZERO, ended: Some(Ended::Unknown) }],
        counts: Vec::new(),
        not_counted: Vec::new(),
    }
}

fn cpu_doc(cpu: CpuId, list: &SampleList) -> CpuDoc {
    CpuDoc { duration_ns: list.end(), iterations: list.samples.len() as u64, ..CpuDoc::new(cpu) }
}
