//! Written-out cases. Each is a step of the loop from 1,000 ns on, unless it says otherwise.

use becalm_attribute::Tally;
use becalm_model::{Kind, Pid};
use becalm_units::Nanos;

use crate::scene::{
    COLLECTOR, KSOFTIRQD, KWORKERS, LOOP, Outcome, SSHD, STRANGER, Scene, T_MIN, assert_books_close, line, lost, sleep,
    step, switch,
};

#[test]
fn a_tick_with_its_softirqs() {
    let mut s = Scene::new();
    let events = [
        s.irq_entry(1_100, "local_timer"),
        s.irq_exit(4_100, "local_timer"),
        s.softirq_entry(4_200, "timer"),
        s.softirq_exit(4_700, "timer"),
        s.softirq_entry(4_750, "sched"),
        s.softirq_exit(5_950, "sched"),
    ];
    let (lines, outcome) = s.lines(6_200, &events);
    // The loop had 100 before, 100 + 50 between and 250 after, of which 20 are its shortest step.
    assert_eq!(
        lines,
        [
            line(1_000, 480, Kind::Edge, "edge", ""),
            line(1_100, 3_000, Kind::Irq, "local_timer", "vector"),
            line(4_200, 500, Kind::Softirq, "timer", ""),
            line(4_750, 1_200, Kind::Softirq, "sched", ""),
        ]
    );
    assert_eq!(outcome.tally, Tally { events: 6, ..Tally::default() });
}

#[test]
fn a_softirq_interrupted_by_an_irq_interrupted_by_two_nmi_handlers() {
    let mut s = Scene::new();
    let events = [
        s.softirq_entry(1_100, "net_rx"),
        s.irq_entry(1_200, "virtio1-req.0"),
        s.nmi(1_450, "perf", 100),
        s.nmi(1_500, "watchdog", 40),
        s.irq_exit(1_600, "virtio1-req.0"),
        s.softirq_exit(1_900, "net_rx"),
    ];
    let (lines, _) = s.lines(2_000, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 180, Kind::Edge, "edge", ""),
            line(1_100, 400, Kind::Softirq, "net_rx", ""),
            line(1_200, 260, Kind::Irq, "virtio1-req.0", "vector"),
            line(1_350, 100, Kind::Nmi, "perf", ""),
            line(1_460, 40, Kind::Nmi, "watchdog", ""),
        ]
    );
}

#[test]
fn an_nmi_takes_no_time_twice() {
    let mut s = Scene::new();
    let events = [s.irq_entry(1_100, "a"), s.irq_exit(1_300, "a"), s.nmi(1_400, "late", 5_000)];
    let (lines, _) = s.lines(1_500, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 180, Kind::Edge, "edge", ""),
            line(1_100, 200, Kind::Irq, "a", "vector"),
            line(1_300, 100, Kind::Nmi, "late", ""),
        ]
    );
}

#[test]
fn a_switch_in_the_middle_with_an_interrupt_in_each_thread() {
    let mut s = Scene::new();
    let events = [
        s.irq_entry(1_100, "reschedule"),
        s.irq_exit(1_200, "reschedule"),
        switch(1_300, LOOP, SSHD),
        s.irq_entry(1_400, "local_timer"),
        s.irq_exit(1_600, "local_timer"),
        sleep(2_300, SSHD, KSOFTIRQD),
        s.softirq_entry(2_400, "rcu"),
        s.softirq_exit(2_500, "rcu"),
        sleep(2_550, KSOFTIRQD, COLLECTOR),
        sleep(2_600, COLLECTOR, STRANGER),
        sleep(2_700, STRANGER, LOOP),
    ];
    let (lines, outcome) = s.lines(2_800, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 280, Kind::Edge, "edge", ""),
            line(1_100, 100, Kind::Irq, "reschedule", "vector"),
            line(1_300, 800, Kind::Task, "sshd", "pid 700"),
            line(1_400, 200, Kind::Irq, "local_timer", "vector"),
            line(2_300, 150, Kind::Kthread, "ksoftirqd", "ksoftirqd/1 pid 23"),
            line(2_400, 100, Kind::Softirq, "rcu", ""),
            line(2_550, 50, Kind::Becalm, "becalm", "pid 101"),
            line(2_600, 100, Kind::Task, "unknown", ""),
        ]
    );
    assert_eq!(outcome.tally.unmatched_switches, 0);
    let mut labels = s.labels.clone();
    s.tasks.set_unknown(STRANGER, &mut labels);
    s.tasks.set_unknown(SSHD, &mut labels);
    assert_eq!(labels.text(s.tasks.get(STRANGER).unwrap().detail), "pid 999");
    assert_eq!(labels.text(s.tasks.get(SSHD).unwrap().source), "sshd");
}

#[test]
fn idling_while_the_loop_is_runnable_is_throttling() {
    for (realtime, source) in [(false, "cfs_bandwidth"), (true, "rt_throttling")] {
        let mut s = Scene::new();
        s.thread.realtime = realtime;
        let events = [
            s.irq_entry(1_100, "local_timer"),
            s.irq_exit(1_300, "local_timer"),
            switch(1_400, LOOP, Pid::IDLE),
            s.irq_entry(2_000, "local_timer"),
            s.irq_exit(2_100, "local_timer"),
            switch(2_500, Pid::IDLE, SSHD),
            sleep(2_700, SSHD, Pid::IDLE),
            switch(51_000, Pid::IDLE, LOOP),
        ];
        let (lines, _) = s.lines(51_100, &events);
        assert_eq!(
            lines,
            [
                line(1_000, 280, Kind::Edge, "edge", ""),
                line(1_100, 200, Kind::Irq, "local_timer", "vector"),
                line(1_400, 1_000, Kind::Throttling, source, ""),
                line(2_000, 100, Kind::Irq, "local_timer", "vector"),
                line(2_500, 200, Kind::Task, "sshd", "pid 700"),
                line(2_700, 48_300, Kind::Throttling, source, ""),
            ]
        );
    }
}

#[test]
fn a_fault_that_waits_for_its_page_owns_the_idle_time() {
    let mut s = Scene::new();
    let events = [
        s.fault(1_100, "page_fault_user"),
        sleep(1_500, LOOP, KWORKERS[0]),
        s.fault(1_550, "page_fault_kernel"),
        sleep(1_700, KWORKERS[0], Pid::IDLE),
        s.irq_entry(9_000, "nvme0q2"),
        s.fault(9_050, "page_fault_kernel"),
        s.irq_exit(9_400, "nvme0q2"),
        switch(9_500, Pid::IDLE, LOOP),
        s.fault(9_800, "page_fault_user"),
    ];
    let (lines, outcome) = s.lines(10_000, &events);
    // The first fault: until the switch, the idle time but for the interrupt, and from the return to the next fault.
    assert_eq!(
        lines,
        [
            line(1_000, 80, Kind::Edge, "edge", ""),
            line(1_100, 400 + 7_800 - 400 + 300, Kind::Fault, "page_fault_user", ""),
            line(1_500, 200, Kind::Kthread, "kworker", "kworker/1:0 pid 40"),
            line(9_000, 400, Kind::Irq, "nvme0q2", "vector"),
            line(9_800, 200, Kind::Fault, "page_fault_user", ""),
        ]
    );
    assert_eq!(outcome.tally.unmatched_entries, 0);
}

#[test]
fn idling_while_the_loop_sleeps_without_a_fault_is_its_own_doing() {
    let mut s = Scene::new();
    let events = [sleep(1_100, LOOP, Pid::IDLE), switch(1_900, Pid::IDLE, LOOP)];
    let (lines, _) = s.lines(2_000, &events);
    assert_eq!(lines, [line(1_000, 180, Kind::Edge, "edge", ""), line(1_100, 800, Kind::Task, "blocked", "")]);
}

#[test]
fn a_work_item_is_told_from_its_kworker_also_across_preemption() {
    let mut s = Scene::new();
    let events = [
        switch(1_100, LOOP, KWORKERS[0]),
        s.work_start(1_150, "kworker:vmstat_update", 7),
        switch(1_400, KWORKERS[0], SSHD),
        switch(1_900, SSHD, KWORKERS[0]),
        // This kernel's event of the end names no function.
        s.work_end(2_200, "", 7),
        sleep(2_230, KWORKERS[0], LOOP),
    ];
    let (lines, _) = s.lines(2_300, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 150, Kind::Edge, "edge", ""),
            line(1_100, 50, Kind::Kthread, "kworker", "kworker/1:0 pid 40"),
            line(1_150, 550, Kind::Workqueue, "kworker:vmstat_update", "kworker/1:0 pid 40"),
            line(1_400, 500, Kind::Task, "sshd", "pid 700"),
            line(1_900, 30, Kind::Kthread, "kworker", "kworker/1:0 pid 40"),
        ]
    );
}

#[test]
fn a_preempted_softirq_thread_goes_on_in_a_later_detour() {
    let mut s = Scene::new();
    let events = [
        switch(1_100, LOOP, KSOFTIRQD),
        s.softirq_entry(1_200, "net_rx"),
        switch(1_500, KSOFTIRQD, LOOP),
        switch(3_100, LOOP, KSOFTIRQD),
        s.softirq_exit(3_400, "net_rx"),
        sleep(3_500, KSOFTIRQD, LOOP),
    ];
    let outcome = s.attribute(&[step(1_000, 1_600), step(3_000, 3_600)], &events);
    assert_books_close(&outcome);
    let softirqs: Vec<_> = outcome.activities.iter().filter(|row| row.kind == Kind::Softirq).collect();
    assert_eq!(softirqs.len(), 2);
    assert_eq!((softirqs[0].detour, softirqs[0].start.get(), softirqs[0].self_time.get()), (0, 1_200, 300));
    assert_eq!((softirqs[1].detour, softirqs[1].start.get(), softirqs[1].self_time.get()), (1, 3_100, 300));
    assert_eq!(outcome.tally, Tally { events: 6, ..Tally::default() });
}

#[test]
fn a_stale_work_item_is_replaced() {
    let mut s = Scene::new();
    let events = [
        switch(1_100, LOOP, KWORKERS[0]),
        s.work_start(1_200, "kworker:slow", 7),
        sleep(1_300, KWORKERS[0], LOOP),
        // It went on and ended on another CPU; here its kworker comes back with another one.
        switch(1_500, LOOP, KWORKERS[0]),
        s.work_start(1_510, "kworker:other", 8),
        s.work_end(1_600, "kworker:other", 8),
        sleep(1_650, KWORKERS[0], LOOP),
    ];
    let (lines, outcome) = s.lines(1_700, &events);
    let work: Vec<_> = lines.into_iter().filter(|line| line.2 == Kind::Workqueue).collect();
    assert_eq!(
        work,
        [
            line(1_200, 110, Kind::Workqueue, "kworker:slow", "kworker/1:0 pid 40"),
            line(1_510, 90, Kind::Workqueue, "kworker:other", "kworker/1:0 pid 40"),
        ]
    );
    assert_eq!(outcome.tally.unmatched_entries, 1);
}

#[test]
fn no_event_at_all_is_unseen() {
    let mut s = Scene::new();
    let (lines, outcome) = s.lines(31_000, &[]);
    assert_eq!(lines, [line(1_000, 30_000 - T_MIN, Kind::Unseen, "unseen", "")]);
    assert!(!outcome.detours[0].incomplete);
}

#[test]
fn what_took_no_time_still_happened() {
    let mut s = Scene::new();
    let events = [s.irq_entry(1_500, "call_function"), s.irq_exit(1_500, "call_function")];
    let (lines, _) = s.lines(2_000, &events);
    assert_eq!(lines, [line(1_000, 980, Kind::Edge, "edge", ""), line(1_500, 0, Kind::Irq, "call_function", "vector")]);
}

#[test]
fn the_longest_rows_make_up_for_a_short_edge() {
    let mut s = Scene::new();
    let events = [
        s.irq_entry(1_000, "a"),
        s.irq_exit(1_012, "a"),
        s.irq_entry(1_012, "b"),
        s.irq_exit(1_022, "b"),
        s.irq_entry(1_022, "c"),
        s.irq_exit(1_034, "c"),
        s.irq_entry(1_040, "d"),
        s.irq_exit(1_043, "d"),
    ];
    // The loop had 6 of the 20 that it needs: 12 come from the first of the longest, 2 from the next.
    let (lines, _) = s.lines(1_043, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 0, Kind::Irq, "a", "vector"),
            line(1_012, 10, Kind::Irq, "b", "vector"),
            line(1_022, 10, Kind::Irq, "c", "vector"),
            line(1_040, 3, Kind::Irq, "d", "vector"),
        ]
    );
}

#[test]
fn a_step_shorter_than_t_min_is_a_detour_of_nothing() {
    let mut s = Scene::new();
    let events = [s.irq_entry(1_001, "a"), s.irq_exit(1_005, "a")];
    let outcome = s.attribute(&[step(1_000, 1_010)], &events);
    assert_eq!(outcome.detours[0].duration, Nanos::ZERO);
    assert_books_close(&outcome);
}

#[test]
fn tracing_that_begins_inside_a_frame_gives_it_the_time_before_its_exit() {
    let mut s = Scene::new();
    let events = [s.irq_exit(1_400, "local_timer"), s.softirq_entry(1_500, "timer"), s.softirq_exit(1_600, "timer")];
    let (lines, outcome) = s.lines(1_700, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 400, Kind::Irq, "local_timer", "vector"),
            line(1_400, 180, Kind::Edge, "edge", ""),
            line(1_500, 100, Kind::Softirq, "timer", ""),
        ]
    );
    assert_eq!(outcome.tally.unmatched_exits, 1);
}

#[test]
fn an_exit_below_the_top_closes_what_is_above() {
    let mut s = Scene::new();
    let events = [
        s.softirq_entry(1_100, "net_rx"),
        s.irq_entry(1_200, "eth0"),
        s.softirq_exit(1_300, "net_rx"),
        s.work_end(1_500, "", 5),
    ];
    let (lines, outcome) = s.lines(1_600, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 180, Kind::Edge, "edge", ""),
            line(1_100, 100, Kind::Softirq, "net_rx", ""),
            line(1_200, 100, Kind::Irq, "eth0", "vector"),
            line(1_300, 200, Kind::Workqueue, "kworker:unknown", ""),
        ]
    );
    assert_eq!((outcome.tally.unmatched_entries, outcome.tally.unmatched_exits), (1, 1));
}

#[test]
fn a_switch_from_an_unexpected_thread_tells_who_ran() {
    let mut s = Scene::new();
    let events = [
        switch(1_100, LOOP, KSOFTIRQD),
        s.irq_entry(1_150, "open"),
        switch(1_400, SSHD, Pid::IDLE),
        switch(1_500, Pid::IDLE, LOOP),
    ];
    let (lines, outcome) = s.lines(1_600, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 180, Kind::Edge, "edge", ""),
            line(1_100, 50, Kind::Kthread, "ksoftirqd", "ksoftirqd/1 pid 23"),
            line(1_150, 0, Kind::Irq, "open", "vector"),
            line(1_150, 250, Kind::Task, "sshd", "pid 700"),
            line(1_400, 100, Kind::Throttling, "cfs_bandwidth", ""),
        ]
    );
    assert_eq!((outcome.tally.unmatched_switches, outcome.tally.unmatched_entries), (1, 1));
}

#[test]
fn a_frame_left_open_ends_with_the_step() {
    let mut s = Scene::new();
    let events = [s.irq_entry(1_100, "eth0"), s.irq_entry(2_100, "eth0"), s.irq_exit(2_200, "eth0")];
    let outcome = s.attribute(&[step(1_000, 1_600), step(2_000, 2_500)], &events);
    assert_books_close(&outcome);
    let own: Vec<_> = outcome.activities.iter().map(|row| (row.kind, row.self_time.get())).collect();
    assert_eq!(own, [(Kind::Edge, 80), (Kind::Irq, 500), (Kind::Edge, 380), (Kind::Irq, 100)]);
    assert_eq!(outcome.tally.unmatched_entries, 1);
}

#[test]
fn lost_events_make_their_time_unknown_and_their_detours_incomplete() {
    let mut s = Scene::new();
    let events = [
        s.irq_entry(1_100, "local_timer"),
        lost(1_500, Some(12)),
        s.softirq_entry(1_550, "rcu"),
        s.softirq_exit(1_600, "rcu"),
        // The first switch after the gap tells who ran since.
        sleep(1_800, SSHD, LOOP),
    ];
    let (lines, outcome) = s.lines(2_000, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 280, Kind::Edge, "edge", ""),
            line(1_100, 0, Kind::Irq, "local_timer", "vector"),
            line(1_100, 400, Kind::Unseen, "lost_events", ""),
            line(1_500, 250, Kind::Task, "sshd", "pid 700"),
            line(1_550, 50, Kind::Softirq, "rcu", ""),
        ]
    );
    assert!(outcome.detours[0].incomplete);
    assert_eq!(outcome.tally, Tally { events: 4, lost_events: 12, lost_gaps: 1, incomplete: 1, ..Tally::default() });
}

#[test]
fn a_gap_spoils_the_steps_that_it_overlaps_and_no_other() {
    let mut s = Scene::new();
    let events = [
        s.irq_entry(1_100, "a"),
        s.irq_exit(1_200, "a"),
        lost(6_000, None),
        s.irq_entry(7_100, "a"),
        s.irq_exit(7_200, "a"),
        lost(9_000, None),
        s.irq_entry(9_000, "a"),
        s.irq_exit(9_100, "a"),
    ];
    let steps = [step(500, 700), step(1_000, 2_000), step(3_000, 4_000), step(7_000, 7_300), step(9_100, 9_500)];
    let outcome = s.attribute(&steps, &events);
    assert_books_close(&outcome);
    let incomplete: Vec<_> = outcome.detours.iter().map(|detour| detour.incomplete).collect();
    assert_eq!(incomplete, [false, true, true, true, false]);
    assert_eq!((outcome.tally.lost_gaps, outcome.tally.lost_events), (2, 2));

    // Where no step is, a gap affects nothing.
    let events = [s.irq_entry(100, "a"), lost(200, Some(3)), s.irq_entry(1_100, "a"), s.irq_exit(1_200, "a")];
    let (lines, outcome) = s.lines(1_500, &events);
    assert!(!outcome.detours[0].incomplete);
    assert_eq!(lines.len(), 2);
}

#[test]
fn what_falls_in_no_detour_is_counted() {
    let mut s = Scene::new();
    let events = [
        s.irq_entry(100, "a"),
        s.nmi(120, "perf", 10),
        s.irq_exit(190, "a"),
        s.softirq_entry(200, "rcu"),
        s.softirq_exit(230, "rcu"),
        s.irq_entry(1_100, "a"),
        s.irq_exit(1_400, "a"),
        s.irq_entry(2_100, "a"),
        s.irq_exit(2_130, "a"),
    ];
    let (_, outcome) = s.lines(1_500, &events);
    assert_eq!((outcome.tally.below_threshold_events, outcome.tally.below_threshold_max.get()), (4, 90));
}

#[test]
fn events_may_be_let_go_of_where_no_step_will_come() {
    let mut s = Scene::new();
    let mut attributor = s.attributor();
    let (mut detours, mut activities) = (Vec::new(), Vec::new());
    let first = [s.irq_entry(100, "a"), s.irq_exit(150, "a"), s.irq_entry(1_100, "a"), s.irq_exit(1_300, "a")];
    attributor.attribute(&[], &first, &s.tasks, &mut detours, &mut activities);
    assert_eq!(attributor.tally().events, 0);
    attributor.advance(Nanos::new(1_000));
    assert_eq!((attributor.tally().events, attributor.tally().below_threshold_events), (2, 1));
    // All that is known is attributed already; what comes now from before 1,900 is late.
    attributor.attribute(&[step(1_050, 1_500)], &[], &s.tasks, &mut detours, &mut activities);
    attributor.advance(Nanos::new(1_900));
    let next = [s.irq_entry(1_890, "b"), s.irq_entry(2_100, "b"), s.irq_exit(2_200, "b")];
    // The first of these steps breaks the promise.
    let steps = [step(1_850, 2_000), step(2_000, 2_300)];
    attributor.attribute(&steps, &next, &s.tasks, &mut detours, &mut activities);
    let tally = attributor.finish();
    assert_eq!((tally.late_events, tally.incomplete, tally.events), (1, 1, 7));
    assert_eq!(detours.iter().map(|detour| detour.incomplete).collect::<Vec<_>>(), [false, true, false]);
    let irqs: Vec<_> = activities.iter().filter(|row| row.kind == Kind::Irq).map(|row| row.detour).collect();
    assert_eq!(irqs, [0, 2]);
    assert_books_close(&Outcome { detours, activities, tally });
}

#[test]
fn entries_without_exits_do_not_pile_up() {
    let mut s = Scene::new();
    let events: Vec<_> = (0..10_000).map(|n| s.softirq_entry(1_000 + n, if n % 2 == 0 { "a" } else { "b" })).collect();
    let (lines, outcome) = s.lines(20_000, &events);
    assert_eq!(lines.len(), 10_000);
    assert_eq!(outcome.tally.unmatched_entries, 10_000);
}

#[test]
fn steps_that_make_no_sense_are_refused() {
    let mut s = Scene::new();
    let steps = [
        step(1_000, 2_000),
        step(1_500, 2_500),
        step(3_000, 3_000),
        step(4_000, 3_500),
        step(i64::MIN, i64::MAX),
        step(5_000, 6_000),
    ];
    let outcome = s.attribute(&steps, &[]);
    assert_books_close(&outcome);
    assert_eq!((outcome.detours.len(), outcome.tally.refused_steps), (2, 4));
}
