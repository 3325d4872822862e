//! What a recording says in a few sentences, the same in the text, on the page and in the document: how much is lost, how
//! long at most, what that costs a program of many ranks, and by what.

use becalm_analyze::summary::{CostAtScale, SourceSummary, Summary};
use becalm_model::carried::TICK;
use becalm_model::{Kind, remedy};
use becalm_units::{Count, plural};
use serde::Serialize;

use crate::Value;
use crate::form::value::{factor, grouped, time};

/// How many causes are named.
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
    /// What one costs on average, with all that follows from it.
    pub(crate) whole_mean_ns: Option<f64>,
    pub(crate) whole_ns: i64,
    /// The longest at once.
    pub(crate) max_ns: Option<i64>,
    /// How many times as long the program takes without it that stands in [`Conclusion::at_scale`].
    pub(crate) without_slowdown_ratio: Option<f64>,
    pub(crate) advice: Option<&'static str>,
    /// The ranks of that program.
    #[serde(skip)]
    ranks: u64,
}

/// What the noise costs a program whose ranks wait for each other again and again.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Scaled {
    pub(crate) ranks: u64,
    pub(crate) grain_ns: i64,
    /// How many times as long it takes.
    pub(crate) slowdown_ratio: f64,
    /// The 95 % interval of what another recording would say; `None` of a summary form, which does not say.
    pub(crate) slowdown_low: Option<f64>,
    /// Its upper end; `None` where the recording does not bound it.
    pub(crate) slowdown_high: Option<f64>,
    /// An event that comes less often than once in this on each CPU may be missing in the recording; `None` where such events would hit
    /// few of the program's phases.
    pub(crate) missed_every_ns: Option<i64>,
    /// The share of the phases that it would hit.
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

    /// What another recording would say, behind the figure.
    fn interval(&self) -> String {
        let missed = self.missed_every_ns.zip(self.missed_phases_ratio).map(|(every, phases)| missed(every, phases));
        let Some(low) = self.slowdown_low else {
            return missed.map_or_else(String::new, |missed| format!(" (at least; {missed})"));
        };
        let upper = match (self.slowdown_high, missed) {
            (Some(high), _) => return format!(" (another recording: {} to {})", factor(low), factor(high)),
            (None, Some(missed)) => missed,
            (None, None) => "this one is too short to say how much more".to_owned(),
        };
        format!(" (another recording: at least {}; {upper})", factor(low))
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
    /// `None` where it is not known.
    pub(crate) at_scale: Option<Scaled>,
    /// Why it is not known.
    pub(crate) at_scale_missing: Option<String>,
    /// The causes without which that program gains most, the most rewarding first; where that is not known, or equal, those
    /// that cost most as a whole.
    pub(crate) causes: Vec<Cause<'a>>,
    /// The cause of the longest activity, where it is not among those above.
    pub(crate) longest: Option<Cause<'a>>,
    /// What becalm itself took, which is not in the figures.
    pub(crate) self_ratio: Option<f64>,
    pub(crate) self_longest_ns: Option<i64>,
}

impl Cause<'_> {
    fn new<'a>(source: &'a SourceSummary, scaled: Option<&CostAtScale>, summary: &Summary) -> Cause<'a> {
        // A source that is always charged to another one has no total of its own, and nothing removes it alone.
        let is_root = source.whole_ns > 0;
        let scaled = scaled.filter(|_| is_root);
        let machines = summary.nodes.iter().map(|node| &node.doc.machine);
        Cause {
            kind: source.kind,
            source: &source.source,
            share_ratio: source.share.filter(|_| is_root),
            count: source.times.count(),
            whole_mean_ns: source.whole_mean_ns().filter(|_| is_root),
            whole_ns: source.whole_ns,
            max_ns: source.times.max(),
            without_slowdown_ratio: scaled.map(|scaled| scaled.without(source.kind, &source.source)),
            advice: remedy::advice(source.kind, &source.source, machines, timers_tick(source, summary))
                .filter(|_| is_root),
            ranks: scaled.map_or(0, |scaled| scaled.ranks),
        }
    }

    /// Its share, how often it came, what each cost and what is left at scale without it:
    /// `41.5% of it, 5,229 times, 34.0us each; without it 1,024 ranks take 1.31 times as long`. Of a source that another one
    /// raises: `41 times, always charged to another source`.
    pub(crate) fn figures(&self) -> String {
        let times = if self.count == 1 { "time" } else { "times" };
        if self.whole_ns == 0 {
            return format!("{} {times}, always charged to another source", grouped(self.count));
        }
        let each = self.whole_mean_ns.map_or_else(String::new, |mean| format!(", {} each", Value::time(mean).cell()));
        let share = Value::Share(self.share_ratio.unwrap_or(0.0)).cell();
        let left = self.without_slowdown_ratio.map_or_else(String::new, |left| {
            format!("; without it {} take {} times as long", ranks_text(self.ranks), factor(left))
        });
        format!("{share} of it, {} {times}{each}{left}", grouped(self.count))
    }

    /// Its kind and its name.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.kind, self.source)
    }
}

impl<'a> Conclusion<'a> {
    pub(crate) fn from_run(summary: &'a Summary) -> Self {
        let total = &summary.total;
        let scaled = summary.at_scale.as_ref();
        let cause = |source: &'a SourceSummary| Cause::new(source, scaled.ok(), summary);
        // Sources stand in the order of their whole time, which decides where nothing else does.
        let mut roots: Vec<&SourceSummary> = summary.sources.iter().filter(|source| source.whole_ns > 0).collect();
        if let Ok(scaled) = scaled {
            let left = |source: &SourceSummary| scaled.without(source.kind, &source.source);
            roots.sort_by(|a, b| left(a).total_cmp(&left(b)));
        }
        let causes: Vec<Cause<'_>> = roots.into_iter().take(CAUSES).map(cause).collect();
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
            longest: longest.filter(|source| !named(source)).map(cause),
            at_scale: scaled.ok().map(Scaled::new),
            at_scale_missing: scaled.err().map(ToString::to_string),
            causes,
            self_ratio: total.own_ratio(),
            self_longest_ns: total.own_longest_ns,
        }
    }

    /// What the noise costs a program of many ranks, in a sentence; `None` where there is nothing to lose.
    pub(crate) fn scale(&self) -> Option<String> {
        if self.causes.is_empty() {
            return None;
        }
        Some(match (&self.at_scale, &self.at_scale_missing) {
            (Some(scaled), _) => format!(
                "A program whose {} wait for each other after every {} of work takes {} times as long with this noise{}.",
                ranks_text(scaled.ranks),
                time(scaled.grain_ns),
                factor(scaled.slowdown_ratio),
                scaled.interval()
            ),
            (None, missing) => format!(
                "What it costs a program of many ranks is not known: {}. So the causes stand in the order of their time.",
                missing.as_deref().unwrap_or_default()
            ),
        })
    }

    /// What becalm took, in a sentence; `None` where it took nothing, or nobody could see it.
    pub(crate) fn own(&self) -> Option<String> {
        let ratio = self.self_ratio.filter(|ratio| *ratio > 0.0)?;
        let longest = self.self_longest_ns.map_or_else(String::new, |ns| format!(", at most {} at once", time(ns)));
        Some(format!(
            "becalm's own threads took {} of the time{longest}; that is in none of these figures (--with-self counts it)",
            Value::Ratio(ratio).cell()
        ))
    }
}

/// What a recording may have missed, in a clause: events rarer than this could hit such a share of the phases.
#[must_use]
pub fn missed(every_ns: i64, phases_ratio: f64) -> String {
    format!(
        "events rarer than once in {} per CPU may be missing and could hit up to {} of the phases",
        time(every_ns),
        Value::Share(phases_ratio).cell()
    )
}

/// Whether timer interrupts without a name may be the tick: not if the recording names its ticks, or if they come too often.
fn timers_tick(source: &SourceSummary, summary: &Summary) -> bool {
    let has_ticks = summary.sources.iter().any(|source| (source.kind, source.source.as_str()) == (Kind::Irq, TICK));
    let cpus = summary.nodes.iter().flat_map(|node| &node.doc.cpus);
    let seconds: f64 = cpus.map(|cpu| cpu.duration_ns.as_secs_f64()).sum();
    // A killed recording may not say how long it observed, and then nothing contradicts the tick.
    let rate_hz = if seconds > 0.0 { source.times.count() as f64 / seconds } else { 0.0 };
    !has_ticks && remedy::may_be_the_tick(rate_hz, summary.nodes.iter().map(|node| &node.doc.machine))
}

/// A number of ranks in words.
fn ranks_text(ranks: u64) -> String {
    format!("{} {}", Count::new(ranks), plural(ranks, "rank", "ranks"))
}

fn sentence(summary: &Summary) -> String {
    let total = &summary.total;
    let (Some(noise), Some(long)) = (total.noise_ratio(), total.long_noise_ratio()) else {
        return "How much time is lost cannot be said: it is not known how long the loops ran.".to_owned();
    };
    let Some(longest) = total.durations.max() else {
        return "Nothing is lost: no detour was seen.".to_owned();
    };
    format!(
        "{} of the time is lost ({} in detours of 1 us and more), at most {} at once.",
        Value::Ratio(noise).cell(),
        Value::Ratio(long).cell(),
        time(longest)
    )
}
