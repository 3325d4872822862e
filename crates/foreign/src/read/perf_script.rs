//! The output of `perf script` for kernel events. Each line is an event.
//!
//! ```text
//!      kworker/3:1   417 [003]   512.004411: sched:sched_switch: prev_comm=app prev_pid=90 prev_prio=120 ...
//!  thread          tid   [cpu]   seconds:    system:event: fields
//! ```
//!
//! From `tools/perf/builtin-script.c` and the events' `TP_printk`. Names may contain blanks, so a line is read from its `[cpu] seconds:` in
//! both directions. [`super::kernel_text`] reads the fields.

use super::kernel_text::{KernelText, Line, ParsedLine, is_digits, seconds};
use super::lines::Progress;
use super::{ReadError, Source};

/// Starts to read a text. Fails if it is no text.
pub fn read<'a, 'p>(source: Source<'a>, progress: Progress<'p>) -> Result<KernelText<'a, 'p>, ReadError> {
    KernelText::new(source, line, progress)
}

/// Finds `[cpu] seconds:` and reads the text before it backwards.
fn line(line: &str) -> ParsedLine<'_> {
    let mut from = 0;
    while let Some(at) = line[from..].find('[') {
        let open = from + at;
        from = open + 1;
        let Some((cpu, after)) = line[from..].split_once(']').filter(|(cpu, _)| is_digits(cpu)) else { continue };
        // Between them, some versions print flags like `d.h2.`.
        let Some((stamp, rest)) = after.split_once(": ") else { continue };
        let Some((time, decimals)) = stamp.split_whitespace().next_back().and_then(seconds) else { continue };
        if stamp.split_whitespace().count() > 2 {
            continue;
        }
        let (name, thread, process) = thread(line[..open].trim_end());
        let Some((period, [system, event, fields])) = split_event(rest) else { return ParsedLine::Other };
        let line = Line { name, thread, process, cpu, time, decimals, period, system, event, fields };
        return if event == LOST {
            ParsedLine::Lost { line, count: fields.split_whitespace().find_map(|word| word.parse().ok()) }
        } else {
            ParsedLine::Event(line)
        };
    }
    ParsedLine::Other
}

/// A thread's name, its number, and that of its process. They are `process/thread` if both are printed, and -1 if perf does not know them.
fn thread(text: &str) -> (&str, Option<i32>, Option<i32>) {
    let (name, numbers) = text.rsplit_once(char::is_whitespace).unwrap_or(("", text));
    let (process, thread) =
        numbers.rsplit_once('/').map_or((None, numbers), |(process, thread)| (Some(process), thread));
    let number = |text: &str| text.parse::<i32>().ok().filter(|number| *number >= 0);
    (name.trim(), number(thread), process.and_then(number))
}

const LOST: &str = "PERF_RECORD_LOST";

/// The period of an event, which perf prints on request; its system, its name, and its fields.
fn split_event(rest: &str) -> Option<(u64, [&str; 3])> {
    let mut rest = rest.trim_start();
    let mut period = 1;
    if let Some((first, after)) = rest.split_once(char::is_whitespace)
        && is_digits(first)
    {
        period = first.parse().unwrap_or(u64::MAX);
        rest = after.trim_start();
    }
    let (event, fields) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if event == LOST {
        return Some((period, ["", event, fields]));
    }
    let (system, event) = event.strip_suffix(':')?.split_once(':')?;
    Some((period, [system, event, fields]))
}

/// True if the lines of events lack the CPU: `perf script` prints it only for recordings that have it.
pub(super) fn lacks_cpus(text: &str) -> bool {
    text.lines().any(|line| {
        let Some((before, rest)) = line.split_once(": ") else { return false };
        let Some((before, stamp)) = before.trim_end().rsplit_once(char::is_whitespace) else { return false };
        let is_event =
            seconds(stamp).is_some() && split_event(rest).is_some_and(|(_, [system, ..])| !system.is_empty());
        is_event && !before.trim_end().ends_with(']') && thread(before.trim_end()).1.is_some()
    })
}

/// True if the lines of events lack the time.
pub(super) fn lacks_times(text: &str) -> bool {
    text.lines().any(|line| {
        let Some((before, rest)) = line.split_once('[') else { return false };
        let Some((_, rest)) = rest.split_once(']').filter(|(cpu, _)| is_digits(cpu)) else { return false };
        thread(before.trim_end()).1.is_some() && split_event(rest).is_some_and(|(_, [system, ..])| !system.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use becalm_model::ThreadState;
    use becalm_model::carried::Carrier;
    use becalm_units::Nanos;

    use super::*;
    use crate::read::kernel_text::{TextEvent, TextHappening};

    fn all(text: &str) -> Result<Vec<TextEvent<'_>>, String> {
        let source = Source { name: "", bytes: text.as_bytes() };
        read(source, &mut |_| {}).unwrap().collect::<Result<_, _>>().map_err(|error| error.to_string())
    }

    #[test]
    fn names_with_blanks_and_both_renderings_of_a_switch_are_read() {
        let text = "# a remark\n\
                    \x20 opt 6c [7] cg  21653 [001]  1314.471450: sched:sched_switch: prev_comm=a prev_pid=9 ==> x prev_pid=21653 prev_prio=125 prev_state=R+ ==> next_comm=fleet::tests::a next_pid=20637 next_prio=110\n\
                    \x20           :-1    -1 [000] d.h2.  1314.471451001:   1 sched:sched_switch: kworker/u4:1:33 [120] D|W ==> swapper/0:0 [120]\n\
                    \tffffffff81000000 entry_SYSCALL_64 ([kernel.kallsyms])\n";
        let events = all(text).unwrap();
        assert_eq!(events.len(), 2);
        assert_eq!((events[0].thread, events[0].name, events[0].cpu.get()), (Some(21653), "opt 6c [7] cg", 1));
        let (prev, next) = ((21653, "a prev_pid=9 ==> x"), (20637, "fleet::tests::a"));
        assert_eq!(events[0].what, TextHappening::Switch { prev, prev_state: ThreadState::RUNNABLE, next });
        assert_eq!((events[1].thread, events[1].time), (None, Nanos::new(1_314_471_451_001)));
        let (prev, next) = ((33, "kworker/u4:1"), (0, "swapper/0"));
        assert_eq!(events[1].what, TextHappening::Switch { prev, prev_state: ThreadState::UNINTERRUPTIBLE, next });
    }

    #[test]
    fn old_and_new_fields_are_read_alike() {
        for (old, new) in [
            ("irq:irq_handler_entry: irq=41 handler=nvme0 q3", "irq:irq_handler_entry: irq=41 name=nvme0 q3"),
            ("irq:irq_handler_exit: irq=41 return=handled", "irq:irq_handler_exit: irq=41 ret=handled"),
            ("irq:softirq_entry: softirq=7 action=SCHED", "irq:softirq_entry: vec=7 [action=SCHED]"),
        ] {
            let line = |event| format!("swapper 0 [003] 5.000001: {event}\n");
            let (old, new) = (line(old), line(new));
            assert_eq!(all(&old).unwrap(), all(&new).unwrap());
        }
        let works = all(
            "k 9 [0] 1.000000: workqueue:workqueue_execute_start: work struct 0xffff8881: function vmstat_update\n\
             k 9 [0] 1.000001: workqueue:workqueue_execute_end: work struct 0xffff8881\n\
             k 9 [0] 1.000002: nmi:nmi_handler: perf_event_nmi_handler() delta_ns: 1503 handled: 1\n",
        )
        .unwrap();
        assert_eq!(works[0].what, TextHappening::WorkStart { work: 0xffff_8881, function: "vmstat_update" });
        assert_eq!(works[1].what, TextHappening::WorkEnd { work: 0xffff_8881, function: None });
        let carried = all(
            "k 9 [0] 1.000003: timer:timer_expire_entry: timer=0xffff88 function=delayed_work_timer_fn now=4295 baseclk=4295\n\
             k 9 [0] 1.000004: irq:tasklet_entry: tasklet=0xffff88 function=tcp_tasklet_func\n\
             k 9 [0] 1.000005: csd:csd_function_entry: func=rps_trigger_softirq, csd=0xffff88\n\
             k 9 [0] 1.000006: sched:sched_waking: kworker/0:2:417 [120] CPU:000\n",
        )
        .unwrap();
        let function = |carrier, function| TextHappening::FunctionEntry { carrier, function };
        let expected = [
            function(Carrier::Wheel, "delayed_work_timer_fn"),
            function(Carrier::Tasklet, "tcp_tasklet_func"),
            function(Carrier::Call, "rps_trigger_softirq"),
            TextHappening::Waking { thread: (417, "kworker/0:2") },
        ];
        assert!(carried.iter().map(|event| event.what).eq(expected), "{carried:?}");
        assert_eq!(works[2].what, TextHappening::Nmi { handler: "perf_event_nmi_handler", delta: Nanos::new(1_503) });
    }

    #[test]
    fn a_line_that_is_cut_is_an_error_with_its_number() {
        let whole = "a 1 [000] 1.000001: irq:softirq_exit: vec=1 [action=TIMER]\n";
        let cut = format!("{whole}a 1 [000] 1.000002: irq:softirq_entry: ve");
        assert_eq!(all(&cut).unwrap_err(), "line 2: irq:softirq_entry has no readable vec");
        let far = whole.replace("[000]", "[99999999]");
        assert!(all(&far).unwrap_err().contains("above the limit"));
    }
}
