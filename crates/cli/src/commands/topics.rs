//! Pages of `becalm help` that are about several commands.

use std::io::Write;

use becalm_command::looks::LooksArgs;
use becalm_command::{Exit, Task};
use becalm_scale::collective::Collective;
use becalm_scale::network::Network;
use becalm_units::fault::Result;
use clap::Args;

/// Options of every command
#[derive(Args, Debug)]
#[command(override_help = options())]
pub struct OptionsArgs {}

/// Collectives and networks of becalm predict
#[derive(Args, Debug)]
#[command(override_help = collectives_and_networks())]
pub struct CollectivesArgs {}

/// Formulas of noise for becalm predict
#[derive(Args, Debug)]
#[command(override_help = NOISE)]
pub struct NoiseArgs {}

impl Task for OptionsArgs {
    fn run(self: Box<Self>, out: &mut dyn Write) -> Result<Exit> {
        write!(out, "{}", options())?;
        Ok(Exit::Done)
    }
}

impl Task for CollectivesArgs {
    fn run(self: Box<Self>, out: &mut dyn Write) -> Result<Exit> {
        write!(out, "{}", collectives_and_networks())?;
        Ok(Exit::Done)
    }
}

impl Task for NoiseArgs {
    fn run(self: Box<Self>, out: &mut dyn Write) -> Result<Exit> {
        write!(out, "{NOISE}")?;
        Ok(Exit::Done)
    }
}

/// The grammar of noise.
const NOISE: &str = "\
Noise is a recording, a formula, or several joined by +, the recording first:
  periodic:interval=1ms,detour=50us  one detour (interruption) per interval; with ,jitter=10us up to that much later
  poisson:rate=10Hz,detour=50us      detours at independent random times
  renewal:gap=100ms,detour=50us      each one gap after the end of the last
  sources:FILE,length=1h             a table of sources (CSV), with the counts of that length of time
ratio=1%, the share of time, replaces interval or rate.

Lengths and gaps:
  50us, uniform:10us:90us, exponential:50us
  lognormal:50us:0.8                 median, and standard deviation of the logarithm
  pareto:50us:1.5                    shortest and exponent; :10ms at the end is the longest
  empirical:FILE                     random ones of the file, which has one per line

Several noises, and lists such as interval={1ms,10ms}, are predicted one by one.
";

/// The options that every command has. Their help is hidden elsewhere.
fn options() -> String {
    let command = LooksArgs::augment_args(clap::Command::new("becalm").disable_help_flag(true));
    let command = command.mut_args(|argument| argument.hide_long_help(false)).help_template("{options}");
    command.max_term_width(100).render_long_help().to_string()
}

fn collectives_and_networks() -> String {
    format!("{}\n\n{}\n", collectives(), networks())
}

/// The collectives with their algorithms, the default first.
pub fn collectives() -> String {
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
