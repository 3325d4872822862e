//! `becalm report` of a run of work.

use std::io::{BufWriter, Write};

use anyhow::Context;
use becalm_analyze::work::summarize_work;
use becalm_bundle::Bundle;

use super::ReportArgs;
use crate::draft::Draft;
use crate::exit::Exit;
use crate::messages::say;

/// Reads the run and prints its report, or writes its page.
///
/// # Errors
/// If the run or the baseline cannot be read, they are of different work, or the output cannot be written.
pub(super) fn run(args: &ReportArgs, bundle: &Bundle, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let mut draft = args.html.as_deref().map(Draft::new).transpose()?;
    let baseline = args.baseline.as_deref().map(Bundle::open).transpose()?;
    let summary = summarize_work(bundle, &args.run.selection(), baseline.as_ref())?;
    if let (Some(file), Some(mut draft)) = (&args.html, draft.take()) {
        let page = becalm_report::work_page(&summary, concat!("becalm ", env!("CARGO_PKG_VERSION")));
        page.write(&mut draft).with_context(|| format!("cannot write {}", file.display()))?;
        draft.finish()?;
        say(format_args!("the page is {}", file.display()));
        return Ok(Exit::Done);
    }
    let mut out = BufWriter::new(out);
    match args.json {
        true => out.write_all(becalm_report::work_json(&[summary]).as_bytes())?,
        false => becalm_report::render_work(&[summary], &mut out)?,
    }
    out.flush()?;
    Ok(Exit::Done)
}
