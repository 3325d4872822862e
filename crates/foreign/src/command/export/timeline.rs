//! Detours and their activities on a time axis: traces of Perfetto and Chrome.

use std::io;

use becalm_command::progress::ReadingProgress;
use becalm_units::fault;

use super::destination::Destination;
use super::{ExportArgs, ExportFormat, tell_strays, tell_unstored};
use crate::rows::attributed_detours;
use crate::write::chrome::ChromeTrace;
use crate::write::perfetto::PerfettoTrace;

/// Writes the trace. In memory are 65,536 rows of each table, one detour's activities, and names.
pub fn export(args: &ExportArgs, destination: Destination<'_>) -> fault::Result<()> {
    let bundle = args.open()?;
    let docs = args.selection().documents(&bundle)?;
    tell_unstored(&docs);
    let _reading = ReadingProgress::begin(&bundle, 1);
    let mut strays = 0;
    destination.write(|out| {
        if args.to == ExportFormat::Perfetto {
            let mut trace = PerfettoTrace::begin(out);
            for doc in &docs {
                trace.node(doc)?;
                strays += attributed_detours::<fault::Error>(&bundle, doc, &mut |shown| {
                    Ok(trace.detour(shown.number, &shown.detour, shown.activities, shown.labels)?)
                })?;
            }
            return Ok(io::Write::flush(&mut trace.end())?);
        }
        let mut trace = ChromeTrace::begin(out, &docs)?;
        for doc in &docs {
            trace.node(doc)?;
            strays += attributed_detours::<fault::Error>(&bundle, doc, &mut |shown| {
                Ok(trace.detour(shown.number, &shown.detour, shown.activities, shown.labels)?)
            })?;
        }
        Ok(io::Write::flush(&mut trace.end()?)?)
    })?;
    tell_strays(strays);
    Ok(())
}
