//! Predicts the slowdown of a job: rows of ranks and grains, with intervals over replicas.

mod recording;
mod replicas;

use becalm_model::Estimate;
use becalm_units::Nanos;

use crate::ScaleError;
use crate::collective::Collective;
use crate::delay::DelayTable;
use crate::estimate::{exactly, from_replicas};
use crate::law::LawPoint;
use crate::lengths::DetourLengths;
use crate::machine::{JobMachine, RankStart, Time, Traced};
use crate::network::Network;
use crate::noise::{Noise, NoiseTrace};
use crate::order::{DelayDistribution, UNITS_LIMIT};
use crate::phases::{PhaseDurations, PhaseSpread};
use crate::placement::{Placement, RANKS_LIMIT};
use crate::replay::{ReplayOutcome, replay_each};
use crate::sampled::PhaseLosses;
use crate::uncertainty::{Missed, RecordingBounds, RecordingUncertainty};
use crate::watch::ReplayWatch;
use crate::workers::side_by_side;
use recording::Answer;
pub(crate) use replicas::{CriticalPath, CriticalPaths};
use replicas::{Durations, Replays, Replica};

/// Maximum number of ranks with simulated messages: they take about 150 bytes each.
pub const MESSAGES_LIMIT: u64 = 1 << 24;

/// The number of delayed places (24 bytes each) kept before those that no longer matter are dropped.
const NOTES_KEPT: usize = 1 << 18;

/// Bytes per rank with the ideal collective: its offset, the sorted one, and its share of the index.
const RANK_MEMORY: u64 = 24;

/// Maximum memory of replicas that run in parallel, in bytes, unless one alone takes more.
const REPLICAS_MEMORY: u64 = 2 << 30;

/// The number of replicas that run in parallel.
pub(crate) fn together(ranks: u64, replicas: u64) -> usize {
    (REPLICAS_MEMORY / (RANK_MEMORY * ranks).max(1)).clamp(1, replicas.max(1)) as usize
}

/// The question of a prediction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Question {
    /// Useful CPU time of a phase; zero, for collectives back to back, only with a collective that costs time.
    pub grain: Nanos,
    /// The number of phases to replay.
    pub phases: u64,
    /// The collective at the end of each phase.
    pub collective: Collective,
    /// The costs of messages; unused by an ideal collective.
    pub network: Network,
    /// Payload of the collective.
    pub bytes: u64,
    /// Ranks per node.
    pub per_node: u64,
    /// Whether the noise of all ranks is simultaneous.
    pub synchronized: bool,
    /// The seed of the offsets.
    pub seed: u64,
    /// The number of repetitions, each with other offsets.
    pub replicas: u64,
}

/// Replays this many phases of one replica, and calls the function after each.
pub type FirstReplica<'a> = Box<dyn Fn(u64, &mut dyn FnMut()) -> Result<(), ScaleError> + 'a>;

/// The prediction for one number of ranks.
#[derive(Clone, PartialEq, Debug)]
pub struct RankPrediction {
    /// The number of ranks of the job.
    pub ranks: u64,
    /// Useful CPU time of a phase.
    pub grain: Nanos,
    /// Phases of each replica.
    pub phases: u64,
    /// The collective at the end of each phase.
    pub collective: Collective,
    /// Its algorithm, if a library chose it by ranks and bytes.
    pub algorithm: Collective,
    /// Mean phase duration over that without noise. For recorded noise it is that of all its phases, as in a report. If it comes from replays, it has
    /// the interval over other offsets, and is `None` above [`RANKS_LIMIT`].
    pub slowdown: Option<Estimate>,
    /// Whether it comes from replays.
    pub replayed: bool,
    /// The value that a report has instead, if the CPUs of a node lose a different amount replayed together than separately.
    pub apart: Option<f64>,
    /// The uncertainty from another recording, or a longer one; `None` for a formula, and without [`Prediction::with_recording`].
    pub recording: Option<RecordingBounds>,
    /// Noise that the recording may have missed: the slowdown is a lower bound. `None` without [`Prediction::with_recording`] or
    /// [`Prediction::with_recorded`].
    pub missed: Option<Missed>,
    /// Whether the noise is a formula, which leaves nothing unknown.
    pub formula: bool,
    /// The expectation by order statistics, for the ideal collective and ranks that are not synchronized, if they are too many to replay and phases
    /// may be assumed to start at random times; see [`DetourLengths::starts_are_random`].
    pub expected_ratio: Option<f64>,
    /// The result of the noise law, with the rate and the mean length of the detours, which must be about equally long; for the ideal collective and
    /// ranks that are not synchronized and share no node.
    pub law: Option<LawPoint>,
    /// The longest phase of all replicas.
    pub worst_phase: Option<Nanos>,
    /// The mean phase duration in nanoseconds.
    pub mean_phase_ns: Option<f64>,
    /// A phase without noise.
    pub quiet_phase_ns: f64,
    /// The distribution of the durations of all phases of all replicas.
    pub spread: Option<PhaseSpread>,
}

impl RankPrediction {
    /// The share of the job's time that it would take without noise, 0 to 1: the inverse of the slowdown.
    pub fn efficiency(&self) -> Option<f64> {
        self.slowdown.map(|slowdown| 1.0 / slowdown.mean)
    }
}

/// A prediction for one grain and noise, whose tables serve all numbers of ranks.
#[derive(Clone, Debug)]
pub struct Prediction<'a> {
    noise: &'a Noise,
    question: Question,
    /// The tables of full units, for the ideal collective; `None` for other collectives.
    tables: Option<Tables<'a>>,
    /// Replicas alternate between the noise and these: other draws of the same formula, with their tables.
    draws: Vec<Draw<'a>>,
    watch: ReplayWatch<'a>,
    /// Whether the uncertainty from another recording is requested.
    asks_recording: bool,
    /// The total recorded time of the CPUs, if the noise was drawn from that.
    recorded: Option<Nanos>,
}

/// A draw of a formula, with its table for the ideal collective.
#[derive(Clone, Debug)]
struct Draw<'a> {
    noise: &'a Noise,
    table: Option<DelayTable<'a>>,
}

/// The data that predictions are computed from.
#[derive(Clone, Debug)]
struct Tables<'a> {
    delays: DelayTable<'a>,
    distribution: DelayDistribution,
    /// The phases of recorded noise.
    losses: Option<PhaseLosses<()>>,
    known: Option<RecordingUncertainty>,
}

impl<'a> Tables<'a> {
    fn new(delays: DelayTable<'a>, noise: &Noise, per_node: u64) -> Result<Self, ScaleError> {
        let distribution = DelayDistribution::new(&delays);
        // With coalesced noise, the delays of ranks are dependent.
        let is_recorded = noise.together() && noise.windows().is_none();
        let losses = is_recorded.then(|| PhaseLosses::from_noise(noise, per_node, delays.grain())).transpose()?;
        Ok(Self { delays, distribution, losses, known: None })
    }

    fn with_recording(self) -> Self {
        Self { known: self.losses.as_ref().and_then(PhaseLosses::uncertainty), ..self }
    }
}

impl<'a> Prediction<'a> {
    /// Prepares the tables. Fails for no phases, no replicas, a grain that does not fit the collective, or too few CPUs for a node.
    pub fn new(noise: &'a Noise, question: Question) -> Result<Self, ScaleError> {
        if question.phases == 0 {
            return Err(ScaleError::NoPhases);
        }
        if question.replicas == 0 {
            return Err(ScaleError::Range("the number of replicas", "0".to_owned(), "1 and more"));
        }
        let tables = if question.collective == Collective::Ideal {
            let delays = DelayTable::new(noise, question.per_node, question.grain)?;
            Some(Tables::new(delays, noise, question.per_node)?)
        } else {
            crate::delay::units(noise, question.per_node)?;
            None
        };
        Ok(Self {
            noise,
            question,
            tables,
            draws: Vec::new(),
            watch: ReplayWatch::NOBODY,
            asks_recording: false,
            recorded: None,
        })
    }

    /// Adds other draws of the same formula. Replicas alternate between them, so their spread includes that of the draws.
    pub fn with_draws(self, draws: &'a [Noise]) -> Result<Self, ScaleError> {
        let Question { per_node, grain, .. } = self.question;
        let made = |noise: &'a Noise| -> Result<Draw<'a>, ScaleError> {
            let table = self.tables.as_ref().map(|_| DelayTable::new(noise, per_node, grain)).transpose()?;
            Ok(Draw { noise, table })
        };
        let draws = draws.iter().map(made).collect::<Result<_, _>>()?;
        Ok(Self { draws, ..self })
    }

    /// The same tables for another payload of the collective in bytes, and with simultaneous or independent noise of the ranks.
    #[must_use]
    pub fn asking(self, bytes: u64, synchronized: bool) -> Self {
        Self { question: Question { bytes, synchronized, ..self.question }, ..self }
    }

    /// Reports progress to `watch`.
    #[must_use]
    pub fn watched(self, watch: ReplayWatch<'a>) -> Self {
        Self { watch, ..self }
    }

    /// Also computes the uncertainty from another recording of the machine, if the noise is a recording.
    #[must_use]
    pub fn with_recording(self) -> Self {
        let tables = self.tables.map(Tables::with_recording);
        Self { tables, asks_recording: true, ..self }
    }

    /// For noise drawn from a recording in summary form, with this total recorded time of its CPUs: there is no interval, only the noise that the
    /// recording may have missed.
    #[must_use]
    pub fn with_recorded(self, recorded: Nanos) -> Self {
        Self { recorded: Some(recorded), ..self }
    }

    /// The distribution of one full unit's delay, for the ideal collective.
    pub fn distribution(&self) -> Option<&DelayDistribution> {
        self.tables.as_ref().map(|tables| &tables.distribution)
    }

    /// The question.
    pub const fn question(&self) -> &Question {
        &self.question
    }

    /// The prediction for a number of ranks. Replicas run in parallel; the number of threads changes nothing. Fails for no ranks, too many ranks, or
    /// times that do not fit.
    pub fn row(&self, ranks: u64) -> Result<RankPrediction, ScaleError> {
        let question = &self.question;
        let few = self.small_tables(ranks)?;
        let tables = few.as_ref().or(self.tables.as_ref());
        let replays = self.replays(tables, ranks)?;
        let means: Vec<f64> = replays.outcomes.iter().map(ReplayOutcome::mean_phase_ns).collect();
        let expected = tables.map_or(Ok(Expected::default()), |tables| self.expected(tables, ranks))?;
        let Answer { slowdown, apart, recording } = match tables {
            Some(tables) => self.answer(tables, &replays, ranks),
            None => self.answer_with_messages(&replays, ranks)?,
        };
        let recorded = self.recorded.filter(|_| !question.synchronized);
        let missed = recorded.and_then(|recorded| Missed::for_ranks(ranks, question.grain, recorded));
        Ok(RankPrediction {
            ranks,
            grain: question.grain,
            phases: question.phases,
            collective: question.collective,
            algorithm: question.collective.chosen(ranks, question.bytes, question.per_node),
            slowdown,
            replayed: tables.and_then(|tables| self.sampled(tables)).is_none() || apart.is_some(),
            apart,
            recording,
            missed: missed.or_else(|| recording?.missed),
            formula: !self.noise.together(),
            expected_ratio: expected.ratio,
            law: expected.law,
            worst_phase: replays.outcomes.iter().map(|outcome| outcome.worst_phase).max(),
            mean_phase_ns: from_replicas(&means).map(|estimate| estimate.mean),
            quiet_phase_ns: replays.quiet_phase_ns,
            spread: replays.durations.spread(),
        })
    }

    /// The first replica of a job of this many ranks, ready to replay a number of phases from its start, for measuring the time of a phase. Fails for
    /// no ranks, too many ranks, or times that do not fit.
    pub fn first_replica(&self, ranks: u64) -> Result<FirstReplica<'_>, ScaleError> {
        let Question { collective, network, bytes, per_node, seed, .. } = self.question;
        collective.fits(&network, ranks, bytes, per_node)?;
        if let Some(tables) = &self.tables {
            let table = tables.delays.for_ranks(ranks)?;
            let offsets = self.placement(ranks).draw(&table, seed, 0)?;
            return Ok(Box::new(move |phases, each| replay_each(&table, &offsets, phases, None, |_| each()).map(drop)));
        }
        Self::check_messages(ranks)?;
        let starts = self.placement(ranks).ranks(self.noise, seed, 0)?;
        Ok(Box::new(move |phases, each| {
            let mut machine = self.machine::<i64>(&starts)?;
            (0..phases).try_for_each(|_| self.phase(&mut machine).map(|_| each()))
        }))
    }

    /// Only the slowdown for a number of ranks, as in [`Prediction::row`].
    pub fn slowdown(&self, ranks: u64) -> Result<Option<Estimate>, ScaleError> {
        let few = self.small_tables(ranks)?;
        let tables = few.as_ref().or(self.tables.as_ref());
        let alone = tables.filter(|tables| tables.delays.ranks_per_unit() == 1).and_then(|tables| self.sampled(tables));
        if let Some(losses) = alone {
            return Ok(Some(exactly(losses.slowdown(ranks, None))));
        }
        let replays = self.replays(tables, ranks)?;
        Ok(tables.map_or_else(|| replays.slowdown(), |tables| self.answered(tables, &replays, ranks).slowdown))
    }

    /// The slowdown of each replica; empty if the ranks are too many to replay.
    pub(crate) fn slowdowns(&self, ranks: u64) -> Result<Vec<f64>, ScaleError> {
        Ok(self.replays_alone(ranks)?.slowdowns())
    }

    fn replays_alone(&self, ranks: u64) -> Result<Replays, ScaleError> {
        let few = self.small_tables(ranks)?;
        self.replays(few.as_ref().or(self.tables.as_ref()), ranks)
    }

    /// The tables of a job that does not fill one unit.
    fn small_tables(&self, ranks: u64) -> Result<Option<Tables<'a>>, ScaleError> {
        let few = self.tables.as_ref().filter(|tables| (1..tables.delays.ranks_per_unit()).contains(&ranks));
        few.map(|tables| {
            let few = Tables::new(tables.delays.for_ranks(ranks)?.into_owned(), self.noise, ranks)?;
            Ok(if tables.known.is_some() { few.with_recording() } else { few })
        })
        .transpose()
    }

    /// All replicas of a job.
    fn replays(&self, tables: Option<&Tables<'a>>, ranks: u64) -> Result<Replays, ScaleError> {
        let question = &self.question;
        if ranks == 0 {
            return Err(ScaleError::NoRanks);
        }
        question.collective.fits(&question.network, ranks, question.bytes, question.per_node)?;
        match tables {
            Some(tables) => self.ideal(tables, ranks),
            None => self.with_messages(ranks),
        }
    }

    /// The replicas with the ideal collective; none if the ranks are too many.
    fn ideal(&self, tables: &Tables<'a>, ranks: u64) -> Result<Replays, ScaleError> {
        let question = &self.question;
        let mut replays = Replays::new(question.grain.get() as f64, PhaseDurations::never_below(question.grain));
        if ranks > RANKS_LIMIT {
            return Ok(replays);
        }
        let threshold = tables.known.as_ref().and_then(RecordingUncertainty::threshold);
        let table = tables.delays.for_ranks(ranks)?;
        let one = |replica: &u64| -> Result<Replica, ScaleError> {
            // For a formula, a rank is a unit, so none is partly filled.
            let table = self.draw(*replica).and_then(|draw| draw.table.as_ref()).unwrap_or(&table);
            let offsets = self.placement(ranks).draw(table, question.seed, *replica)?;
            // However many ranks there are, a phase visits few.
            let mut count = self.watch.count(ranks, 1);
            let mut durations = PhaseDurations::never_below(question.grain);
            let mut above_ns = 0_i128;
            let outcome = replay_each(table, &offsets, question.phases, None, |delay| {
                durations.add(question.grain + delay);
                above_ns += threshold.map_or(0, |threshold| i128::from((delay - threshold).get().max(0)));
                count.phase();
            })?;
            Ok(Replica { outcome, durations, above_ns })
        };
        // As many in parallel as fit into memory with their offsets.
        let replicas: Vec<u64> = (0..question.replicas).collect();
        for some in replicas.chunks(together(ranks, question.replicas)) {
            for replica in side_by_side(some, one)? {
                replays.above_ns.push(replica.above_ns as f64 / replica.outcome.phases as f64);
                replays.take(&replica);
            }
        }
        Ok(replays)
    }

    fn with_messages(&self, ranks: u64) -> Result<Replays, ScaleError> {
        Self::check_messages(ranks)?;
        let quiet_phase_ns = self.quiet(ranks)?.mean_phase_ns();
        let quiet = Nanos::new(quiet_phase_ns.ceil() as i64);
        let all = self.each_replica(ranks, |replica| self.messages(ranks, replica, quiet))?;
        let mut replays = Replays::new(quiet_phase_ns, PhaseDurations::new(quiet));
        all.iter().for_each(|replica| replays.take(replica));
        Ok(replays)
    }

    /// Maps each replica with messages.
    fn each_replica<B: Send>(
        &self,
        ranks: u64,
        one: impl Fn(u64) -> Result<B, ScaleError> + Sync,
    ) -> Result<Vec<B>, ScaleError> {
        let replicas: Vec<u64> = (0..self.question.replicas).collect();
        // Large machines use all cores within one replica; parallel ones would each need that memory.
        if ranks >= crate::machine::PARALLEL_RANKS as u64 {
            return replicas.into_iter().map(one).collect();
        }
        side_by_side(&replicas, |replica| one(*replica))
    }

    /// The duration of the job without noise, and its replicas with messages, each with its critical path.
    pub(crate) fn critical_paths(&self, ranks: u64) -> Result<CriticalPaths<'a>, ScaleError> {
        let question = &self.question;
        question.collective.fits(&question.network, ranks, question.bytes, question.per_node)?;
        Self::check_messages(ranks)?;
        let quiet = self.quiet(ranks)?.total;
        let replicas = self.each_replica(ranks, |replica| self.critical_path(ranks, replica))?;
        Ok(CriticalPaths { quiet, replicas })
    }

    fn critical_path(&self, ranks: u64, replica: u64) -> Result<CriticalPath<'a>, ScaleError> {
        let starts = self.placement(ranks).ranks(self.noise, self.question.seed, replica)?;
        let mut machine = self.machine::<Traced>(&starts)?;
        let mut durations = Durations::new(&self.question);
        let (mut count, mut kept) = (self.watch.count(ranks, ranks), starts.len().max(NOTES_KEPT));
        for _ in 0..self.question.phases {
            durations.add(self.phase(&mut machine)?);
            if machine.noted() > 2 * kept {
                machine.forget_paths();
                kept = machine.noted().max(kept);
            }
            count.phase();
        }
        Ok(CriticalPath { outcome: durations.outcome, held_up: machine.critical_path(), starts })
    }

    fn check_messages(ranks: u64) -> Result<(), ScaleError> {
        if ranks > MESSAGES_LIMIT {
            return Err(ScaleError::TooManyRanks {
                ranks,
                limit: MESSAGES_LIMIT,
                method: "a replay of messages",
                advice: "; the ideal collective goes further",
            });
        }
        Ok(())
    }

    /// The draw that a replica replays; `None` for the first one.
    fn draw(&self, replica: u64) -> Option<&Draw<'a>> {
        let turn = replica % (self.draws.len() as u64 + 1);
        self.draws.get(usize::try_from(turn).ok()?.checked_sub(1)?)
    }

    fn placement(&self, ranks: u64) -> Placement {
        Placement { ranks, per_node: self.question.per_node, synchronized: self.question.synchronized }
    }

    /// Order statistics and law, if they apply.
    fn expected(&self, tables: &Tables<'_>, ranks: u64) -> Result<Expected, ScaleError> {
        let Tables { delays: table, distribution, .. } = tables;
        // They do not apply to ranks with simultaneous noise.
        if self.question.synchronized || self.noise.windows().is_some() {
            return Ok(Expected::default());
        }
        let units = ranks.div_ceil(table.ranks_per_unit());
        let grain = self.question.grain;
        let lengths = DetourLengths::new(self.noise);
        // A replay takes precedence. Beyond, phases start at random times if many ranks are within detours.
        let is_answered = ranks <= RANKS_LIMIT || self.sampled(tables).is_some();
        let shown = !is_answered && units <= UNITS_LIMIT && lengths.starts_are_random(ranks);
        let ratio = shown.then(|| distribution.expected_slowdown(units));
        // The law assumes independent ranks.
        let law = if table.ranks_per_unit() == 1 { lengths.law(grain)? } else { None };
        Ok(Expected { ratio, law: law.map(|law| law.at(ranks)).transpose()? })
    }

    fn messages(&self, ranks: u64, replica: u64, quiet: Nanos) -> Result<Replica, ScaleError> {
        let noise = self.draw(replica).map_or(self.noise, |draw| draw.noise);
        let starts = self.placement(ranks).ranks(noise, self.question.seed, replica)?;
        let mut machine = self.machine::<i64>(&starts)?;
        drop(starts);
        let (mut durations, mut spread) = (Durations::new(&self.question), PhaseDurations::new(quiet));
        let mut count = self.watch.count(ranks, ranks);
        for _ in 0..self.question.phases {
            spread.add(durations.add(self.phase(&mut machine)?));
            count.phase();
        }
        Ok(Replica { outcome: durations.outcome, durations: spread, above_ns: 0 })
    }

    /// The same without noise. Once the machine's state repeats after a phase, apart from the time, all further phases are like the last.
    fn quiet(&self, ranks: u64) -> Result<ReplayOutcome, ScaleError> {
        let silence = NoiseTrace::silent(Nanos::new(1))?;
        let starts = vec![RankStart { trace: &silence, offset: 0 }; ranks as usize];
        let mut machine = self.machine::<i64>(&starts)?;
        drop(starts);
        let mut durations = Durations::new(&self.question);
        let mut before: Vec<_> = machine.shape().collect();
        for done in 1..=self.question.phases {
            let end = self.phase(&mut machine)?;
            let duration = end - durations.outcome.total;
            durations.add(end);
            if machine.shape().eq(before.iter().copied()) {
                let left = self.question.phases - done;
                let total = i128::from(end.get()) + i128::from(duration.get()) * i128::from(left);
                let total = i64::try_from(total).map_err(|_| {
                    ScaleError::Overflow(
                        "the time of this many phases",
                        crate::delay::TIME_LIMIT,
                        "ask for fewer or shorter phases",
                    )
                })?;
                durations.outcome.total = Nanos::new(total);
                durations.outcome.phases = self.question.phases;
                break;
            }
            before.clear();
            before.extend(machine.shape());
        }
        if durations.outcome.total == Nanos::ZERO {
            return Err(ScaleError::Grain(self.question.grain, "phases take no time at all, so nothing can be slower"));
        }
        Ok(durations.outcome)
    }

    fn machine<'n, T: Time>(&self, starts: &[RankStart<'n>]) -> Result<JobMachine<'n, T>, ScaleError> {
        let per_node = usize::try_from(self.question.per_node).unwrap_or(usize::MAX);
        Ok(JobMachine::with_times(self.question.network, starts)?.with_nodes(per_node))
    }

    fn phase<T: Time>(&self, machine: &mut JobMachine<'_, T>) -> Result<Nanos, ScaleError> {
        if self.question.grain > Nanos::ZERO {
            machine.work(self.question.grain)?;
        }
        self.question.collective.run(machine, self.question.bytes)?;
        machine.check()?;
        Ok(machine.latest())
    }
}

/// The slowdown by order statistics, and the result of the law; `None` if they do not apply.
#[derive(Default)]
struct Expected {
    ratio: Option<f64>,
    law: Option<LawPoint>,
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::noise::NodeNoise;

    fn question() -> Question {
        Question {
            grain: Nanos::from_micros(100),
            phases: 50,
            collective: Collective::Ideal,
            network: "infiniband".parse().unwrap(),
            bytes: 8,
            per_node: 1,
            synchronized: false,
            seed: 1,
            replicas: 2,
        }
    }

    #[test]
    fn what_is_expected_is_shown_where_there_is_no_replay() {
        let trace = "poisson:rate=1Hz,detour=10ms".parse::<crate::spec::NoiseSpec>().unwrap().trace(1).unwrap();
        let noise = Noise::apart("poisson", trace);
        let prediction = Prediction::new(&noise, Question { phases: 20_000, ..question() }).unwrap();
        let row = prediction.row(64).unwrap();
        assert_eq!(row.expected_ratio, None, "it would be 15 times the replay");
        let law = row.law.unwrap().slowdown_ratio;
        assert!((law - 1.638).abs() < 0.002, "{law}");
        let many = prediction.row(1 << 30).unwrap();
        assert!(many.slowdown.is_none() && many.expected_ratio.is_some_and(|expected| expected > 100.0), "{many:?}");
    }

    /// Compares the rule for showing expectations with replays, at sizes that can still be replayed.
    #[test]
    fn where_many_ranks_are_within_detours_order_statistics_are_what_a_replay_gives() {
        for (spec, grain_us) in [
            ("poisson:rate=1Hz,detour=10ms", 100),
            ("poisson:rate=10Hz,detour=1ms", 1_000),
            ("poisson:rate=100Hz,detour=100us", 10_000),
            ("poisson:rate=10Hz,detour=exponential:1ms", 100),
            ("poisson:rate=20Hz,detour=pareto:100us:3", 500),
        ] {
            let trace = spec.parse::<crate::spec::NoiseSpec>().unwrap().trace(1).unwrap();
            let noise = Noise::apart(spec, trace);
            let grain = Nanos::from_micros(grain_us);
            let prediction = Prediction::new(&noise, Question { phases: 5_000, grain, ..question() }).unwrap();
            let lengths = DetourLengths::new(&noise);
            let ranks = (5..27).map(|power| 1 << power).find(|ranks| lengths.starts_are_random(*ranks)).unwrap();
            for ranks in [ranks, 8 * ranks] {
                let expected = prediction.distribution().unwrap().expected_slowdown(ranks);
                let replayed = prediction.slowdown(ranks).unwrap().unwrap().mean;
                assert!((expected / replayed - 1.0).abs() < 0.05, "{spec} at {ranks}: {expected} {replayed}");
            }
        }
    }

    /// Four CPUs with the same ticks: few ranks of one node wait once per tick, not once per CPU. Many ranks always wait once.
    #[test]
    fn what_cpus_meet_together_is_replayed_where_it_matters() {
        let ticks = || (0..10_000).map(|at| (Nanos::new(at * 5_000_000 + 7), Nanos::from_micros(10)));
        let cpus = (0..4).map(|_| NoiseTrace::new(Nanos::from_secs(50), ticks()).unwrap()).collect();
        let noise = Noise::recorded(vec![NodeNoise::new("node", cpus).unwrap()]).unwrap();
        let question = Question { grain: Nanos::from_millis(1), phases: 5_000, per_node: 4, replicas: 5, ..question() };
        let prediction = Prediction::new(&noise, question).unwrap().with_recording();
        let few = prediction.row(4).unwrap();
        let (slowdown, apart, bounds) = (few.slowdown.unwrap().mean, few.apart.unwrap(), few.recording.unwrap());
        assert!(few.replayed && (slowdown - 1.002).abs() < 1e-4 && apart > 1.004, "{few:?}");
        assert!(bounds.low <= slowdown && bounds.high.is_some_and(|high| slowdown <= high && high < apart), "{few:?}");
        assert_eq!(prediction.slowdown(4).unwrap(), few.slowdown);
        let many = prediction.row(256).unwrap();
        assert!(
            !many.replayed && many.apart.is_none() && (many.slowdown.unwrap().mean - 1.01).abs() < 1e-4,
            "{many:?}"
        );
    }

    #[test]
    fn the_interval_of_a_recording_holds_what_it_gave_itself() {
        let detours = (0..50).map(|at| (Nanos::new(at * 10_000_000 + 5), Nanos::new(2_000 * (at + 1))));
        let trace = NoiseTrace::new(Nanos::from_millis(500), detours).unwrap();
        let node = NodeNoise::new("node", vec![trace]).unwrap();
        let noise = Noise::recorded(vec![node]).unwrap();
        let prediction = Prediction::new(&noise, question()).unwrap();
        assert_eq!(prediction.row(64).unwrap().recording, None, "nobody asked");
        let prediction = prediction.with_recording();
        for ranks in [1, 64, 4_096] {
            let row = prediction.row(ranks).unwrap();
            let (bounds, slowdown) = (row.recording.unwrap(), row.slowdown.unwrap());
            assert!(!row.formula && bounds.low <= slowdown.mean);
            assert!(bounds.high.is_none_or(|high| high >= slowdown.mean), "{row:?}");
        }
        let barrier = Question { collective: "barrier".parse().unwrap(), ..question() };
        let prediction = Prediction::new(&noise, barrier).unwrap();
        assert_eq!(prediction.row(8).unwrap().recording, None, "nobody asked");
        let row = prediction.with_recording().row(8).unwrap();
        let (bounds, slowdown) = (row.recording.unwrap(), row.slowdown.unwrap());
        assert!(bounds.low <= slowdown.mean && bounds.high.is_none_or(|high| high >= slowdown.mean), "{row:?}");
    }
}
