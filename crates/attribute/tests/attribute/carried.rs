//! Written-out cases of interrupts that are named by their purpose. Each is a step of the loop from 1,000 ns on.

use becalm_attribute::Tally;
use becalm_model::Kind;
use becalm_model::carried::Carrier;

use crate::scene::{COLLECTOR, KSOFTIRQD, LOOP, SSHD, Scene, line, sleep, switch, wake};

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
        s.softirq_entry(2_100, "timer"),
        s.function_entry(2_150, Carrier::Softirq, "process_timeout", timer),
        s.function_entry(2_200, Carrier::Softirq, "process_timeout", timer),
        s.function_entry(2_250, Carrier::Softirq, "a", timer),
        s.function_entry(2_300, Carrier::Softirq, "b", timer),
        s.function_entry(2_350, Carrier::Softirq, "c", timer),
        s.function_entry(2_400, Carrier::Softirq, "d", timer),
        s.softirq_exit(2_500, "timer"),
        s.softirq_entry(2_500, "hrtimer"),
        s.function_entry(2_600, Carrier::Timer, "timer:soft", timer),
        s.function_exit(2_650, Carrier::Timer, timer),
        s.softirq_exit(2_700, "hrtimer"),
        // The trace lacks the softirq, and a thread calls a function on its own CPU.
        s.function_entry(2_800, Carrier::Softirq, "lost", timer),
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
            line(2_100, 400, Kind::Softirq, "timer", "irq:tick \u{2192} process_timeout, a, b, ..."),
            line(2_500, 200, Kind::Softirq, "hrtimer", "irq:tick \u{2192} timer:soft"),
            line(2_700, 280, Kind::Edge, "exit", "irq:tick"),
        ]
    );
    assert_eq!(outcome.tally, Tally { events: 24, ..Tally::default() });
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
