//! What `perf script` prints of kernel events: a line an event.
//!
//! ```text
//!      kworker/3:1   417 [003]   512.004411: sched:sched_switch: prev_comm=app prev_pid=90 prev_prio=120 ...
//!  thread          tid   [cpu]   seconds:    system:event: fields
//! ```
//!
//! From `tools/perf/builtin-script.c` and the events' `TP_printk`. Names may hold blanks, so a line is read from its `[cpu] seconds:` on to both
//! sides. Call chains, remarks and other events are passed over. Old kernels and perf write some fields otherwise: `handler=`, `softirq=`, and
//! `app:90 [120] S ==> kworker/3:1:417 [120]` for a switch.

use becalm_units::{CpuId, Nanos};

use super::kernel_text::{TextEvent, TextHappening, VectorDetail, seconds};
use super::lines::{Lines, Progress, text};
use super::{ReadError, Source};

/// The events of a text, line by line. After an error it ends.
pub struct PerfScript<'a, 'p> {
    lines: Lines<'a, 'p>,
    /// The most decimals that a time had.
    decimals: usize,
    /// Which events were seen, as `system:event`.
    seen: std::collections::BTreeSet<&'a str>,
    ended: bool,
}

/// Begins to read a text.
///
/// # Errors
/// If it is no text.
pub fn read<'a, 'p>(source: Source<'a>, progress: Progress<'p>) -> Result<PerfScript<'a, 'p>, ReadError> {
    let lines = Lines::new(text(source.bytes)?, progress);
    Ok(PerfScript { lines, decimals: 0, seen: std::collections::BTreeSet::new(), ended: false })
}

impl<'a> PerfScript<'a, '_> {
    /// Whether all times had microseconds at most, so far.
    #[must_use]
    pub const fn is_coarse(&self) -> bool {
        self.decimals < 9
    }

    /// Which events came so far, as pairs of system and event.
    pub fn seen(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.seen.iter().filter_map(|event| event.split_once(':'))
    }

    fn event(&mut self, head: &Head<'a>) -> Result<Option<TextEvent<'a>>, String> {
        let Head { cpu, time, decimals, thread, name, rest } = *head;
        let Some((event, fields)) = split_event(rest) else { return Ok(None) };
        let what = if event == "PERF_RECORD_LOST" {
            let count = fields.split_whitespace().find_map(|word| word.parse().ok());
            Some(TextHappening::Lost { count })
        } else {
            let Some((system, event_name)) = event.split_once(':') else { return Ok(None) };
            self.seen.insert(event);
            happening(system, event_name, fields.trim())
                .map_err(|missing| format!("{event} has no readable {missing}"))?
        };
        let Some(what) = what else { return Ok(None) };
        let cpu = cpu.parse::<u32>().ok().filter(|cpu| *cpu < CpuId::LIMIT);
        let cpu = cpu.ok_or_else(|| format!("the CPU is above the limit of {}", CpuId::LIMIT - 1))?;
        self.decimals = self.decimals.max(decimals);
        Ok(Some(TextEvent { cpu: CpuId::new(cpu), time, thread, name, what }))
    }
}

impl<'a> Iterator for PerfScript<'a, '_> {
    type Item = Result<TextEvent<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let Some(line) = self.lines.next() else { break };
            if line.starts_with('#') {
                continue;
            }
            let Some(head) = Head::find(line) else { continue };
            match self.event(&head) {
                Ok(None) => {}
                Ok(Some(event)) => return Some(Ok(event)),
                Err(why) => {
                    self.ended = true;
                    return Some(Err(self.lines.error(why)));
                }
            }
        }
        self.ended = true;
        None
    }
}

/// What every event's line begins with.
#[derive(Clone, Copy)]
struct Head<'a> {
    name: &'a str,
    thread: Option<i32>,
    cpu: &'a str,
    time: Nanos,
    decimals: usize,
    /// What follows the time.
    rest: &'a str,
}

impl<'a> Head<'a> {
    /// Finds `[cpu] seconds:` and reads what stands in front of it backwards.
    fn find(line: &'a str) -> Option<Self> {
        let mut from = 0;
        loop {
            let open = from + line[from..].find('[')?;
            from = open + 1;
            let Some((cpu, after)) = line[from..].split_once(']') else { continue };
            if cpu.is_empty() || !cpu.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            // Between them, some versions print flags like `d.h2.`.
            let Some((stamp, rest)) = after.split_once(": ") else { continue };
            let Some((time, decimals)) = stamp.split_whitespace().next_back().and_then(seconds) else { continue };
            if stamp.split_whitespace().count() > 2 {
                continue;
            }
            let before = line[..open].trim_end();
            let (name, number) = before.rsplit_once(char::is_whitespace).unwrap_or(("", before));
            // `pid/tid` where both are printed; -1 where perf does not know.
            let number = number.rsplit('/').next().unwrap_or(number);
            let thread = number.parse::<i32>().ok().filter(|tid| *tid >= 0);
            return Some(Self { name: name.trim(), thread, cpu, time, decimals, rest });
        }
    }
}

/// The name of an event, and its fields. A number in front of the name is a period.
fn split_event(rest: &str) -> Option<(&str, &str)> {
    let mut rest = rest.trim_start();
    if let Some((first, after)) = rest.split_once(char::is_whitespace)
        && first.bytes().all(|byte| byte.is_ascii_digit())
    {
        rest = after.trim_start();
    }
    let (event, fields) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some((event.strip_suffix(':').or((event == "PERF_RECORD_LOST").then_some(event))?, fields))
}

/// What an event tells; `None` of one that tells nothing of who has the CPU.
fn happening<'a>(system: &str, event: &'a str, fields: &'a str) -> Result<Option<TextHappening<'a>>, &'static str> {
    Ok(Some(match (system, event) {
        ("irq", "irq_handler_entry") => TextHappening::IrqEntry {
            irq: number(fields, &["irq="]).ok_or("irq")?,
            name: after(fields, &["name=", "handler="]).ok_or("name")?,
        },
        ("irq", "irq_handler_exit") => TextHappening::IrqExit { irq: number(fields, &["irq="]).ok_or("irq")? },
        ("irq", "softirq_entry") => {
            TextHappening::SoftirqEntry { vec: number(fields, &["vec=", "softirq="]).ok_or("vec")? }
        }
        ("irq", "softirq_exit") => {
            TextHappening::SoftirqExit { vec: number(fields, &["vec=", "softirq="]).ok_or("vec")? }
        }
        ("irq_vectors", _) => {
            let entry = event.strip_suffix("_entry");
            let Some(name) = entry.or_else(|| event.strip_suffix("_exit")) else { return Ok(None) };
            let detail = VectorDetail::Number(number(fields, &["vector="]).ok_or("vector")?);
            if entry.is_some() {
                TextHappening::VectorEntry { name, detail }
            } else {
                TextHappening::VectorExit { name, detail }
            }
        }
        ("ipi", "ipi_entry" | "ipi_exit") => {
            let detail = VectorDetail::Reason(fields.trim_start_matches('(').trim_end_matches(')'));
            if event == "ipi_entry" {
                TextHappening::VectorEntry { name: "ipi", detail }
            } else {
                TextHappening::VectorExit { name: "ipi", detail }
            }
        }
        ("nmi", "nmi_handler") => {
            let (handler, rest) = fields.split_once("delta_ns: ").ok_or("delta_ns")?;
            let delta = rest.split_whitespace().next().and_then(|delta| delta.parse::<i64>().ok()).ok_or("delta_ns")?;
            TextHappening::Nmi {
                handler: handler.trim().trim_end_matches("()"),
                delta: Nanos::new(delta.clamp(0, i64::MAX / 4)),
            }
        }
        ("sched", "sched_switch") => switch(fields).ok_or("threads")?,
        ("workqueue", "workqueue_execute_start" | "workqueue_execute_end") => {
            let work = after(fields, &["work struct "]).ok_or("work struct")?;
            let work = work.split([':', ' ']).next().unwrap_or(work);
            let work = u64::from_str_radix(work.trim_start_matches("0x"), 16).map_err(|_| "work struct")?;
            let function = after(fields, &["function "]).map(|function| function.split(' ').next().unwrap_or(function));
            if event == "workqueue_execute_start" {
                TextHappening::WorkStart { work, function: function.ok_or("function")? }
            } else {
                TextHappening::WorkEnd { work, function }
            }
        }
        _ => return Ok(None),
    }))
}

/// What stands behind the first of these keys, up to the end.
fn after<'a>(fields: &'a str, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| {
        let at = fields.match_indices(key).find(|(at, _)| *at == 0 || fields.as_bytes()[at - 1].is_ascii_whitespace());
        at.map(|(at, _)| fields[at + key.len()..].trim())
    })
}

/// The number behind one of these keys.
fn number<T: std::str::FromStr>(fields: &str, keys: &[&str]) -> Option<T> {
    after(fields, keys)?.split_whitespace().next()?.parse().ok()
}

/// A switch, in both ways in which it is printed.
fn switch(fields: &str) -> Option<TextHappening<'_>> {
    let (left, right) = fields.rsplit_once(" ==> ")?;
    let (prev, state, next);
    if let Some(named) = left.strip_prefix("prev_comm=") {
        let (rest, letters) = named.rsplit_once(" prev_state=")?;
        let (rest, _) = rest.rsplit_once(" prev_prio=")?;
        let (comm, pid) = rest.rsplit_once(" prev_pid=")?;
        prev = (pid.parse().ok()?, comm);
        state = letters;
        let (rest, _) = right.strip_prefix("next_comm=")?.rsplit_once(" next_prio=")?;
        let (comm, pid) = rest.rsplit_once(" next_pid=")?;
        next = (pid.parse().ok()?, comm);
    } else {
        let (rest, letters) = left.rsplit_once(' ')?;
        (prev, state) = (short_thread(rest)?, letters);
        next = short_thread(right)?;
    }
    // "R" or "R+"; sleeping ones are "S", "D", "D|W".
    Some(TextHappening::Switch { prev, prev_runnable: state.starts_with('R'), next })
}

/// A thread as `name:number [priority]`.
fn short_thread(text: &str) -> Option<(i32, &str)> {
    let (rest, _) = text.trim().rsplit_once(" [")?;
    let (name, pid) = rest.rsplit_once(':')?;
    Some((pid.parse().ok()?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(events[0].what, TextHappening::Switch { prev, prev_runnable: true, next });
        assert_eq!((events[1].thread, events[1].time), (None, Nanos::new(1_314_471_451_001)));
        let (prev, next) = ((33, "kworker/u4:1"), (0, "swapper/0"));
        assert_eq!(events[1].what, TextHappening::Switch { prev, prev_runnable: false, next });
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
        let works =
            all("k 9 [0] 1.0: workqueue:workqueue_execute_start: work struct 0xffff8881: function vmstat_update\n\
             k 9 [0] 1.1: workqueue:workqueue_execute_end: work struct 0xffff8881\n\
             k 9 [0] 1.2: nmi:nmi_handler: perf_event_nmi_handler() delta_ns: 1503 handled: 1\n")
            .unwrap();
        assert_eq!(works[0].what, TextHappening::WorkStart { work: 0xffff_8881, function: "vmstat_update" });
        assert_eq!(works[1].what, TextHappening::WorkEnd { work: 0xffff_8881, function: None });
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
