//! `becalm predict`: the cost of noise, from a run or a formula, for a job of any size.

mod law;

use std::io::Write;
use std::str::FromStr;

use becalm_analyze::summary::Selection;
use becalm_answer::network::network;
use becalm_answer::noise::NoiseList;
use becalm_answer::predict::{AskedNoise, PredictQuestion};
use becalm_command::Exit;
use becalm_command::arguments::{FormArgs, some_cpus, tolerable};
use becalm_command::reader::Reader;
use becalm_command::reading_task;
use becalm_scale::Alignment;
use becalm_scale::collective::Collective;
use becalm_scale::network::Network;
use becalm_units::{ByteCount, Count, CpuList, Nanos, Share, fault};
use clap::{Args, ValueEnum};

use law::LawArgs;

/// Predict what noise costs a parallel job of any size
///
/// Processes (ranks) compute for a grain, then wait for each other in a collective, phase after phase. Each replays the noise of a recorded CPU from
/// a random offset. The ideal collective is free and exact up to 128 M ranks, estimated up to 1 T; others send messages over a network (LogGP). The
/// same seed gives the same numbers on any machine. `becalm help collectives` lists collectives, algorithms and networks.
#[derive(Args, Debug)]
pub struct PredictArgs {
    /// Recording, periodic:interval=1ms,detour=50us[,jitter=10us], poisson:rate=10Hz,detour=50us, renewal:gap=100ms,detour=50us or
    /// sources:FILE,length=1h; joined by + (recording first); ratio=1% replaces interval or rate. Several, or lists as in interval={1ms,10ms}, are
    /// predicted one by one. Lengths: 50us, uniform:10us:90us, exponential:50us, lognormal:50us:0.8, pareto:50us:1.5 (and :10ms to cut), empirical:FILE
    #[arg(value_name = "NOISE", required_unless_present = "law")]
    noise: Vec<NoiseList>,

    /// Use only these CPUs of the recording, such as 0-3,8
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus)]
    cpus: Option<CpuList>,

    /// Use only this node of a recording of several
    #[arg(long, value_name = "NODE")]
    node: Option<String>,

    /// Count the CPU time of becalm's own threads as noise
    #[arg(long)]
    with_self: bool,

    /// Numbers of ranks, such as 64,16Ki
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "64,1Ki,16Ki", allow_hyphen_values = true)]
    ranks: Vec<Count>,

    /// Compute times of a phase, such as 1ms,10ms; 0 for collectives back to back
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "1ms", value_parser = grain, allow_hyphen_values = true)]
    grain: Vec<Nanos>,

    /// Number of phases to replay, such as 10k
    #[arg(long, value_name = "N", default_value = "10000", allow_hyphen_values = true)]
    phases: Count,

    /// Collectives at the end of a phase: ideal, barrier, bcast, reduce, allreduce, allgather, reduce-scatter, alltoall. After a colon, an algorithm,
    /// or openmpi, mpich or cray to choose as that library does by ranks and bytes
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "ideal")]
    collective: Vec<Collective>,

    /// Cost of messages: bgl, infiniband, ndr, slingshot, slingshot11, ethernet; parameters such as L=2500ns,o=1500ns,g=1000ns,G=6ns; a preset with
    /// changes such as infiniband,S=8Ki; or a file of becalm-mpi network. nL, no, ng, nG and nO are for messages within a node [without preset: those
    /// of other messages]
    #[arg(long, value_name = "NETWORK", default_value = "infiniband", value_parser = network)]
    network: Network,

    /// Bytes of the collective: in total for bcast, reduce and allreduce; per rank for allgather and reduce-scatter; per pair of ranks for alltoall
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "8", allow_hyphen_values = true)]
    bytes: Vec<ByteCount>,

    /// Ranks per node, which replay one node at one offset and share its network card [default: the fewest chosen CPUs of a node; 1 for formulas and
    /// with --independent]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    ranks_per_node: Option<u64>,

    /// Let each rank replay a CPU and an offset of its own, even if ranks share a node
    #[arg(long)]
    independent: bool,

    /// Replay all nodes at one common offset, to keep noise that hit several at once
    #[arg(long, conflicts_with_all = ["independent", "sync"])]
    as_recorded: bool,

    /// Let the noise of all ranks come at the same instants; =both also predicts random instants
    #[arg(long, value_name = "WHICH", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "yes")]
    sync: Option<Sync>,

    /// Delay all noise to the end of windows of these lengths, common to all ranks, as if interrupts were masked; 0 for none
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "0", hide_default_value = true, value_parser = grain, allow_hyphen_values = true)]
    coalesce: Vec<Nanos>,

    /// Remove a source first, as NAME or kind:NAME; repeatable
    #[arg(long, value_name = "SOURCE")]
    without: Vec<String>,

    /// Show the sources and interruptions (detours) that cost most, and the gain without them
    #[arg(long)]
    blame: bool,

    /// Find the most ranks that lose at most this share of the job's time, such as 5%, and what must go for more; ideal collective only
    #[arg(long, value_name = "SHARE", value_parser = tolerable, allow_hyphen_values = true)]
    tolerate: Option<Share>,

    /// Node-hours of such jobs per year, to show how many of them noise takes
    #[arg(long, value_name = "N", value_parser = node_hours, allow_hyphen_values = true)]
    node_hours: Option<f64>,

    /// Seed of the offsets, and of the noise of formulas
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Number of replays, each from other offsets
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    replicas: u64,

    /// Run even if it takes more than half an hour
    #[arg(long)]
    allow_long: bool,

    #[command(flatten)]
    law: LawArgs,

    #[command(flatten)]
    form: FormArgs,
}

/// Whether the noise of all ranks comes at the same instants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Sync {
    /// Only at the same instants
    Yes,
    /// At random instants, then at the same ones
    Both,
}

impl PredictArgs {
    /// The question as values.
    fn question(&self) -> PredictQuestion {
        let named = |(text, noise): &(String, _)| (text.clone(), AskedNoise::Named(Clone::clone(noise)));
        PredictQuestion {
            noises: self.noise.iter().flat_map(|list| &list.0).map(named).collect(),
            selection: Selection {
                node: self.node.clone(),
                cpus: self.cpus.clone(),
                with_self: self.with_self,
                ..Selection::default()
            },
            ranks: self.ranks.iter().map(|ranks| ranks.get()).collect(),
            grains: self.grain.clone(),
            phases: self.phases.get(),
            collectives: self.collective.clone(),
            network: self.network,
            bytes: self.bytes.iter().map(|bytes| bytes.get()).collect(),
            ranks_per_node: self.ranks_per_node,
            alignment: match (self.as_recorded, self.independent) {
                (true, _) => Alignment::Recording,
                (_, true) => Alignment::Independent,
                _ => Alignment::Node,
            },
            synchronized: match self.sync {
                None => &[false],
                Some(Sync::Yes) => &[true],
                Some(Sync::Both) => &[false, true],
            },
            coalesced: self.coalesce.clone(),
            without: self.without.clone(),
            blame: self.blame,
            tolerated: self.tolerate,
            node_hours: self.node_hours,
            seed: self.seed,
            replicas: self.replicas,
            allow_long: self.allow_long,
        }
    }
}

/// Parses a grain; 0 needs no unit.
fn grain(text: &str) -> Result<Nanos, <Nanos as FromStr>::Err> {
    if text == "0" { Ok(Nanos::ZERO) } else { text.parse() }
}

/// Parses node-hours, e.g. 250k.
fn node_hours(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('k') {
        Some(number) => (number, 1e3),
        None => (text.strip_suffix('M').unwrap_or(text), if text.ends_with('M') { 1e6 } else { 1.0 }),
    };
    let hours = number.parse::<f64>().ok().map(|number| number * scale).filter(|hours| (0.0..=1e15).contains(hours));
    hours.ok_or_else(|| format!("'{text}' is no number of node-hours: write one like 250000, 250k or 1.5M, up to 1e15"))
}

reading_task!(PredictArgs);

/// Predicts and prints the answer. Fails if the noise cannot be read, the question is invalid or would take too long, or `out` cannot be
/// written.
fn run(args: &PredictArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let output = args.form.output(false)?;
    if args.law.law {
        let question = args.law.question(&args.grain, &args.ranks, args.tolerate);
        question.answer(&mut Reader::new(output, out))?;
        return Ok(Exit::Done);
    }
    let question = args.question();
    question.check()?;
    question.answer(&mut Reader::new(output, out))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::topics;

    /// The help of these two options is written by hand.
    #[test]
    fn the_help_names_every_collective_and_every_network() {
        let command = PredictArgs::augment_args(clap::Command::new("predict"));
        let help = |option: &str| {
            let argument = command.get_arguments().find(|argument| argument.get_id() == option).expect("there is one");
            argument.get_help().expect("it has a help text").to_string()
        };
        let (collectives, networks) = (help("collective"), help("network"));
        let listed = topics::collectives();
        for (operation, algorithm) in Collective::names().filter_map(|name| name.split_once(':')) {
            assert!(collectives.contains(operation), "{operation} is not in: {collectives}");
            assert!(listed.contains(algorithm), "{algorithm} is not in: {listed}");
        }
        for (name, _, _) in Network::presets() {
            assert!(networks.contains(name), "{name} is not in: {networks}");
        }
    }
}
