//! The conclusion of a recording, the same in the text, on the page and in the document: the lost time, the longest interruption, the cost for a
//! program of many ranks, and the causes.

use becalm_analyze::summary::{CostAtScale, SourceSummary, Summary};
use becalm_model::carried::TICK;
use becalm_model::{Kind, remedy};
use becalm_units::{Count, Nanos, plural};
use serde::Serialize;

use crate::Value;
use crate::form::value::{grouped, three_digits, time};

/// The number of causes named.
const CAUSES: usize = 3;

/// A cause of noise, with all that goes with it.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Cause<'a> {
    pub(crate) kind: Kind,
    pub(crate) source: &'a str,
    /// Of the noise.
    pub(crate) share_ratio: Option<f64>,
    pub(crate) count: u64,
    /// The average total of one.
    pub(crate) whole_mean_ns: Option<f64>,
    pub(crate) whole_ns: i64,
    /// The longest at once.
    pub(crate) max_ns: Option<i64>,
    /// The slowdown of the program of [`Conclusion::at_scale`] without it.
    pub(crate) without_slowdown_ratio: Option<f64>,
    pub(crate) advice: Option<&'static str>,
    /// The ranks of that program.
    #[serde(skip)]
    ranks: u64,
}

/// The cost of the noise for a program with ranks that wait for each other.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Scaled {
    pub(crate) ranks: u64,
    pub(crate) grain_ns: i64,
    /// Its slowdown.
    pub(crate) slowdown_ratio: f64,
    /// The lower end of the 95 % CI over other recordings; `None` of a summary form.
    pub(crate) slowdown_low: Option<f64>,
    /// The upper end; `None` if the recording does not bound it.
    pub(crate) slowdown_high: Option<f64>,
    /// Events rarer than once in this time on each CPU may be missing in the recording; `None` if such events would hit few of the program's
    /// phases.
    pub(crate) missed_every_ns: Option<i64>,
    /// The share of the phases that they would hit.
    pub(crate) missed_phases_ratio: Option<f64>,
}

impl Scaled {
    fn new(scaled: &CostAtScale) -> Self {
        Self {
            ranks: scaled.ranks,
            grain_ns: scaled.grain.get(),
            slowdown_ratio: scaled.slowdown,
            slowdown_low: scaled.recording.map(|ends| ends.low),
            slowdown_high: scaled.recording.and_then(|ends| ends.high),
            missed_every_ns: scaled.missed.map(|missed| missed.every.get()),
            missed_phases_ratio: scaled.missed.map(|missed| missed.phases),
        }
    }

    /// The interval over other recordings, for use after the figure.
    fn interval(&self) -> String {
        let missed = self.missed_every_ns.zip(self.missed_phases_ratio).map(|(every, phases)| missed(every, phases));
        let Some(low) = self.slowdown_low else {
            return missed.map_or_else(String::new, |missed| format!(" (at least; {missed})"));
        };
        let upper = match (self.slowdown_high, missed) {
            (Some(high), _) => {
                return format!(" (95 % CI {} to {})", two_decimals(low), two_decimals(high));
            }
            (None, Some(missed)) => missed,
            (None, None) => "this one is too short to say how much more".to_owned(),
        };
        format!(" (95 % CI from {}; {upper})", two_decimals(low))
    }
}

/// The conclusion of a recording.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Conclusion<'a> {
    /// How much is lost, and how long at most at once.
    pub(crate) sentence: String,
    pub(crate) noise_ratio: Option<f64>,
    /// The same in detours of 1 us and more.
    pub(crate) noise_1us_ratio: Option<f64>,
    pub(crate) max_ns: Option<i64>,
    /// The time of 1 ms of work that 99 of 100 pieces do not exceed.
    pub(crate) work_1ms_p99_ns: Option<i64>,
    /// `None` if it is not known.
    pub(crate) at_scale: Option<Scaled>,
    /// Why it is not known.
    pub(crate) at_scale_missing: Option<String>,
    /// The causes with the largest totals, the largest first.
    pub(crate) causes: Vec<Cause<'a>>,
    /// The cause of the longest activity, if it is not among those above.
    pub(crate) longest: Option<Cause<'a>>,
    /// The time of becalm itself, which is in no other figure.
    pub(crate) self_ratio: Option<f64>,
    pub(crate) self_longest_ns: Option<i64>,
}

impl Cause<'_> {
    fn new<'a>(source: &'a SourceSummary, scaled: Option<&CostAtScale>, summary: &Summary) -> Cause<'a> {
        // A source that is always charged to another one has no total of its own, and nothing removes it alone.
        let is_root = source.whole_ns > 0;
        let scaled = scaled.filter(|_| is_root);
        Cause {
            kind: source.kind,
            source: &source.source,
            share_ratio: source.share.filter(|_| is_root),
            count: source.times.count(),
            whole_mean_ns: source.whole_mean_ns().filter(|_| is_root),
            whole_ns: source.whole_ns,
            max_ns: source.times.max(),
            without_slowdown_ratio: scaled.map(|scaled| scaled.without(source.kind, &source.source)),
            advice: Conclusion::advice(source, summary),
            ranks: scaled.map_or(0, |scaled| scaled.ranks),
        }
    }

    /// Its share, its count, its cost per occurrence and the slowdown at scale without it:
    /// `41.5% of noise, 5,229 times, 34.0us each; without it 1,024 processes take 1.31 times as long`. For a source that another one
    /// raises: `41 times, always charged to another source`.
    pub(crate) fn figures(&self) -> String {
        let times = if self.count == 1 { "time" } else { "times" };
        if self.whole_ns == 0 {
            return format!("{} {times}, always charged to another source", grouped(self.count));
        }
        let each = self.whole_mean_ns.map_or_else(String::new, |mean| format!(", {} each", Value::time(mean).cell()));
        let share = Value::Share(self.share_ratio.unwrap_or(0.0)).cell();
        let left = self.without_slowdown_ratio.map_or_else(String::new, |left| {
            format!("; without it {} take {} times as long", processes(self.ranks), two_decimals(left))
        });
        format!("{share} of noise, {} {times}{each}{left}", grouped(self.count))
    }

    /// Its kind and its name.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.kind, self.source)
    }
}

impl<'a> Conclusion<'a> {
    pub(crate) fn from_run(summary: &'a Summary) -> Self {
        let total = &summary.total;
        let (scaled, missing) = match &summary.at_scale {
            Some(Ok(scaled)) => (Some(scaled), None),
            Some(Err(missing)) => (None, Some(missing.to_string())),
            None => (None, None),
        };
        let cause = |source: &'a SourceSummary| Cause::new(source, scaled, summary);
        let roots = summary.sources.iter().filter(|source| source.whole_ns > 0);
        let causes: Vec<Cause<'_>> = roots.take(CAUSES).map(cause).collect();
        let longest =
            summary.sources.iter().filter(|source| source.kind != Kind::Edge).max_by_key(|source| source.times.max());
        let named = |source: &&SourceSummary| {
            causes.iter().any(|cause| cause.kind == source.kind && cause.source == source.source)
        };
        Self {
            sentence: sentence(summary),
            noise_ratio: total.noise_ratio(),
            noise_1us_ratio: total.long_noise_ratio(),
            max_ns: total.durations.max(),
            work_1ms_p99_ns: total.work_p99_ns,
            longest: longest.filter(|source| !named(source)).map(cause),
            at_scale: scaled.map(Scaled::new),
            at_scale_missing: missing,
            causes,
            self_ratio: total.own_ratio(),
            self_longest_ns: total.own_longest_ns,
        }
    }

    /// The fix for a source and everything charged to it; `None` if none is known, or if it is charged to another source.
    pub(crate) fn advice(source: &SourceSummary, summary: &Summary) -> Option<&'static str> {
        let machines = summary.nodes.iter().map(|node| &node.doc.machine);
        let advice = || remedy::advice(source.kind, &source.source, machines, timers_tick(source, summary));
        (source.whole_ns > 0).then(advice).flatten()
    }

    /// The cost of the noise for a program of many ranks, in a sentence; `None` if there is no noise or the cost was not requested.
    pub(crate) fn scale(&self) -> Option<String> {
        if self.causes.is_empty() {
            return None;
        }
        if let Some(missing) = &self.at_scale_missing {
            return Some(format!("The cost for a parallel program is not known: {missing}."));
        }
        self.at_scale.as_ref().map(|scaled| {
            format!(
                "A program with {} that synchronize every {} takes {} times as long with this noise{}.",
                processes(scaled.ranks),
                Nanos::new(scaled.grain_ns),
                two_decimals(scaled.slowdown_ratio),
                scaled.interval()
            )
        })
    }

    /// becalm's own overhead, in a sentence; `None` if it is 0 or could not be measured.
    pub(crate) fn own(&self) -> Option<String> {
        let ratio = self.self_ratio.filter(|ratio| *ratio > 0.0)?;
        let longest = self.self_longest_ns.map_or_else(String::new, |ns| format!(", at most {} at once", time(ns)));
        Some(format!(
            "becalm's own threads took {} of the time{longest}; that is in none of these figures (--with-self counts it)",
            Value::Ratio(ratio).cell()
        ))
    }
}

/// Events that a recording may have missed, in a clause: those rarer than `every_ns` could hit this share of the phases.
pub fn missed(every_ns: i64, phases_ratio: f64) -> String {
    format!(
        "events rarer than once in {} per CPU may be missing and could hit up to {} of the phases",
        time(every_ns),
        Value::Share(phases_ratio).cell()
    )
}

/// Whether unnamed timer interrupts may be the tick: not if the recording names its ticks, or if they are too frequent.
fn timers_tick(source: &SourceSummary, summary: &Summary) -> bool {
    let has_ticks = summary.sources.iter().any(|source| (source.kind, source.source.as_str()) == (Kind::Irq, TICK));
    let cpus = summary.nodes.iter().flat_map(|node| &node.doc.cpus);
    let seconds: f64 = cpus.map(|cpu| cpu.duration_ns.as_secs_f64()).sum();
    // A killed recording may not contain its duration; then nothing contradicts the tick.
    let rate_hz = if seconds > 0.0 { source.times.count() as f64 / seconds } else { 0.0 };
    !has_ticks && remedy::may_be_the_tick(rate_hz, summary.nodes.iter().map(|node| &node.doc.machine))
}

/// A number of ranks in words.
fn processes(ranks: u64) -> String {
    format!("{} {}", Count::new(ranks), plural(ranks, "process", "processes"))
}

/// A slowdown with the precision of an estimate.
fn two_decimals(ratio: f64) -> String {
    if ratio < 99.995 { format!("{ratio:.2}") } else { three_digits(ratio) }
}

fn sentence(summary: &Summary) -> String {
    let total = &summary.total;
    let (Some(noise), Some(long)) = (total.noise_ratio(), total.long_noise_ratio()) else {
        return "How much CPU time was lost is not known because it is not known how long the loops ran.".to_owned();
    };
    let Some(longest) = total.durations.max() else {
        return "No CPU time was lost: no interruption was seen.".to_owned();
    };
    format!(
        "{} of CPU time was lost ({} in interruptions of 1 us and more); the longest took {}.",
        Value::Ratio(noise).cell(),
        Value::Ratio(long).cell(),
        time(longest)
    )
}
