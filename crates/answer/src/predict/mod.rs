//! What the noise of runs, or of formulas, costs a job of any size.

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

/// How many sources are taken out, one after another.
const STEPS: usize = 3;

/// How many of the detours that cost most are named.
const DETOURS: usize = 10;

/// What is asked of a prediction. One noise, one payload, one window and one way in which noise comes make `becalm.predict/1`, several
/// of them `becalm.predict-sweep/1`.
#[derive(Clone, Debug)]
pub struct PredictQuestion {
    /// The noises, each with the text that stands for it; at least one.
    pub noises: Vec<(String, AskedNoise)>,
    /// Which nodes and CPUs of a run, and whether becalm's own time counts.
    pub selection: Selection,
    /// Numbers of ranks.
    pub ranks: Vec<u64>,
    /// The useful CPU time of a phase; at least one.
    pub grains: Vec<Nanos>,
    /// How many phases are replayed.
    pub phases: u64,
    /// What ends a phase; at least one.
    pub collectives: Vec<Collective>,
    /// What messages cost.
    pub network: Network,
    /// The bytes of the collective; at least one.
    pub bytes: Vec<u64>,
    /// How many ranks a node has, where that is not what was recorded.
    pub ranks_per_node: Option<u64>,
    /// Which ranks replay at one common offset.
    pub alignment: Alignment,
    /// Whether noise is synchronized, for each way in which it is asked; at least one.
    pub synchronized: &'static [bool],
    /// The windows in which noise is coalesced, 0 for none; at least one.
    pub coalesced: Vec<Nanos>,
    /// Sources that are taken out: a name, or `kind:name`.
    pub without: Vec<String>,
    /// Whether it is asked whose the added time is.
    pub blame: bool,
    /// The share of its time that a job may lose, if that is asked.
    pub tolerated: Option<Share>,
    /// How many node-hours such jobs take in a year, if that is asked.
    pub node_hours: Option<f64>,
    /// From which offsets and the detours of formulas are drawn.
    pub seed: u64,
    /// How often the job is replayed; at least once.
    pub replicas: u64,
    /// Whether it may take longer than half an hour.
    pub allow_long: bool,
}

/// A noise that is asked about.
#[derive(Clone, Debug)]
pub enum AskedNoise {
    /// What a text stands for: a run, a formula, or both.
    Named(NoiseArg),
    /// Detours that are there already, and have no books.
    Given(Box<NoiseInput>),
}

impl PredictQuestion {
    /// Refuses what has no sense, and numbers of ranks that have no answer, before anything is read.
    pub fn check(&self) -> fault::Result<()> {
        self.refuse_what_has_no_sense()?;
        Ok(self.ranks.iter().try_for_each(|ranks| self.check_ranks(*ranks))?)
    }

    /// Reads the noise, and predicts. What [`Self::check`] refuses should have been. Fails if the noise cannot be read,
    /// the question makes no sense or would take too long, or the answer cannot be shown.
    pub fn answer(&self, asker: &mut impl Asker) -> fault::Result<()> {
        if self.is_sweep() {
            return sweep::answer(self, asker);
        }
        let prepared = PreparedNoise::read(self, &self.noises[0].1, self.grains[0], self.coalesced[0], asker)?;
        self.single(prepared, asker)
    }

    /// Whether more is asked than a table of ranks, grains and collectives.
    fn is_sweep(&self) -> bool {
        [self.noises.len(), self.bytes.len(), self.synchronized.len(), self.coalesced.len()]
            .iter()
            .any(|some| *some > 1)
    }

    /// Whether noise is put off until the end of windows.
    fn is_coalesced(&self) -> bool {
        self.coalesced.iter().any(|window| *window != Nanos::ZERO)
    }

    /// One noise, one payload, one way in which it comes.
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
                // It may end early, with nothing left to gain.
                end += (blamed * ranks.iter().map(|ranks| steps_of_row(question, *ranks)).sum::<f64>()) as u64;
                // The delays of a summary form are no detours.
                let detours = if source.summary.is_some() { 0 } else { DETOURS };
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

    /// Refuses blame of several collectives at once, a tolerance of one that costs time, and both where there are several noises or none
    /// with books.
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

    /// A question for each grain and collective, of nodes of so many ranks.
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

    /// Finds out whether a number of ranks has an answer.
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

/// How often a row is replayed for its blame. With books only those sources are taken out that add most; else each is, at every step.
fn blame_replays(prepared: &PreparedNoise, has_books: bool) -> f64 {
    let sources = prepared.taken_out.iter().filter(|out| !**out).count();
    let steps = STEPS.min(sources);
    if has_books { (2 + (2 * steps).saturating_sub(1)) as f64 } else { 1.0 + (sources * steps) as f64 }
}
