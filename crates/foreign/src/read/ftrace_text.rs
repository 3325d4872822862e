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
        let thread = without_group(line[..open].trim_end());
        let (name, tid) = thread.rsplit_once('-').unwrap_or((thread, ""));
        return Some(Head { name: name.trim(), thread: tid.parse().ok(), cpu, time, decimals, rest: rest.trim() });
    }
}

/// A thread without its group number, `(   1200)` or `(-----)`.
fn without_group(thread: &str) -> &str {
    let group = thread.strip_suffix(')').and_then(|before| before.rsplit_once('('));
    let is_group = |group: &str| is_digits(group.trim()) || !group.is_empty() && group.bytes().all(|sign| sign == b'-');
    group.filter(|(_, group)| is_group(group)).map_or(thread, |(thread, _)| thread.trim_end())
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
    let Some(Head { name, thread, cpu, time, decimals, rest }) = head(line) else { return ParsedLine::Other };
    let Some((event, fields)) = rest.split_once(':') else { return ParsedLine::Other };
    let Some(system) = system(event, fields) else { return ParsedLine::Other };
    // A thread with a name that the kernel had forgotten.
    let name = if name == "<...>" { "" } else { name };
    ParsedLine::Event(Line { name, thread, cpu, time, decimals, period: 1, system, event, fields })
}

fn system(event: &str, fields: &str) -> Option<&'static str> {
    match event {
        "irq_handler_entry" | "irq_handler_exit" | "softirq_entry" | "softirq_exit" | "tasklet_entry" => Some("irq"),
        "ipi_entry" | "ipi_exit" => Some("ipi"),
        "nmi_handler" => Some("nmi"),
        "sched_switch" | "sched_waking" | "sched_wakeup" => Some("sched"),
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
        for (head, name, thread) in [
            ("          solver-15165  [002] d.h. 4338.237604: ", "solver", Some(15_165)),
            ("          solver-15165  [002] d..h.1.. 4338.237604: ", "solver", Some(15_165)),
            ("          solver-15165 [002] 4338.237604: ", "solver", Some(15_165)),
            ("  a) R 1-2 (b-15165  (   1200) [002] d.h1. 4338.237604: ", "a) R 1-2 (b", Some(15_165)),
            ("  [7] 5.0: x-77  (-------) [002] d.h1. 4338.237604: ", "[7] 5.0: x", Some(77)),
            ("           <...>-9     [002] d.h1. 4338.237604: ", "", Some(9)),
            ("          <idle>-0     [002] d.h1. 4338.237604: ", "<idle>", Some(0)),
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
                    "local_timer_entry: vector=236",
                    TextHappening::VectorEntry { name: "local_timer", detail: VectorDetail::Number(236) },
                ),
            ] {
                let text = format!("{head}{event}\n");
                let time = Nanos::new(4_338_237_604_000);
                let event = TextEvent { cpu: CpuId::new(2), time, thread, name, what };
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
