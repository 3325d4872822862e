//! The document of an explanation.

use std::collections::BTreeMap;

use becalm_bundle::ThreadRow;
use becalm_model::{Label, Labels};
use becalm_observe::words;
use becalm_report::Value;
use becalm_units::{Nanos, counted, printable};

use crate::causes::{Cause, Class, Side};
use crate::document::{ExplanationDoc, GroupDoc, SideDoc, SourceDoc, SpanCauseDoc, StretchDoc, Verdict, WorstDoc};
use crate::excess::{Excess, ExcessShare, FEWEST, divide};
use crate::joined::{PlacedSpan, SpanCauses};
use crate::lives::Lives;

/// An excess below this share of the ordinary spans is no difference to explain.
const EVEN: f64 = 0.01;
/// A side with this share of the excess explains it.
const MOST: f64 = 0.5;
/// A cause with this share of the excess is named in the sentence.
const NAMED: f64 = 0.1;
/// The longest spans that are shown one by one.
const WORST: usize = 10;
/// The stretches of a span's timeline.
const STRETCHES: usize = 100;

/// Spans with what is known of them.
pub struct Explained<'a> {
    /// The spans, in order of time.
    pub spans: &'a [PlacedSpan],
    /// Their causes.
    pub found: &'a SpanCauses,
    /// The lives of their threads.
    pub lives: &'a Lives,
    /// The threads of the recording.
    pub threads: &'a [ThreadRow],
    /// The names in the spans.
    pub names: &'a Labels,
    /// The share of slow spans.
    pub slowest: f64,
}

/// A cause as reports show it.
pub fn shown(cause: &Cause) -> String {
    let source = || printable(&cause.source).into_owned();
    match cause.class {
        Class::Ran => "the program".to_owned(),
        Class::Call => format!("system call {}", source()),
        Class::OwnWork => source().replace('_', " "),
        Class::OnTheWay => "way to a CPU".to_owned(),
        Class::Host => "hypervisor".to_owned(),
        Class::Stopped => "stopped by a signal".to_owned(),
        Class::Unknown => "not known".to_owned(),
        Class::Asleep => {
            let place = match cause.source.as_str() {
                "S" | "I" | "?" | "" => "asleep".to_owned(),
                "D" => "asleep, cannot be woken by a signal".to_owned(),
                _ => format!("asleep in {}", source()),
            };
            if cause.waker.is_empty() { place } else { format!("{place}, woken by {}", printable(&cause.waker)) }
        }
        Class::OnTop | Class::Queued | Class::Quota => {
            cause.kind.map_or_else(source, |kind| words::taker_name(kind, &cause.source))
        }
    }
}

/// What to do about a cause; empty if nothing is known.
fn advice(cause: &Cause) -> String {
    let text = match (cause.class, cause.source.as_str()) {
        (Class::OwnWork, "reclaim") => {
            "the machine has too little free memory: give the program more, or run fewer programs with it"
        }
        (Class::OwnWork, "group_reclaim") => {
            "raise the memory limit of its control group (memory.max, memory.limit_in_bytes), or use less memory"
        }
        (Class::OwnWork, "compaction") => {
            "huge pages are assembled while it waits: /sys/kernel/mm/transparent_hugepage/defrag set to defer or never avoids that"
        }
        (Class::OwnWork, "dirty_throttling") => "it writes faster than the disk: write less, or raise vm.dirty_bytes",
        (Class::OwnWork, _) => {
            "its threads and others contend for a lock of the kernel: perf lock contention shows which"
        }
        (Class::OnTheWay, _) => {
            "keep the CPU from deep idle: becalm tune plan; in a virtual machine, poll in the guest (haltpoll)"
        }
        (Class::Host, _) => "ask the host's administrator for CPUs that are not shared",
        _ => {
            let known = cause.kind.and_then(|kind| words::advice(cause.owner, kind, &cause.source, cause.process));
            return known.unwrap_or_default();
        }
    };
    text.to_owned()
}

impl Explained<'_> {
    /// Explains some of the spans; `None` if there are too few.
    pub fn explain(&self, chosen: &[usize]) -> Option<ExplanationDoc> {
        if chosen.len() < FEWEST {
            return None;
        }
        let excess = divide(self.spans, chosen, self.found, &self.lives.causes, self.slowest);
        let verdict = verdict(&excess);
        let side = |side: Side| excess.sides[side as usize].1;
        let wanted = match verdict {
            Verdict::System => Side::System,
            Verdict::Threads => Side::Threads,
            _ => Side::Waiting,
        };
        let first = excess
            .causes
            .iter()
            .find(|row| self.lives.causes.get(row.cause).side() == wanted)
            .filter(|row| row.part.share >= NAMED);
        let advice = match verdict {
            Verdict::System | Verdict::Threads => first.map(|row| advice(self.lives.causes.get(row.cause))),
            _ => None,
        };
        let named = first.map(|row| (shown(self.lives.causes.get(row.cause)), row.part.share));
        let sentence = sentence(verdict, &excess, side, named);
        let sides = excess.sides.iter().map(|(side, part)| SideDoc {
            side: *side,
            ns: Nanos::new(part.ns),
            share_of_excess: part.share,
            low: part.interval.map(|(low, _)| low),
            high: part.interval.map(|(_, high)| high),
        });
        let sources = excess.causes.iter().map(|row| {
            let cause = self.lives.causes.get(row.cause);
            SourceDoc {
                source: cause.source.clone(),
                owner: cause.owner,
                class: cause.class,
                side: cause.side(),
                waker: cause.waker.clone(),
                ns: Nanos::new(row.part.ns),
                share_of_excess: row.part.share,
                low: row.part.interval.map(|(low, _)| low),
                high: row.part.interval.map(|(_, high)| high),
                in_slow: row.in_slow as u64,
                in_ordinary: row.in_ordinary as u64,
                shown: shown(cause),
            }
        });
        Some(ExplanationDoc {
            verdict,
            sentence,
            advice: advice.unwrap_or_default(),
            spans: excess.count as u64,
            median_ns: Nanos::new(excess.median),
            p99_ns: Nanos::new(excess.p99),
            longest_ns: Nanos::new(excess.longest),
            covered: excess.covered,
            slow: excess.slow as u64,
            ordinary: excess.ordinary as u64,
            excess_ns: Nanos::new(excess.excess),
            sides: sides.collect(),
            sources: sources.collect(),
        })
    }

    /// Explains the spans of each group, those that cost most first.
    pub fn by_group(&self) -> Vec<GroupDoc> {
        let mut groups: BTreeMap<Label, Vec<usize>> = BTreeMap::new();
        for (place, span) in self.spans.iter().enumerate() {
            groups.entry(span.group).or_default().push(place);
        }
        let mut docs: Vec<GroupDoc> = groups
            .into_iter()
            .map(|(group, chosen)| GroupDoc {
                name: self.names.text(group).to_owned(),
                spans: chosen.len() as u64,
                explanation: self.explain(&chosen),
            })
            .collect();
        let cost = |doc: &GroupDoc| {
            doc.explanation.as_ref().map_or(0, |found| i128::from(found.excess_ns.get()) * i128::from(found.slow))
        };
        docs.sort_by(|one, other| cost(other).cmp(&cost(one)).then_with(|| one.name.cmp(&other.name)));
        docs
    }

    /// The longest spans.
    pub fn worst(&self) -> Vec<WorstDoc> {
        let mut order: Vec<usize> = (0..self.spans.len()).collect();
        order.sort_by_key(|place| (std::cmp::Reverse(self.spans[*place].length()), *place));
        order.into_iter().take(WORST).map(|place| self.one(place)).collect()
    }

    fn one(&self, place: usize) -> WorstDoc {
        let span = &self.spans[place];
        let first = span.pieces[0];
        let mut causes: Vec<SpanCauseDoc> = self
            .found
            .get(place)
            .iter()
            .map(|time| {
                let cause = self.lives.causes.get(time.cause);
                SpanCauseDoc { source: cause.source.clone(), class: cause.class, ns: Nanos::new(time.ns) }
            })
            .collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
        let segments = self.lives.segments_of(first.thread, first.start, first.end);
        let timeline = segments.into_iter().take(STRETCHES).map(|(until, cause)| {
            let cause = self.lives.causes.get(cause);
            StretchDoc { until_ns: Nanos::new(until - first.start), source: cause.source.clone(), class: cause.class }
        });
        WorstDoc {
            name: self.names.text(span.name).to_owned(),
            tid: self.threads.get(first.thread.0 as usize).map_or(0, |row| row.tid),
            start_ns: Nanos::new(span.start()),
            ns: Nanos::new(span.length()),
            causes,
            timeline: timeline.collect(),
        }
    }
}

/// Which side makes slow spans slow.
fn verdict(excess: &Excess) -> Verdict {
    if (excess.excess as f64) < EVEN * excess.ordinary_mean.max(1.0) {
        return Verdict::Even;
    }
    let most = excess.sides.iter().max_by(|one, other| one.1.share.total_cmp(&other.1.share));
    match most.filter(|(_, part)| part.share >= MOST) {
        Some((Side::System, _)) => Verdict::System,
        Some((Side::Program, _)) => Verdict::Program,
        Some((Side::Threads, _)) => Verdict::Threads,
        Some((Side::Waiting, _)) => Verdict::Waiting,
        Some((Side::Unknown, _)) => Verdict::Unknown,
        None => Verdict::Mixed,
    }
}

/// A share in whole percent.
pub fn percent(share: f64) -> i64 {
    (share * 100.0).round() as i64
}

/// A share with its interval, in percent: `98.6% [95, 100]`.
pub fn share_text(part: ExcessShare) -> String {
    let share = Value::Ratio(part.share).cell();
    match part.interval {
        Some((low, high)) => format!("{share} [{}, {}]", percent(low), percent(high)),
        None => share,
    }
}

/// The verdict in a sentence.
fn sentence(
    verdict: Verdict,
    excess: &Excess,
    side: impl Fn(Side) -> ExcessShare,
    named: Option<(String, f64)>,
) -> String {
    let time = |ns: i64| Value::Time(ns).cell();
    let slow = counted(excess.slow as u64, "slowest span", "slowest spans");
    if verdict == Verdict::Even {
        return format!(
            "The {slow} took {} longer than the middle half, {} of it: there is nothing to explain",
            time(excess.excess),
            Value::Ratio(excess.excess as f64 / excess.ordinary_mean.max(1.0)).cell()
        );
    }
    let takes = format!("The {slow} took {} longer than the middle half", time(excess.excess));
    let system = share_text(side(Side::System));
    let named = |joint: &str| {
        named
            .as_ref()
            .map_or_else(String::new, |(name, share)| format!("{joint}{name} {}", Value::Ratio(*share).cell()))
    };
    match verdict {
        Verdict::System => format!("{takes}; the system explains {system} of that{}", named(", ")),
        Verdict::Program => format!(
            "{takes}; the system is not it: {system}; look in the program, which computes longer: {}",
            share_text(side(Side::Program))
        ),
        Verdict::Threads => format!(
            "{takes}; other threads of the program had its CPU: {}{}; the system: {system}",
            share_text(side(Side::Threads)),
            named(", ")
        ),
        Verdict::Waiting => format!(
            "{takes}; the system is not it: {system}; they sleep longer: {}{}",
            share_text(side(Side::Waiting)),
            named(", ")
        ),
        Verdict::Mixed => format!(
            "{takes}; the system explains {system} of that, the program {}, sleep {}",
            share_text(side(Side::Program)),
            share_text(side(Side::Waiting))
        ),
        Verdict::Unknown | Verdict::Even => {
            format!("{takes}; the recording does not show where {} of that went", share_text(side(Side::Unknown)))
        }
    }
}
