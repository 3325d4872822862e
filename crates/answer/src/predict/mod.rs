//! The cost of noise, from runs or formulas, for a job of any size.

mod forecast;
mod source;
mod sweep;

use becalm_analyze::noise::NoiseInput;
use becalm_analyze::summary::Selection;
use becalm_report::PredictReport;
use becalm_scale::blame::{Blame, BlameWanted, blame, has_books};
use becalm_scale::collective::Collective;
use becalm_scale::network::Network;
use becalm_scale::order::UNITS_LIMIT;
use becalm_scale::placement::RANKS_LIMIT;
use becalm_scale::predict::{MESSAGES_LIMIT, Question, RankPrediction};
use becalm_scale::tolerance::Tolerance;
use becalm_scale::watch::ReplayWatch;
use becalm_scale::{Alignment, ScaleError};
use becalm_units::fault::{self, UsageError, Wording};
use becalm_units::{Count, Nanos, Share};

use self::forecast::{Forecast, steps_of_phase, steps_of_row};
use self::source::PreparedNoise;
use crate::noise::NoiseArg;
use crate::{Asker, Steps};

/// The maximum number of sources to remove, one after another.
const STEPS: usize = 3;

/// The number of costliest detours to name.
const DETOURS: usize = 10;

/// A question for a prediction. A single noise, payload, window and synchronization make `becalm.predict/1`, several of one make
/// `becalm.predict-sweep/1`.
#[derive(Clone, Debug)]
pub struct PredictQuestion {
    /// The noises with their texts; at least one.
    pub noises: Vec<(String, AskedNoise)>,
    /// The selected nodes and CPUs of a run, and whether becalm's own time counts.
    pub selection: Selection,
    /// Numbers of ranks.
    pub ranks: Vec<u64>,
    /// The useful CPU time of a phase; at least one.
    pub grains: Vec<Nanos>,
    /// The number of phases to replay.
    pub phases: u64,
    /// The collectives that end a phase; at least one.
    pub collectives: Vec<Collective>,
    /// The cost of messages.
    pub network: Network,
    /// The bytes of the collective; at least one.
    pub bytes: Vec<u64>,
    /// The number of ranks per node, if not as recorded.
    pub ranks_per_node: Option<u64>,
    /// Which ranks replay at a common offset.
    pub alignment: Alignment,
    /// The values of whether noise is synchronized; at least one.
    pub synchronized: &'static [bool],
    /// The windows for coalescing noise, 0 for none; at least one.
    pub coalesced: Vec<Nanos>,
    /// Sources to remove: a name, or `kind:name`.
    pub without: Vec<String>,
    /// Whether to attribute the added time to sources.
    pub blame: bool,
    /// The share of its time that a job may lose, if given.
    pub tolerated: Option<Share>,
    /// The node-hours of such jobs per year, if given.
    pub node_hours: Option<f64>,
    /// The seed for offsets and for detours of formulas.
    pub seed: u64,
    /// The number of replays; at least one.
    pub replicas: u64,
    /// Whether the prediction may take longer than half an hour.
    pub allow_long: bool,
}

/// A noise in a question.
#[derive(Clone, Debug)]
pub enum AskedNoise {
    /// A run, a formula, or both.
    Named(NoiseArg),
    /// Existing detours without accounts.
    Given(Box<NoiseInput>),
}

impl PredictQuestion {
    /// Refuses invalid questions, and numbers of ranks without an answer, before anything is read.
    pub fn check(&self) -> fault::Result<()> {
        self.refuse_what_has_no_sense()?;
        Ok(self.ranks.iter().try_for_each(|ranks| self.check_ranks(*ranks))?)
    }

    /// Reads the noise and predicts. Call [`Self::check`] first. Fails if the noise cannot be read, the question is invalid or would take
    /// too long, or the answer cannot be shown.
    pub fn answer(&self, asker: &mut impl Asker) -> fault::Result<()> {
        if self.is_sweep() {
            return sweep::answer(self, asker);
        }
        let prepared = PreparedNoise::read(self, &self.noises[0].1, self.grains[0], self.coalesced[0], asker)?;
        self.single(prepared, asker)
    }

    /// Whether there are more dimensions than ranks, grains and collectives.
    fn is_sweep(&self) -> bool {
        [self.noises.len(), self.bytes.len(), self.synchronized.len(), self.coalesced.len()]
            .iter()
            .any(|some| *some > 1)
    }

    /// Whether noise is delayed until the end of windows.
    fn is_coalesced(&self) -> bool {
        self.coalesced.iter().any(|window| *window != Nanos::ZERO)
    }

    /// Answers for a single noise, payload and synchronization.
    fn single(&self, prepared: PreparedNoise, asker: &mut impl Asker) -> fault::Result<()> {
        let mut prepared = prepared;
        let questions = self.questions(prepared.per_node);
        let ranks = self.ranks.as_slice();
        let blamed = if self.blame { blame_replays(&prepared, has_books(&questions[0], ranks)) } else { 0.0 };
        let mut forecast = Forecast::default();
        for question in &questions {
            forecast.add(&prepared, *question, ranks, 1.0 + blamed)?;
        }
        forecast.judge(ranks, self.allow_long, asker)?;
        let short = questions.iter().find_map(|question| prepared.source.short_recording(question, ranks));
        prepared.source.warnings.extend(short);
        let prepared = prepared;

        let bar = asker.predicting(forecast.steps());
        let mut rows: Vec<RankPrediction> = Vec::with_capacity(questions.len() * ranks.len());
        let mut blames: Vec<(Nanos, Vec<Blame>)> = Vec::new();
        let mut tolerances: Vec<Tolerance> = Vec::new();
        let mut end = 0;
        for question in &questions {
            let other;
            let prepared = if prepared.serves(question.grain, self.coalesced[0]) {
                &prepared
            } else {
                other = PreparedNoise::read(self, &self.noises[0].1, question.grain, self.coalesced[0], asker)?;
                &other
            };
            let source = &prepared.source;
            let told = |ranks, phases| bar.advance((phases as f64 * steps_of_phase(question, ranks)) as u64);
            bar.say("tables".to_owned());
            let prediction = prepared.prediction(*question)?.watched(ReplayWatch::new(&told));
            for ranks in ranks {
                bar.say(format!("{} ranks", Count::new(*ranks)));
                rows.push(prediction.row(*ranks)?);
                end += steps_of_row(question, *ranks) as u64;
                bar.reach(end);
            }
            if let Some(share) = self.tolerated {
                bar.say("tolerance".to_owned());
                let watch = ReplayWatch::new(&told);
                tolerances.push(Tolerance::new(&prediction, &source.noise, ranks, share, watch)?);
            }
            if let (true, Some(booked)) = (self.blame, &source.booked) {
                bar.say("blame".to_owned());
                // It may end early, when no gain is left.
                end += (blamed * ranks.iter().map(|ranks| steps_of_row(question, *ranks)).sum::<f64>()) as u64;
                // The delays of a summary form are no detours, and those of threads are on axes without sleep.
                let detours = if source.summary.is_some() || source.of_threads { 0 } else { DETOURS };
                let wanted = BlameWanted { without: STEPS, detours };
                let blamed = blame(booked, *question, ranks, wanted, &prepared.taken_out, ReplayWatch::new(&told))?;
                blames.push((question.grain, blamed));
                bar.reach(end);
            }
        }
        drop(bar);

        let PreparedNoise { source, sources, .. } = &prepared;
        let report = PredictReport {
            name: &source.name,
            noise: &source.noise,
            summary: source.summary.is_some(),
            of_threads: source.of_threads,
            without: &self.without,
            question: questions[0],
            rows: &rows,
            blame: &blames,
            sources,
            places: &source.places,
            tolerance: self.tolerated.map(|share| (share, tolerances.as_slice())),
            node_hours: self.node_hours,
            warnings: &source.warnings,
        };
        asker.show(&report)
    }

    /// Refuses blame for several collectives, tolerance for collectives with a cost, and both for several noises or noise without accounts.
    fn refuse_what_has_no_sense(&self) -> fault::Result<()> {
        let refused = |why| Err(UsageError::new(Wording::new(why)).into());
        if self.blame && self.collectives.len() > 1 {
            return refused("{blame!} is for one {collective} at a time");
        }
        if self.tolerated.is_some() && self.collectives.iter().any(|collective| *collective != Collective::Ideal) {
            return refused("{tolerate} is for the ideal collective");
        }
        if self.is_sweep() && (self.blame || self.tolerated.is_some()) {
            return refused("{blame!} and {tolerate} are for one noise at a time, that comes in one way");
        }
        if let Some(window) = self.coalesced.iter().find(|window| **window < Nanos::ZERO) {
            let text = Wording::new("{coalesce} takes windows of 0 and more, and {} is less");
            return Err(UsageError::new(text.with(window)).into());
        }
        if self.is_coalesced() && (self.blame || self.tolerated.is_some()) {
            return refused(
                "{blame!} and {tolerate} say which detours cost most, and {coalesce} makes others of them: leave it out",
            );
        }
        if self.is_coalesced() && self.alignment == Alignment::Recording {
            return refused(
                "{coalesce} lets the noise of all ranks come together, and {as_recorded!} as it was: leave one of them out",
            );
        }
        Ok(())
    }

    /// A question for each grain and collective, with this many ranks per node.
    fn questions(&self, per_node: u64) -> Vec<Question> {
        let one = |grain: Nanos, collective: Collective| Question {
            grain,
            phases: self.phases,
            collective,
            network: self.network,
            bytes: self.bytes[0],
            per_node,
            synchronized: self.synchronized[0],
            seed: self.seed,
            replicas: self.replicas,
        };
        let of_grain = |grain: &Nanos| {
            let grain = *grain;
            self.collectives.iter().map(move |collective| one(grain, *collective))
        };
        self.grains.iter().flat_map(of_grain).collect()
    }

    /// Checks that a number of ranks has an answer.
    fn check_ranks(&self, ranks: u64) -> Result<(), ScaleError> {
        if ranks == 0 {
            return Err(ScaleError::NoRanks);
        }
        let mut cells =
            self.collectives.iter().flat_map(|collective| self.bytes.iter().map(|bytes| (*collective, *bytes)));
        cells.try_for_each(|(collective, bytes)| self.check_collective(collective, bytes, ranks))
    }

    fn check_collective(&self, collective: Collective, bytes: u64, ranks: u64) -> Result<(), ScaleError> {
        collective.fits(&self.network, ranks, bytes, self.ranks_per_node.unwrap_or(1))?;
        let together = self.is_coalesced() || self.synchronized.contains(&true);
        let (limit, method, advice) = match (collective, together) {
            (Collective::Ideal, false) => (UNITS_LIMIT, "order statistics", ""),
            (Collective::Ideal, true) => {
                (RANKS_LIMIT, "a replay", "; synchronized noise costs any number of ranks the same")
            }
            _ => (MESSAGES_LIMIT, "a replay of messages", "; the ideal collective goes further"),
        };
        if ranks > limit { Err(ScaleError::TooManyRanks { ranks, limit, method, advice }) } else { Ok(()) }
    }
}

/// The number of replays of a row for its blame. With accounts only the costliest sources are removed; otherwise each one is, at every
/// step.
fn blame_replays(prepared: &PreparedNoise, has_books: bool) -> f64 {
    let sources = prepared.taken_out.iter().filter(|out| !**out).count();
    let steps = STEPS.min(sources);
    if has_books { (2 + (2 * steps).saturating_sub(1)) as f64 } else { 1.0 + (sources * steps) as f64 }
}
