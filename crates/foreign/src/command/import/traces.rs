//! Turns kernel traces into a run of detours, or of observed threads if some are chosen.

use becalm_command::Exit;
use becalm_command::progress::{Bar, Tail};
use becalm_record::DetourStore;
use becalm_units::fault::{self, Context, UsageError};

use super::ImportArgs;
use super::files::InputFile;
use crate::document;
use crate::read::Format;
use crate::trace::{TraceRequest, find, observe};

/// Reads the trace and writes the run. Fails if the file is no complete trace, lacks something that was requested, or the run cannot be
/// written.
pub fn run(args: &ImportArgs, format: Format, files: &[InputFile]) -> fault::Result<Exit> {
    let [file] = files else {
        return Err(
            UsageError::new("a trace is one file with all CPUs; import one after another, with a --node each").into()
        );
    };
    if args.length.is_some() {
        return Err(UsageError::new("--length is not for traces, which say themselves how long they are").into());
    }
    let progress = &Bar::new("reading", file.size(), Tail::TimeLeft);
    let request = TraceRequest { cpus: args.cpu.as_ref(), rate_hz: args.known().rate_hz };
    let told = &mut |bytes| progress.advance(bytes);
    let choice = args.threads.choice();
    let failed = || format!("cannot import {}", file.path.display());
    if choice.is_empty() {
        let found = find(format, file.source(), &request, told).with_context(failed)?;
        progress.say("storing");
        let node = document::recording(args.node(found.host()), format, Vec::new());
        found.store(node, &mut DetourStore::new(&args.output))?;
    } else {
        let found = observe(format, file.source(), &request, choice, told).with_context(failed)?;
        progress.say("storing");
        let doc = document::observation(args.node(found.host()), format);
        found.store(doc, &args.output)?;
    }
    Ok(Exit::Done)
}
