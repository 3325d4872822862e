//! Recordings next to the five platforms of Beckman et al. 2007.

use std::io::Write;
use std::path::PathBuf;

use becalm_analyze::summary::{Selection, summarize};
use becalm_bundle::{Bundle, Contents};
use becalm_command::Exit;
use becalm_command::output::{Output, emit};
use becalm_command::progress::ReadingProgress;
use becalm_units::fault::{self, UsageError};

use super::PlatformsReport;
use super::modes::length_modes;

/// Prints the figures of several recordings next to each other. Fails if a run cannot be read or is no recording, or `out` cannot be
/// written.
pub fn run<'a>(
    paths: impl Iterator<Item = &'a PathBuf>,
    selection: &Selection,
    output: Output,
    out: &mut dyn Write,
) -> fault::Result<Exit> {
    let mut report = PlatformsReport::published();
    for path in paths {
        let refused = |holds: &str| {
            UsageError::new(format!(
                "{} holds {holds}, and a table of platforms is of recordings of detours",
                path.display()
            ))
        };
        let contents = Contents::read(path)?;
        if contents != Contents::Recording {
            return Err(refused(contents.words()).into());
        }
        let bundle = Bundle::open(path)?;
        if bundle.nodes().iter().any(|doc| doc.settings.work.is_some()) {
            return Err(refused("samples of work").into());
        }
        let _reading = ReadingProgress::begin(&bundle, 1);
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        let name = name.strip_suffix(".becalm").unwrap_or(&name);
        report.add(name, &summarize(&bundle, selection)?, length_modes(&bundle, selection)?);
    }
    emit(&report, output, out)?;
    Ok(Exit::Done)
}
