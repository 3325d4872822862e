use becalm_model::ThreadState;
use becalm_model::observed::{StayReason, ThreadDetour};
use becalm_units::{CpuId, Nanos};
use proptest::prelude::*;

use super::*;
use crate::causes::Side;

#[test]
fn scaled_times_add_up() {
    let times: Vec<CauseTime> = [3, 3, 1].iter().zip(0..).map(|(ns, cause)| CauseTime { cause, ns: *ns }).collect();
    let scaled_to = |length| {
        let mut found = Vec::new();
        scaled(&times, length, &mut found);
        found.iter().map(|time| time.ns).collect::<Vec<_>>()
    };
    assert_eq!(scaled_to(7), [3, 3, 1]);
    assert_eq!(scaled_to(5), [2, 2, 1]);
    assert_eq!(scaled_to(1), [1, 0, 0]);
    assert_eq!(scaled_to(0), [0, 0, 0]);
}

/// Lives of threads, from their stays and interruptions.
fn lives(
    stays: &[Stay],
    detours: &[(ThreadDetour, Vec<OwnedActivity>)],
    threads: &[ThreadRow],
    labels: &Labels,
) -> Lives {
    let mut causes = Causes::default();
    let mut rows: Vec<CauseTime> = Vec::new();
    let mut found: HashMap<ThreadId, Vec<Interruption>> = HashMap::new();
    for (detour, activities) in detours {
        found.entry(detour.thread).or_default().push(Interruption {
            start: detour.start.get(),
            length: detour.duration.get(),
            first: rows.len(),
            count: activities.len(),
            is_host: activities[0].owner == Owner::Host,
        });
        for row in activities {
            let cause = causes.number(taker(row, &[], &TakerNames::default(), labels));
            rows.push(CauseTime { cause, ns: row.time.get() });
        }
    }
    let mut by_thread: HashMap<ThreadId, Vec<Stay>> = HashMap::new();
    stays.iter().for_each(|stay| by_thread.entry(stay.thread).or_default().push(*stay));
    Lives::assembled(by_thread, found, rows, causes, &HashSet::from([ThreadId(0)]), threads, labels).unwrap()
}

/// The causes of an interval, by how they are shown.
fn found(lives: &Lives, start: i64, end: i64) -> Vec<(Class, String, String, Side, i64)> {
    let mut times = Vec::new();
    lives.causes_of(ThreadId(0), start, end, &mut times);
    let row = |time: &CauseTime| {
        let cause = lives.causes.get(time.cause);
        (cause.class, cause.source.clone(), cause.waker.clone(), cause.side(), time.ns)
    };
    times.iter().map(row).collect()
}

#[test]
fn sleep_is_followed_to_the_thread_that_ended_it() {
    let mut labels = Labels::new();
    labels.intern("");
    let [futex, read, worker, grem] = ["futex", "read", "worker", "grem"].map(|name| labels.intern(name));
    let row = |thread, name| ThreadRow {
        thread,
        tid: thread,
        process: 0,
        parent: -1,
        name,
        command: Label::EMPTY,
        group: Label::EMPTY,
        start_ns: 0,
        end_ns: 300,
        chosen: true,
        kernel: false,
    };
    let stay = |thread, start, end, part, context, by| Stay {
        thread: ThreadId(thread),
        cpu: CpuId::new(0),
        start: Nanos::new(start),
        duration: Nanos::new(end - start),
        part,
        reason: StayReason::Left(ThreadState::SLEEPING),
        context,
        by,
    };
    let none = Label::EMPTY;
    let stays = [
        stay(0, 0, 100, LifePart::Ran, none, None),
        stay(0, 100, 200, LifePart::Asleep, futex, None),
        stay(0, 200, 205, LifePart::OnTheWay, none, Some(ThreadId(1))),
        stay(0, 205, 300, LifePart::Ran, none, None),
        stay(1, 90, 120, LifePart::Asleep, read, None),
        stay(1, 120, 150, LifePart::Ran, none, None),
        stay(1, 150, 190, LifePart::Queued, none, None),
        stay(1, 190, 300, LifePart::Ran, none, None),
    ];
    let taken = OwnedActivity {
        owner: Owner::Others,
        kind: Kind::Task,
        source: grem,
        thread: None,
        time: Nanos::new(40),
        visits: 1,
    };
    let wait =
        ThreadDetour { thread: ThreadId(1), cpu: CpuId::new(0), start: Nanos::new(150), duration: Nanos::new(40) };
    let lives = lives(&stays, &[(wait, vec![taken])], &[row(0, none), row(1, worker)], &labels);
    let text = |text: &str| text.to_owned();
    let expected = [
        (Class::Asleep, text("futex"), text("worker"), Side::Waiting, 20),
        (Class::Ran, text(""), text("worker"), Side::Threads, 40),
        (Class::Queued, text("grem"), text("worker"), Side::System, 40),
    ];
    assert_eq!(found(&lives, 100, 200), expected);
    assert_eq!(found(&lives, 0, 300).iter().map(|row| row.4).sum::<i64>(), 300);
    assert_eq!(lives.unplaced, 0);
}

#[test]
fn interruptions_without_a_place_are_counted() {
    let mut labels = Labels::new();
    labels.intern("");
    let stay = Stay {
        thread: ThreadId(0),
        cpu: CpuId::new(0),
        start: Nanos::new(100),
        duration: Nanos::new(100),
        part: LifePart::Queued,
        reason: StayReason::Preempted,
        context: Label::EMPTY,
        by: None,
    };
    let row = OwnedActivity {
        owner: Owner::Others,
        kind: Kind::Task,
        source: Label::EMPTY,
        thread: None,
        time: Nanos::new(50),
        visits: 1,
    };
    let detour =
        ThreadDetour { thread: ThreadId(0), cpu: CpuId::new(0), start: Nanos::new(120), duration: Nanos::new(50) };
    let lives = lives(&[stay], &[(detour, vec![row])], &[], &labels);
    assert_eq!(lives.unplaced, 1);
    assert_eq!(found(&lives, 100, 200), [(Class::Unknown, String::new(), String::new(), Side::Unknown, 100)]);
}

/// A part of a life, with interrupts on top, a taker, and the hypervisor.
type Part = (u8, i64, Vec<(i64, i64)>, i64);

proptest! {
    /// The causes of any interval add up to its length, and over the whole life they are those of the parts.
    #[test]
    fn causes_of_any_interval_add_up(
        parts in prop::collection::vec((0_u8..6, 1_i64..200, prop::collection::vec((0_i64..50, 1_i64..20), 0..4), 0_i64..40), 1..40),
        cuts in prop::collection::vec((-20_i64..4_000, 0_i64..2_000), 1..30),
    ) {
        let mut labels = Labels::new();
        labels.intern("");
        let [reclaim, futex, irq, task] = ["reclaim", "futex", "tick", "grem"].map(|name| labels.intern(name));
        let (thread, cpu) = (ThreadId(0), CpuId::new(1));
        let (mut stays, mut detours, mut now) = (Vec::new(), Vec::new(), 100_i64);
        let mut expected: HashMap<(Class, &str), i64> = HashMap::new();
        let parts: Vec<Part> = parts;
        for (what, length, on_top, steal) in &parts {
            let (part, context) = match what {
                0 => (LifePart::Ran, Label::EMPTY),
                1 => (LifePart::Ran, reclaim),
                2 => (LifePart::Asleep, futex),
                3 => (LifePart::OnTheWay, Label::EMPTY),
                4 => (LifePart::Queued, Label::EMPTY),
                _ => (LifePart::Stopped, Label::EMPTY),
            };
            let row = |owner, kind, source, time| OwnedActivity { owner, kind, source, thread: None, time: Nanos::new(time), visits: 1 };
            let detour = |start, duration| ThreadDetour { thread, cpu, start: Nanos::new(start), duration: Nanos::new(duration) };
            let mut free = *length;
            let mut program = *length;
            if part == LifePart::Ran {
                let mut at = now;
                for (gap, time) in on_top {
                    if gap + time > free {
                        break;
                    }
                    detours.push((detour(at + gap, *time), vec![row(Owner::Interrupt, Kind::Irq, irq, *time)]));
                    *expected.entry((Class::OnTop, "tick")).or_default() += time;
                    at += gap + time;
                    free -= gap + time;
                    program -= time;
                }
                // The hypervisor takes time of the program, and only of the program.
                let taken = if context == Label::EMPTY { (*steal).min(program) } else { 0 };
                if taken > 0 {
                    detours.push((detour(now + length - taken, taken), vec![row(Owner::Host, Kind::Unseen, irq, taken)]));
                    *expected.entry((Class::Host, "hypervisor")).or_default() += taken;
                    program -= taken;
                }
            }
            match what {
                0 => *expected.entry((Class::Ran, "")).or_default() += program,
                1 => *expected.entry((Class::OwnWork, "reclaim")).or_default() += program,
                2 => *expected.entry((Class::Asleep, "futex")).or_default() += length,
                3 => *expected.entry((Class::OnTheWay, "")).or_default() += length,
                4 => {
                    detours.push((detour(now, *length), vec![row(Owner::Others, Kind::Task, task, *length)]));
                    *expected.entry((Class::Queued, "grem")).or_default() += length;
                }
                _ => *expected.entry((Class::Stopped, "")).or_default() += length,
            }
            stays.push(Stay {
                thread, cpu, start: Nanos::new(now), duration: Nanos::new(*length), part, context,
                reason: StayReason::Left(ThreadState::SLEEPING), by: None,
            });
            now += length;
        }
        detours.sort_by_key(|(detour, _)| detour.start + detour.duration);
        let lives = lives(&stays, &detours, &[], &labels);
        let sum = |start, end| {
            let mut found = Vec::new();
            lives.causes_of(thread, start, end, &mut found);
            found
        };
        let mut whole: HashMap<(Class, &str), i64> = HashMap::new();
        for time in sum(100, now) {
            let cause = lives.causes.get(time.cause);
            *whole.entry((cause.class, cause.source.as_str())).or_default() += time.ns;
        }
        expected.retain(|_, ns| *ns > 0);
        prop_assert_eq!(whole, expected);
        for (start, length) in cuts {
            let found: i64 = sum(start, start + length).iter().map(|time| time.ns).sum();
            prop_assert_eq!(found, length);
        }
    }
}
