//! `becalm why`: who requested the activities of a recording.

use std::io::Write;
use std::path::PathBuf;

use becalm_bundle::{Bundle, CauseTable, Contents, ObservedHead, ObservedTables, node_document};
use becalm_command::Exit;
use becalm_command::arguments::FormArgs;
use becalm_command::output::{PROGRAM, emit};
use becalm_command::reading_task;
use becalm_model::Kind;
use becalm_model::node::{CausesDoc, MachineDoc};
use becalm_units::fault::{self, UsageError, Wording};
use becalm_units::{CpuList, cpus};
use clap::Args;

use crate::document::{SCHEMA, WhyDoc};
use crate::report::WhyReport;
use crate::sums::{CauseSums, functions, requesters};

/// Show who requested what interrupted CPUs
///
/// An interrupt from another CPU has a function and a sender, a work item has someone who queued it, and a thread has someone who woke it. Requests
/// made in interrupts, softirqs and work items are followed to a thread, a device or a timer. Needs a recording of becalm record --causes or becalm
/// observe --causes.
#[derive(Args, Debug)]
pub struct WhyArgs {
    /// Recording with causes
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// Only this source or function, e.g. flush_tlb_func; * matches any ending
    #[arg(value_name = "SOURCE")]
    source: Option<String>,

    /// Only on these CPUs, e.g. 1,4-7
    #[arg(long, value_name = "LIST")]
    cpu: Option<CpuList>,

    /// Show who made the requests, and what each of them made run
    #[arg(long)]
    senders: bool,

    /// Node of a recording of several
    #[arg(long, value_name = "NODE")]
    node: Option<String>,

    /// Show all causes, with the code that made the requests
    #[arg(long, visible_alias = "full")]
    all: bool,

    #[command(flatten)]
    form: FormArgs,
}

reading_task!(WhyArgs);

/// Reads the recording and prints the causes.
fn run(args: &WhyArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let output = args.form.output(args.all)?;
    let doc = why(args)?;
    emit(&WhyReport { doc: &doc, by_requester: args.senders }, output, out)?;
    Ok(Exit::Done)
}

fn why(args: &WhyArgs) -> fault::Result<WhyDoc> {
    let (node, list, recorded, sums, machine) = match Contents::read(&args.run)? {
        Contents::Recording => recorded(args)?,
        Contents::Observed => observed(args)?,
        other => {
            let text = "{} holds {}; causes are in recordings of becalm record --causes and becalm observe --causes";
            return Err(UsageError::new(Wording::new(text).with(args.run.display()).with(other.words())).into());
        }
    };
    let is_wanted = |_: Kind, source: &str| args.source.as_ref().is_none_or(|wanted| fits(wanted, source));
    let causes = sums.causes(is_wanted);
    if let (Some(wanted), true) = (&args.source, causes.is_empty()) {
        let text = format!("no activity is called '{wanted}'; becalm why {} lists them", args.run.display());
        return Err(UsageError::new(text).into());
    }
    Ok(WhyDoc {
        schema: SCHEMA.to_owned(),
        node,
        program: PROGRAM.to_owned(),
        cpus: list,
        coverage: sums.coverage(),
        requesters: requesters(&causes),
        functions: functions(&causes, &machine),
        causes,
        missing: recorded.missing,
        lost_events: recorded.lost,
    })
}

/// Node, CPUs, the trace of requests, the sums, and the machine.
type Found = (String, String, CausesDoc, CauseSums, MachineDoc);

fn recorded(args: &WhyArgs) -> fault::Result<Found> {
    let bundle = Bundle::open(&args.run)?;
    let doc = match (&args.node, bundle.nodes()) {
        (Some(wanted), nodes) => nodes.iter().find(|doc| doc.node == *wanted),
        (None, [only]) => Some(only),
        (None, [first, ..]) => {
            let text = Wording::new("the run has several nodes; name one, as in {node=}").with(&first.node);
            return Err(UsageError::new(text).into());
        }
        (None, []) => None,
    };
    let doc = doc.ok_or_else(|| UsageError::new(format!("{} has no such node", args.run.display())))?;
    let (causes, rows) = kept(args, doc.tracing.as_ref().and_then(|tracing| tracing.causes.as_ref()))?;
    let all: CpuList = doc.cpus.iter().map(|cpu| cpu.cpu).collect();
    let chosen = args.cpu.clone().unwrap_or_else(|| all.clone());
    let strangers = chosen.without(&all);
    if !strangers.is_empty() {
        let text = Wording::new("{cpu=} is not among the CPUs of the recording, {}").with(&strangers).with(&all);
        return Err(UsageError::new(text).into());
    }
    let mut sums = CauseSums::new(&CauseTable::new(bundle.path(), &doc.node, rows))?;
    sums.add_recording(&bundle, &doc.node, &chosen)?;
    Ok((doc.node.clone(), cpus(&chosen), causes, sums, doc.machine.clone()))
}

fn observed(args: &WhyArgs) -> fault::Result<Found> {
    let loaded = node_document::load::<ObservedHead>(&args.run, args.node.as_deref())?;
    let head = loaded.doc;
    let (causes, rows) = kept(args, head.tracing.as_ref().and_then(|tracing| tracing.causes.as_ref()))?;
    let mut sums = CauseSums::new(&CauseTable::new(&loaded.bundle, &head.node, rows))?;
    sums.add_observed(&ObservedTables::new(&loaded.bundle, &head.node, head.rows), args.cpu.as_ref())?;
    let list = args.cpu.as_ref().map_or_else(|| "all CPUs".to_owned(), cpus);
    Ok((head.node, list, causes, sums, head.machine))
}

/// The trace of requests of a recording, and the rows of its causes. Fails if it has none.
fn kept(args: &WhyArgs, causes: Option<&CausesDoc>) -> fault::Result<(CausesDoc, u64)> {
    let run = args.run.display();
    match causes {
        None => {
            let text = format!("{run} was recorded without causes; record again with --causes");
            Err(UsageError::new(text).into())
        }
        Some(CausesDoc { rows: None, .. }) => {
            let text = format!("{run} did not end, so its causes were not worked out; record again with --causes");
            Err(UsageError::new(text).into())
        }
        Some(causes @ CausesDoc { rows: Some(rows), .. }) => Ok((causes.clone(), *rows)),
    }
}

/// Whether a source, or the function in its name, is the wanted one; a final `*` matches any ending.
fn fits(wanted: &str, source: &str) -> bool {
    let function = source.split_once(':').map_or(source, |(_, function)| function);
    let fits = |name: &str| wanted.strip_suffix('*').map_or(wanted == name, |start| name.starts_with(start));
    fits(source) || fits(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_found_by_name_function_and_beginning() {
        for wanted in ["ipi:flush_tlb_func", "flush_tlb_func", "flush*", "ipi:*", "*"] {
            assert!(fits(wanted, "ipi:flush_tlb_func"), "{wanted}");
        }
        for wanted in ["flush", "tlb*", "ipi", ""] {
            assert!(!fits(wanted, "ipi:flush_tlb_func"), "{wanted}");
        }
    }
}
