//! Noise from a line of text: the times of detours, their lengths, and sums of several such causes.
//!
//! - `periodic:interval=1ms,detour=50us[,jitter=10us]`: one in each interval;
//! - `poisson:rate=10Hz,detour=50us`: at independent random times;
//! - `ratio=1%` instead of `interval=` or `rate=`: as many as give that share of the time;
//! - `renewal:gap=lognormal:100ms:0.5,detour=50us`: each a gap after the end of the one before;
//! - `sources:FILE,length=1372s[,configuration=NAME]`: a table of sources with their counts within that time;
//! - `A+B`: both on the same CPU. A detour that comes during another one follows it.
//!
//! A length (`detour=`, `gap=`) is a time or a law, [`LengthLaw`].

mod lengths;
pub(crate) mod queue;
mod table;
mod text;

use std::path::{Path, PathBuf};

use becalm_units::Nanos;

pub use self::lengths::{LengthLaw, ReadText, Why};
pub use self::table::{TableSource, sources};

use self::lengths::{Drawable, Files};
use crate::ScaleError;
use crate::coalesce::greatest_common_divisor;
use crate::noise::{LENGTH_LIMIT, NoiseTrace, TraceError};
use crate::random::{Purpose, Stream};

/// Default number of detours on the circle of a random specification: enough that a job of a million ranks meets different ones.
pub const DRAWN: u64 = 1 << 16;

/// Maximum number of detours on a circle: 24 bytes each, and three times as much in tables.
pub const DRAWN_LIMIT: u64 = 1 << 20;

/// Maximum number of detours of one cause that are added to a recording.
const ADDED_LIMIT: i64 = 1 << 26;

/// A formula for noise.
#[derive(Clone, PartialEq, Debug)]
pub enum NoiseSpec {
    /// One detour in each interval.
    Periodic {
        /// From one start to the next, before jitter.
        interval: Nanos,
        /// The length of each detour.
        detour: LengthLaw,
        /// Each start is delayed by 0 to this, every nanosecond with the same probability.
        jitter: Nanos,
    },
    /// Independent detours at a mean rate. One that comes during another one follows it.
    Poisson {
        /// Mean time from one to the next: 1 / rate.
        interval: Nanos,
        /// The length of each detour.
        detour: LengthLaw,
    },
    /// Detours with a gap after the end of the one before.
    Renewal {
        /// From the end of one to the start of the next.
        gap: LengthLaw,
        /// The length of each detour.
        detour: LengthLaw,
    },
    /// A table of sources with detours at independent times.
    Sources {
        /// The file with the table.
        table: PathBuf,
        /// The rows to use, if it has a column `configuration`.
        configuration: Option<String>,
        /// The time that the counts in the table cover.
        length: Nanos,
    },
    /// Several at the same time on one CPU; at least two, none of them a sum.
    Sum(Vec<Self>),
}

/// The seed and the duration for drawing detours.
#[derive(Clone, Copy)]
pub struct Drawing<'r> {
    /// The seed: the same detours for the same seed.
    pub seed: u64,
    /// The number of the circle drawn from that seed, all of them different: 0, 1, ...
    pub number: u32,
    /// The time that all ranks of a job replay together. A circle that varies (see [`NoiseSpec::varies`]) has as many detours as come in that time,
    /// from [`DRAWN`] to [`DRAWN_LIMIT`]: the longest of many is longer than the longest of few, and more come at once.
    pub time: Nanos,
    /// Reads the files that the specification names.
    pub read: ReadText<'r>,
}

impl Drawing<'_> {
    /// The random numbers of one of its parts.
    fn stream(&self, part: u64) -> Stream {
        Stream::new(self.seed, Purpose::Detours, (u64::from(self.number) << 48) + part)
    }
}

/// One cause, with the contents of its files.
enum Cause {
    Periodic { interval: Nanos, detour: Drawable, jitter: Nanos },
    Poisson { interval: Nanos, detour: Drawable },
    Renewal { gap: Drawable, detour: Drawable },
    Sources { length: Nanos, sources: Vec<TableSource> },
}

/// The error in a specification.
enum Problem {
    Trace(TraceError),
    Why(Why),
}

impl NoiseSpec {
    /// Detours of one length at regular times.
    pub const fn periodic(interval: Nanos, detour: Nanos, jitter: Nanos) -> Self {
        Self::Periodic { interval, detour: LengthLaw::Constant(detour), jitter }
    }

    /// Detours of one length at random times, with this mean interval.
    pub const fn poisson(interval: Nanos, detour: Nanos) -> Self {
        Self::Poisson { interval, detour: LengthLaw::Constant(detour) }
    }

    /// Whether a longer circle has longer detours, or more of them together.
    pub fn varies(&self) -> bool {
        match self {
            Self::Periodic { detour, .. } => detour.constant().is_none(),
            Self::Poisson { .. } | Self::Renewal { .. } => true,
            // A table has a fixed number.
            Self::Sources { .. } => false,
            Self::Sum(parts) => parts.iter().any(Self::varies),
        }
    }

    /// The noise as a circle of [`DRAWN`] detours, for a specification without files; see [`NoiseSpec::drawn`].
    pub fn trace(&self, seed: u64) -> Result<NoiseTrace, ScaleError> {
        let read = |path: &Path| Err(format!("{} is not read here", path.display()));
        self.drawn(Drawing { seed, number: 0, time: Nanos::ZERO, read: &read })
    }

    /// The noise as a circle.
    ///
    /// For a periodic cause with detours of one length and without jitter, it is one interval long; for several such causes their least common
    /// multiple, if that is short enough. Everything else is drawn from the seed. Random times are uniform positions, which is the Poisson process
    /// given its count. Fails for an empty interval, negative durations, overlapping detours of one periodic cause of one length (jitter that lets
    /// one interval's reach the next one's), 100 % noise, causes with too different rates, and files that cannot be read.
    pub fn drawn(&self, drawing: Drawing<'_>) -> Result<NoiseTrace, ScaleError> {
        self.circle(drawing).map_err(|problem| self.refused(problem))
    }

    /// A circle with the detours of this specification added, which follow each other where they meet: the losses of a recorded CPU if it had this
    /// cause as well. `number` distinguishes the CPUs, because each has its own detours.
    pub fn added_to(&self, trace: &NoiseTrace, number: u64, drawing: Drawing<'_>) -> Result<NoiseTrace, ScaleError> {
        let added = || {
            let mut arrivals: Vec<(i64, i64)> =
                trace.detours().map(|(start, duration)| (start.get(), duration.get())).collect();
            for (part, cause) in self.causes(drawing.read).map_err(Problem::Why)?.iter().enumerate() {
                let mut stream = drawing.stream((number << 16) + 1 + part as u64);
                arrivals.extend(cause.draw(trace.length(), true, &mut stream).map_err(Problem::Trace)?);
            }
            queue::circle(trace.length(), arrivals).map_err(Problem::Trace)
        };
        added().map_err(|problem| self.refused(problem))
    }

    fn refused(&self, problem: Problem) -> ScaleError {
        let problem = match problem {
            Problem::Trace(error) => error.to_string(),
            Problem::Why(why) => why,
        };
        ScaleError::Formula(self.to_string(), problem)
    }

    fn circle(&self, drawing: Drawing<'_>) -> Result<NoiseTrace, Problem> {
        let causes = self.causes(drawing.read).map_err(Problem::Why)?;
        let rate: f64 = causes.iter().map(|cause| 1.0 / cause.interval_ns()).sum();
        let wanted = if self.varies() { (drawing.time.get() as f64 * rate) as u64 } else { 0 };
        let detours = wanted.clamp(DRAWN, DRAWN_LIMIT);
        if let [cause] = causes.as_slice() {
            let length = cause.length(detours).map_err(Problem::Trace)?;
            let mut stream = drawing.stream(0);
            let drawn = cause.draw(length, false, &mut stream).map_err(Problem::Trace)?;
            let made = match cause {
                // An overlap here is a mistake in the formula.
                Cause::Periodic { detour, .. } if detour.constant_ns().is_some() => NoiseTrace::new(
                    length,
                    drawn.into_iter().map(|(start, duration)| (Nanos::new(start), Nanos::new(duration))),
                ),
                _ => queue::circle(length, drawn),
            };
            return made.map_err(Problem::Trace);
        }
        let length = common_length(&causes, detours)?;
        let mut arrivals = Vec::new();
        for (part, cause) in causes.iter().enumerate() {
            let mut stream = drawing.stream(1 + part as u64);
            arrivals.extend(cause.draw(length, true, &mut stream).map_err(Problem::Trace)?);
        }
        queue::circle(length, arrivals).map_err(Problem::Trace)
    }

    fn causes(&self, read: ReadText<'_>) -> Result<Vec<Cause>, Why> {
        let mut files = Files::default();
        let parts = match self {
            Self::Sum(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        parts.iter().map(|part| part.cause(&mut files, read)).collect()
    }

    fn cause(&self, files: &mut Files, read: ReadText<'_>) -> Result<Cause, Why> {
        Ok(match self {
            Self::Periodic { interval, detour, jitter } => {
                Cause::Periodic { interval: *interval, detour: detour.ready(files, read)?, jitter: *jitter }
            }
            Self::Poisson { interval, detour } => {
                Cause::Poisson { interval: *interval, detour: detour.ready(files, read)? }
            }
            Self::Renewal { gap, detour } => {
                Cause::Renewal { gap: gap.ready(files, read)?, detour: detour.ready(files, read)? }
            }
            Self::Sources { table, configuration, length } => {
                Cause::Sources { length: *length, sources: sources(table, &read(table)?, configuration.as_deref())? }
            }
            Self::Sum(_) => return Err("a sum within a sum".to_owned()),
        })
    }
}

impl Cause {
    /// The length of a circle of this cause alone, with `detours` detours if they are drawn.
    fn length(&self, detours: u64) -> Result<Nanos, TraceError> {
        let length = match self {
            Self::Periodic { interval, .. } if self.exact_interval().is_some() => return Ok(*interval),
            Self::Periodic { interval, .. } | Self::Poisson { interval, .. } => {
                interval.get().checked_mul(detours as i64).map_or(Nanos::MAX, Nanos::new)
            }
            Self::Renewal { .. } => Nanos::new((self.interval_ns() * detours as f64).round() as i64),
            Self::Sources { length, .. } => *length,
        };
        if length <= Nanos::ZERO || length > LENGTH_LIMIT { Err(TraceError::Length(length)) } else { Ok(length) }
    }

    /// The interval, if everything is known without drawing.
    fn exact_interval(&self) -> Option<i64> {
        match self {
            Self::Periodic { interval, detour, jitter } if *jitter == Nanos::ZERO => {
                detour.constant_ns().map(|_| interval.get())
            }
            _ => None,
        }
    }

    /// The mean time from one detour to the next.
    fn interval_ns(&self) -> f64 {
        match self {
            Self::Periodic { interval, .. } | Self::Poisson { interval, .. } => interval.get() as f64,
            Self::Renewal { gap, detour } => gap.mean_ns() + detour.mean_ns(),
            Self::Sources { length, sources } => {
                length.get() as f64 / sources.iter().map(|source| source.count).sum::<usize>().max(1) as f64
            }
        }
    }

    /// Arrivals and durations on a circle, in nanoseconds. If it `is_part` of a sum, a periodic cause starts at a random position in its interval.
    fn draw(&self, length: Nanos, is_part: bool, stream: &mut Stream) -> Result<Vec<(i64, i64)>, TraceError> {
        if length.as_secs_f64() * 1e9 / self.interval_ns() > ADDED_LIMIT as f64 {
            return Err(TraceError::Length(length));
        }
        let length = length.get();
        match self {
            Self::Periodic { interval, detour, jitter } => {
                if *jitter < Nanos::ZERO {
                    return Err(TraceError::Negative { index: 0, start: Nanos::ZERO, duration: *jitter });
                }
                if *interval <= Nanos::ZERO {
                    return Err(TraceError::Length(*interval));
                }
                let interval = interval.get();
                let turns = (length / interval).max(1);
                let first = if is_part { stream.below(interval as u64) as i64 } else { 0 };
                let turn = |turn: i64| {
                    let late = if *jitter == Nanos::ZERO { 0 } else { stream.below(jitter.get() as u64 + 1) as i64 };
                    let start = (first + turn * interval).saturating_add(late);
                    (if is_part { start % length } else { start }, detour.draw(stream))
                };
                Ok((0..turns).map(turn).collect())
            }
            Self::Poisson { interval, detour } => {
                let count = (length as f64 / interval.get().max(1) as f64).round() as u64;
                let mut arrivals: Vec<i64> = (0..count).map(|_| stream.below(length as u64) as i64).collect();
                arrivals.sort_unstable();
                Ok(arrivals.into_iter().map(|arrival| (arrival, detour.draw(stream))).collect())
            }
            Self::Renewal { gap, detour } => {
                let (mut arrivals, mut now) = (Vec::new(), 0_i64);
                loop {
                    // A step of 0 would never end.
                    let start = now.saturating_add(gap.draw(stream).max(0));
                    if start >= length || arrivals.len() as i64 > ADDED_LIMIT {
                        return Ok(arrivals);
                    }
                    let duration = detour.draw(stream);
                    arrivals.push((start, duration));
                    now = start.saturating_add(duration.max(1));
                }
            }
            Self::Sources { length: told, sources } => {
                let laps = length as f64 / told.get().max(1) as f64;
                let mut arrivals = Vec::new();
                for source in sources {
                    let durations = source.drawn_ns(stream);
                    let count = (durations.len() as f64 * laps).round() as usize;
                    arrivals.extend(
                        durations
                            .iter()
                            .cycle()
                            .take(count)
                            .map(|duration| (stream.below(length as u64) as i64, *duration)),
                    );
                }
                Ok(arrivals)
            }
        }
    }
}

/// The length of a circle of several causes: the least common multiple of the intervals of causes that need no drawing, or the longest that any of
/// them would have alone, limited to [`DRAWN_LIMIT`] detours.
fn common_length(causes: &[Cause], detours: u64) -> Result<Nanos, Problem> {
    let rate: f64 = causes.iter().map(|cause| 1.0 / cause.interval_ns()).sum();
    let most = DRAWN_LIMIT as f64 / rate;
    let exact: Vec<i64> = causes.iter().filter_map(Cause::exact_interval).collect();
    if let Some(interval) = exact.iter().find(|interval| **interval <= 0) {
        return Err(Problem::Trace(TraceError::Length(Nanos::new(*interval))));
    }
    let multiple = exact.iter().try_fold(1, |multiple, interval| least_common_multiple(multiple, *interval));
    let multiple = multiple.filter(|multiple| *multiple as f64 <= most);
    if let (Some(multiple), true) = (multiple, exact.len() == causes.len()) {
        return Ok(Nanos::new(multiple));
    }
    let mut wanted = 0;
    for cause in causes {
        let alone = match cause.exact_interval() {
            Some(interval) => Nanos::new(interval.saturating_mul(detours as i64)),
            None => cause.length(detours).map_err(Problem::Trace)?,
        };
        wanted = wanted.max(alone.get());
    }
    let length = (wanted as f64).min(most).min(LENGTH_LIMIT.get() as f64) as i64;
    let rarest = causes.iter().map(Cause::interval_ns).fold(0.0, f64::max);
    if (length as f64) < rarest {
        return Err(Problem::Why(format!(
            "before each of its causes has come once there are more than {DRAWN_LIMIT} detours: leave out the most frequent or the \
             rarest one"
        )));
    }
    // Whole numbers of intervals, if possible.
    Ok(Nanos::new(match multiple {
        Some(multiple) if multiple <= length => length - length % multiple,
        _ => length,
    }))
}

fn least_common_multiple(a: i64, b: i64) -> Option<i64> {
    (a / greatest_common_divisor(a, b)).checked_mul(b).filter(|multiple| *multiple <= LENGTH_LIMIT.get())
}

#[cfg(test)]
mod tests;
