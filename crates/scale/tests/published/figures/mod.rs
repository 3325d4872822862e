//! Published figures, each beside ours: what a paper says, the input that stands for what it did, and what comes of it. A
//! benchmark has the same list, for what takes too long for a test.

mod b07;
mod d09;
pub mod page;
pub mod sources;
mod t07;

use std::collections::HashMap;

use becalm_scale::collective::Collective;
use becalm_scale::network::Network;
use becalm_scale::predict::{Prediction, Question};
use becalm_scale::spec::NoiseSpec;
use becalm_scale::{NodeNoise, Noise, NoiseTrace};
use becalm_units::Nanos;

use self::sources::Jitter;

/// What a figure counts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Unit {
    Times,
    Percent,
    Micros,
    Millis,
    Detours,
    Number,
}

/// What a paper says, in the figure's unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Published {
    /// A number, which counts as found within 10 % of it.
    Is(f64),
    /// A number that the paper gives with an "about", which counts as found within 25 %.
    About(f64),
    AtMost(f64),
    AtLeast(f64),
    Between(f64, f64),
    /// A number that becalm's model was made from. To find it again shows nothing.
    ByConstruction(f64),
    /// The paper did it, and prints no number of it.
    Unknown,
}

/// The noise of an input.
#[derive(Clone, PartialEq, Debug)]
pub enum Source {
    /// A formula, as `becalm predict` reads it.
    Formula(String),
    /// Traces drawn from the table of sources of De et al. 2009.
    Jitter(Jitter),
}

/// What a prediction is asked.
#[derive(Clone, Debug)]
pub struct Input {
    pub source: Source,
    pub question: Question,
    pub ranks: u64,
}

/// What a prediction answered.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub noisy_ns: f64,
    pub quiet_ns: f64,
}

impl Answer {
    fn added_ns(&self) -> f64 {
        self.noisy_ns - self.quiet_ns
    }
}

/// What is read off the answers of one or two inputs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reading {
    /// Mean phase by that without noise.
    Slowdown,
    /// The same above 1, in percent.
    Added,
    /// The time added to a phase, in microseconds.
    AddedMicros,
    /// The time added to a phase, in milliseconds.
    AddedMillis,
    /// The time of a phase without noise, in milliseconds.
    QuietMillis,
    /// The time added to a phase, in detours of so many microseconds.
    Detours(f64),
    /// The time added to a phase of the first input, by that of the second.
    AddedRatio,
    /// The time of a phase of the first input without noise, by that of the second.
    QuietRatio,
}

impl Reading {
    fn value(self, answers: &[Answer]) -> f64 {
        let first = &answers[0];
        match self {
            Self::Slowdown => first.noisy_ns / first.quiet_ns,
            Self::Added => 100.0 * first.added_ns() / first.quiet_ns,
            Self::AddedMicros => first.added_ns() / 1e3,
            Self::AddedMillis => first.added_ns() / 1e6,
            Self::QuietMillis => first.quiet_ns / 1e6,
            Self::Detours(micros) => first.added_ns() / 1e3 / micros,
            Self::AddedRatio => first.added_ns() / answers[1].added_ns(),
            Self::QuietRatio => first.quiet_ns / answers[1].quiet_ns,
        }
    }

    const fn unit(self) -> Unit {
        match self {
            Self::Slowdown | Self::AddedRatio | Self::QuietRatio => Unit::Times,
            Self::Added => Unit::Percent,
            Self::AddedMicros => Unit::Micros,
            Self::AddedMillis | Self::QuietMillis => Unit::Millis,
            Self::Detours(_) => Unit::Detours,
        }
    }
}

/// Where our number comes from.
#[derive(Clone, Debug)]
pub enum Ours {
    /// Replays.
    Replayed(Reading, Vec<Input>),
    /// The answer of the noise law.
    Law(Unit, f64),
}

/// A line of the table.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Where it stands: the paper, and its section, figure or table.
    pub paper: &'static str,
    pub place: &'static str,
    pub what: &'static str,
    pub published: Published,
    pub ours: Ours,
    /// Between which numbers ours must be: it is meant to be seen when a change moves it.
    pub band: (f64, f64),
    /// Why it does not come out, or what is to be known about it; nothing for most that come out.
    pub note: &'static str,
    /// Whether it takes too long for a test.
    pub long: bool,
}

impl Figure {
    pub fn unit(&self) -> Unit {
        match &self.ours {
            Ours::Replayed(reading, _) => reading.unit(),
            Ours::Law(unit, _) => *unit,
        }
    }

    /// Our number.
    pub fn find(&self, answers: &mut Answers) -> f64 {
        match &self.ours {
            Ours::Replayed(reading, inputs) => {
                let answers: Vec<Answer> = inputs.iter().map(|input| answers.answer(input)).collect();
                reading.value(&answers)
            }
            Ours::Law(_, number) => *number,
        }
    }
}

/// Answers by their inputs, as several figures are read off one.
#[derive(Default)]
pub struct Answers(HashMap<String, Answer>);

impl Answers {
    fn answer(&mut self, input: &Input) -> Answer {
        *self.0.entry(input.to_string()).or_insert_with(|| input.answer())
    }
}

impl Input {
    fn answer(&self) -> Answer {
        let noise = self.source.noise();
        let prediction = Prediction::new(&noise, self.question).expect("a question that can be asked");
        let row = prediction.row(self.ranks).expect("ranks that fit the question");
        Answer { noisy_ns: row.mean_phase_ns.expect("few enough ranks to replay"), quiet_ns: row.quiet_phase_ns }
    }
}

/// As the arguments of `becalm predict`, where it can be asked there.
impl std::fmt::Display for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Question { grain, phases, collective, bytes, per_node, synchronized, seed, replicas, .. } = self.question;
        match &self.source {
            Source::Formula(formula) => write!(f, "{formula}")?,
            Source::Jitter(jitter) => write!(f, "{jitter}")?,
        }
        let ranks = self.ranks;
        write!(f, " --ranks {ranks} --ranks-per-node {per_node} --grain {grain} --collective {collective}")?;
        if collective != Collective::Ideal {
            write!(f, " --bytes {bytes} --network bgl")?;
        }
        write!(f, " --phases {phases} --replicas {replicas} --seed {seed}{}", if synchronized { " --sync" } else { "" })
    }
}

impl Source {
    pub fn noise(&self) -> Noise {
        match self {
            Self::Formula(formula) => {
                let trace = formula.parse::<NoiseSpec>().and_then(|spec| spec.trace(1)).expect("a formula that holds");
                Noise::apart(formula, trace)
            }
            Self::Jitter(jitter) => {
                let detours = jitter.drawn().into_iter().map(|(start, duration, _)| (start, duration));
                let trace = NoiseTrace::new(jitter.length(), detours.collect::<Vec<_>>()).expect("drawn apart");
                Noise::recorded(vec![NodeNoise::new("node", vec![trace]).expect("one CPU")]).expect("one node")
            }
        }
    }
}

/// Blue Gene/L, as the sources of its preset have it.
pub fn blue_gene() -> Network {
    "bgl".parse().expect("a preset")
}

/// All lines in the order of the page, each with its name: the paper's letter, and its number among that paper's.
pub fn numbered() -> Vec<(String, Figure)> {
    let papers = [b07::figures(), d09::figures(), t07::figures()];
    let named = |(letter, figures): (char, Vec<Figure>)| {
        (1..).zip(figures).map(move |(number, figure)| (format!("{letter}{number}"), figure))
    };
    ['B', 'D', 'T'].into_iter().zip(papers).flat_map(named).collect()
}

/// One periodic detour, as B07 injects it.
pub fn periodic(interval: &str, detour: &str) -> Source {
    Source::Formula(format!("periodic:interval={interval},detour={detour}"))
}

/// An ideal collective after each grain.
pub fn ideal(source: Source, grain: Nanos, ranks: u64, phases: u64, replicas: u64) -> Input {
    let collective = Collective::Ideal;
    let network = blue_gene();
    let question =
        Question { grain, phases, collective, network, bytes: 8, per_node: 1, synchronized: false, seed: 1, replicas };
    Input { source, question, ranks }
}
