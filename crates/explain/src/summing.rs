//! The document of an explanation.

use std::collections::BTreeMap;

use becalm_model::{Label, Labels};
use becalm_observe::words;
use becalm_report::Value;
use becalm_units::{Named, Nanos, printable};

use crate::causes::{Cause, Causes, Class, Side};
use crate::document::{ExplanationDoc, GroupDoc, SideDoc, SourceDoc, SpanCauseDoc, StretchDoc, Verdict, WorstDoc};
use crate::excess::{Excess, ExcessShare, FEWEST, divide};
use crate::joined::{Piece, PlacedSpan, SpanCauses};
use crate::lives::Lives;
use crate::subjects::Subjects;

/// An excess below this share of the ordinary spans is no difference to explain.
const EVEN: f64 = 0.01;
/// A side with this share of the excess explains it.
const MOST: f64 = 0.5;
/// A cause or a side with this share of the excess is named in the sentence.
const NAMED: f64 = 0.1;
/// The system is not it if its share, with the upper end of its interval, is below this.
const INNOCENT: f64 = 0.1;
/// The longest spans that are shown one by one.
const WORST: usize = 10;
/// The stretches of a span's timeline.
const STRETCHES: usize = 1_000;

/// What sentences call the spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noun {
    /// Spans.
    Span,
    /// Runs.
    Run,
}

impl Noun {
    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Span => ["span", "spans"],
            Self::Run => ["run", "runs"],
        }
    }
}

/// Spans with what is known of them.
pub struct Explained<'a> {
    /// The spans, in order of time.
    pub spans: &'a [PlacedSpan],
    /// Their causes.
    pub found: &'a SpanCauses,
    /// The lives of their threads or CPUs.
    pub lives: &'a Lives,
    /// The threads or CPUs of the recording.
    pub subjects: &'a Subjects,
    /// The names in the spans.
    pub names: &'a Labels,
    /// The share of slow spans.
    pub slowest: f64,
}

/// A cause as reports show it. One of a waker has that one's name before it.
pub fn shown(cause: &Cause) -> String {
    let source = || printable(&cause.source).into_owned();
    let waker = || printable(&cause.waker).into_owned();
    let own = match cause.class {
        Class::Ran if cause.waker.is_empty() => "the program".to_owned(),
        Class::Ran => "computing".to_owned(),
        Class::Call => format!("system call {}", source()),
        Class::OwnWork => source().replace('_', " "),
        Class::OnTheWay => "way to a CPU".to_owned(),
        Class::Host => "hypervisor".to_owned(),
        Class::Stopped => "stopped by a signal".to_owned(),
        Class::Loop => "measuring loop".to_owned(),
        Class::Unknown => "not known".to_owned(),
        Class::Asleep => {
            let place = match cause.source.as_str() {
                "S" | "I" | "?" | "" => "asleep".to_owned(),
                "D" => "asleep (uninterruptible)".to_owned(),
                _ => format!("asleep in {}", source()),
            };
            return if cause.waker.is_empty() { place } else { format!("{place}, woken by {}", waker()) };
        }
        Class::OnTop | Class::Queued | Class::Quota => {
            cause.kind.map_or_else(source, |kind| words::taker_name(kind, &cause.source))
        }
    };
    if cause.waker.is_empty() { own } else { format!("{}: {own}", waker()) }
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

/// Explains the chosen ones of some spans, which are in order of time, by their causes; `None` if there are too few. `slowest` is the share of slow
/// ones, at most a quarter.
pub fn explain(
    spans: &[PlacedSpan],
    chosen: &[usize],
    found: &SpanCauses,
    causes: &Causes,
    slowest: f64,
    noun: Noun,
) -> Option<ExplanationDoc> {
    if chosen.len() < FEWEST {
        return None;
    }
    let excess = divide(spans, chosen, found, causes, slowest);
    let verdict = verdict(&excess);
    let side = |side: Side| excess.sides[side as usize].1;
    let first = |wanted: Side| {
        let of_side = excess.causes.iter().find(|row| causes.get(row.cause).side() == wanted);
        of_side.filter(|row| row.part.share >= NAMED)
    };
    let largest = match verdict {
        Verdict::Threads => Side::Threads,
        _ => Side::System,
    };
    let advice = match verdict {
        Verdict::System | Verdict::Threads | Verdict::Mixed => first(largest).map(|row| advice(causes.get(row.cause))),
        _ => None,
    };
    let named = |side: Side| {
        let row = first(side).filter(|row| causes.get(row.cause).class != Class::Ran);
        row.map(|row| (shown(causes.get(row.cause)), row.part.share))
    };
    let sentence = sentence(verdict, &excess, noun, side, named);
    let sides = excess.sides.iter().map(|(side, part)| SideDoc {
        side: *side,
        ns: Nanos::new(part.ns),
        share_of_excess: part.share,
        low: part.interval.map(|(low, _)| low),
        high: part.interval.map(|(_, high)| high),
    });
    let sources = excess.causes.iter().map(|row| {
        let cause = causes.get(row.cause);
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

impl Explained<'_> {
    /// Explains some of the spans; `None` if there are too few.
    pub fn explain(&self, chosen: &[usize]) -> Option<ExplanationDoc> {
        explain(self.spans, chosen, self.found, &self.lives.causes, self.slowest, Noun::Span)
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
        let most = span.pieces.iter().max_by_key(|piece| piece.end - piece.start).unwrap_or(&span.pieces[0]);
        let mut causes: Vec<SpanCauseDoc> = self
            .found
            .get(place)
            .iter()
            .map(|time| {
                let cause = self.lives.causes.get(time.cause);
                let (source, class) = (cause.source.clone(), cause.class);
                SpanCauseDoc { source, class, ns: Nanos::new(time.ns), shown: shown(cause) }
            })
            .collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
        // One interval after the other.
        let mut pieces: Vec<Piece> = span.pieces.clone();
        pieces.sort_by_key(|piece| piece.start);
        let mut timeline: Vec<StretchDoc> = Vec::new();
        let mut passed = 0;
        for piece in pieces {
            for (until, cause) in self.lives.segments_of(piece.thread, piece.start, piece.end) {
                let cause = self.lives.causes.get(cause);
                let until_ns = Nanos::new(passed + until - piece.start);
                timeline.push(StretchDoc {
                    until_ns,
                    source: cause.source.clone(),
                    class: cause.class,
                    shown: shown(cause),
                });
            }
            passed += piece.end - piece.start;
        }
        timeline.truncate(STRETCHES);
        WorstDoc {
            name: self.names.text(span.name).to_owned(),
            tid: self.subjects.tid(most.thread),
            cpu: self.subjects.cpu(most.thread),
            start_ns: Nanos::new(span.start()),
            ns: Nanos::new(span.length()),
            causes,
            timeline,
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
    noun: Noun,
    side: impl Fn(Side) -> ExcessShare,
    named: impl Fn(Side) -> Option<(String, f64)>,
) -> String {
    let time = |ns: i64| Value::Time(ns).cell();
    let slow = match excess.slow {
        1 => format!("The slowest {}", noun.words()[0]),
        slow => format!("The {slow} slowest {}", noun.words()[1]),
    };
    let takes = format!("{slow} took {} longer than the middle half", time(excess.excess));
    if verdict == Verdict::Even {
        let share = Value::Ratio(excess.excess as f64 / excess.ordinary_mean.max(1.0)).cell();
        return format!("{takes}, {share} of it: there is nothing to explain");
    }
    let name_of = |of: Side| {
        named(of).map_or_else(String::new, |(name, share)| format!(", {name} {}", Value::Ratio(share).cell()))
    };
    let does = |of: Side| {
        let words = match of {
            Side::System => "the system explains",
            Side::Program => "the program computes longer:",
            Side::Threads => "other threads of the program:",
            Side::Waiting => "they sleep longer:",
            Side::Unknown => "the recording does not show where the time went:",
        };
        let name =
            named(of).map_or_else(String::new, |(name, share)| format!(", {name} {}", Value::Ratio(share).cell()));
        let joint = if of == Side::System { " of that" } else { "" };
        format!("{words} {}{joint}{name}", share_text(side(of)))
    };
    let main = match verdict {
        Verdict::System | Verdict::Mixed => Side::System,
        Verdict::Program => Side::Program,
        Verdict::Threads => Side::Threads,
        Verdict::Waiting => Side::Waiting,
        Verdict::Unknown | Verdict::Even => Side::Unknown,
    };
    let system = side(Side::System);
    let is_innocent = main != Side::System && system.interval.map_or(system.share, |(_, high)| high) < INNOCENT;
    let mut text = match main {
        Side::Program if is_innocent => format!(
            "{takes}; the system is not it: {}; look in the program, which computes longer: {}",
            share_text(system),
            share_text(side(Side::Program)) + &name_of(Side::Program)
        ),
        Side::Threads if is_innocent => format!(
            "{takes}; the system is not it: {}; look in the program, whose other threads take {}",
            share_text(system),
            share_text(side(Side::Threads)) + &name_of(Side::Threads)
        ),
        _ => format!("{takes}; {}", does(main)),
    };
    let others = Side::ALL.iter().filter(|other| **other != main && side(**other).share >= NAMED);
    for other in others.filter(|other| !(is_innocent && **other == Side::System)) {
        text += &format!("; {}", does(*other));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sentence for spans whose excess is divided like this, with these ends of the system's interval.
    fn sentence_for(verdict: Verdict, shares: [(Side, f64); 2], system: (f64, f64)) -> String {
        let excess = Excess {
            count: 100,
            median: 1_000,
            p99: 2_000,
            longest: 3_000,
            slow: 5,
            ordinary: 50,
            slow_mean: 2_000.0,
            ordinary_mean: 1_000.0,
            excess: 1_000,
            covered: 1.0,
            sides: Vec::new(),
            causes: Vec::new(),
            worst: Vec::new(),
        };
        let side = |wanted: Side| {
            let share = shares.iter().find(|(side, _)| *side == wanted).map_or(0.0, |(_, share)| *share);
            ExcessShare { ns: 0, share, interval: (wanted == Side::System).then_some(system) }
        };
        sentence(verdict, &excess, Noun::Span, side, |_| None)
    }

    #[test]
    fn the_system_is_acquitted_only_if_its_share_is_small_for_sure() {
        let own = |system: f64| [(Side::Program, 1.0 - system), (Side::System, system)];
        let sure = sentence_for(Verdict::Program, own(0.02), (0.0, 0.04));
        assert!(sure.contains("the system is not it: 2.00% [0, 4]; look in the program"), "{sure}");
        for (share, interval) in [(0.39, (0.3, 0.46)), (0.08, (0.0, 0.2))] {
            let unsure = sentence_for(Verdict::Program, own(share), interval);
            assert!(!unsure.contains("is not it"), "{unsure}");
        }
        // A large share is named, also if it is not the larger one.
        let both = sentence_for(Verdict::Program, own(0.39), (0.3, 0.46));
        assert!(both.contains("the system explains 39.0% [30, 46]"), "{both}");
        let system = sentence_for(Verdict::System, own(0.65), (0.6, 0.7));
        assert!(system.contains("the program computes longer: 35.0%"), "{system}");
        // Sleep says nothing about the system's innocence.
        let asleep = [(Side::Waiting, 0.98), (Side::System, 0.02)];
        let asleep = sentence_for(Verdict::Waiting, asleep, (0.0, 0.04));
        assert!(asleep.contains("they sleep longer: 98.0%") && !asleep.contains("is not it"), "{asleep}");
    }
}
