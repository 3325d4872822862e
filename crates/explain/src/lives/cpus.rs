//! The lives of measured CPUs: detours are divided among their activities, and the rest of the time is the program's.
//!
//! An activity runs from its start until another one starts, and goes on after that one. So a span that ends within a detour has the activities up to
//! there.

use std::collections::{BTreeMap, HashMap, HashSet};

use becalm_bundle::{ActivityBatch, Bundle, BundleError};
use becalm_model::Kind;
use becalm_model::node::CpuDoc;
use becalm_model::observed::{Owner, ThreadId};

use super::{Life, Lives};
use crate::causes::{Cause, CauseTime, Causes, Class};

/// A CPU of a recording.
#[derive(Clone, Debug)]
pub struct MeasuredCpu {
    /// Its node.
    pub node: String,
    /// When it was measured.
    pub doc: CpuDoc,
    /// Whether a measuring loop ran on it.
    pub has_loop: bool,
}

/// The threads of a program in a recording that shows them as interruptions of its loop.
#[derive(Clone, Debug, Default)]
pub struct OwnThreads {
    /// Their numbers, as text.
    pub tids: HashSet<String>,
    /// Their name, if all with that name are the program's.
    pub name: Option<&'static str>,
}

impl OwnThreads {
    fn contain(&self, kind: Kind, source: &str, detail: &str) -> bool {
        let number = || detail.rsplit_once("pid ").map_or("", |(_, number)| number);
        kind == Kind::Task && (Some(source) == self.name || self.tids.contains(number()))
    }
}

/// An activity of a detour.
#[derive(Clone, Copy, Debug)]
struct Row {
    start: i64,
    time: i64,
    cause: u32,
}

/// A detour, with the number that the recording counts on its CPU.
#[derive(Clone, Debug)]
struct WholeDetour {
    number: i64,
    start: i64,
    end: i64,
    rows: Vec<Row>,
}

impl Lives {
    /// The lives of the wanted ones of some CPUs, between two instants. Also returns whether the recording shows the program's own threads there. Fails
    /// if a table is missing or damaged.
    pub fn of_cpus(
        bundle: &Bundle,
        cpus: &[MeasuredCpu],
        wanted: &HashSet<ThreadId>,
        (from, to): (i64, i64),
        own: &OwnThreads,
    ) -> Result<(Self, bool), BundleError> {
        let mut causes = Causes::default();
        let unknown = causes.number(Cause::new(Class::Unknown, Owner::Unknown, ""));
        let mut nodes: BTreeMap<&str, HashMap<i32, usize>> = BTreeMap::new();
        for (place, cpu) in cpus.iter().enumerate().filter(|(place, _)| wanted.contains(&ThreadId(*place as u32))) {
            nodes.entry(&cpu.node).or_default().insert(cpu.doc.cpu.get().cast_signed(), place);
        }
        let mut detours: Vec<Vec<WholeDetour>> = vec![Vec::new(); cpus.len()];
        for (node, places) in nodes {
            let mut counts = vec![0_i64; cpus.len()];
            for batch in bundle.detours(node)? {
                let batch = batch?;
                for ((cpu, start), duration) in batch.cpus().iter().zip(batch.starts()).zip(batch.durations()) {
                    let Some(place) = places.get(cpu).copied() else { continue };
                    let (number, end) = (counts[place], start + duration);
                    counts[place] += 1;
                    if *start < to && end > from {
                        detours[place].push(WholeDetour { number, start: *start, end, rows: Vec::new() });
                    }
                }
            }
            let mut next = vec![0; cpus.len()];
            for batch in bundle.activities(node)? {
                let batch = batch?;
                let mut known: HashMap<(Kind, usize, usize), u32> = HashMap::new();
                for (row, cpu) in batch.cpus().iter().enumerate() {
                    let Some(place) = places.get(cpu).copied() else { continue };
                    let (of_cpu, next) = (&mut detours[place], &mut next[place]);
                    while of_cpu.get(*next).is_some_and(|detour| detour.number < batch.detours()[row]) {
                        *next += 1;
                    }
                    let Some(detour) = of_cpu.get_mut(*next) else { continue };
                    if detour.number == batch.detours()[row] {
                        let key = (batch.kind(row), batch.source_key(row), batch.detail_key(row));
                        let cause = *known.entry(key).or_insert_with(|| causes.number(cause(&batch, row, own)));
                        let (start, time) = (batch.starts()[row], batch.self_times()[row]);
                        detour.rows.push(Row { start, time, cause });
                    }
                }
            }
        }
        let shows_program = (0..causes.count() as u32).any(|cause| causes.get(cause).class == Class::Ran);
        let mut lives = Self { causes, lives: HashMap::new(), times: Vec::new(), unknown, unplaced: 0 };
        for (place, detours) in detours.into_iter().enumerate() {
            let thread = ThreadId(place as u32);
            if wanted.contains(&thread) {
                lives.keep_cpu(thread, &cpus[place], detours, shows_program);
            }
        }
        Ok((lives, shows_program))
    }

    /// Keeps the life of a CPU. Time between detours is the program's, or the loop's if the program was one of the detours.
    fn keep_cpu(&mut self, thread: ThreadId, cpu: &MeasuredCpu, detours: Vec<WholeDetour>, shows_program: bool) {
        let rest = if shows_program && cpu.has_loop {
            Cause::new(Class::Loop, Owner::Becalm, "becalm")
        } else {
            Cause::running("")
        };
        let rest = self.causes.number(rest);
        let nameless = self.causes.number(Cause::new(Class::OnTop, Owner::Unknown, "not traced"));
        let (start, end) = (cpu.doc.start_ns.get(), (cpu.doc.start_ns + cpu.doc.duration_ns).get());
        let mut life = Life { starts: vec![start], firsts: vec![self.times.len()] };
        let mut add = |until: i64, cause: u32, times: &mut Vec<CauseTime>| {
            let last = life.starts[life.starts.len() - 1];
            if until > last {
                times.push(CauseTime { cause, ns: until - last });
                life.starts.push(until);
                life.firsts.push(times.len());
            }
        };
        for mut detour in detours {
            add(detour.start.min(end), rest, &mut self.times);
            detour.rows.sort_by_key(|row| row.start);
            divided(&detour, nameless, |until, cause| add(until.min(end), cause, &mut self.times));
        }
        add(end, rest, &mut self.times);
        self.lives.insert(thread, life);
    }
}

/// Passes the end and the cause of each stretch of a detour, in order of time.
fn divided(detour: &WholeDetour, nameless: u32, mut each: impl FnMut(i64, u32)) {
    let mut now = detour.start;
    // Activities that continue when the last one ends, with the time that each still takes.
    let mut running: Vec<(i64, u32)> = Vec::new();
    let mut rows = detour.rows.iter().peekable();
    loop {
        while let Some(row) = rows.next_if(|row| row.start <= now || running.is_empty()) {
            running.push((row.time, row.cause));
        }
        let Some((left, cause)) = running.pop() else { break };
        let until = rows.peek().map_or(detour.end, |next| next.start.min(detour.end));
        let ran = left.min(until - now).max(0);
        now += ran;
        each(now, cause);
        if now >= detour.end {
            return;
        }
        if left > ran {
            running.push((left - ran, cause));
        }
    }
    each(detour.end, nameless);
}

/// The cause for an activity.
fn cause(batch: &ActivityBatch, row: usize, own: &OwnThreads) -> Cause {
    let (kind, source, detail) = (batch.kind(row), batch.source(row), batch.detail(row));
    if own.contain(kind, source, detail) { Cause::running("") } else { Cause::of_interruption(kind, source, detail) }
}

#[cfg(test)]
mod tests {
    use becalm_units::{CpuId, Nanos};
    use proptest::prelude::*;

    use super::*;

    fn stretches(rows: &[(i64, i64, u32)], end: i64) -> Vec<(i64, u32)> {
        let rows = rows.iter().map(|(start, time, cause)| Row { start: *start, time: *time, cause: *cause }).collect();
        let mut found = Vec::new();
        let detour = WholeDetour { number: 0, start: 0, end, rows };
        divided(&detour, 99, |until, cause| found.push((until, cause)));
        found
    }

    #[test]
    fn an_interrupted_activity_goes_on_afterwards() {
        // A task that a tick interrupts, and a softirq the tick.
        let found = stretches(&[(0, 100, 1), (40, 20, 2), (50, 30, 3)], 150);
        assert_eq!(found, [(40, 1), (50, 2), (80, 3), (90, 2), (150, 1)]);
        // Times that lack something, are too long, or have a gap.
        assert_eq!(stretches(&[(0, 100, 1)], 150), [(100, 1), (150, 99)]);
        assert_eq!(stretches(&[(0, 200, 1)], 150), [(150, 1)]);
        assert_eq!(stretches(&[(0, 50, 1), (100, 100, 2)], 150), [(50, 1), (150, 2)]);
        assert_eq!(stretches(&[], 150), [(150, 99)]);
    }

    /// The life of a CPU from 100 to 1,100 ns with these detours.
    fn life(detours: Vec<WholeDetour>, has_loop: bool, shows_program: bool) -> Lives {
        let mut causes = Causes::default();
        let unknown = causes.number(Cause::new(Class::Unknown, Owner::Unknown, ""));
        causes.number(Cause::new(Class::OnTop, Owner::Interrupt, "tick"));
        causes.number(Cause::running(""));
        let mut lives = Lives { causes, lives: HashMap::new(), times: Vec::new(), unknown, unplaced: 0 };
        let (start_ns, duration_ns) = (Nanos::new(100), Nanos::new(1_000));
        let doc = CpuDoc { start_ns, duration_ns, ..CpuDoc::new(CpuId::new(3)) };
        lives.keep_cpu(ThreadId(0), &MeasuredCpu { node: String::new(), doc, has_loop }, detours, shows_program);
        lives
    }

    fn causes_of(lives: &Lives, start: i64, end: i64) -> Vec<(Class, i64)> {
        let mut times = Vec::new();
        lives.causes_of(ThreadId(0), start, end, &mut times);
        times.iter().map(|time| (lives.causes.get(time.cause).class, time.ns)).collect()
    }

    #[test]
    fn what_is_no_detour_is_the_programs_or_the_loops() {
        let tick = || {
            vec![WholeDetour { number: 0, start: 300, end: 350, rows: vec![Row { start: 300, time: 50, cause: 1 }] }]
        };
        let expected = |rest| [(rest, 100), (Class::OnTop, 50), (rest, 150)];
        assert_eq!(causes_of(&life(tick(), true, false), 200, 500), expected(Class::Ran));
        assert_eq!(causes_of(&life(tick(), false, true), 200, 500), expected(Class::Ran));
        // The loop runs while the program does not.
        assert_eq!(causes_of(&life(tick(), true, true), 200, 500), expected(Class::Loop));
        // Before and after the recording nothing is known.
        let expected =
            [(Class::Unknown, 100), (Class::Unknown, 20), (Class::Ran, 200), (Class::OnTop, 50), (Class::Ran, 750)];
        assert_eq!(causes_of(&life(tick(), true, false), 0, 1_120), expected);
    }

    proptest! {
        /// The parts of any interval add up to its length.
        #[test]
        fn parts_of_spans_add_up(
            detours in prop::collection::vec((0_i64..150, 1_i64..80, prop::collection::vec((0_i64..80, 0_i64..60, 0_u32..3), 0..4)), 0..12),
            (start, length) in (0_i64..1_200, 0_i64..1_200),
        ) {
            let mut at = 60;
            let detours = detours.into_iter().map(|(gap, length, rows)| {
                let start = at + gap;
                at = start + length;
                let rows = rows.into_iter().map(|(offset, time, cause)| Row { start: start + offset, time, cause }).collect();
                WholeDetour { number: 0, start, end: at, rows }
            }).collect();
            let parts = causes_of(&life(detours, true, false), start, start + length);
            prop_assert_eq!(parts.iter().map(|(_, ns)| ns).sum::<i64>(), length);
        }

        /// Own times that add up to the detour are kept exactly.
        #[test]
        fn own_times_are_kept(rows in prop::collection::vec((0_i64..1_000, 1_i64..1_000), 1..12)) {
            let mut rows: Vec<(i64, i64, u32)> = rows.iter().zip(0..).map(|((start, time), cause)| (*start, *time, cause)).collect();
            rows.sort_by_key(|row| row.0);
            let whole = rows.iter().map(|row| row.1).sum();
            let mut times = vec![0; rows.len()];
            let mut now = 0;
            for (until, cause) in stretches(&rows, whole) {
                prop_assert!(until >= now);
                times[cause as usize] += until - now;
                now = until;
            }
            prop_assert_eq!(now, whole);
            for (_, time, cause) in rows {
                prop_assert_eq!(times[cause as usize], time);
            }
        }
    }
}
