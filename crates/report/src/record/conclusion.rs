//! What a recording says in a few sentences, the same in the text, on the page and in the document: how much is lost, how
//! long at most, and by what.

use becalm_analyze::summary::{SourceSummary, Summary};
use becalm_model::{Kind, remedy};
use serde::Serialize;

use crate::Value;
use crate::form::value::{grouped, time};

/// How many causes are named.
const CAUSES: usize = 3;

/// A cause of noise, with all that goes with it.
#[derive(Serialize)]
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
    pub(crate) advice: Option<&'static str>,
}

/// The conclusion of a recording.
#[derive(Serialize)]
pub(crate) struct Conclusion<'a> {
    /// How much is lost, and how long at most at once.
    pub(crate) sentence: String,
    pub(crate) noise_ratio: Option<f64>,
    /// The same in detours of 1 us and more.
    pub(crate) noise_1us_ratio: Option<f64>,
    pub(crate) max_ns: Option<i64>,
    /// The causes that cost most as a whole, the costliest first.
    pub(crate) causes: Vec<Cause<'a>>,
    /// The cause of the longest activity, where it is not among those above.
    pub(crate) longest: Option<Cause<'a>>,
    /// What becalm itself took, which is not in the figures.
    pub(crate) self_ratio: Option<f64>,
    pub(crate) self_longest_ns: Option<i64>,
}

impl Cause<'_> {
    fn new(source: &SourceSummary) -> Cause<'_> {
        Cause {
            kind: source.kind,
            source: &source.source,
            share_ratio: source.share,
            count: source.times.count(),
            whole_mean_ns: source.whole_mean_ns(),
            whole_ns: source.whole_ns,
            max_ns: source.times.max(),
            advice: remedy::advice(source.kind, &source.source),
        }
    }

    /// Its share, how often it came and what each cost: `41.5% of it, 5,229 times, 34.0 us each`.
    pub(crate) fn figures(&self) -> String {
        let times = if self.count == 1 { "time" } else { "times" };
        let each = self.whole_mean_ns.map_or_else(String::new, |mean| format!(", {} each", Value::time(mean).cell()));
        format!("{} of it, {} {times}{each}", Value::Share(self.share_ratio.unwrap_or(0.0)).cell(), grouped(self.count))
    }

    /// Its kind and its name.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.kind, self.source)
    }
}

impl<'a> Conclusion<'a> {
    pub(crate) fn of_run(summary: &'a Summary) -> Self {
        let total = &summary.total;
        let causes: Vec<Cause<'_>> =
            summary.sources.iter().filter(|source| source.whole_ns > 0).take(CAUSES).map(Cause::new).collect();
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
            longest: longest.filter(|source| !named(source)).map(Cause::new),
            causes,
            self_ratio: total.own_ratio(),
            self_longest_ns: total.own_longest_ns,
        }
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
