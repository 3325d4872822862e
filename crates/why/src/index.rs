//! Finds the cause of an activity.

use std::collections::HashMap;

use becalm_model::cause::Cause;
use becalm_model::{Kind, Label, Pid};
use becalm_units::{CpuId, Nanos};

/// Activities of one kind that can be nested in each other on a CPU.
const NESTED: usize = 8;

/// The causes of a recording, by CPU and kind, in the order of their starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct CauseIndex(HashMap<(CpuId, Kind), Vec<Cause>>);

/// An activity by its thread, or by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ran {
    Thread(Pid),
    Source(Label),
}

impl Ran {
    fn is(self, cause: &Cause) -> bool {
        match self {
            Self::Thread(thread) => cause.task == thread,
            Self::Source(source) => cause.source == source,
        }
    }
}

impl CauseIndex {
    /// The index of these causes.
    pub fn new(causes: impl IntoIterator<Item = Cause>) -> Self {
        let mut index: HashMap<(CpuId, Kind), Vec<Cause>> = HashMap::new();
        for cause in causes {
            index.entry((cause.cpu, cause.kind)).or_default().push(cause);
        }
        index.values_mut().for_each(|causes| causes.sort_by_key(|cause| cause.start));
        Self(index)
    }

    /// The cause of the activity that starts, or continues, at this instant.
    pub fn at(&self, cpu: CpuId, kind: Kind, start: Nanos) -> Option<&Cause> {
        let causes = self.0.get(&(cpu, kind))?;
        let after = causes.partition_point(|cause| cause.start <= start);
        let nearest = causes[..after].iter().rev().take(NESTED);
        nearest.into_iter().find(|cause| cause.start + cause.duration >= start)
    }

    /// The causes of the activities of this thread, or with this name, between two instants, each with its time in there, the latest first.
    pub fn between(
        &self,
        (cpu, kind): (CpuId, Kind),
        who: Ran,
        (start, end): (Nanos, Nanos),
    ) -> impl Iterator<Item = (&Cause, Nanos)> {
        let causes = self.0.get(&(cpu, kind)).map_or(&[][..], Vec::as_slice);
        let before = causes.partition_point(|cause| cause.start < end);
        let mut outside = 0;
        causes[..before]
            .iter()
            .rev()
            .take_while(move |cause| {
                outside = if cause.start + cause.duration < start { outside + 1 } else { 0 };
                outside < NESTED
            })
            .filter(move |cause| who.is(cause) && cause.start + cause.duration >= start)
            .map(move |cause| (cause, (cause.start + cause.duration).min(end) - cause.start.max(start)))
    }
}

#[cfg(test)]
mod tests {
    use becalm_model::cause::Requester;
    use proptest::prelude::*;

    use super::*;

    fn cause(start: i64, duration: i64, source: Label) -> Cause {
        Cause {
            cpu: CpuId::new(1),
            start: Nanos::new(start),
            duration: Nanos::new(duration),
            kind: Kind::Irq,
            source,
            task: Pid::IDLE,
            requester: Requester::Timer,
            by: Label::EMPTY,
            thread: Pid::IDLE,
            context: Label::EMPTY,
            site: Label::EMPTY,
            delay: None,
        }
    }

    #[test]
    fn the_innermost_activity_at_an_instant_is_found() {
        let index =
            CauseIndex::new([cause(50, 5, Label::EMPTY), cause(10, 30, Label::EMPTY), cause(20, 5, Label::EMPTY)]);
        let start_of = |at| index.at(CpuId::new(1), Kind::Irq, Nanos::new(at)).map(|cause| cause.start.get());
        assert_eq!(
            [9, 10, 20, 22, 30, 40, 41, 50, 56].map(start_of),
            [None, Some(10), Some(20), Some(20), Some(10), Some(10), None, Some(50), None]
        );
        assert_eq!(index.at(CpuId::new(0), Kind::Irq, Nanos::new(10)), None);
        assert_eq!(index.at(CpuId::new(1), Kind::Softirq, Nanos::new(10)), None);
    }

    proptest! {
        /// Stays of threads on a CPU follow each other: all that overlap are found, with their time.
        #[test]
        fn all_that_overlap_are_found(
            lengths in proptest::collection::vec((0_i64..9, 1_i64..9), 0..40), from in 0_i64..200, length in 1_i64..90,
        ) {
            let mut now = 0;
            let causes: Vec<Cause> = lengths.iter().map(|(gap, length)| {
                let start = now + gap;
                now = start + length;
                cause(start, *length, Label::EMPTY)
            }).collect();
            let to = from + length;
            let overlap = |cause: &Cause| {
                let end = (cause.start + cause.duration).get();
                (end >= from && cause.start.get() < to).then(|| end.min(to) - cause.start.get().max(from))
            };
            let plain: Vec<i64> = causes.iter().rev().filter_map(overlap).collect();
            let index = CauseIndex::new(causes);
            let place = (CpuId::new(1), Kind::Irq);
            let found = index.between(place, Ran::Source(Label::EMPTY), (Nanos::new(from), Nanos::new(to)));
            prop_assert_eq!(found.map(|(_, time)| time.get()).collect::<Vec<_>>(), plain);
        }
    }
}
