//! Traces drawn from the published tables of sources of De et al. 2009, and from what the paper says beside them.
//!
//! What is assumed: that the unidentified events of its text are in the traces of all configurations; the laws of durations
//! between their published limits; that ticks come at even distances, and all else at random times.

use std::fmt;

use becalm_scale::random::{Purpose, Stream};
use becalm_units::Nanos;

/// A line of the table, in microseconds.
pub struct Source {
    pub name: String,
    pub lowest: f64,
    pub highest: f64,
    pub count: usize,
    pub mean: f64,
    pub stddev: f64,
}

/// How long the table was collected for. The paper can be read in two ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Collected {
    /// As many seconds as its watchdog came, which comes once a second: 23 minutes.
    Watchdog,
    /// The time that a million events take by section 4.1.1. The table has a sixth of a million.
    Million,
}

/// In which time the 450 events of section 4.1.2, which the table lacks, came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unidentified {
    /// They are left out.
    None,
    /// In that of the table.
    WithTable,
    /// In the time of the million events (section 4.1.2): the trace has as many of the 450 as come in the time of the table.
    OfMillion,
}

/// "Approximately 85 minutes" (section 4.1.1).
const MILLION_SECONDS: i64 = 85 * 60;

/// The jitter of one configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Jitter {
    pub configuration: &'static str,
    pub unidentified: Unidentified,
    pub collected: Collected,
}

/// An event of a drawn trace: its start, how long it lasts, and its number among the sources of the table, which what is unidentified comes
/// after.
pub type Event = (Nanos, Nanos, u32);

/// The table's sources under a configuration.
pub fn table(configuration: &str) -> Vec<Source> {
    let table = include_str!("../../../../research/data/de2009_sources.csv");
    let source = |line: &str| {
        let columns: Vec<&str> = line.split(',').collect();
        let number = |column: usize| columns[column].parse::<f64>().expect("the table has numbers");
        Source {
            name: columns[1].to_owned(),
            lowest: number(2),
            highest: number(3),
            count: number(4) as usize,
            mean: number(5),
            stddev: number(6),
        }
    };
    table.lines().filter(|line| line.split(',').next() == Some(configuration)).map(source).collect()
}

/// How many events no source of the table explains (section 4.1.2).
const UNIDENTIFIED: usize = 450;

/// The 450 events of section 4.1.2, which no source of the table explains: of 100 to 1,000 us, and 2.5 % of the jitter of a million
/// events. With the mean of 3.2 us that a million of the table's events have, each took 178 us on average. By a power law between the
/// limits, of which the mean decides the exponent: its quantiles at the middles of `count` equally probable parts, in microseconds.
pub fn unidentified(count: usize) -> Vec<f64> {
    const MEAN: f64 = 0.025 * 1e6 * 3.2 / UNIDENTIFIED as f64;
    let (lowest, highest) = (100.0_f64, 1_000.0_f64);
    let with_exponent = |exponent: f64| -> Vec<f64> {
        let (from, to) = (libm::pow(lowest, -exponent), libm::pow(highest, -exponent));
        let quantile = |part: usize| {
            let share = (part as f64 + 0.5) / count as f64;
            libm::pow(from - share * (from - to), -1.0 / exponent)
        };
        (0..count).map(quantile).collect()
    };
    // The higher the exponent, the lower the mean.
    let (mut low, mut high) = (0.1, 10.0);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if with_exponent(middle).iter().sum::<f64>() / count as f64 > MEAN { low = middle } else { high = middle }
    }
    with_exponent(low)
}

/// Numbers above 0 by a power law that is cut at `highest`, with the given mean and standard deviation: its quantiles at
/// the middles of `count` equally probable parts.
fn power_law(count: usize, mean: f64, stddev: f64, highest: f64) -> Vec<f64> {
    let with_exponent = |exponent: f64| -> Vec<f64> {
        let shape: Vec<f64> = (0..count).map(|part| libm::pow((part as f64 + 0.5) / count as f64, -exponent)).collect();
        // What is cut is made up for by a larger scale.
        let (mut low, mut high) = (-60.0_f64, 30.0_f64);
        for _ in 0..50 {
            let middle = 0.5 * (low + high);
            let scale = libm::exp(middle);
            let reached = shape.iter().map(|value| (value * scale).min(highest)).sum::<f64>() / count as f64;
            if reached < mean { low = middle } else { high = middle }
        }
        let scale = libm::exp(low);
        shape.iter().map(|value| (value * scale).min(highest)).collect()
    };
    let (mut low, mut high) = (0.0, 6.0);
    for _ in 0..30 {
        let middle = 0.5 * (low + high);
        let squares = with_exponent(middle).into_iter().map(|value| (value - mean).powi(2));
        let variance = squares.sum::<f64>() / count as f64;
        if variance < stddev.powi(2) { low = middle } else { high = middle }
    }
    with_exponent(low)
}

impl Source {
    /// Durations that have the table's lowest, highest, count, mean and standard deviation: one of the highest, and the
    /// others above the lowest by a power law. The moments alone do not decide it.
    pub fn durations(&self) -> Vec<f64> {
        if self.count == 1 {
            return vec![self.mean];
        }
        let count = self.count as f64;
        let others_mean = ((self.mean * count - self.highest) / (count - 1.0)).max(self.lowest);
        let squares = self.stddev.powi(2) * count - (self.highest - self.mean).powi(2);
        let others_variance = (squares / (count - 1.0) - (others_mean - self.mean).powi(2)).max(0.0);
        let (above, room) = (others_mean - self.lowest, self.highest - self.lowest);
        let others = if above > 0.0 && others_variance > 0.0 {
            power_law(self.count - 1, above, others_variance.sqrt(), room)
        } else {
            vec![above; self.count - 1]
        };
        others.into_iter().map(|above| self.lowest + above).chain([self.highest]).collect()
    }
}

impl Jitter {
    fn count(self, name: &str) -> i64 {
        let table = table(self.configuration);
        table.iter().find(|source| source.name == name).expect("every configuration has it").count as i64
    }

    /// How long the trace is.
    pub fn length(self) -> Nanos {
        match self.collected {
            Collected::Watchdog => Nanos::from_secs(self.count("watchdog")),
            Collected::Million => Nanos::from_secs(MILLION_SECONDS),
        }
    }

    /// Its events one after another, none while another lasts.
    pub fn drawn(self) -> Vec<Event> {
        let table = table(self.configuration);
        let (length, ticks) = (self.length().get(), self.count("timer"));
        let mut stream = Stream::new(2009, Purpose::Detours, 0);
        let mut drawn: Vec<(i64, i64, u32)> = Vec::new();
        let more = match self.unidentified {
            Unidentified::None => None,
            Unidentified::WithTable => Some(unidentified(UNIDENTIFIED)),
            Unidentified::OfMillion => {
                let share = length as f64 / Nanos::from_secs(MILLION_SECONDS).get() as f64;
                Some(unidentified((UNIDENTIFIED as f64 * share).round() as usize))
            }
        };
        for (number, mut durations) in (0..).zip(table.iter().map(Source::durations).chain(more)) {
            for last in (1..durations.len()).rev() {
                durations.swap(last, stream.below(last as u64 + 1) as usize);
            }
            let name = table.get(number as usize).map_or("", |source| &source.name);
            for (tick, duration) in (0..).zip(durations) {
                let start = match name {
                    "timer" => tick * (length / ticks),
                    _ => stream.below(length as u64 - 10_000_000) as i64,
                };
                drawn.push((start, (duration * 1e3).round() as i64, number));
            }
        }
        drawn.sort_unstable();
        let mut end = 0;
        let apart = |(start, duration, source): (i64, i64, u32)| {
            // What comes while another detour lasts follows it.
            let start = start.max(end);
            end = start + duration;
            (Nanos::new(start), Nanos::new(duration), source)
        };
        drawn.into_iter().map(apart).collect()
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { configuration, unidentified, .. } = self;
        let with = match unidentified {
            Unidentified::None => "",
            Unidentified::WithTable => " and 450 unidentified events",
            Unidentified::OfMillion => " and 450 unidentified events in 5100s",
        };
        write!(f, "(table of {configuration}{with}, {}s)", self.length().get() / 1_000_000_000)
    }
}
