//! Files with one CPU each: the noise files of LogGOPSim, and the speed profiles of SimGrid.

use std::io::Write;
use std::path::{Path, PathBuf};

use becalm_bundle::Bundle;
use becalm_command::messages::say;
use becalm_command::progress::ReadingProgress;
use becalm_model::NodeDoc;
use becalm_model::node::CpuDoc;
use becalm_units::Nanos;
use becalm_units::fault::{self, UsageError};

use super::destination::{self, Destination};
use super::{ExportArgs, ExportFormat, tell_unstored};
use crate::rows::{TraceTime, traces};
use crate::write::loggopsim::NoiseFile;
use crate::write::simgrid::SpeedProfile;

/// The number of files that are written at once; for more of them the run is read again. A process may have 1,024 open.
const AT_ONCE: usize = 256;

/// A file in either format.
enum CpuFile<W: Write> {
    Loggopsim(NoiseFile<W>),
    Simgrid(SpeedProfile<W>),
}

impl<W: Write> CpuFile<W> {
    fn begin(format: ExportFormat, out: W, node: &str, cpu: &CpuDoc, length: Nanos) -> std::io::Result<Self> {
        let about = format!("CPU {} of node {node}, written by becalm {}", cpu.cpu, env!("CARGO_PKG_VERSION"));
        Ok(match format {
            ExportFormat::Simgrid => Self::Simgrid(SpeedProfile::begin(out, length, &about)?),
            _ => Self::Loggopsim(NoiseFile::begin(out)?),
        })
    }

    fn detour(&mut self, start: Nanos, duration: Nanos) -> std::io::Result<()> {
        match self {
            Self::Loggopsim(file) => file.detour(start, duration),
            Self::Simgrid(file) => file.detour(start, duration),
        }
    }

    fn end(self, length: Nanos) -> std::io::Result<W> {
        match self {
            Self::Loggopsim(file) => file.end(length),
            Self::Simgrid(file) => file.end(),
        }
    }
}

/// Writes the files. In memory are 65,536 rows of each table, and a detour and a buffer of each file.
pub fn export(args: &ExportArgs, destination: Destination<'_>) -> fault::Result<()> {
    let bundle = args.open()?;
    let docs = args.selection().documents(&bundle)?;
    tell_unstored(&docs);
    let cpus: usize = docs.iter().map(|doc| doc.cpus.len()).sum();
    if let Destination::Folder(folder) = &destination {
        destination::make_folder(folder)?;
        let rounds = docs.iter().map(|doc| doc.cpus.len().div_ceil(AT_ONCE)).max().unwrap_or(1);
        let _reading = ReadingProgress::begin(&bundle, rounds as u64);
        for doc in &docs {
            let time = time_of(&bundle, doc)?;
            for cpus in doc.cpus.chunks(AT_ONCE) {
                let part = NodeDoc { cpus: cpus.to_vec(), ..doc.clone() };
                into_folder(args.to, &bundle, folder, &part, &time)?;
            }
        }
        return Ok(());
    }
    let (Some(doc), 1) = (docs.iter().find(|doc| !doc.cpus.is_empty()), cpus) else {
        let why = "the run has several CPUs, and a file holds one: choose it with --cpus, and --node if there are several, or \
                   name a directory for all of them by a / at its end, like -o noise/";
        return Err(UsageError::new(why.to_owned()).into());
    };
    let _reading = ReadingProgress::begin(&bundle, 1);
    let time = time_of(&bundle, doc)?;
    destination.write(|out| {
        let mut file = CpuFile::begin(args.to, out, &doc.node, &doc.cpus[0], time.length)?;
        traces::<fault::Error>(&bundle, doc, &time, &mut |_, start, duration| Ok(file.detour(start, duration)?))?;
        file.end(time.length)?;
        Ok(())
    })
}

/// The time that the traces of a node cover; prints its warnings.
fn time_of(bundle: &Bundle, doc: &NodeDoc) -> fault::Result<TraceTime> {
    let time = TraceTime::for_node(bundle, doc)?;
    time.warnings.iter().for_each(|warning| say(format_args!("{}", warning.message)));
    if time.length <= Nanos::ZERO {
        fault::bail!("the CPUs of node {} were never all measured at the same time", doc.node);
    }
    Ok(time)
}

/// Writes a file for each CPU of the document.
fn into_folder(
    format: ExportFormat,
    bundle: &Bundle,
    folder: &Path,
    doc: &NodeDoc,
    time: &TraceTime,
) -> fault::Result<()> {
    let path = |cpu: &CpuDoc| -> PathBuf {
        let ending = if format == ExportFormat::Simgrid { "profile" } else { "txt" };
        folder.join(format!("{}.cpu{}.{ending}", doc.node, cpu.cpu))
    };
    let begin = |cpu| {
        let path = path(cpu);
        let out = destination::begin(&path)?;
        let begun = CpuFile::begin(format, out, &doc.node, cpu, time.length);
        destination::named(path.display(), begun.map_err(fault::Error::from))
    };
    let mut files = doc.cpus.iter().map(begin).collect::<fault::Result<Vec<_>>>()?;
    traces::<fault::Error>(bundle, doc, time, &mut |place, start, duration| {
        let wrote = files[place].detour(start, duration).map_err(fault::Error::from);
        destination::named(path(&doc.cpus[place]).display(), wrote)
    })?;
    for (cpu, file) in doc.cpus.iter().zip(files) {
        let path = path(cpu);
        let out = destination::named(path.display(), file.end(time.length).map_err(Into::into))?;
        destination::finish(&path, out)?;
    }
    Ok(())
}
