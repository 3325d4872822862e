//! Written-out cases. Each is a step of the loop from 1,000 ns on, unless it says otherwise.

use becalm_attribute::Tally;
use becalm_model::unseen::Watch;
use becalm_model::{Kind, Pid, Platform};
use becalm_units::Nanos;

use crate::scene::{
    COLLECTOR, KSOFTIRQD, KWORKERS, LOOP, Outcome, SSHD, STRANGER, Scene, assert_books_close, event_of_thread, line,
    lost, sleep, step, switch, with_threads,
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
    // All of it is the tick's; of the 250 after it, 20 are the loop's shortest step.
    assert_eq!(
        lines,
        [
            line(1_000, 100, Kind::Edge, "entry", "irq:local_timer"),
            line(1_100, 3_000, Kind::Irq, "local_timer", "vector"),
            line(4_100, 100, Kind::Edge, "between", "irq:local_timer"),
            line(4_200, 500, Kind::Softirq, "timer", "irq:local_timer"),
            line(4_700, 50, Kind::Edge, "between", "irq:local_timer"),
            line(4_750, 1_200, Kind::Softirq, "sched", "irq:local_timer"),
            line(5_950, 230, Kind::Edge, "exit", "irq:local_timer"),
        ]
    );
    assert_eq!(outcome.tally, Tally { events: 6, ..Tally::default() });
}

#[test]
fn what_was_seen_beside_the_trace_explains_steps_without_events() {
    let watch = |steal, smis| Watch { from: Nanos::ZERO, until: Nanos::from_millis(100), steal, smis };
    let away = step(250_000, 253_000);
    for (platform, watched, sources) in [
        (Platform::Guest, watch(Nanos::from_millis(10), 0), ["stolen", "stolen", "sibling", "exit_to_host"]),
        (Platform::Guest, watch(Nanos::ZERO, 3), ["long", "long", "sibling", "exit_to_host"]),
        (Platform::Metal, watch(Nanos::from_millis(10), 1), ["smi", "long", "sibling", "stall"]),
    ] {
        let mut s = Scene::new();
        s.platform = platform;
        let mut attributor = s.attributor();
        attributor.look_beside(&[watched], &[away]);
        let steps = [step(1_000, 51_000), step(100_000, 140_000), step(251_000, 254_000), step(300_000, 303_000)];
        let mut outcome = Outcome::default();
        s.hand_over(&mut attributor, &steps, &[], &mut outcome);
        let outcome = s.end(&mut attributor, outcome);
        assert_books_close(&outcome);
        let found: Vec<String> = s.readable(&outcome).into_iter().map(|(_, (_, _, _, source, _))| source).collect();
        assert_eq!(found, sources, "{platform:?}");
        assert!(outcome.activities.iter().all(|row| row.kind == Kind::Unseen));
    }
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
            line(1_000, 100, Kind::Edge, "entry", "softirq:net_rx"),
            line(1_100, 400, Kind::Softirq, "net_rx", ""),
            line(1_200, 260, Kind::Irq, "virtio1-req.0", "vector"),
            line(1_350, 100, Kind::Nmi, "perf", ""),
            line(1_460, 40, Kind::Nmi, "watchdog", ""),
            line(1_900, 80, Kind::Edge, "exit", "softirq:net_rx"),
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
            line(1_000, 100, Kind::Edge, "entry", "irq:a"),
            line(1_100, 200, Kind::Irq, "a", "vector"),
            line(1_300, 100, Kind::Nmi, "late", ""),
            line(1_400, 80, Kind::Edge, "exit", "nmi:late"),
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
            line(1_000, 100, Kind::Edge, "entry", "task:sshd"),
            line(1_100, 100, Kind::Irq, "reschedule", "task:sshd"),
            line(1_200, 100, Kind::Edge, "between", "task:sshd"),
            line(1_300, 800, Kind::Task, "sshd", "pid 700"),
            line(1_400, 200, Kind::Irq, "local_timer", "vector"),
            line(2_300, 150, Kind::Kthread, "ksoftirqd", "ksoftirqd/1 pid 23"),
            line(2_400, 100, Kind::Softirq, "rcu", "kthread:ksoftirqd"),
            line(2_550, 50, Kind::Becalm, "becalm", "pid 101"),
            line(2_600, 100, Kind::Task, "unknown", ""),
            line(2_700, 80, Kind::Edge, "exit", "task:unknown"),
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
        let cause = format!("throttling:{source}");
        assert_eq!(
            lines,
            [
                line(1_000, 100, Kind::Edge, "entry", "irq:local_timer"),
                line(1_100, 200, Kind::Irq, "local_timer", "vector"),
                line(1_300, 100, Kind::Edge, "between", &cause),
                line(1_400, 49_600, Kind::Throttling, source, ""),
                line(51_000, 80, Kind::Edge, "exit", &cause),
            ]
        );
    }
}

#[test]
fn throttling_is_one_absence_although_other_threads_run() {
    let mut s = Scene::new();
    let events = [
        // Pre-empted: the CPU never idles.
        switch(1_100, LOOP, SSHD),
        sleep(1_300, SSHD, LOOP),
        // Throttled: what runs before, between and after takes nothing from the loop. A softirq in a thread, a work item, a
        // handler, a switch that is not in the trace.
        switch(2_000, LOOP, SSHD),
        s.irq_entry(2_100, "eth0"),
        s.irq_exit(2_200, "eth0"),
        sleep(3_000, SSHD, Pid::IDLE),
        switch(5_000, Pid::IDLE, KSOFTIRQD),
        s.softirq_entry(5_100, "rcu"),
        sleep(5_200, KSOFTIRQD, KWORKERS[0]),
        s.work_start(5_300, "kworker:flush", 7),
        s.nmi(5_500, "perf", 100),
        s.work_end(5_600, "", 7),
        event_of_thread(SSHD, s.irq_entry(6_000, "eth0")),
        event_of_thread(SSHD, s.irq_exit(6_100, "eth0")),
        switch(6_500, SSHD, KSOFTIRQD),
        s.softirq_exit(6_600, "rcu"),
        switch(7_000, KSOFTIRQD, LOOP),
        // And pre-empted again.
        switch(7_500, LOOP, SSHD),
        sleep(7_700, SSHD, LOOP),
    ];
    let (lines, outcome) = s.lines(8_000, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 100, Kind::Edge, "entry", "task:sshd"),
            line(1_100, 200, Kind::Task, "sshd", "pid 700"),
            line(1_300, 700, Kind::Edge, "between", "throttling:cfs_bandwidth"),
            line(2_000, 5_000, Kind::Throttling, "cfs_bandwidth", ""),
            line(7_000, 500, Kind::Edge, "between", "task:sshd"),
            line(7_500, 200, Kind::Task, "sshd", "pid 700"),
            line(7_700, 280, Kind::Edge, "exit", "task:sshd"),
        ]
    );
    assert_eq!((outcome.tally.unmatched_switches, outcome.tally.missing_switch), (1, Nanos::ZERO));
    assert_eq!(outcome.tally.below_threshold_events, 0);
}

/// Seen on Linux 6.18: an injecting thread preempts the loop, and both reach the limit.
#[test]
fn a_thread_that_preempts_the_loop_may_reach_the_limit_on_real_time_threads() {
    let mut s = Scene::new();
    s.thread.realtime = true;
    let events = [
        switch(1_100, LOOP, SSHD),
        sleep(1_300, SSHD, Pid::IDLE),
        switch(5_000, Pid::IDLE, KSOFTIRQD),
        sleep(6_000, KSOFTIRQD, Pid::IDLE),
        switch(51_000, Pid::IDLE, LOOP),
    ];
    let (lines, _) = s.lines(51_100, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 100, Kind::Edge, "entry", "task:sshd"),
            line(1_100, 200, Kind::Task, "sshd", "pid 700"),
            line(1_300, 49_700, Kind::Throttling, "rt_throttling", ""),
            line(51_000, 80, Kind::Edge, "exit", "throttling:rt_throttling"),
        ]
    );
}

#[test]
fn throttling_begins_with_the_idle_time_where_the_loop_left_unseen() {
    let mut s = Scene::new();
    let events = [
        event_of_thread(SSHD, s.irq_entry(1_200, "eth0")),
        event_of_thread(SSHD, s.irq_exit(1_300, "eth0")),
        sleep(1_500, SSHD, Pid::IDLE),
        switch(2_000, Pid::IDLE, SSHD),
        switch(2_500, SSHD, LOOP),
    ];
    let (lines, _) = s.lines(3_000, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 200, Kind::NotTraced, "missing_switch", "the measuring thread or task:sshd"),
            line(1_200, 200, Kind::Task, "sshd", "pid 700"),
            line(1_200, 100, Kind::Irq, "eth0", "vector"),
            line(1_500, 1_000, Kind::Throttling, "cfs_bandwidth", ""),
            line(2_500, 480, Kind::Edge, "exit", "throttling:cfs_bandwidth"),
        ]
    );
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
            line(1_000, 80, Kind::Edge, "entry", "fault:page_fault_user"),
            line(1_100, 8_100, Kind::Fault, "page_fault_user", ""),
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
    assert_eq!(
        lines,
        [
            line(1_000, 100, Kind::Edge, "entry", "task:blocked"),
            line(1_100, 800, Kind::Task, "blocked", ""),
            line(1_900, 80, Kind::Edge, "exit", "task:blocked"),
        ]
    );
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
            line(1_000, 100, Kind::Edge, "entry", "kthread:kworker"),
            line(1_100, 50, Kind::Kthread, "kworker", "kworker/1:0 pid 40"),
            line(1_150, 550, Kind::Workqueue, "kworker:vmstat_update", "kworker/1:0 pid 40"),
            line(1_400, 500, Kind::Task, "sshd", "pid 700"),
            line(1_900, 30, Kind::Kthread, "kworker", "kworker/1:0 pid 40"),
            line(2_230, 50, Kind::Edge, "exit", "kthread:kworker"),
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
    assert_eq!(lines, [line(1_000, 29_980, Kind::Unseen, "long", ""),]);
    assert!(!outcome.detours[0].incomplete);
}

#[test]
fn what_took_no_time_still_happened() {
    let mut s = Scene::new();
    let events = [s.irq_entry(1_500, "call_function"), s.irq_exit(1_500, "call_function")];
    let (lines, _) = s.lines(2_000, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 500, Kind::Edge, "entry", "irq:call_function"),
            line(1_500, 0, Kind::Irq, "call_function", "vector"),
            line(1_500, 480, Kind::Edge, "exit", "irq:call_function"),
        ]
    );
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
            line(1_400, 100, Kind::Edge, "between", "irq:local_timer"),
            line(1_500, 100, Kind::Softirq, "timer", "irq:local_timer"),
            line(1_600, 80, Kind::Edge, "exit", "irq:local_timer"),
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
            line(1_000, 100, Kind::Edge, "entry", "softirq:net_rx"),
            line(1_100, 100, Kind::Softirq, "net_rx", ""),
            line(1_200, 100, Kind::Irq, "eth0", "vector"),
            line(1_300, 200, Kind::Workqueue, "kworker:unknown", ""),
            line(1_500, 80, Kind::Edge, "exit", "workqueue:kworker:unknown"),
        ]
    );
    assert_eq!((outcome.tally.unmatched_entries, outcome.tally.unmatched_exits), (1, 1));
}

#[test]
fn a_switch_from_an_unexpected_thread_leaves_open_who_ran_before_it() {
    let mut s = Scene::new();
    let events = [
        switch(1_100, LOOP, KSOFTIRQD),
        s.irq_entry(1_150, "open"),
        switch(1_400, SSHD, KWORKERS[0]),
        switch(1_500, KWORKERS[0], LOOP),
    ];
    let (lines, outcome) = s.lines(1_600, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 100, Kind::Edge, "entry", "kthread:ksoftirqd"),
            line(1_100, 50, Kind::Kthread, "ksoftirqd", "ksoftirqd/1 pid 23"),
            line(1_150, 0, Kind::Irq, "open", "vector"),
            line(1_150, 250, Kind::NotTraced, "missing_switch", "kthread:ksoftirqd or task:sshd"),
            line(1_400, 0, Kind::Task, "sshd", "pid 700"),
            line(1_400, 100, Kind::Kthread, "kworker", "kworker/1:0 pid 40"),
            line(1_500, 80, Kind::Edge, "exit", "kthread:kworker"),
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
    assert_eq!(own, [(Kind::Edge, 80), (Kind::Irq, 500), (Kind::Edge, 100), (Kind::Irq, 100), (Kind::Edge, 280)]);
    assert_eq!(outcome.tally.unmatched_entries, 1);
}

#[test]
fn lost_events_make_their_time_unknown_and_their_detours_incomplete() {
    let mut s = Scene::new();
    let events = [
        s.irq_entry(1_100, "local_timer"),
        lost(1_500, Some(12)),
        // The first event after the gap tells who ran since.
        event_of_thread(SSHD, s.softirq_entry(1_550, "rcu")),
        s.softirq_exit(1_600, "rcu"),
        sleep(1_800, SSHD, LOOP),
    ];
    let (lines, outcome) = s.lines(2_000, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 100, Kind::Edge, "entry", "irq:local_timer"),
            line(1_100, 0, Kind::Irq, "local_timer", "vector"),
            line(1_100, 400, Kind::NotTraced, "lost_events", ""),
            line(1_500, 250, Kind::Task, "sshd", "pid 700"),
            line(1_550, 50, Kind::Softirq, "rcu", "task:sshd"),
            line(1_800, 180, Kind::Edge, "exit", "task:sshd"),
        ]
    );
    assert!(outcome.detours[0].incomplete);
    assert_eq!(outcome.tally, Tally { events: 4, lost_events: 12, lost_gaps: 1, incomplete: 1, ..Tally::default() });
}

#[test]
fn after_the_end_of_the_trace_nothing_is_known() {
    let mut s = Scene::new();
    let events = [
        s.irq_entry(1_100, "local_timer"),
        s.irq_exit(1_500, "local_timer"),
        s.irq_entry(2_100, "local_timer"),
        // What comes later may be by another clock, or of other CPUs.
        s.irq_exit(2_600, "disk"),
        s.irq_entry(4_100, "disk"),
    ];
    let events = with_threads(&events);
    let mut attributor = s.attributor();
    let mut outcome = Outcome::default();
    s.hand_over(&mut attributor, &[step(1_000, 2_000)], &events[..3], &mut outcome);
    attributor.end_trace(Nanos::new(2_500));
    s.hand_over(&mut attributor, &[step(2_050, 3_000), step(4_000, 5_000)], &events[3..], &mut outcome);
    let outcome = s.end(&mut attributor, outcome);
    assert_books_close(&outcome);
    assert_eq!(
        s.readable(&outcome),
        [
            (0, line(1_000, 100, Kind::Edge, "entry", "irq:local_timer")),
            (0, line(1_100, 400, Kind::Irq, "local_timer", "vector")),
            (0, line(1_500, 480, Kind::Edge, "exit", "irq:local_timer")),
            (1, line(2_050, 930, Kind::NotTraced, "trace_changed", "")),
            (2, line(4_000, 980, Kind::NotTraced, "trace_changed", "")),
        ]
    );
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
    assert_eq!(lines.len(), 3);
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
    let mut outcome = Outcome::default();
    let first = [s.irq_entry(100, "a"), s.irq_exit(150, "a"), s.irq_entry(1_100, "a"), s.irq_exit(1_300, "a")];
    let first = first.map(|event| event_of_thread(LOOP, event));
    s.hand_over(&mut attributor, &[], &first, &mut outcome);
    assert_eq!(attributor.tally().events, 0);
    attributor.advance(Nanos::new(1_000), &s.tasks, &mut s.labels);
    assert_eq!((attributor.tally().events, attributor.tally().below_threshold_events), (2, 1));
    // All that is known is attributed already; what comes now from before 1,900 is late.
    s.hand_over(&mut attributor, &[step(1_050, 1_500)], &[], &mut outcome);
    attributor.advance(Nanos::new(1_900), &s.tasks, &mut s.labels);
    let next = [s.irq_entry(1_890, "b"), s.irq_entry(2_100, "b"), s.irq_exit(2_200, "b")];
    let next = next.map(|event| event_of_thread(LOOP, event));
    // The first of these steps breaks the promise.
    let steps = [step(1_850, 2_000), step(2_000, 2_300)];
    s.hand_over(&mut attributor, &steps, &next, &mut outcome);
    let Outcome { detours, activities, tally } = s.end(&mut attributor, outcome);
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

#[test]
fn every_event_tells_who_runs_so_that_a_missing_switch_leaves_little_unknown() {
    let mut s = Scene::new();
    let events = [
        switch(1_100, LOOP, KSOFTIRQD),
        // Here sshd came in, unseen; it is on the CPU when the tick comes, and goes unseen.
        event_of_thread(SSHD, s.irq_entry(1_400, "local_timer")),
        event_of_thread(SSHD, s.irq_exit(1_450, "local_timer")),
        event_of_thread(SSHD, s.irq_entry(5_400, "local_timer")),
        event_of_thread(SSHD, s.irq_exit(5_450, "local_timer")),
        sleep(5_500, KSOFTIRQD, LOOP),
    ];
    let (lines, outcome) = s.lines(5_600, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 100, Kind::Edge, "entry", "kthread:ksoftirqd"),
            line(1_100, 0, Kind::Kthread, "ksoftirqd", "ksoftirqd/1 pid 23"),
            line(1_100, 300, Kind::NotTraced, "missing_switch", "kthread:ksoftirqd or task:sshd"),
            line(1_400, 3_950, Kind::Task, "sshd", "pid 700"),
            line(1_400, 50, Kind::Irq, "local_timer", "vector"),
            line(5_400, 50, Kind::Irq, "local_timer", "vector"),
            line(5_450, 50, Kind::NotTraced, "missing_switch", "task:sshd or kthread:ksoftirqd"),
            line(5_500, 0, Kind::Kthread, "ksoftirqd", "ksoftirqd/1 pid 23"),
            line(5_500, 80, Kind::Edge, "exit", "kthread:ksoftirqd"),
        ]
    );
    assert_eq!((outcome.tally.unmatched_switches, outcome.tally.missing_switch.get()), (2, 350));
}

#[test]
fn a_work_item_that_a_softirq_runs_ends_none_that_it_interrupted() {
    let mut s = Scene::new();
    let events = [
        switch(1_100, LOOP, KWORKERS[0]),
        s.work_start(1_150, "kworker:slow", 7),
        s.irq_entry(1_200, "eth0"),
        s.irq_exit(1_250, "eth0"),
        s.softirq_entry(1_250, "tasklet"),
        s.work_start(1_300, "kworker:bh", 8),
        s.work_end(1_400, "kworker:bh", 8),
        s.softirq_exit(1_450, "tasklet"),
        s.work_end(1_700, "kworker:slow", 7),
        sleep(1_750, KWORKERS[0], LOOP),
    ];
    let (lines, outcome) = s.lines(1_800, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 100, Kind::Edge, "entry", "kthread:kworker"),
            line(1_100, 100, Kind::Kthread, "kworker", "kworker/1:0 pid 40"),
            line(1_150, 300, Kind::Workqueue, "kworker:slow", "kworker/1:0 pid 40"),
            line(1_200, 50, Kind::Irq, "eth0", "vector"),
            line(1_250, 100, Kind::Softirq, "tasklet", "irq:eth0"),
            line(1_300, 100, Kind::Workqueue, "kworker:bh", "kworker/1:0 pid 40"),
            line(1_750, 30, Kind::Edge, "exit", "kthread:kworker"),
        ]
    );
    assert_eq!((outcome.tally.unmatched_entries, outcome.tally.unmatched_exits), (0, 0));
}

#[test]
fn a_softirq_long_after_an_interrupt_is_the_threads_own() {
    let mut s = Scene::new();
    let events = [
        switch(1_100, LOOP, SSHD),
        s.irq_entry(1_200, "eth0"),
        s.irq_exit(1_300, "eth0"),
        s.softirq_entry(6_300, "net_rx"),
        s.softirq_exit(6_400, "net_rx"),
        s.softirq_entry(11_401, "net_tx"),
        s.softirq_exit(11_500, "net_tx"),
        sleep(11_600, SSHD, LOOP),
    ];
    let (lines, _) = s.lines(11_700, &events);
    let softirqs: Vec<_> =
        lines.into_iter().filter(|line| line.2 == Kind::Softirq).map(|line| (line.3, line.4)).collect();
    let expected = [("net_rx", "irq:eth0"), ("net_tx", "task:sshd")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(softirqs, expected);
}

#[test]
fn short_steps_right_after_a_detour_are_its_aftermath() {
    let mut s = Scene::new();
    let events = [s.irq_entry(1_100, "local_timer"), s.irq_exit(1_200, "local_timer")];
    // Four that follow each other, a fifth, one that is too long, one that begins later.
    let mut steps = vec![step(1_000, 1_300)];
    steps.extend((0..5).map(|n| step(1_300 + n * 100, 1_400 + n * 100)));
    steps.extend([step(1_800, 3_801), step(4_000, 4_100)]);
    let outcome = s.attribute(&steps, &events);
    assert_books_close(&outcome);
    let lines = s.readable(&outcome);
    let found: Vec<_> = lines.iter().skip(3).map(|(_, line)| (line.3.as_str(), line.4.as_str())).collect();
    let after = ("after", "irq:local_timer");
    assert_eq!(found, [after, after, after, after, ("short", ""), ("stall", ""), ("short", "")]);
}

#[test]
fn on_a_guest_what_the_host_takes_is_told_from_the_tick() {
    let mut s = Scene::new();
    s.platform = Platform::Guest;
    let (mut steps, mut events) = (Vec::new(), Vec::new());
    for tick in 1..=60 {
        let start = tick * 1_000_000;
        // The last one is taken away in its handler.
        let handler = if tick == 60 { 800_000 } else { 5_000 + tick };
        events.extend([s.irq_entry(start + 1_000, "local_timer"), s.irq_exit(start + 1_000 + handler, "local_timer")]);
        steps.push(step(start, start + 1_500 + handler));
    }
    let outcome = s.attribute(&steps, &events);
    assert_books_close(&outcome);
    let lines = s.readable(&outcome);
    let [handler, host] = [1, 2].map(|row| lines[59 * 3 + row].1.clone());
    assert!(
        (handler.3.as_str(), handler.2) == ("local_timer", Kind::Irq) && (4_400..=5_060).contains(&handler.1),
        "{handler:?}"
    );
    assert_eq!((host.2, host.3.as_str(), host.4.as_str()), (Kind::Unseen, "preempted_by_host", "irq:local_timer"));
    assert_eq!(host.1, 800_000 - handler.1);
    assert_eq!(outcome.tally.preempted_by_host, 1);
}
