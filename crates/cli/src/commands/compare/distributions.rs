//! Distributions that were imported, beside each other or beside a recording.

use std::io::Write;
use std::path::{Path, PathBuf};

use becalm_analyze::distribution::{Side, beside};
use becalm_analyze::fleet::digest_of;
use becalm_bundle::{Contents, StoredNodes, distribution};
use becalm_report::BesideReport;
use becalm_units::CpuList;

use super::CompareArgs;
use crate::exit::{Exit, UsageError};
use crate::output::{Output, emit};

/// Whether any of these is a distribution. What cannot be read is refused with its reason later.
pub fn is_any(paths: &[PathBuf]) -> bool {
    paths.iter().any(|path| matches!(Contents::read(path), Ok(Contents::Distribution)))
}

/// Prints the two beside each other.
///
/// # Errors
/// If there are not two, options are given that need times, one cannot be read, they are of different lengths, or the output cannot be
/// written.
pub fn run(args: &CompareArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let unused = [
        ("--", !args.after.is_empty()),
        ("--fail-if-worse", args.fail_if_worse.is_some()),
        ("--html", args.html.is_some()),
        ("--with-self", args.with_self),
    ];
    if let Some((option, _)) = unused.iter().find(|(_, is_given)| *is_given) {
        let text = format!(
            "{option} is for recordings with single detours: a distribution does not know when they came, and so not how sure a change \
             is; leave it out"
        );
        return Err(UsageError(text).into());
    }
    let [a, b] = args.runs.as_slice() else {
        return Err(UsageError("distributions are compared by twos: becalm compare A B".to_owned()).into());
    };
    let cpus = |own: &Option<CpuList>| args.cpus.clone().or_else(|| own.clone());
    let a = read(a, args.node_a.as_deref(), cpus(&args.cpus_a).as_ref())?;
    let b = read(b, args.node_b.as_deref(), cpus(&args.cpus_b).as_ref())?;
    let beside = beside(a, b).map_err(|error| UsageError(error.to_string()))?;
    emit(&BesideReport { beside: &beside }, Output::new(args.json, args.all), out)?;
    Ok(Exit::Done)
}

/// A distribution, or the lengths of a recording's detours.
fn read(path: &Path, node: Option<&str>, cpus: Option<&CpuList>) -> anyhow::Result<Side> {
    let name = path.display().to_string();
    let mut side = match Contents::read(path)? {
        Contents::Distribution => {
            let (_, mut docs) = distribution::load(path, node)?;
            let doc = docs.pop().filter(|_| docs.is_empty());
            Side::of_distribution(&name, doc.ok_or_else(|| several(path))?)
        }
        _ => {
            let nodes = StoredNodes::open(path)?;
            let only = nodes.names().next().filter(|_| nodes.names().len() == 1);
            let node = node.or(only).ok_or_else(|| several(path))?;
            Side::of_digest(&name, &digest_of(nodes.read(node)?)?)
        }
    };
    if let Some(cpus) = cpus {
        side.series.retain(|series| series.cpu.is_some_and(|cpu| cpus.contains(cpu)));
    }
    Ok(side)
}

fn several(path: &Path) -> UsageError {
    UsageError(format!("{} holds several nodes; choose one with --node-a or --node-b", path.display()))
}
