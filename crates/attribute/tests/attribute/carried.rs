//! Written-out cases of interrupts that are named by their purpose. Each is a step of the loop from 1,000 ns on.

use becalm_attribute::Tally;
use becalm_model::Kind;
use becalm_model::carried::Carrier;

use crate::scene::{COLLECTOR, KSOFTIRQD, KWORKERS, LOOP, SSHD, Scene, event_of_thread, line, sleep, switch, wake};

#[test]
fn an_interrupt_is_named_by_its_first_function_and_further_ones_have_rows() {
    let mut s = Scene::new();
    let timer = "untraced";
    let events = [
        s.irq_entry(1_100, "local_timer"),
        s.function_entry(1_200, Carrier::Timer, "timer:hrtimer_wakeup", timer),
        wake(1_300, SSHD),
        wake(1_350, KSOFTIRQD),
        s.function_exit(1_500, Carrier::Timer, timer),
        s.function_entry(1_600, Carrier::Timer, "tick", timer),
        // The root of the tick is the tick, although it wakes a thread.
        wake(1_700, KSOFTIRQD),
        s.function_exit(1_900, Carrier::Timer, timer),
        s.irq_exit(2_000, "local_timer"),
        s.softirq_entry(2_100, "tasklet"),
        s.function_entry(2_150, Carrier::Tasklet, "one", timer),
        s.function_entry(2_200, Carrier::Tasklet, "one", timer),
        s.function_entry(2_250, Carrier::Tasklet, "a", timer),
        s.function_entry(2_300, Carrier::Tasklet, "b", timer),
        s.function_entry(2_350, Carrier::Tasklet, "c", timer),
        s.function_entry(2_400, Carrier::Tasklet, "d", timer),
        s.softirq_exit(2_500, "tasklet"),
        // The trace lacks the softirq, and a thread calls a function on its own CPU.
        s.function_entry(2_800, Carrier::Tasklet, "lost", timer),
        s.function_entry(2_805, Carrier::Wheel, "timer:lost", timer),
        s.function_entry(2_810, Carrier::Call, "ipi:do_sync_core", timer),
        s.function_exit(2_820, Carrier::Call, timer),
    ];
    let (lines, outcome) = s.lines(3_000, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 100, Kind::Edge, "entry", "task:sshd"),
            line(1_100, 600, Kind::Irq, "timer:hrtimer_wakeup", "task:sshd"),
            line(1_600, 300, Kind::Irq, "tick", "local_timer"),
            line(2_000, 100, Kind::Edge, "between", "irq:tick"),
            line(2_100, 400, Kind::Softirq, "tasklet", "irq:tick \u{2192} one, a, b, ..."),
            line(2_500, 480, Kind::Edge, "exit", "irq:tick"),
        ]
    );
    assert_eq!(outcome.tally, Tally { events: 21, ..Tally::default() });
}

/// The tick raises the softirqs of timers, but their time belongs to what expired: the thread that a timer wakes, the work item that it
/// starts, or the timer itself. What follows on the way out of the tick is still the tick's.
#[test]
fn a_timer_softirq_is_charged_to_what_expired() {
    let mut s = Scene::new();
    let timer = "untraced";
    let in_kworker = |event| event_of_thread(KWORKERS[0], event);
    let events = [
        s.irq_entry(1_100, "local_timer"),
        s.function_entry(1_110, Carrier::Timer, "tick", timer),
        s.function_exit(1_190, Carrier::Timer, timer),
        s.irq_exit(1_200, "local_timer"),
        s.softirq_entry(1_300, "timer"),
        s.function_entry(1_350, Carrier::Wheel, "timer:process_timeout", timer),
        // A call on this CPU and a device's interrupt run within the function. The threads that they wake do not count.
        s.function_entry(1_360, Carrier::Call, "ipi:do_sync_core", timer),
        wake(1_365, KSOFTIRQD),
        s.function_exit(1_370, Carrier::Call, timer),
        s.irq_entry(1_380, "eth0"),
        wake(1_385, KSOFTIRQD),
        s.irq_exit(1_390, "eth0"),
        wake(1_395, SSHD),
        s.function_entry(1_400, Carrier::Wheel, "timer:delayed_work_timer_fn", timer),
        wake(1_450, KWORKERS[0]),
        s.function_entry(1_500, Carrier::Wheel, "timer:tcp_write_timer", timer),
        s.softirq_exit(1_600, "timer"),
        s.softirq_entry(1_650, "hrtimer"),
        s.function_entry(1_660, Carrier::Timer, "timer:hrtimer_wakeup", timer),
        wake(1_670, SSHD),
        s.function_exit(1_680, Carrier::Timer, timer),
        s.function_entry(1_690, Carrier::Timer, "timer:soft", timer),
        s.function_exit(1_700, Carrier::Timer, timer),
        s.softirq_exit(1_720, "hrtimer"),
        s.softirq_entry(1_750, "rcu"),
        s.softirq_exit(1_800, "rcu"),
        switch(1_900, LOOP, KWORKERS[0]),
        in_kworker(s.work_start(1_950, "kworker:vmstat_update", 1)),
        in_kworker(s.work_end(2_000, "kworker:vmstat_update", 1)),
        sleep(2_050, KWORKERS[0], LOOP),
    ];
    let (lines, outcome) = s.lines(2_170, &events);
    let timers: Vec<_> =
        lines.into_iter().filter(|row| row.2 != Kind::Edge && row.0 >= 1_300 && row.0 < 1_900).collect();
    assert_eq!(
        timers,
        [
            line(1_300, 90, Kind::Softirq, "timer:process_timeout", "task:sshd"),
            line(1_380, 10, Kind::Irq, "eth0", "vector"),
            line(1_400, 100, Kind::Softirq, "timer:delayed_work_timer_fn", "workqueue:kworker:vmstat_update"),
            line(1_500, 100, Kind::Softirq, "timer:tcp_write_timer", "timer"),
            line(1_650, 60, Kind::Softirq, "timer:hrtimer_wakeup", "task:sshd"),
            line(1_690, 10, Kind::Softirq, "timer:soft", "hrtimer"),
            line(1_750, 50, Kind::Softirq, "rcu", "irq:tick"),
        ]
    );
    assert_eq!(outcome.tally, Tally { events: 30, ..Tally::default() });
}

#[test]
fn an_interrupt_from_another_cpu_is_charged_by_its_purpose() {
    let mut s = Scene::new();
    let events = [
        s.irq_entry(1_100, "call_function_single"),
        s.function_entry(1_200, Carrier::Call, "ipi:rps_trigger_softirq", ""),
        s.function_exit(1_300, Carrier::Call, ""),
        s.irq_exit(1_400, "call_function_single"),
        s.softirq_entry(1_500, "net_rx"),
        s.softirq_exit(1_900, "net_rx"),
        // One lets a thread run, and one wakes a thread without a function.
        s.irq_entry(2_000, "reschedule"),
        s.irq_exit(2_100, "reschedule"),
        switch(2_200, LOOP, SSHD),
        sleep(2_600, SSHD, LOOP),
        s.irq_entry(2_700, "irq_work"),
        wake(2_750, COLLECTOR),
        s.irq_exit(2_800, "irq_work"),
        // A device interrupt is its own root, although it wakes a thread.
        s.irq_entry(2_900, "eth0"),
        wake(2_950, SSHD),
        s.irq_exit(3_000, "eth0"),
    ];
    let (lines, _) = s.lines(3_020, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 100, Kind::Edge, "entry", "softirq:net_rx"),
            line(1_100, 300, Kind::Irq, "ipi:rps_trigger_softirq", "softirq:net_rx"),
            line(1_400, 100, Kind::Edge, "between", "softirq:net_rx"),
            line(1_500, 400, Kind::Softirq, "net_rx", ""),
            line(1_900, 100, Kind::Edge, "between", "task:sshd"),
            line(2_000, 100, Kind::Irq, "reschedule", "task:sshd"),
            line(2_100, 100, Kind::Edge, "between", "task:sshd"),
            line(2_200, 400, Kind::Task, "sshd", "pid 700"),
            line(2_600, 100, Kind::Edge, "between", "self:becalm"),
            line(2_700, 100, Kind::Irq, "irq_work", "self:becalm"),
            line(2_800, 100, Kind::Edge, "between", "irq:eth0"),
            line(2_900, 100, Kind::Irq, "eth0", "vector"),
        ]
    );
}

/// The timer of a deadline lets its thread run without waking it. Other timers without a thread are their own root, and a function without
/// a name leaves the interrupt its own name.
#[test]
fn a_timer_is_charged_to_the_thread_that_it_lets_run() {
    let mut s = Scene::new();
    let timer = "untraced";
    let mut all = Vec::new();
    for (at, function) in [(1_100, "timer:dl_task_timer"), (2_000, "timer:perf_swevent_hrtimer"), (3_000, "")] {
        all.extend([
            s.irq_entry(at, "local_timer"),
            s.function_entry(at + 10, Carrier::Timer, function, timer),
            s.function_exit(at + 20, Carrier::Timer, timer),
            s.irq_exit(at + 100, "local_timer"),
        ]);
        if at == 1_100 {
            all.extend([switch(1_300, LOOP, SSHD), sleep(1_500, SSHD, LOOP)]);
        }
    }
    let (lines, _) = s.lines(3_120, &all);
    let irqs: Vec<_> = lines.into_iter().filter(|row| row.2 == Kind::Irq).collect();
    assert_eq!(
        irqs,
        [
            line(1_100, 100, Kind::Irq, "timer:dl_task_timer", "task:sshd"),
            line(2_000, 100, Kind::Irq, "timer:perf_swevent_hrtimer", "local_timer"),
            line(3_000, 100, Kind::Irq, "local_timer", "vector"),
        ]
    );
}

#[test]
fn timers_show_interrupts_without_events() {
    let mut s = Scene::new();
    let hyper_v = "hyperv_stimer0";
    let events = [
        s.function_entry(1_500, Carrier::Timer, "tick", hyper_v),
        s.function_exit(2_500, Carrier::Timer, hyper_v),
        // The same interrupt runs the next one.
        s.function_entry(2_600, Carrier::Timer, "timer:hrtimer_wakeup", hyper_v),
        wake(2_700, SSHD),
        s.function_exit(3_000, Carrier::Timer, hyper_v),
        s.softirq_entry(3_100, "net_rx"),
        // Another one, in the middle of the softirq.
        s.function_entry(3_500, Carrier::Timer, "timer:watchdog_timer_fn", hyper_v),
        s.function_exit(3_700, Carrier::Timer, hyper_v),
        s.softirq_exit(4_000, "net_rx"),
    ];
    let (lines, outcome) = s.lines(4_120, &events);
    assert_eq!(
        lines,
        [
            line(1_000, 500, Kind::Edge, "entry", "irq:tick"),
            line(1_500, 1_100, Kind::Irq, "tick", hyper_v),
            line(2_600, 400, Kind::Irq, "timer:hrtimer_wakeup", "task:sshd"),
            line(3_000, 100, Kind::Edge, "between", "irq:tick"),
            line(3_100, 700, Kind::Softirq, "net_rx", "irq:tick"),
            line(3_500, 200, Kind::Irq, "timer:watchdog_timer_fn", hyper_v),
            line(4_000, 100, Kind::Edge, "exit", "irq:tick"),
        ]
    );
    assert_eq!(outcome.tally, Tally { events: 9, ..Tally::default() });
}
