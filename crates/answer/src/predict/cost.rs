//! What a prediction will take, so that nobody waits for one that cannot end.

use becalm_scale::Noise;
use becalm_scale::collective::Collective;
use becalm_scale::placement::RANKS_LIMIT;
use becalm_scale::predict::Question;
use becalm_units::fault::Wording;
use becalm_units::{Count, RankCount};

/// Steps that a core does in a second, cautiously: a step is one send or receive of one rank.
const STEPS_A_SECOND: f64 = 5e7;
/// Seconds from which on the user is told how long it will take.
const TOLD: f64 = 5.0;
/// Seconds from which on it is refused unless long runs are allowed.
const REFUSED: f64 = 1_800.0;

/// What the parts of a prediction take, in steps.
mod part {
    /// A rank of the ideal collective: its offset is drawn and sorted.
    pub(super) const RANK: f64 = 5.0;
    /// A detour in the tables of delays, and once more where the table of bounds is made.
    pub(super) const TABLED: f64 = 25.0;
    /// A detour with its books, and its copy without a source.
    pub(super) const BOOKED: f64 = 15.0;
    /// A look at a rank in a phase, and a detour that it meets.
    pub(super) const LOOK: f64 = 0.15;
    pub(super) const MET: f64 = 0.15;
    /// A phase at least: a few ranks are asked for their delay.
    pub(super) const PHASE: f64 = 30.0;
    /// A look at a piece of the delay functions.
    pub(super) const PIECE: f64 = 1.0;
    /// A step of a rank that shares a node's card: its messages are put in order.
    pub(super) const CARD: f64 = 8.0;
    /// A grain of one rank's work that meets many detours, among which its end is searched.
    pub(super) const SEARCH: f64 = 20.0;
    /// Numbers of ranks that are tried for a tolerance, worth as many of the largest that is asked for; and lengths of detours, each with
    /// a table of its own.
    pub(super) const TRIED_RANKS: f64 = 15.0;
    pub(super) const TRIED_LENGTHS: f64 = 12.0;
}

/// How large noise is, as far as predictions cost more for it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct NoiseSize {
    /// Detours of all traces.
    detours: f64,
    /// Detours that a rank meets in a nanosecond of work.
    density: f64,
    /// Whether it was recorded, so that it is asked what another recording would give.
    recorded: bool,
}

impl NoiseSize {
    /// Of all traces of a noise.
    pub(super) fn of(noise: &Noise) -> Self {
        let detours = noise.traces().map(becalm_scale::NoiseTrace::len).sum::<usize>() as f64;
        let length: f64 = noise.traces().map(|trace| trace.length().get() as f64).sum();
        Self {
            detours,
            density: detours / (length * (1.0 - noise.noise_ratio())),
            recorded: noise.together() && noise.windows().is_none(),
        }
    }

    /// The steps of a phase of the ideal collective, by the cheapest of its ways.
    fn ideal_phase(&self, question: &Question, ranks: u64) -> f64 {
        let units = if question.synchronized { 1.0 } else { ranks as f64 };
        let plain = units * (0.3 + part::MET * self.met(question));
        let bounds = part::PHASE + units * part::LOOK;
        // About as many pieces are looked at as must be until one has a rank in it.
        let pieces = part::PHASE + part::PIECE * 2.0 * self.detours / units;
        plain.min(bounds).min(pieces)
    }

    /// Detours that a grain meets.
    fn met(&self, question: &Question) -> f64 {
        (self.density * question.grain.get() as f64).min(self.detours)
    }

    /// The steps of one rank's grain before it communicates.
    fn work(&self, question: &Question) -> f64 {
        1.0 + self.met(question).min(part::SEARCH)
    }
}

/// The cost of all rows and their blame.
pub(super) struct Bill {
    steps: f64,
    size: NoiseSize,
    /// The phases of each replay.
    phases: u64,
    /// The collective that takes longest.
    collective: Collective,
    /// Its steps on each rank of the largest machine.
    rounds: u64,
    /// The ranks of the largest machine that is simulated.
    ranks: u64,
    blame: Option<BlamePart>,
}

/// What blame asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlamePart {
    /// Sources that can be taken out.
    pub sources: usize,
    /// How many are, one after another.
    pub steps: usize,
    /// Whether there are closed books, so that only those are taken out that add most.
    pub books: bool,
}

impl BlamePart {
    /// How many predictions of each row it takes; the books are worth two.
    fn predictions(self) -> f64 {
        let steps = self.steps.min(self.sources);
        match self.books {
            true => (2 + (2 * steps).saturating_sub(1)) as f64,
            // Once as it is and once without each source, then without each remaining one after every step.
            false => 1.0 + (self.sources * steps) as f64,
        }
    }

    /// How often tables are made.
    fn tables(self) -> f64 {
        if self.books { self.predictions() - 1.0 } else { self.predictions() }
    }
}

/// What is to be done about it.
#[derive(PartialEq, Debug)]
pub(super) enum LengthVerdict {
    /// Nothing has to be done.
    Short,
    /// The user is told how long it will take, in these words.
    Long(String),
    /// It is refused, with a way out.
    TooLong(Wording),
}

/// The steps of so many phases.
pub(super) fn steps_of_phases(size: &NoiseSize, question: &Question, ranks: u64, phases: u64) -> f64 {
    phases as f64
        * match question.collective {
            Collective::Ideal => size.ideal_phase(question, ranks),
            collective => {
                let rounds = collective.rounds(ranks, question.bytes, question.per_node) as f64;
                let shared = question.per_node.min(ranks) > 1 && collective.uses_cards();
                let step = if shared { part::CARD } else { 1.0 };
                ranks as f64 * (step * rounds + size.work(question))
            }
        }
}

/// The steps of one row over all replicas.
pub(super) fn steps_of_row(size: &NoiseSize, question: &Question, ranks: u64) -> f64 {
    let phases = steps_of_phases(size, question, ranks, question.phases);
    let replicas = question.replicas as f64;
    match question.collective {
        Collective::Ideal if ranks > RANKS_LIMIT => 0.0,
        Collective::Ideal => (phases + part::RANK * ranks as f64) * replicas,
        // What another recording would give takes a replica with cut detours, and one of a job that only waits, with its tables.
        _ if size.recorded => {
            let waiting = Question { collective: Collective::Ideal, ..*question };
            let beside = part::RANK * ranks as f64 + part::TABLED * size.detours;
            phases * (replicas + 1.0) + steps_of_phases(size, &waiting, ranks, question.phases) + beside
        }
        _ => phases * replicas,
    }
}

impl Bill {
    /// For questions that differ by their grain or their collective, of noise of this size, with blame if it is asked for.
    pub(super) fn new(questions: &[Question], ranks: &[u64], size: NoiseSize, blame: Option<BlamePart>) -> Self {
        let most = ranks.iter().copied().max().unwrap_or(1);
        let longest =
            questions.iter().max_by(|a, b| steps_of_row(&size, a, most).total_cmp(&steps_of_row(&size, b, most)));
        let mut bill = Self {
            steps: 0.0,
            size,
            phases: longest.map_or(1, |question| question.phases),
            collective: longest.map_or(Collective::Ideal, |question| question.collective),
            rounds: longest.map_or(0, |longest| longest.collective.rounds(most, longest.bytes, longest.per_node)),
            ranks: most,
            blame,
        };
        for question in questions {
            let rows: f64 = ranks.iter().map(|ranks| steps_of_row(&size, question, *ranks)).sum();
            bill.steps += bill.steps_of_table(question) + rows + bill.steps_of_blame(question, ranks);
        }
        bill
    }

    /// All of these together; where it takes long, that with most steps says why.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn of_all(bills: Vec<Self>) -> Self {
        let steps = bills.iter().map(|bill| bill.steps).sum();
        let longest = bills.into_iter().max_by(|a, b| a.steps.total_cmp(&b.steps)).expect("there is one");
        Self { steps, ..longest }
    }

    /// The steps of the tables of one question; collectives with messages need none.
    pub(super) fn steps_of_table(&self, question: &Question) -> f64 {
        if question.collective == Collective::Ideal { part::TABLED * self.size.detours } else { 0.0 }
    }

    /// The same with the search for what is tolerated, if it is asked for.
    pub(super) fn tolerating(mut self, asked: bool, questions: &[Question], ranks: &[u64]) -> Self {
        if asked {
            self.steps += questions.iter().map(|question| self.steps_of_tolerance(question, ranks)).sum::<f64>();
        }
        self
    }

    /// The part of it that is the search for what is tolerated, for one of the questions.
    pub(super) fn steps_of_tolerance(&self, question: &Question, ranks: &[u64]) -> f64 {
        let row = |ranks: &u64| steps_of_row(&self.size, question, *ranks);
        let most = ranks.iter().map(row).fold(0.0, f64::max);
        let cut = |ranks: &u64| part::TRIED_LENGTHS * (self.steps_of_table(question) + row(ranks));
        part::TRIED_RANKS * most + ranks.iter().map(cut).sum::<f64>()
    }

    /// The part of it that is blame, for one of the questions.
    pub(super) fn steps_of_blame(&self, question: &Question, ranks: &[u64]) -> f64 {
        self.blame.map_or(0.0, |blame| {
            let rows: f64 = ranks.iter().map(|ranks| steps_of_row(&self.size, question, *ranks)).sum();
            let tables = self.steps_of_table(question) + part::BOOKED * self.size.detours;
            blame.predictions() * rows + blame.tables() * tables
        })
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
        let other = match self.collective {
            Collective::Alltoall(_) | Collective::Allreduce(_) if self.rounds >= self.ranks / 2 => {
                let name =
                    if matches!(self.collective, Collective::Alltoall(_)) { "alltoall:bruck" } else { "allreduce" };
                format!(", or {name}, whose rounds grow with the logarithm of the ranks only")
            }
            _ => String::new(),
        };
        let (phases, ranks) = (Count::new(self.phases), RankCount::new(self.ranks));
        let job = format!("{phases} phases of {ranks} ranks with the collective {}", self.collective);
        let job = format!("{job} would take about {about} on one core");
        let refusal = match fitting {
            0 => Wording::new("{}: ask for fewer ranks{}; {allow_long!} begins all the same").with(job),
            fitting => Wording::new(
                "{}: {phases=} would take about {}; or ask for fewer ranks{}; {allow_long!} begins all the same",
            )
            .with(job)
            .with(fitting)
            .with(self::about(TOLD)),
        };
        LengthVerdict::TooLong(refusal.with(other))
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

    const SPARSE: NoiseSize = NoiseSize { detours: 1e3, density: 1e-8, recorded: false };

    #[test]
    fn only_what_takes_long_is_refused() {
        let verdict = |collective, phases, ranks| {
            Bill::new(&[question(collective, phases)], &[64, ranks], SPARSE, None).verdict()
        };
        assert_eq!(verdict("ideal", 300_000, 1 << 20), LengthVerdict::Short);
        assert_eq!(verdict("barrier", 100, 1 << 14), LengthVerdict::Short);
        let LengthVerdict::Long(text) = verdict("barrier", 1_000, 1 << 16) else { panic!("it takes minutes") };
        assert!(text.contains("112 seconds"), "{text}");
        let LengthVerdict::TooLong(text) = verdict("alltoall", 10_000, 1 << 16) else { panic!("it is quadratic") };
        let text = text.shown(option);
        let fix = "ask for fewer ranks, or alltoall:bruck, whose rounds grow with the logarithm of the ranks only; --allow-long begins all \
                   the same";
        assert!(text.ends_with(&format!(" would take about 99 days on one core: {fix}")), "{text}");
        let LengthVerdict::TooLong(text) = verdict("barrier", 1_000_000, 1 << 16) else { panic!("it takes days") };
        let (text, fix) = (
            text.shown(option),
            " would take about 5 seconds; or ask for fewer ranks; --allow-long begins all the same",
        );
        assert!(text.contains(" on one core: --phases ") && text.ends_with(fix), "{text}");
        let LengthVerdict::TooLong(text) = verdict("ideal", u64::MAX, 64) else { panic!("it takes years") };
        assert!(text.shown(option).contains("years"), "{text}");
    }

    /// What is told before it begins, for the inputs that used to take long without a word.
    #[test]
    fn dense_noise_tables_and_blame_are_on_the_bill() {
        let seconds = |question: &Question, ranks: &[u64], size, blame| {
            Bill::new(std::slice::from_ref(question), ranks, size, blame).steps() / STEPS_A_SECOND
        };
        // 18 kHz of 50 us over a circle of 3.6 s, a grain of 1 s: the end of each grain is searched.
        let dense = NoiseSize { detours: 65_536.0, density: 18e-6, recorded: false };
        let long = Question { grain: Nanos::from_secs(1), ..question("ideal", 10_000) };
        assert!(seconds(&long, &[64], dense, None) < 2.0);
        let barrier = Question { replicas: 1, ..question("barrier", 1_000) };
        let long = Question { grain: Nanos::from_secs(1), ..barrier };
        let factor = seconds(&long, &[1 << 10], dense, None) / seconds(&barrier, &[1 << 10], SPARSE, None);
        assert!((2.0..5.0).contains(&factor), "{factor}");
        // One offset for all costs the drawing of them alone.
        let together = Question { synchronized: true, ..question("ideal", 10_000) };
        assert!(seconds(&together, &[1 << 20], SPARSE, None) < 2.0);
        // 600,000 detours in 40 s of two CPUs.
        let recording = NoiseSize { detours: 6e5, density: 15e-6, recorded: false };
        let ranks = [64, 1 << 10, 1 << 14, 1 << 20];
        let row = seconds(&question("ideal", 10_000), &ranks, recording, None);
        let books = Some(BlamePart { sources: 60, steps: 3, books: true });
        let blame = seconds(&question("ideal", 10_000), &ranks, recording, books);
        assert!((0.5..6.0).contains(&row) && (5.0..40.0).contains(&blame), "{row} {blame}");
    }

    #[test]
    fn steps_of_ranks_that_share_a_card_cost_more_but_those_of_hardware() {
        let silent = NoiseSize { detours: 0.0, density: 0.0, recorded: false };
        let steps = |collective, per_node| {
            let question = Question { per_node, grain: Nanos::ZERO, ..question(collective, 10) };
            Bill::new(&[question], &[1 << 10], silent, None).steps()
        };
        assert!(steps("barrier", 2) > 6.0 * steps("barrier", 1));
        assert_eq!(steps("barrier:hardware", 2), steps("barrier:hardware", 1));
    }

    /// With messages, a replica with cut detours and a job that only waits.
    #[test]
    fn what_another_recording_would_give_is_on_the_bill() {
        let steps = |recorded| {
            let size = NoiseSize { recorded, ..SPARSE };
            Bill::new(&[question("allreduce", 100)], &[1 << 12], size, None).steps()
        };
        let factor = steps(true) / steps(false);
        assert!((1.2..1.5).contains(&factor), "{factor}");
    }

    #[test]
    fn blame_costs_a_prediction_for_each_source_and_step() {
        let steps = |blame| Bill::new(&[question("barrier", 10)], &[64], SPARSE, blame).steps();
        let part = |books| Some(BlamePart { sources: 3, steps: 5, books });
        let silent = NoiseSize { detours: 0.0, density: 0.0, recorded: false };
        let silently = |blame| Bill::new(&[question("barrier", 10)], &[64], silent, blame).steps();
        assert_eq!(silently(part(false)), 11.0 * silently(None));
        assert_eq!(silently(part(true)), 8.0 * silently(None));
        assert!(steps(part(false)) > steps(part(true)));
    }
}
