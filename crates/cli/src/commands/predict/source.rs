//! The noise of a prediction, from a run or a formula, put on ranks as it was asked.

use std::path::Path;

use becalm_analyze::noise::{NoiseInput, NoiseOrigin};
use becalm_analyze::summary::Selection;
use becalm_bundle::Contents;
use becalm_scale::Alignment;
use becalm_scale::placement::RANKS_LIMIT;
use becalm_scale::spec::Drawing;
use becalm_units::Nanos;

use super::PredictArgs;
use crate::arguments::run;
use crate::exit::UsageError;
use crate::noise::{self, NoiseArg};

/// A noise that can be replayed.
pub(super) struct PreparedNoise {
    pub(super) source: NoiseInput,
    /// The ranks of a node.
    pub(super) per_node: u64,
    /// The names of its sources, where it has books.
    pub(super) sources: Vec<String>,
    /// Which of them are taken out.
    pub(super) taken_out: Vec<bool>,
}

impl PreparedNoise {
    /// Reads or draws it, without what is to be left out of it, coalesced in windows if they are longer than nothing.
    ///
    /// # Errors
    /// If it cannot be read, is not what options ask for, or leaves no time for work.
    pub(super) fn read(args: &PredictArgs, noise: &NoiseArg, window: Nanos) -> anyhow::Result<Self> {
        let (mut source, per_node) = aligned(args, source(args, noise)?)?;
        let sources: Vec<String> = source.booked.as_ref().map_or_else(Vec::new, |booked| booked.sources().to_vec());
        let mut taken_out = vec![false; sources.len()];
        if let Some(booked) = &source.booked {
            for name in &args.without {
                for number in source.numbers_of(name)? {
                    taken_out[number] = true;
                }
            }
            source.noise = booked.without(&taken_out)?;
        }
        if window != Nanos::ZERO {
            source = source.coalesced(window)?;
        }
        Ok(Self { source, per_node, sources, taken_out })
    }
}

/// The noise, with its books if the question is about sources.
fn source(args: &PredictArgs, noise: &NoiseArg) -> anyhow::Result<NoiseInput> {
    let books = args.blame || !args.without.is_empty();
    match noise {
        NoiseArg::Spec(_) if books => {
            let why = "a formula has no sources: --blame and --without need a run that was recorded with sources";
            Err(UsageError(why.to_owned()).into())
        }
        NoiseArg::Spec(_) if args.cpus.is_some() || args.node.is_some() => {
            Err(UsageError("a formula has no CPUs: --cpus and --node choose from a run".to_owned()).into())
        }
        NoiseArg::RunWith(..) if books => {
            let why =
                "--blame and --without split a recording by its sources, and a formula has none: leave the formula out";
            Err(UsageError(why.to_owned()).into())
        }
        NoiseArg::Spec(spec) => Ok(NoiseInput::from_spec(spec, drawing(args), args.replicas)?),
        NoiseArg::Run(path) => recorded(args, path, books),
        NoiseArg::RunWith(path, spec) => Ok(recorded(args, path, false)?.with_cause(spec, drawing(args))?),
    }
}

/// The noise of the chosen CPUs of a run.
fn recorded(args: &PredictArgs, path: &Path, books: bool) -> anyhow::Result<NoiseInput> {
    let selection = Selection { node: args.node.clone(), cpus: args.cpus.clone(), with_self: args.with_self };
    if Contents::read(path)? == Contents::Summary {
        if args.as_recorded {
            let why = "--as-recorded replays noise as it came, and the summary form does not keep that: leave it out";
            return Err(UsageError(why.to_owned()).into());
        }
        return Ok(NoiseInput::from_summary(&run::open_summary(path)?, &selection, books)?);
    }
    Ok(noise::from_run(&run::open(path)?, &selection, books)?)
}

/// From what the detours of a formula are drawn, and for how long.
fn drawing(args: &PredictArgs) -> Drawing<'static> {
    let ranks = args.ranks.iter().map(|ranks| ranks.get()).max().unwrap_or(1).min(RANKS_LIMIT);
    let grain = args.grain.iter().copied().max().unwrap_or(Nanos::ZERO);
    let phases = ranks.saturating_mul(args.phases.get()).saturating_mul(args.replicas);
    let time = grain.get().saturating_mul(i64::try_from(phases).unwrap_or(i64::MAX));
    Drawing { seed: args.seed, number: 0, time: Nanos::new(time), read: &noise::read_named }
}

/// Puts ranks at common offsets as it was asked, and says how many a node has: as many as were asked for or recorded.
fn aligned(args: &PredictArgs, source: NoiseInput) -> anyhow::Result<(NoiseInput, u64)> {
    if args.as_recorded && source.origin != NoiseOrigin::Recorded {
        return Err(UsageError("a formula was not recorded: --as-recorded needs a run".to_owned()).into());
    }
    let alignment = match (args.as_recorded, args.independent) {
        (true, _) => Alignment::Recording,
        (_, true) => Alignment::Independent,
        _ => Alignment::Node,
    };
    let source = source.aligned(alignment)?;
    let per_node = args.ranks_per_node.unwrap_or_else(|| source.noise.ranks_per_node());
    Ok((source, per_node))
}
