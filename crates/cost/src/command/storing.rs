//! Stores a measurement of costs in its bundle and prints it from there.

use std::io::Write;
use std::path::{Path, PathBuf};

use becalm_bundle::BundleError;
use becalm_bundle::series::SeriesWriter;
use becalm_command::Exit;
use becalm_command::arguments::{FolderArgs, FormArgs, refuse_existing};
use becalm_command::messages::say;
use becalm_command::output::{Output, emit};
use becalm_command::rights;
use becalm_measure::machine::Host;
use becalm_model::node::Ended;
use becalm_units::fault::{Context, Result};
use clap::Args;

use crate::documents::{CostDoc, CostRun, CostSamples, Costs, SpreadDoc};
use crate::report::CostRunReport;

/// The destination of a measurement, and the form of its report.
#[derive(Args, Debug)]
pub struct OutputArgs {
    /// Recording to write [default: HOST-TIME.becalm]
    #[arg(short, long, value_name = "RUN")]
    output: Option<PathBuf>,

    #[command(flatten)]
    folder: FolderArgs,

    #[command(flatten)]
    form: FormArgs,
}

/// A measurement in progress.
pub struct Storing {
    path: PathBuf,
    writer: SeriesWriter,
    doc: CostDoc,
    output: Output,
}

impl OutputArgs {
    /// Creates the bundle, with a document without an end, before the measurement. Fails if it cannot be created.
    pub fn begin(&self, doc: CostDoc) -> Result<Storing> {
        let output = self.form.output(false)?;
        let path = self.folder.place(self.output.as_ref(), None, Path::new("/"))?;
        refuse_existing(&path)?;
        if let Some(warning) = Host::read(Path::new("/")).warning {
            say(format_args!("{}", warning.message));
        }
        let writer = SeriesWriter::create(&path, &doc)?;
        Ok(Storing { path, writer, doc, output })
    }
}

impl Storing {
    /// Records the processes that the measurement is spread over.
    pub fn spread_over(&mut self, spread: SpreadDoc) {
        self.doc.spread = Some(spread);
    }

    /// The error of a process, with the number of processes that are stored.
    pub fn failed(&self, process: u32, planned: u32) -> String {
        let stored = self.doc.spread.as_ref().is_some_and(|spread| !spread.processes.is_empty());
        let kept =
            if stored { format!(" (those before it are stored in {})", self.path.display()) } else { String::new() };
        format!("process {process} of {planned} that measure failed{kept}")
    }

    /// Stores the measurement so far. Fails if it cannot be stored.
    pub fn store(&mut self, measured: Costs, samples: CostSamples, ended: Option<Ended>) -> Result<()> {
        let written = self.write(measured, samples, ended);
        written.with_context(|| format!("cannot complete the measurement {}", self.path.display()))
    }

    /// Like [`Self::store`], for callers with their own error type.
    pub fn write(&mut self, measured: Costs, samples: CostSamples, ended: Option<Ended>) -> Result<(), BundleError> {
        let doc = CostDoc { measured, ended, ..self.doc.clone() };
        self.writer.store(&CostRun { doc, samples })
    }

    /// Stores the whole measurement and prints it from there. Drops all rights except those over files for good, because nothing is
    /// measured any more. Fails if it cannot be stored or read, the rights cannot be dropped, or `out` cannot be written.
    pub fn finish(mut self, measured: Costs, samples: CostSamples, ended: Ended, out: &mut dyn Write) -> Result<Exit> {
        let left = rights::only_files();
        // A failure to drop rights must not lose the measurement.
        self.store(measured, samples, Some(ended))?;
        left?;
        let run = CostRun::load(&self.path, Some(&self.doc.node))?;
        emit(&CostRunReport::new(&run), self.output, out)?;
        say(format_args!("stored in {}", self.path.display()));
        Ok(if ended == Ended::Duration { Exit::Done } else { Exit::Failed })
    }
}
