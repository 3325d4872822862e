//! `becalm report` for a run of work.

use std::io::Write;

use becalm_analyze::work::summarize_work;
use becalm_bundle::Bundle;
use becalm_command::Exit;
use becalm_command::output::emit;
use becalm_report::WorkReport;
use becalm_units::fault;

use super::ReportArgs;

/// Reads the run and prints its report, or writes its page. Fails if the run or the baseline cannot be read, their work differs, or the
/// output cannot be written.
pub(super) fn run(args: &ReportArgs, bundle: &Bundle, out: &mut dyn Write) -> fault::Result<Exit> {
    let output = args.form.output(args.full)?;
    let baseline = args.baseline.as_deref().map(Bundle::open).transpose()?;
    let summary = summarize_work(bundle, &args.run.selection(), baseline.as_ref())?;
    emit(&WorkReport { runs: &[summary] }, output, out)?;
    Ok(Exit::Done)
}
