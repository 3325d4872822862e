//! `becalm predict`: the cost of noise, from a run or a formula, for a job of any size.

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

/// Predict how much noise slows down a bulk-synchronous job on any number of ranks, and which source is to blame
///
/// Each rank works for a grain, then all wait for each other in a collective, phase after phase. A rank loses time to the
/// noise of a recorded CPU, replayed from an offset drawn from the seed. With the ideal collective, which costs nothing,
/// the replay is exact and reaches 128 M ranks, and order statistics give the expected slowdown for up to 1 T; the other
/// collectives send messages over a network (LogGP), with noise on what their sends and receives cost.
///
/// The same seed gives the same numbers on any machine.
#[derive(Args, Debug)]
#[command(after_long_help = format!("{}\n\n{}", collectives(), networks()))]
pub struct PredictArgs {
    /// The noise: a run; periodic:interval=1ms,detour=50us[,jitter=10us], poisson:rate=10Hz,detour=50us or
    /// renewal:gap=100ms,detour=50us; a table of sources, sources:FILE,length=1h; or several of them with + between them, a run
    /// first. Instead of interval= or rate=, ratio=1% says which share of the time they take. Several noises may be given, behind each
    /// other or as a list like periodic:interval={1ms,10ms},detour={16us,50us}: each is predicted. A length may also be uniform:10us:90us, exponential:50us, lognormal:50us:0.8 (median, deviation of the logarithm),
    /// pareto:50us:1.5 (shortest, exponent), pareto:50us:1.5:10ms (cut at the longest) or empirical:FILE
    #[arg(value_name = "NOISE", required = true)]
    noise: Vec<NoiseList>,

    /// Take only these CPUs of the run, like 0-3,8
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus)]
    cpus: Option<CpuList>,

    /// Take only this node, where the run has several
    #[arg(long, value_name = "NODE")]
    node: Option<String>,

    /// Count the time that becalm's own threads took as noise of the machine
    #[arg(long)]
    with_self: bool,

    /// Numbers of ranks, like 64,16Ki
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "64,1Ki,16Ki", allow_hyphen_values = true)]
    ranks: Vec<Count>,

    /// The useful CPU time of a phase, or several such times; 0 makes collectives back to back
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "1ms", value_parser = grain, allow_hyphen_values = true)]
    grain: Vec<Nanos>,

    /// How many phases to replay, like 10k
    #[arg(long, value_name = "N", default_value = "10000", allow_hyphen_values = true)]
    phases: Count,

    /// What ends a phase, or several such collectives: ideal, barrier, bcast, reduce, allreduce, allgather, reduce-scatter,
    /// alltoall; with an algorithm behind a colon, or openmpi, mpich or cray to have it chosen by ranks and bytes as that
    /// library does; all of them are listed below
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "ideal")]
    collective: Vec<Collective>,

    /// What messages cost: bgl, infiniband, ndr, slingshot, slingshot11, ethernet; own parameters like
    /// L=2500ns,o=1500ns,g=1000ns,G=6ns; a preset with some of its own, like infiniband,S=8Ki; or a file of becalm-mpi network. nL, no, ng, nG and nO are
    /// those of messages within a node; without them and a preset, these cost what messages between nodes do
    #[arg(long, value_name = "NETWORK", default_value = "infiniband", value_parser = network)]
    network: Network,

    /// The bytes of the collective, or several such numbers: in all for bcast, reduce and allreduce, of each rank's part for allgather and
    /// reduce-scatter, for each pair of ranks for alltoall
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "8", allow_hyphen_values = true)]
    bytes: Vec<ByteCount>,

    /// How many ranks a node has: they replay CPUs of one recorded node, at one common offset, and share its network card. Without
    /// it, as many as CPUs were chosen of a node, of the one that has fewest; 1 for a formula, and with --independent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    ranks_per_node: Option<u64>,

    /// Let every rank replay a CPU and an offset of its own, also where several share a node
    #[arg(long)]
    independent: bool,

    /// Let the ranks of all nodes replay the recording as it was, at one common offset: noise that came to several nodes at once
    /// comes so again. A larger job has several copies of it, each at an offset of its own
    #[arg(long, conflicts_with_all = ["independent", "sync"])]
    as_recorded: bool,

    /// Let the noise of all ranks come at the same instants; with =both, predict that beside noise at random instants
    #[arg(long, value_name = "WHICH", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "yes")]
    sync: Option<Sync>,

    /// Put off all noise until the end of windows of this length, which end on all ranks at the same instants, as if interrupts were
    /// masked meanwhile; or several such lengths, where 0 stands for none
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "0", hide_default_value = true, value_parser = grain, allow_hyphen_values = true)]
    coalesce: Vec<Nanos>,

    /// Take a source out of every detour before predicting; may be given several times. A name stands for
    /// the activities of all kinds that have it, kind:source for those of one kind
    #[arg(long, value_name = "SOURCE")]
    without: Vec<String>,

    /// Say how much of the added time is whose, which detours cost most, and what is left without the sources that add
    /// most. With messages: what taking out each source would gain
    #[arg(long)]
    blame: bool,

    /// Say up to how many ranks no more than this share of the job's time is lost to noise, like 5%, and for each of --ranks
    /// that loses more which detours would have to go; for the ideal collective
    #[arg(long, value_name = "SHARE", value_parser = tolerable, allow_hyphen_values = true)]
    tolerate: Option<Share>,

    /// How many node-hours such jobs take in a year: says how many of them noise takes
    #[arg(long, value_name = "N", value_parser = node_hours, allow_hyphen_values = true)]
    node_hours: Option<f64>,

    /// The seed from which offsets and the detours of formulas are drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// How often the job is replayed, each time from other offsets
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    replicas: u64,

    /// Begin even if it will take longer than half an hour
    #[arg(long)]
    allow_long: bool,

    #[command(flatten)]
    form: FormArgs,
}

/// Whether the noise of all ranks comes at the same instants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Sync {
    /// It does.
    Yes,
    /// One after the other: at random instants, and then at the same ones.
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

/// The collectives with their algorithms, the default first.
fn collectives() -> String {
    let names: Vec<(&str, &str)> = Collective::names().filter_map(|name| name.split_once(':')).collect();
    let line = |some: &[(&str, &str)]| {
        let algorithms: Vec<&str> = some.iter().map(|(_, algorithm)| *algorithm).collect();
        format!("  {}: {}", some[0].0, algorithms.join(", "))
    };
    let lines: Vec<String> = names.chunk_by(|a, b| a.0 == b.0).map(line).collect();
    let rest = "  and each of them: openmpi, mpich, cray; alltoall:scattered=N has N messages of each rank under way";
    format!("Collectives, each with its default first:\n{}\n{rest}", lines.join("\n"))
}

/// The presets with the sources of their figures.
fn networks() -> String {
    // Short words, so manual pages can break the line.
    let shown = |network: Network| network.to_string().replace(",nL=", ", within a node nL=");
    let presets =
        Network::presets().map(|(name, source, network)| format!("  {name}: {}\n    {source}", shown(network)));
    let cards = "The ranks of a node share its card: what they send to other nodes, and what they receive, is at least g + (bytes-1) G\n\
                 apart over all of them. Messages within a node cost nL, no, ng, nG and nO, and do not touch the card.";
    format!("Networks:\n{}\n\n{cards}", presets.collect::<Vec<_>>().join("\n"))
}

reading_task!(PredictArgs);

/// Predicts and prints the answer. Fails if the noise cannot be read, the question is invalid or would take too long, or `out` cannot be
/// written.
fn run(args: &PredictArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let question = args.question();
    question.check()?;
    let output = args.form.output(false)?;
    question.answer(&mut Reader::new(output, out))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The help of these two options is written by hand.
    #[test]
    fn the_help_names_every_collective_and_every_network() {
        let command = PredictArgs::augment_args(clap::Command::new("predict"));
        let help = |option: &str| {
            let argument = command.get_arguments().find(|argument| argument.get_id() == option).expect("there is one");
            argument.get_help().expect("it has a help text").to_string()
        };
        let (collectives, networks) = (help("collective"), help("network"));
        let listed = super::collectives();
        for (operation, algorithm) in Collective::names().filter_map(|name| name.split_once(':')) {
            assert!(collectives.contains(operation), "{operation} is not in: {collectives}");
            assert!(listed.contains(algorithm), "{algorithm} is not in: {listed}");
        }
        for (name, _, _) in Network::presets() {
            assert!(networks.contains(name), "{name} is not in: {networks}");
        }
    }
}
