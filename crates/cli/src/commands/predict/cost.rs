//! What a prediction will take, so that nobody waits for one that cannot end.

use becalm_scale::collective::Collective;
use becalm_scale::placement::RANKS_LIMIT;
use becalm_scale::predict::Question;
use becalm_units::Count;

/// Steps of one rank that a core does in a second, cautiously: measured are 100 million and more.
const STEPS_A_SECOND: f64 = 5e7;
/// Seconds from which on the user is told how long it will take.
const TOLD: f64 = 20.0;
/// Seconds from which on it is refused unless long runs are allowed.
const REFUSED: f64 = 1_800.0;
/// A phase of the ideal collective, however many ranks there are, in steps.
const IDEAL_PHASE: f64 = 20.0;
/// A rank of the ideal collective: its offset is drawn and sorted.
const IDEAL_RANK: f64 = 5.0;

/// The cost of all rows and their blame.
pub(super) struct Bill {
    steps: f64,
    /// The phases of each replay.
    phases: u64,
    collective: Collective,
    /// The ranks of the largest machine that is simulated.
    ranks: u64,
    /// How many predictions of each row the blame takes.
    blame: f64,
}

/// What is to be done about it.
#[derive(PartialEq, Debug)]
pub(super) enum LengthVerdict {
    /// Nothing has to be done.
    Short,
    /// The user is told how long it will take, in these words.
    Long(String),
    /// It is refused, with a way out.
    TooLong(String),
}

/// The steps of so many phases.
pub(super) fn steps_of_phases(question: &Question, ranks: u64, phases: u64) -> f64 {
    phases as f64
        * match question.collective {
            Collective::Ideal => IDEAL_PHASE,
            collective => ranks as f64 * (collective.rounds(ranks) as f64 + 1.0),
        }
}

/// The steps of one row over all replicas.
pub(super) fn steps_of_row(question: &Question, ranks: u64) -> f64 {
    let beside = match question.collective {
        Collective::Ideal if ranks > RANKS_LIMIT => return 0.0,
        Collective::Ideal => IDEAL_RANK * ranks as f64,
        _ => 0.0,
    };
    (steps_of_phases(question, ranks, question.phases) + beside) * question.replicas as f64
}

impl Bill {
    /// For questions that differ by their grain, with the sources and the steps of blame if it is asked for.
    pub(super) fn new(questions: &[Question], ranks: &[u64], blame: Option<(usize, usize)>) -> Self {
        let rows: f64 =
            questions.iter().flat_map(|question| ranks.iter().map(move |ranks| steps_of_row(question, *ranks))).sum();
        // Once as it is and once without each source, then without each remaining one after every step.
        let blame = blame.map_or(0.0, |(sources, steps)| 1.0 + (sources * steps.min(sources)) as f64);
        Self {
            steps: rows * (1.0 + blame),
            phases: questions.first().map_or(1, |question| question.phases),
            collective: questions.first().map_or(Collective::Ideal, |question| question.collective),
            ranks: ranks.iter().copied().max().unwrap_or(1),
            blame,
        }
    }

    /// The part of it that is blame, for one of the questions.
    pub(super) fn steps_of_blame(&self, question: &Question, ranks: &[u64]) -> f64 {
        self.blame * ranks.iter().map(|ranks| steps_of_row(question, *ranks)).sum::<f64>()
    }

    pub(super) fn steps(&self) -> f64 {
        self.steps
    }

    pub(super) fn verdict(&self) -> LengthVerdict {
        let seconds = self.steps / STEPS_A_SECOND;
        if seconds < TOLD {
            return LengthVerdict::Short;
        }
        let about = about(seconds);
        if seconds < REFUSED {
            return LengthVerdict::Long(format!("this will take about {about} on one core"));
        }
        let fitting = (self.phases as f64 * TOLD / seconds) as u64;
        let fewer = match fitting {
            0 => "ask for fewer ranks".to_owned(),
            phases => format!("--phases {phases} would take about {}; or ask for fewer ranks", self::about(TOLD)),
        };
        let other = match self.collective {
            Collective::Alltoall(_) | Collective::Allreduce(_)
                if self.collective.rounds(self.ranks) >= self.ranks / 2 =>
            {
                let name =
                    if matches!(self.collective, Collective::Alltoall(_)) { "alltoall:bruck" } else { "allreduce" };
                format!(", or {name}, whose rounds grow with the logarithm of the ranks only")
            }
            _ => String::new(),
        };
        LengthVerdict::TooLong(format!(
            "{} phases of {} ranks with the collective {} would take about {about} on one core: {fewer}{other}; --allow-long begins all \
             the same",
            Count::new(self.phases),
            Count::new(self.ranks),
            self.collective,
        ))
    }
}

/// A time in words of two digits.
fn about(seconds: f64) -> String {
    const UNITS: [(&str, f64); 5] =
        [("years", 31_557_600.0), ("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0), ("seconds", 1.0)];
    // Two of a unit at least, so that it is never one.
    let (name, length) = UNITS.into_iter().find(|(_, length)| seconds >= 2.0 * length).unwrap_or(UNITS[4]);
    format!("{:.0} {name}", seconds / length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_units::Nanos;

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
    fn only_what_takes_long_is_refused() {
        let verdict =
            |collective, phases, ranks| Bill::new(&[question(collective, phases)], &[64, ranks], None).verdict();
        assert_eq!(verdict("ideal", 300_000, 1 << 20), LengthVerdict::Short);
        assert_eq!(verdict("barrier", 100, 1 << 14), LengthVerdict::Short);
        assert!(
            matches!(verdict("barrier", 1_000, 1 << 16), LengthVerdict::Long(text) if text.contains("111 seconds"))
        );
        let LengthVerdict::TooLong(text) = verdict("alltoall", 10_000, 1 << 16) else { panic!("it is quadratic") };
        assert!(text.contains("--phases") || text.contains("fewer ranks"), "{text}");
        assert!(text.contains("alltoall:bruck"), "{text}");
        assert!(matches!(verdict("ideal", u64::MAX, 64), LengthVerdict::TooLong(text) if text.contains("years")));
    }

    #[test]
    fn blame_costs_a_prediction_for_each_source_and_step() {
        let steps = |blame| Bill::new(&[question("barrier", 10)], &[64], blame).steps();
        assert_eq!(steps(Some((3, 5))), 11.0 * steps(None));
    }
}
