//! Forecasts the time of a prediction from its first phases.

use std::time::{Duration, Instant};

use becalm_scale::ScaleError;
use becalm_scale::collective::Collective;
use becalm_scale::placement::RANKS_LIMIT;
use becalm_scale::predict::{FirstReplica, Prediction, Question};
use becalm_units::Count;
use becalm_units::fault::{self, UsageError, Wording};

use super::source::PreparedNoise;
use crate::Asker;

/// The minimum time to replay the first phases.
const TRIAL: Duration = Duration::from_millis(5);
/// The maximum number of ranks for this replay if messages are followed, because the time of a phase grows with their steps.
const TRIAL_RANKS: u64 = 1 << 10;
/// The shortest announced prediction, in seconds.
const TOLD: f64 = 30.0;
/// The shortest prediction, in seconds, that is refused unless long ones are allowed.
const REFUSED: f64 = 1_800.0;

/// The steps of one phase: one to find the largest delay, else the sends and receives of each rank.
pub(super) fn steps_of_phase(question: &Question, ranks: u64) -> f64 {
    match question.collective {
        Collective::Ideal => 1.0,
        collective => ranks as f64 * (1 + collective.rounds(ranks, question.bytes, question.per_node)) as f64,
    }
}

pub(super) fn steps_of_row(question: &Question, ranks: u64) -> f64 {
    if question.collective == Collective::Ideal && ranks > RANKS_LIMIT {
        return 0.0;
    }
    steps_of_phase(question, ranks) * question.phases as f64 * question.replicas as f64
}

/// The steps and the time of all questions.
#[derive(Default)]
pub(super) struct Forecast {
    steps: f64,
    seconds: f64,
    /// The longest question, and its time.
    longest: Option<(Question, f64)>,
    /// The time of a phase of the ideal collective, once known: its tables are reused for other grains.
    ideal_seconds: Option<f64>,
}

impl Forecast {
    /// Adds a question that will be replayed this many times.
    pub(super) fn add(
        &mut self,
        prepared: &PreparedNoise,
        question: Question,
        ranks: &[u64],
        times: f64,
    ) -> fault::Result<()> {
        let steps = times * ranks.iter().map(|ranks| steps_of_row(&question, *ranks)).sum::<f64>();
        let is_ideal = question.collective == Collective::Ideal;
        let seconds_of_step = match self.ideal_seconds.filter(|_| is_ideal) {
            Some(seconds) => seconds,
            None => seconds_of_step(&Prediction::new(&prepared.source.noise, question)?, ranks)?,
        };
        if is_ideal {
            self.ideal_seconds = Some(seconds_of_step);
        }
        let seconds = steps * seconds_of_step;
        if self.longest.is_none_or(|(_, longest)| seconds > longest) {
            self.longest = Some((question, seconds));
        }
        self.steps += steps;
        self.seconds += seconds;
        Ok(())
    }

    pub(super) const fn steps(&self) -> u64 {
        self.steps as u64
    }

    /// Announces predictions of more than half a minute. Fails for more than half an hour, unless that is allowed.
    pub(super) fn judge(&self, ranks: &[u64], allow_long: bool, asker: &impl Asker) -> fault::Result<()> {
        let Some((question, _)) = self.longest.filter(|_| self.seconds >= TOLD) else { return Ok(()) };
        if self.seconds >= REFUSED && !allow_long {
            let most = ranks.iter().copied().max().unwrap_or(1);
            return Err(UsageError::new(refusal(&question, most, self.seconds)).into());
        }
        asker.tell(format_args!("this will take about {} on one core", about(self.seconds)));
        Ok(())
    }
}

/// The time of one step of the largest job requested, or of the largest that can be tried.
fn seconds_of_step(prediction: &Prediction<'_>, ranks: &[u64]) -> Result<f64, ScaleError> {
    let question = prediction.question();
    let limit = if question.collective == Collective::Ideal { RANKS_LIMIT } else { TRIAL_RANKS };
    let most = ranks.iter().copied().max().unwrap_or(1);
    let tried = ranks.iter().copied().filter(|ranks| *ranks <= limit).max().unwrap_or(limit.min(most));
    let replay = prediction.first_replica(tried)?;
    let mut phases = question.phases.min(2);
    let took = loop {
        let took = after_first_phase(&replay, phases)?;
        if took >= TRIAL || phases >= question.phases {
            // Another task may have taken the CPU meanwhile, but rarely twice.
            break took.min(after_first_phase(&replay, phases)?);
        }
        phases = question.phases.min(4 * phases);
    };
    let steps = steps_of_phase(question, tried) * phases.saturating_sub(1).max(1) as f64;
    Ok(took.as_secs_f64() / steps)
}

/// The time of this many phases without the first, which includes one-time setup.
fn after_first_phase(replay: &FirstReplica<'_>, phases: u64) -> Result<Duration, ScaleError> {
    let mut first = None;
    replay(phases, &mut || {
        first.get_or_insert_with(Instant::now);
    })?;
    Ok(first.map_or(Duration::ZERO, |first| first.elapsed()))
}

/// The reason for refusing a question, and what to ask instead.
fn refusal(question: &Question, ranks: u64, seconds: f64) -> Wording {
    let collective = question.collective;
    let (phases, job) = (Count::new(question.phases), Count::new(ranks));
    let job =
        format!("{phases} phases of {job} ranks with the collective {collective} would take about {}", about(seconds));
    let refusal = match (question.phases as f64 * TOLD / seconds) as u64 {
        0 => Wording::new("{} on one core: ask for fewer ranks{}; {allow_long!} starts anyway").with(job),
        fitting => Wording::new(
            "{} on one core: {phases=} would take about {}; or ask for fewer ranks{}; {allow_long!} starts anyway",
        )
        .with(job)
        .with(fitting)
        .with(about(TOLD)),
    };
    let is_quadratic = collective.rounds(ranks, question.bytes, question.per_node) >= ranks / 2;
    let other = match collective {
        Collective::Alltoall(_) if is_quadratic => Some("alltoall:bruck"),
        Collective::Allreduce(_) if is_quadratic => Some("allreduce"),
        _ => None,
    };
    let other = other.map(|name| format!(", or {name}, whose rounds grow with the logarithm of the ranks only"));
    refusal.with(other.unwrap_or_default())
}

/// A time in words, to two digits.
fn about(seconds: f64) -> String {
    const UNITS: [(&str, f64); 5] =
        [("years", 31_557_600.0), ("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0), ("seconds", 1.0)];
    // At least two of a unit, because the names are plural.
    let (name, length) = UNITS.into_iter().find(|(_, length)| seconds >= 2.0 * length).unwrap_or(UNITS[4]);
    format!("{:.0} {name}", seconds / length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_scale::Noise;
    use becalm_scale::spec::NoiseSpec;
    use becalm_units::Nanos;
    use becalm_units::fault::option;

    fn question(collective: &str, phases: u64) -> Question {
        Question {
            grain: Nanos::from_millis(1),
            phases,
            collective: collective.parse().unwrap(),
            network: "bgl".parse().unwrap(),
            bytes: 8,
            per_node: 1,
            synchronized: false,
            seed: 1,
            replicas: 5,
        }
    }

    #[test]
    fn the_pace_of_a_few_ranks_is_that_of_many() {
        let spec: NoiseSpec = "poisson:rate=100Hz,detour=50us".parse().unwrap();
        let noise = Noise::apart("noise", spec.trace(1).unwrap());
        let barrier = Prediction::new(&noise, question("barrier", 1_000)).unwrap();
        let [few, many] = [64, 1 << 12].map(|ranks| seconds_of_step(&barrier, &[ranks]).unwrap());
        assert!((0.05..20.0).contains(&(few / many)), "{few} {many}");
    }

    #[test]
    fn a_refusal_has_a_way_out() {
        let text = refusal(&question("alltoall", 10_000), 1 << 16, 1e6).shown(option);
        assert!(text.contains("12 days") && text.contains("alltoall:bruck") && text.contains("fewer ranks"), "{text}");
        let text = refusal(&question("ideal", 1_000_000), 64, 3e4).shown(option);
        assert!(text.contains("--phases 1000 would take about 30 seconds") && !text.contains("bruck"), "{text}");
        assert_eq!(about(1e12), "31688 years");
    }
}
