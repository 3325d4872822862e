//! Waiting data of one CPU in portions small enough for a short stay.

use becalm_model::{Event, Step};
use becalm_units::Nanos;

use super::collector::Backlog;
use crate::sink::{Batch, Unstored};

/// The most steps per portion.
const STEPS: usize = 512;

/// Cuts the waiting data of one CPU into batches: one page of kernel events at a time, with the steps that are completely known by then.
///
/// A step is included once an event at its end or later has been decoded, because all earlier events have then been decoded too. For a sink, the
/// batches are equivalent to a single one, since a sink must accept any split.
#[derive(Debug)]
pub(super) struct Portions<'a> {
    /// Fields of the last batch, which describe the whole.
    whole: Batch<'a>,
    /// Steps and their work that were not given yet, in nonempty parts.
    waiting: Vec<(&'a [Step], &'a [u64])>,
    /// The parts before this one were given.
    part: usize,
    /// All events before this instant were given or are in the current page.
    known: Nanos,
    /// Whether further pages may follow.
    more: bool,
    /// Whether the last batch was given.
    ended: bool,
}

impl<'a> Portions<'a> {
    /// The portions of waiting data. `whole` has the position of the CPU and the fields of the last batch; its steps and events are ignored.
    pub fn new(waiting: &'a Backlog, whole: Batch<'a>) -> Self {
        let mut work = waiting.work.parts();
        // Both were filled in parallel, and their parts have the same capacity.
        let waiting = waiting.steps.parts().map(|steps| (steps, work.next().unwrap_or(&[]))).collect();
        Self { whole, waiting, part: 0, known: Nanos::new(i64::MIN), more: true, ended: false }
    }

    /// The next page has been decoded up to the event at this instant; `None` if it has no events.
    pub fn page(&mut self, last: Option<Nanos>) {
        self.known = self.known.max(last.unwrap_or(self.known));
    }

    /// There are no further pages.
    pub fn last_page(&mut self) {
        (self.known, self.more) = (Nanos::MAX, false);
    }

    /// The next batch, with the remaining events of the current page, which it takes out of `events`; `None` if there is nothing to give before the
    /// next page.
    pub fn next<'b>(&mut self, events: &mut &'b [Event]) -> Option<Batch<'b>>
    where
        'a: 'b,
    {
        let (steps, work) = self.take_steps();
        if self.ended || (steps.is_empty() && events.is_empty() && self.more) {
            return None;
        }
        let next = self.waiting.get(self.part).map(|(steps, _)| steps[0].start);
        self.ended = !self.more && next.is_none();
        let events = std::mem::take(events);
        let (until, unstored) = match self.ended {
            true => (self.whole.complete_until, self.whole.unstored),
            // Data not given yet is later than all data given.
            false => (self.whole.complete_until.min(self.known).min(next.unwrap_or(Nanos::MAX)), Unstored::default()),
        };
        Some(Batch { steps, work, events, complete_until: until, unstored, ..self.whole })
    }

    /// Whether everything has been given.
    pub const fn are_over(&self) -> bool {
        self.ended
    }

    /// The next few completely known steps.
    fn take_steps(&mut self) -> (&'a [Step], &'a [u64]) {
        let Some((steps, work)) = self.waiting.get_mut(self.part) else { return (&[], &[]) };
        let ready = steps.iter().take(STEPS).take_while(|step| step.end <= self.known).count();
        let (given, rest) = steps.split_at(ready);
        let (given_work, rest_work) = work.split_at(ready.min(work.len()));
        (*steps, *work) = (rest, rest_work);
        self.part += usize::from(rest.is_empty());
        (given, given_work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_attribute::{Attributor, Tally};
    use becalm_model::{
        Activity, Detour, Happening, Kind, Labels, LoopThread, Pid, Platform, Task, Tasks, ThreadState,
    };
    use becalm_units::CpuId;
    use proptest::prelude::*;

    const LOOP: Pid = Pid(100);
    const OTHERS: [Pid; 3] = [Pid::IDLE, Pid(23), Pid(700)];

    /// A sink's result of a sequence of batches.
    #[derive(Debug, PartialEq)]
    struct Delivery {
        detours: Vec<Detour>,
        activities: Vec<Activity>,
        tally: Tally,
        work: Vec<u64>,
        complete_until: Nanos,
        unstored: Unstored,
    }

    /// Attributes like the recorder's sink.
    struct Plain {
        attributor: Attributor,
        labels: Labels,
        tasks: Tasks,
        made: Delivery,
    }

    impl Plain {
        fn new() -> Self {
            let (mut labels, mut tasks) = (Labels::new(), Tasks::new());
            let source = labels.intern("sshd");
            tasks.set(OTHERS[2], Task { kind: Kind::Task, source, detail: source });
            let thread = LoopThread { cpu: CpuId::new(1), pid: LOOP, t_min: Nanos::new(3), realtime: false };
            let made = Delivery {
                detours: Vec::new(),
                activities: Vec::new(),
                tally: Tally::default(),
                work: Vec::new(),
                complete_until: Nanos::new(i64::MIN),
                unstored: Unstored::default(),
            };
            Self { attributor: Attributor::new(thread, Platform::Metal, &mut labels), labels, tasks, made }
        }

        fn take(&mut self, batch: Batch<'_>) {
            let Self { attributor, labels, tasks, made } = self;
            let (detours, activities) = (&mut made.detours, &mut made.activities);
            attributor.attribute(batch.steps, batch.events, tasks, labels, detours, activities);
            attributor.advance(batch.complete_until, tasks, labels);
            made.work.extend_from_slice(batch.work);
            made.complete_until = made.complete_until.max(batch.complete_until);
            made.unstored += batch.unstored;
        }

        fn end(mut self) -> Delivery {
            self.made.tally = self.attributor.finish(&mut self.labels);
            self.made
        }
    }

    /// An event at this time, selected by `choice`.
    fn event(labels: &mut Labels, time: i64, choice: u8, thread: usize) -> Event {
        let pids = [LOOP, OTHERS[0], OTHERS[1], OTHERS[2]];
        let (prev, next) = (pids[thread % 4], pids[thread / 4 % 4]);
        let source = labels.intern("local_timer");
        let what = match choice {
            0..=2 => Happening::Switch { prev, prev_state: ThreadState(u8::from(thread.is_multiple_of(3))), next },
            3..=5 => Happening::IrqEntry { source, detail: source },
            6..=8 => Happening::IrqExit { source, detail: source },
            9 => Happening::Lost { count: Some(3) },
            10 => Happening::SoftirqEntry { source },
            _ => Happening::SoftirqExit { source },
        };
        Event { time: Nanos::new(time), thread: prev, in_interrupt: false, what }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn portions_make_the_rows_of_the_whole(
            events in prop::collection::vec((0_i64..40, 0_u8..12, 0_usize..16), 0..120),
            steps in prop::collection::vec((0_i64..60, 1_i64..60), 0..60),
            pages in prop::collection::vec(0_usize..9, 0..40),
            room in 1_usize..20,
            after in 0_i64..100,
            all: bool,
            traced: bool,
        ) {
            let mut whole = Plain::new();
            let mut parts = Plain::new();
            let mut time = 0;
            let events: Vec<Event> = events.into_iter().filter(|_| traced).map(|(gap, choice, thread)| {
                time += gap;
                let _ = event(&mut parts.labels, time, choice, thread);
                event(&mut whole.labels, time, choice, thread)
            }).collect();
            let mut end = 0;
            let mut waiting = Backlog::with_room(room);
            for (number, (gap, length)) in (0..).zip(steps) {
                let start = end + gap;
                end = start + length;
                waiting.steps.push(Step { start: Nanos::new(start), end: Nanos::new(end) });
                waiting.work.push(number);
            }
            let complete_until = if all { Nanos::MAX } else { Nanos::new(end + after) };
            let unstored = Unstored { count: 7, total: Nanos::new(70) };
            let (steps, work): (Vec<Step>, Vec<u64>) =
                (waiting.steps.parts().flatten().copied().collect(), waiting.work.parts().flatten().copied().collect());
            let nothing = Batch { index: 4, began: Some(Nanos::ZERO), complete_until, unstored, ..Batch::default() };
            whole.take(Batch { steps: &steps, work: &work, events: &events, ..nothing });

            let mut portions = Portions::new(&waiting, nothing);
            let mut rest = events.as_slice();
            // The last page has the rest, and without a trace there is none.
            let lengths = pages.into_iter().chain([usize::MAX]).map(Some).filter(|_| traced).chain([None]);
            for length in lengths {
                let (mut page, later) = rest.split_at(length.unwrap_or(0).min(rest.len()));
                rest = later;
                match length {
                    Some(_) => portions.page(page.last().map(|event| event.time)),
                    None => portions.last_page(),
                }
                while let Some(batch) = portions.next(&mut page) {
                    prop_assert!(batch.steps.len() <= STEPS && batch.index == 4);
                    parts.take(batch);
                }
                prop_assert!(page.is_empty());
            }
            prop_assert_eq!(parts.end(), whole.end());
        }
    }

    #[test]
    fn many_steps_come_in_several_portions() {
        let mut waiting = Backlog::with_room(10_000);
        for start in 0..2 * STEPS as i64 + 1 {
            waiting.steps.push(Step { start: Nanos::new(2 * start), end: Nanos::new(2 * start + 1) });
        }
        let nothing = Batch { complete_until: Nanos::MAX, ..Batch::default() };
        let mut portions = Portions::new(&waiting, nothing);
        portions.last_page();
        let lengths: Vec<usize> =
            std::iter::from_fn(|| portions.next(&mut &[][..]).map(|batch| batch.steps.len())).collect();
        assert_eq!(lengths, [STEPS, STEPS, 1]);
    }
}
