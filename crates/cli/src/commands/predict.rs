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
#[derive(Args, Debug)]
pub struct PredictArgs {
    /// Recordings or formulas, e.g. poisson:rate=10Hz,detour=50us; see becalm help noise
    #[arg(value_name = "NOISE", required_unless_present = "law")]
    noise: Vec<NoiseList>,

    /// CPUs of the recording to use, e.g. 0-3,8
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus)]
    cpus: Option<CpuList>,

    /// Node of the recording to use
    #[arg(long, value_name = "NODE")]
    node: Option<String>,

    /// Count the CPU time of becalm's own threads as noise
    #[arg(long)]
    with_self: bool,

    /// Numbers of processes (ranks), e.g. 64,16Ki [default: 64,1Ki,16Ki]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "64,1Ki,16Ki",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    ranks: Vec<Count>,

    /// Compute times of a phase before all ranks wait, e.g. 1ms,10ms [default: 1ms]
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "1ms", hide_default_value = true, value_parser = grain, allow_hyphen_values = true)]
    grain: Vec<Nanos>,

    /// Number of phases to replay, e.g. 10k [default: 10000]
    #[arg(long, value_name = "N", default_value = "10000", hide_default_value = true, allow_hyphen_values = true)]
    phases: Count,

    /// Collectives that end a phase; see becalm help collectives [default: ideal]
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "ideal", hide_default_value = true)]
    collective: Vec<Collective>,

    /// Network of the messages; see becalm help collectives [default: infiniband]
    #[arg(long, value_name = "NETWORK", default_value = "infiniband", hide_default_value = true, value_parser = network)]
    network: Network,

    /// Bytes of a collective, in total, per rank or per pair of ranks [default: 8]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "8",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    bytes: Vec<ByteCount>,

    /// Ranks that share the noise and the card of a node [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    ranks_per_node: Option<u64>,

    /// Replay a CPU and an offset of its own for each rank, even on one node
    #[arg(long)]
    independent: bool,

    /// Replay all nodes at one common offset, to keep simultaneous noise
    #[arg(long, conflicts_with_all = ["independent", "sync"])]
    as_recorded: bool,

    /// Noise of all ranks at the same instants; both: at random ones as well
    #[arg(long, value_name = "yes|both", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "yes",
        hide_possible_values = true)]
    sync: Option<Sync>,

    /// Windows at whose ends all ranks take their noise, e.g. 10ms; 0 for none
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "0", hide_default_value = true, value_parser = grain, allow_hyphen_values = true)]
    coalesce: Vec<Nanos>,

    /// Source to remove first, as NAME or kind:NAME; repeatable
    #[arg(long, value_name = "SOURCE")]
    without: Vec<String>,

    /// Show the sources and interruptions that cost most, and the gain without them
    #[arg(long)]
    blame: bool,

    /// Find the most ranks that lose at most this share of the time, e.g. 5%
    #[arg(long, value_name = "SHARE", value_parser = tolerable, allow_hyphen_values = true)]
    tolerate: Option<Share>,

    /// Node-hours of such jobs per year, to show the part lost to noise, e.g. 250k
    #[arg(long, value_name = "N", value_parser = node_hours, allow_hyphen_values = true)]
    node_hours: Option<f64>,

    /// Seed of offsets and formulas [default: 1]
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true)]
    seed: u64,

    /// Number of replays, each from other offsets [default: 5]
    #[arg(long, value_name = "N", default_value_t = 5, hide_default_value = true, value_parser = clap::value_parser!(u64).range(1..=100_000))]
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
