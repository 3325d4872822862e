//! The kernel's trace as text: `trace` and `trace_pipe` of tracefs, and the output of `trace-cmd report`. Each line is an event.
//!
//! ```text
//!      kworker/3:1-417     (    417) [003] d...2.. 512.004411: sched_switch: prev_comm=app prev_pid=90 prev_prio=120 ...
//!  thread         -tid     (tgid)    [cpu] flags   seconds:    event: fields
//! ```
//!
//! From `kernel/trace/trace_output.c` and the events' `TP_printk`. The thread group is printed with the option `record-tgid`. Flags have
//! four to eight characters, depending on the kernel, and `trace-cmd report` may print none. Names may contain blanks and any sign, so a
//! line is read from its `[cpu] flags seconds:` in both directions. The event's system is not printed. [`super::kernel_text`] reads the
//! fields.

use becalm_units::Nanos;

use super::kernel_text::{KernelText, Line, ParsedLine, is_digits, is_name, seconds};
use super::lines::Progress;
use super::{ReadError, Source};

/// The prefix of the first line of the kernel's own text.
pub(super) const TRACER: &str = "# tracer: ";

/// Starts to read a text. Fails if it is no text.
pub fn read<'a, 'p>(source: Source<'a>, progress: Progress<'p>) -> Result<KernelText<'a, 'p>, ReadError> {
    KernelText::new(source, line, progress)
}

/// The common start of every event's line.
pub(super) struct Head<'a> {
    pub name: &'a str,
    pub thread: Option<i32>,
    pub process: Option<i32>,
    pub cpu: &'a str,
    pub time: Nanos,
    pub decimals: usize,
    /// The text after the time.
    pub rest: &'a str,
}

/// Splits a line.
pub(super) fn head(line: &str) -> Option<Head<'_>> {
    let mut from = 0;
    loop {
        let open = from + line[from..].find('[')?;
        from = open + 1;
        let Some((cpu, after)) = line[from..].split_once(']').filter(|(cpu, _)| is_digits(cpu)) else { continue };
        let Some((stamp, rest)) = after.split_once(": ") else { continue };
        let Some((time, decimals)) = stamp.split_whitespace().next_back().and_then(seconds) else { continue };
        if stamp.split_whitespace().count() > 2 {
            continue;
        }
        let (thread, process) = split_group(line[..open].trim_end());
        let (name, tid) = thread.rsplit_once('-').unwrap_or((thread, ""));
        let thread = tid.parse().ok();
        return Some(Head { name: name.trim(), thread, process, cpu, time, decimals, rest: rest.trim() });
    }
}

/// A thread without its group number, `(   1200)` or `(-----)`, and that number: its process.
fn split_group(thread: &str) -> (&str, Option<i32>) {
    let group = thread.strip_suffix(')').and_then(|before| before.rsplit_once('('));
    let is_group = |group: &str| is_digits(group.trim()) || !group.is_empty() && group.bytes().all(|sign| sign == b'-');
    let group = group.filter(|(_, group)| is_group(group));
    group.map_or((thread, None), |(thread, group)| (thread.trim_end(), group.trim().parse().ok()))
}

/// The CPU that lost events, and how many if known. The kernel prints `CPU:1 [LOST 82 EVENTS]`, trace-cmd `CPU:1 [82 EVENTS DROPPED]`; both
/// also without a number.
pub(super) fn gap(line: &str) -> Option<(&str, Option<u64>)> {
    let (cpu, rest) = line.strip_prefix("CPU:")?.split_once(" [")?;
    let words: Vec<&str> = rest.strip_suffix(']')?.split_whitespace().collect();
    match words.as_slice() {
        ["LOST", "EVENTS"] | ["EVENTS", "DROPPED"] => Some((cpu, None)),
        ["LOST", count, "EVENTS"] | [count, "EVENTS", "DROPPED"] => Some((cpu, count.parse().ok())),
        _ => None,
    }
}

fn line(line: &str) -> ParsedLine<'_> {
    if let Some((cpu, count)) = gap(line) {
        return ParsedLine::Gap { cpu, count };
    }
    let Some(Head { name, thread, process, cpu, time, decimals, rest }) = head(line) else { return ParsedLine::Other };
    let Some((event, fields)) = rest.split_once(':') else { return ParsedLine::Other };
    let Some(system) = system(event, fields) else { return ParsedLine::Other };
    // A thread with a name that the kernel had forgotten.
    let name = if name == "<...>" { "" } else { name };
    ParsedLine::Event(Line { name, thread, process, cpu, time, decimals, period: 1, system, event, fields })
}

fn system(event: &str, fields: &str) -> Option<&'static str> {
    match event {
        "irq_handler_entry" | "irq_handler_exit" | "softirq_entry" | "softirq_exit" | "tasklet_entry" => Some("irq"),
        "ipi_entry" | "ipi_exit" => Some("ipi"),
        "nmi_handler" => Some("nmi"),
        "sched_switch" | "sched_waking" | "sched_wakeup" | "sched_wakeup_new" | "sched_migrate_task"
        | "sched_process_fork" | "sched_stat_runtime" => Some("sched"),
        "task_newtask" | "task_rename" => Some("task"),
        "workqueue_execute_start" | "workqueue_execute_end" => Some("workqueue"),
        "hrtimer_expire_entry" | "hrtimer_expire_exit" | "timer_expire_entry" => Some("timer"),
        "csd_function_entry" | "csd_function_exit" => Some("csd"),
        _ if event.ends_with("_entry") || event.ends_with("_exit") => {
            fields.trim_start().starts_with("vector=").then_some("irq_vectors")
        }
        _ => None,
    }
}

/// True if a text is the kernel's trace: it has its title, or lines of events as it prints them.
pub(super) fn looks_so(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.starts_with(TRACER)) && !text.lines().any(is_of_latency)
        || text.lines().any(|text| matches!(line(text.trim()), ParsedLine::Event(_))) && have_names(text)
}

/// True if a line is the title of a trace in the kernel's latency format, which has no `[cpu] seconds:`.
pub(super) fn is_of_latency(line: &str) -> bool {
    line.starts_with("# ") && line.contains(" latency trace v")
}

/// True if the words before events are threads.
pub(super) fn have_names(text: &str) -> bool {
    text.lines().filter_map(|line| head(line.trim())).all(|head| is_name(head.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::kernel_text::{TextEvent, TextHappening, VectorDetail};
    use becalm_model::carried::Carrier;
    use becalm_units::CpuId;

    fn all(text: &str) -> Result<Vec<TextEvent<'_>>, String> {
        let source = Source { name: "", bytes: text.as_bytes() };
        read(source, &mut |_| {}).unwrap().collect::<Result<_, _>>().map_err(|error| error.to_string())
    }

    #[test]
    fn names_flags_and_groups_of_all_kernels_are_read() {
        for (head, name, thread, process) in [
            ("          solver-15165  [002] d.h. 4338.237604: ", "solver", Some(15_165), None),
            ("          solver-15165  [002] d..h.1.. 4338.237604: ", "solver", Some(15_165), None),
            ("          solver-15165 [002] 4338.237604: ", "solver", Some(15_165), None),
            ("  a) R 1-2 (b-15165  (   1200) [002] d.h1. 4338.237604: ", "a) R 1-2 (b", Some(15_165), Some(1_200)),
            ("  [7] 5.0: x-77  (-------) [002] d.h1. 4338.237604: ", "[7] 5.0: x", Some(77), None),
            ("           <...>-9     [002] d.h1. 4338.237604: ", "", Some(9), None),
            ("          <idle>-0     [002] d.h1. 4338.237604: ", "<idle>", Some(0), None),
        ] {
            for (event, what) in [
                ("irq_handler_entry: irq=41 name=nvme0 q3", TextHappening::IrqEntry { irq: 41, name: "nvme0 q3" }),
                ("softirq_exit:         vec=1 [action=TIMER]", TextHappening::SoftirqExit { vec: 1 }),
                (
                    "hrtimer_expire_entry: hrtimer=00000000d3ed821d function=tick_nohz_handler now=2419613847911",
                    TextHappening::FunctionEntry { carrier: Carrier::Timer, function: "tick_nohz_handler" },
                ),
                (
                    "csd_function_exit: func=flush_tlb_func, csd=0000000000000000",
                    TextHappening::FunctionExit { carrier: Carrier::Call },
                ),
                (
                    "sched_waking: comm=opt cgu.10 pid=1039 prio=120 target_cpu=001",
                    TextHappening::Waking { thread: (1_039, "opt cgu.10") },
                ),
                (
                    "sched_wakeup_new: comm=a pid=1 pid=1039 prio=120 success=1 target_cpu=001",
                    TextHappening::Woken { thread: (1_039, "a pid=1"), cpu: 1, is_new: true },
                ),
                (
                    "sched_migrate_task: comm=dest_cpu=7 pid=1039 prio=120 orig_cpu=0 dest_cpu=1",
                    TextHappening::Moved { thread: 1_039, cpu: 1 },
                ),
                (
                    "sched_process_fork: comm=a pid=9 child_comm=b child_pid=1039",
                    TextHappening::Created { thread: (1_039, "b"), in_process: None },
                ),
                (
                    "sched_stat_runtime: comm=runtime=7 pid=9 runtime=46000 [ns] vruntime=81 [ns]",
                    TextHappening::Accounted { thread: 9, ran: Nanos::new(46_000) },
                ),
                (
                    "task_newtask: pid=1039 comm=a b clone_flags=3d0f00 oom_score_adj=0",
                    TextHappening::Created { thread: (1_039, "a b"), in_process: Some(true) },
                ),
                (
                    "task_rename: pid=1039 oldcomm=a newcomm=b c oom_score_adj=0",
                    TextHappening::Renamed { thread: (1_039, "b c") },
                ),
                (
                    "local_timer_entry: vector=236",
                    TextHappening::VectorEntry { name: "local_timer", detail: VectorDetail::Number(236) },
                ),
            ] {
                let text = format!("{head}{event}\n");
                let time = Nanos::new(4_338_237_604_000);
                let event = TextEvent { cpu: CpuId::new(2), time, thread, process, name, what };
                assert_eq!(all(&text), Ok(vec![event]), "{text}");
            }
        }
    }

    #[test]
    fn events_that_were_lost_are_told_before_the_next_one_of_their_cpu() {
        for (mark, count) in [
            ("CPU:1 [LOST 82 EVENTS]", Some(82)),
            ("CPU:1 [LOST EVENTS]", None),
            ("CPU:1 [82 EVENTS DROPPED]", Some(82)),
            ("CPU:1 [EVENTS DROPPED]", None),
        ] {
            let text = format!(
                "{mark}\n a-1 [000] d... 1.000001: softirq_exit: vec=1 [action=TIMER]\n \
                 a-1 [001] d... 1.000002: softirq_exit: vec=1 [action=TIMER]\n"
            );
            let events = all(&text).unwrap();
            let told: Vec<(u32, bool)> = events
                .iter()
                .map(|event| (event.cpu.get(), matches!(event.what, TextHappening::Lost { .. })))
                .collect();
            assert_eq!(told, [(0, false), (1, true), (1, false)]);
            assert_eq!((events[1].what, events[1].time), (TextHappening::Lost { count }, events[2].time));
        }
    }

    #[test]
    fn lines_that_are_cut_and_other_events_are_told_apart() {
        assert_eq!(all("a-1 [000] d... 1.000001: sys_enter: NR 1 (1, 2)\n => entry_SYSCALL_64\n"), Ok(Vec::new()));
        let cut = all("a-1 [000] d... 1.000001: softirq_exit: ve").unwrap_err();
        assert_eq!(cut, "line 1: irq:softirq_exit has no readable vec");
    }
}
