//! `becalm condense`: converts a full recording to summary form.

use std::io::Write;
use std::path::PathBuf;

use becalm_analyze::condense;
use becalm_analyze::summary::SummaryError;
use becalm_bundle::{Bundle, StoredNode, StoredNodes, SummaryWriter};
use becalm_command::arguments::refuse_existing;
use becalm_command::messages::say;
use becalm_command::progress::ReadingProgress;
use becalm_command::rights::RightsKept;
use becalm_command::{Exit, Task};
use becalm_model::digest::DigestDoc;
use becalm_units::fault;
use clap::Args;

/// Keep only histograms and totals of a recording
///
/// Writes the summary form, as `becalm record --summary` does: histograms per source, noise over time, and the 128 longest interruptions (detours)
/// per CPU, in at most 512 KiB per CPU. The recording itself is kept. Nodes that cannot be read are reported and left out.
#[derive(Args, Debug)]
pub struct CondenseArgs {
    /// Recording to condense
    #[arg(value_name = "RUN")]
    path: PathBuf,

    /// Where to store the summary form
    #[arg(short, long, value_name = "RUN")]
    output: PathBuf,
}

impl Task for CondenseArgs {
    fn rights(&self) -> RightsKept {
        RightsKept::Files
    }

    fn run(self: Box<Self>, _out: &mut dyn Write) -> fault::Result<Exit> {
        refuse_existing(&self.output)?;
        let nodes = StoredNodes::open(&self.path)?;
        let (mut read, mut written, mut left_out) = (0, 0, Vec::new());
        for name in nodes.names() {
            match digest(&nodes, name) {
                Ok((digest, tables)) => {
                    let bytes = SummaryWriter::create(&self.output, &digest)?.bytes_written();
                    read += tables.unwrap_or(bytes);
                    written += bytes;
                }
                Err(error) => left_out.push((name, error)),
            }
        }
        if written == 0 && !left_out.is_empty() {
            return Err(left_out.swap_remove(0).1.into());
        }
        for (name, error) in &left_out {
            say(format_args!("{name} is left out: {error}"));
        }
        say(format_args!("{written} bytes in {}, of {read} in {}", self.output.display(), nodes.path().display()));
        Ok(Exit::Done)
    }
}

/// A node in summary form, and the bytes of its tables; `None` if it already was in that form and is copied unchanged.
fn digest(nodes: &StoredNodes, name: &str) -> Result<(DigestDoc, Option<u64>), SummaryError> {
    let stored = nodes.read(name)?;
    let full = if let StoredNode::Full(bundle) = &stored { Some(bundle) } else { None };
    let tables = full.map(Bundle::bytes);
    let reading = full.map(|bundle| ReadingProgress::begin(bundle, 1));
    let digest = condense::digest(stored)?;
    drop(reading);
    Ok((digest, tables))
}
