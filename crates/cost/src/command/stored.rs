//! The report of a stored measurement, for `becalm report`.

use std::io::Write;
use std::path::Path;

use becalm_bundle::Contents;
use becalm_bundle::node_document;
use becalm_command::Exit;
use becalm_command::output::{Output, emit};
use becalm_units::fault::{self, Result};

use crate::documents::CostRun;
use crate::report::{CostRunReport, TickReport};

/// Reports a node's measurement: a campaign if the bundle contains one, else costs. Fails if it cannot be read, is empty, or `out` cannot
/// be written.
pub fn report_stored(
    path: &Path,
    node: Option<&str>,
    contents: Contents,
    output: Output,
    out: &mut dyn Write,
) -> Result<Exit> {
    if contents == Contents::Campaign {
        let campaign = node_document::load(path, node)?.doc;
        emit(&TickReport::from_campaign(campaign)?, output, out)?;
        return Ok(Exit::Done);
    }
    let run = CostRun::load(path, node)?;
    fault::ensure!(
        !run.doc.is_empty(),
        "{} holds nothing: becalm cost {} ended before it had measured anything; measure again",
        path.display(),
        run.doc.measured.command()
    );
    emit(&CostRunReport::new(&run), output, out)?;
    Ok(Exit::Done)
}
