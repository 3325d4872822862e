//! Repetitions of a program as spans, for which the time of each cause is known already.

use becalm_model::Label;
use becalm_model::observed::ThreadId;

use crate::causes::{Cause, CauseTime, Causes};
use crate::document::ExplanationDoc;
use crate::joined::{Piece, PlacedSpan, SpanCauses};
use crate::summing::{Noun, explain};

/// The share of slow repetitions: there are fewer of them than of other spans.
const SLOWEST: f64 = 0.1;

/// A repetition.
#[derive(Clone, Debug)]
pub struct Repeated {
    /// Its length, in nanoseconds.
    pub ns: i64,
    /// What took time from it, and how much; the rest is the program's.
    pub taken: Vec<(Cause, i64)>,
}

/// Explains the slow ones of some repetitions in order of time; `None` if there are too few, or more was taken from one than it lasted.
pub fn explain_repetitions(runs: &[Repeated]) -> Option<ExplanationDoc> {
    let mut causes = Causes::default();
    let (mut spans, mut lists) = (Vec::new(), Vec::new());
    let mut now = 0;
    for run in runs {
        let own = run.ns - run.taken.iter().map(|(_, ns)| ns).sum::<i64>();
        if own < 0 {
            return None;
        }
        let taken = run.taken.iter().cloned().chain([(Cause::running(""), own)]).filter(|(_, ns)| *ns > 0);
        lists.push(taken.map(|(cause, ns)| CauseTime { cause: causes.number(cause), ns }).collect());
        let pieces = vec![Piece { thread: ThreadId(0), start: now, end: now + run.ns }];
        spans.push(PlacedSpan { name: Label::EMPTY, group: Label::EMPTY, pieces });
        now += run.ns;
    }
    let chosen: Vec<usize> = (0..runs.len()).collect();
    explain(&spans, &chosen, &SpanCauses::from_lists(lists), &causes, SLOWEST, Noun::Run)
}

#[cfg(test)]
mod tests {
    use becalm_model::Kind;

    use super::*;
    use crate::document::Verdict;

    #[test]
    fn slow_repetitions_are_explained_by_what_took_their_time() {
        let run = |number: i64, gremlin: i64| {
            let tick = (Cause::of_interruption(Kind::Irq, "tick", ""), 1_000);
            let gremlin = (Cause::of_interruption(Kind::Task, "gremlin", "77"), gremlin);
            Repeated { ns: 100_000 + number + gremlin.1, taken: vec![tick, gremlin] }
        };
        let runs: Vec<Repeated> = (0..40).map(|number| run(number, if number % 8 == 3 { 30_000 } else { 0 })).collect();
        let found = explain_repetitions(&runs).unwrap();
        assert_eq!((found.verdict, found.slow, found.ordinary), (Verdict::System, 4, 20));
        assert!(found.sentence.starts_with("The 4 slowest runs took 30.0us longer"), "{}", found.sentence);
        assert_eq!((found.sources[0].source.as_str(), found.sources[0].in_slow), ("gremlin", 4));
        assert_eq!(found.sources.iter().map(|source| source.ns).sum::<becalm_units::Nanos>(), found.excess_ns);
        // Too few, and time taken on several CPUs at once.
        assert_eq!(explain_repetitions(&runs[..19]), None);
        let doubly = Repeated { ns: 10, ..runs[0].clone() };
        assert_eq!(explain_repetitions(&[&runs[..], &[doubly]].concat()), None);
    }
}
