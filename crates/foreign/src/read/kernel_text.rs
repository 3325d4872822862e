//! Kernel events from text, with names instead of addresses. Each line is an event.
//!
//! Two programs print such lines, each with a module that finds the start of a line: perf ([`super::perf_script`]), and the kernel itself
//! ([`super::ftrace_text`]). The fields after the name of an event are the same. Old kernels and perf write some of them otherwise:
//! `handler=`, `softirq=`, and `app:90 [120] S ==> kworker/3:1:417 [120]` for a switch. Call chains, comments and other events are skipped.

use std::collections::{BTreeMap, BTreeSet};

use becalm_measure::accounted_time;
use becalm_model::ThreadState;
use becalm_model::carried::Carrier;
use becalm_model::node::Warning;
use becalm_units::{CpuId, Nanos};

use super::ftrace_text::TRACER;
use super::lines::{End, Lines, Progress, text};
use super::perf_data::EVERY_EVENT;
use super::{ReadError, Source};

/// A kernel event from a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextEvent<'a> {
    /// The CPU.
    pub cpu: CpuId,
    /// The time, by the clock of the recording.
    pub time: Nanos,
    /// The thread on the CPU; `None` if the printing program did not know it.
    pub thread: Option<i32>,
    /// The number of its process, if it is printed.
    pub process: Option<i32>,
    /// The name of that thread.
    pub name: &'a str,
    /// What happened.
    pub what: TextHappening<'a>,
}

/// Events that show what had a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextHappening<'a> {
    /// The handler of a device interrupt started.
    IrqEntry {
        /// Its number.
        irq: i32,
        /// The name of its handler.
        name: &'a str,
    },
    /// The handler of a device interrupt ended.
    IrqExit {
        /// Its number.
        irq: i32,
    },
    /// An interrupt that is known only by its name started: a local vector, an inter-processor interrupt.
    VectorEntry {
        /// Its name: `local_timer`.
        name: &'a str,
        /// The vector's number, or the reason: the detail of its source.
        detail: VectorDetail<'a>,
    },
    /// Such an interrupt ended.
    VectorExit {
        /// As at the entry.
        name: &'a str,
        /// As at the entry.
        detail: VectorDetail<'a>,
    },
    /// A softirq started.
    SoftirqEntry {
        /// Its number.
        vec: u32,
    },
    /// A softirq ended.
    SoftirqExit {
        /// Its number.
        vec: u32,
    },
    /// A handler of non-maskable interrupts ended.
    Nmi {
        /// The name of its function.
        handler: &'a str,
        /// How long it ran.
        delta: Nanos,
    },
    /// The CPU switched from one thread to another.
    Switch {
        /// Number and name of the thread that ran.
        prev: (i32, &'a str),
        /// Its state when it left.
        prev_state: ThreadState,
        /// Number and name of the thread that runs now.
        next: (i32, &'a str),
    },
    /// A work item started.
    WorkStart {
        /// The address of its structure.
        work: u64,
        /// The name of its function.
        function: &'a str,
    },
    /// A work item ended.
    WorkEnd {
        /// The address of its structure.
        work: u64,
        /// The name of its function, which old kernels do not print.
        function: Option<&'a str>,
    },
    /// A function of an interrupt or a softirq started.
    FunctionEntry {
        /// Its runner.
        carrier: Carrier,
        /// Its name.
        function: &'a str,
    },
    /// Such a function ended.
    FunctionExit {
        /// As at the entry.
        carrier: Carrier,
    },
    /// A thread is woken.
    Waking {
        /// Its number and its name.
        thread: (i32, &'a str),
    },
    /// A woken thread is on a run queue.
    Woken {
        /// Its number and its name.
        thread: (i32, &'a str),
        /// The CPU of the run queue.
        cpu: u32,
        /// Whether it is woken for the first time.
        is_new: bool,
    },
    /// A thread was moved to the run queue of another CPU.
    Moved {
        /// Its number.
        thread: i32,
        /// The CPU of the new run queue.
        cpu: u32,
    },
    /// The current thread created another one.
    Created {
        /// Its number and its name.
        thread: (i32, &'a str),
        /// Whether it belongs to the process of its creator; `None` if the event does not show it.
        in_process: Option<bool>,
    },
    /// A thread has another name from now on.
    Renamed {
        /// Its number and its new name.
        thread: (i32, &'a str),
    },
    /// The kernel accounted run time to a thread.
    Accounted {
        /// Its number.
        thread: i32,
        /// The run time since the kernel last accounted to it.
        ran: Nanos,
    },
    /// Events were lost before this one.
    Lost {
        /// The number of lost events, if the line has it.
        count: Option<u64>,
    },
}

impl<'a> TextHappening<'a> {
    /// The threads that the event names, with their numbers.
    pub fn named(&self) -> [Option<(i32, &'a str)>; 2] {
        match *self {
            Self::Switch { prev, next, .. } => [Some(prev), Some(next)],
            Self::Waking { thread }
            | Self::Woken { thread, .. }
            | Self::Created { thread, .. }
            | Self::Renamed { thread } => [Some(thread), None],
            _ => [None; 2],
        }
    }
}

/// Facts about an interrupt other than its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VectorDetail<'a> {
    /// The number of its vector.
    Number(i32),
    /// The reason why it was sent; may be empty.
    Reason(&'a str),
}

/// A line of an event, split by a dialect.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// Name of the thread that had the CPU, and its number if known.
    pub name: &'a str,
    pub thread: Option<i32>,
    pub process: Option<i32>,
    pub cpu: &'a str,
    pub time: Nanos,
    /// The number of decimals of the time.
    pub decimals: usize,
    /// The number of events that it counts for.
    pub period: u64,
    /// The event's system, its name, and the rest.
    pub system: &'a str,
    pub event: &'a str,
    pub fields: &'a str,
}

pub(super) enum ParsedLine<'a> {
    Event(Line<'a>),
    /// The next event of this CPU follows a gap, with this many lost events if known.
    Gap {
        cpu: &'a str,
        count: Option<u64>,
    },
    /// The event counted this many losses before it.
    Lost {
        line: Line<'a>,
        count: Option<u64>,
    },
    /// Something that is no event.
    Other,
}

/// The events of a text, line by line. After an error it ends.
pub struct KernelText<'a, 'p> {
    lines: Lines<'a, 'p>,
    /// True if a trace has started: with its title, or an event.
    begun: bool,
    dialect: fn(&'a str) -> ParsedLine<'a>,
    /// The most decimals of a time so far.
    decimals: usize,
    /// The events seen, by system and name.
    seen: BTreeSet<(&'a str, &'a str)>,
    /// Gaps before the next event of a CPU.
    gaps: BTreeMap<CpuId, Option<u64>>,
    /// An event that follows such a gap.
    waiting: Option<TextEvent<'a>>,
    ended: bool,
}

impl<'a, 'p> KernelText<'a, 'p> {
    pub(super) fn new(
        source: Source<'a>,
        dialect: fn(&'a str) -> ParsedLine<'a>,
        progress: Progress<'p>,
    ) -> Result<Self, ReadError> {
        Ok(Self {
            lines: Lines::new(text(source.bytes)?, progress),
            begun: false,
            dialect,
            decimals: 0,
            seen: BTreeSet::new(),
            gaps: BTreeMap::new(),
            waiting: None,
            ended: false,
        })
    }

    /// True if no time so far was finer than microseconds.
    pub const fn is_coarse(&self) -> bool {
        self.decimals < 9
    }

    /// The events seen so far, as pairs of system and event.
    pub fn seen(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.seen.iter().copied()
    }

    /// Warnings about the text, once all of it was read.
    pub fn warnings(&self) -> Vec<Warning> {
        self.lines.warnings(End::Unmarked)
    }

    /// The event of a line; `None` if it does not show what has the CPU.
    fn read(&mut self, line: &'a str) -> Result<Option<TextEvent<'a>>, String> {
        let (line, what) = match (self.dialect)(line) {
            ParsedLine::Other => return Ok(None),
            ParsedLine::Gap { cpu, count } => {
                self.gaps.insert(self::cpu(cpu)?, count);
                return Ok(None);
            }
            ParsedLine::Lost { line, count } => (line, TextHappening::Lost { count }),
            ParsedLine::Event(line) => {
                self.seen.insert((line.system, line.event));
                let what = happening(line.system, line.event, line.fields.trim())
                    .map_err(|missing| format!("{}:{} has no readable {missing}", line.system, line.event))?;
                let Some(what) = what else { return Ok(None) };
                // The period of this event is the run time.
                if line.period > 1 && line.event != "sched_stat_runtime" {
                    return Err(format!(
                        "this event has a period of {}, so perf left out others, and an entry and the exit behind it need not belong together: \
                         {EVERY_EVENT}",
                        line.period
                    ));
                }
                (line, what)
            }
        };
        self.decimals = self.decimals.max(line.decimals);
        let Line { time, thread, process, name, .. } = line;
        Ok(Some(TextEvent { cpu: cpu(line.cpu)?, time, thread, process, name, what }))
    }
}

/// True if a thread may have this name. The kernel keeps 15 bytes of a name. perf takes longer ones from /proc, which are of kworkers and
/// have no blank. Any other longer one has something in front, such as a log's time stamp.
pub(super) fn is_name(name: &str) -> bool {
    const LONGEST: usize = 15;
    name.len() <= LONGEST || !name.contains(char::is_whitespace)
}

fn cpu(number: &str) -> Result<CpuId, String> {
    let number = number.parse::<u32>().ok().filter(|cpu| *cpu < CpuId::LIMIT);
    number.map(CpuId::new).ok_or_else(|| format!("the CPU is above the limit of {}", CpuId::LIMIT - 1))
}

impl<'a> Iterator for KernelText<'a, '_> {
    type Item = Result<TextEvent<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(event) = self.waiting.take() {
            return Some(Ok(event));
        }
        while !self.ended {
            let Some(line) = self.lines.next() else { break };
            if line.starts_with('#') {
                if line.starts_with(TRACER) && std::mem::replace(&mut self.begun, true) {
                    self.ended = true;
                    return Some(Err(self.lines.second_report()));
                }
                continue;
            }
            match self.read(line) {
                Ok(None) => {}
                Ok(Some(event)) => {
                    self.begun = true;
                    let Some(count) = self.gaps.remove(&event.cpu) else { return Some(Ok(event)) };
                    self.waiting = Some(event);
                    return Some(Ok(TextEvent { what: TextHappening::Lost { count }, ..event }));
                }
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

/// The event; `None` if it does not show what has the CPU.
fn happening<'a>(system: &str, event: &'a str, fields: &'a str) -> Result<Option<TextHappening<'a>>, &'static str> {
    Ok(Some(match (system, event) {
        ("irq", "irq_handler_entry") => TextHappening::IrqEntry {
            irq: number(fields, &["irq="]).ok_or("irq")?,
            name: text_after(fields, &["name=", "handler="]).ok_or("name")?,
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
            let work = text_after(fields, &["work struct "]).ok_or("work struct")?;
            let work = work.split([':', ' ']).next().unwrap_or(work);
            let work = u64::from_str_radix(work.trim_start_matches("0x"), 16).map_err(|_| "work struct")?;
            let function =
                text_after(fields, &["function "]).map(|function| function.split(' ').next().unwrap_or(function));
            if event == "workqueue_execute_start" {
                TextHappening::WorkStart { work, function: function.ok_or("function")? }
            } else {
                TextHappening::WorkEnd { work, function }
            }
        }
        ("timer", "hrtimer_expire_entry") => function(Carrier::Timer, fields)?,
        ("timer", "hrtimer_expire_exit") => TextHappening::FunctionExit { carrier: Carrier::Timer },
        ("timer", "timer_expire_entry") => function(Carrier::Wheel, fields)?,
        ("irq", "tasklet_entry") => function(Carrier::Tasklet, fields)?,
        ("csd", "csd_function_entry") => function(Carrier::Call, fields)?,
        ("csd", "csd_function_exit") => TextHappening::FunctionExit { carrier: Carrier::Call },
        ("sched", "sched_waking") => TextHappening::Waking { thread: woken(fields).ok_or("thread")? },
        ("sched", "sched_wakeup" | "sched_wakeup_new") => TextHappening::Woken {
            thread: woken(fields).ok_or("thread")?,
            cpu: number_in(fields, &["target_cpu=", "CPU:"]).ok_or("target_cpu")?,
            is_new: event == "sched_wakeup_new",
        },
        ("sched", "sched_migrate_task") => TextHappening::Moved {
            thread: named(fields, "comm=", " pid=").ok_or("thread")?.0,
            cpu: number_in(fields, &["dest_cpu="]).ok_or("dest_cpu")?,
        },
        ("sched", "sched_process_fork") => {
            let (_, child) = fields.rsplit_once(" child_comm=").ok_or("child_comm")?;
            let (name, pid) = child.rsplit_once(" child_pid=").ok_or("child_pid")?;
            TextHappening::Created { thread: (pid.trim().parse().map_err(|_| "child_pid")?, name), in_process: None }
        }
        ("sched", "sched_stat_runtime") => {
            let (thread, _) = named(fields, "comm=", " pid=").ok_or("thread")?;
            let ran: u64 = number_in(fields, &[" runtime="]).ok_or("runtime")?;
            TextHappening::Accounted { thread, ran: accounted_time(ran) }
        }
        ("task", "task_newtask") => {
            let (rest, flags) = fields.rsplit_once(" clone_flags=").ok_or("clone_flags")?;
            let flags = flags.split_whitespace().next().unwrap_or(flags);
            let flags = u64::from_str_radix(flags.trim_start_matches("0x"), 16).map_err(|_| "clone_flags")?;
            let (pid, name) = rest.split_once(" comm=").ok_or("comm")?;
            let pid = pid.strip_prefix("pid=").and_then(|pid| pid.parse().ok()).ok_or("pid")?;
            TextHappening::Created { thread: (pid, name), in_process: Some(flags & CLONE_THREAD != 0) }
        }
        ("task", "task_rename") => {
            let pid = number(fields, &["pid="]).ok_or("pid")?;
            let (rest, _) = fields.rsplit_once(" oom_score_adj=").ok_or("oom_score_adj")?;
            TextHappening::Renamed { thread: (pid, rest.rsplit_once(" newcomm=").ok_or("newcomm")?.1) }
        }
        _ => return Ok(None),
    }))
}

/// The start of a function. Its name ends at a comma, or at the blank before a module.
fn function<'a>(carrier: Carrier, fields: &'a str) -> Result<TextHappening<'a>, &'static str> {
    let name = text_after(fields, &["function=", "func="]).ok_or("function")?;
    Ok(TextHappening::FunctionEntry { carrier, function: name.split([' ', ',']).next().unwrap_or(name) })
}

/// The flag of a new thread in the process of its creator.
pub(super) const CLONE_THREAD: u64 = 0x1_0000;

/// The number and the name of a woken thread. The kernel and perf print them differently.
fn woken(fields: &str) -> Option<(i32, &str)> {
    // `kworker/0:2:417 [120] CPU:000`
    named(fields, "comm=", " pid=").or_else(|| short_thread(fields.split_inclusive(']').next()?))
}

/// The number and the name of a thread after these keys.
fn named<'a>(fields: &'a str, comm: &str, pid: &str) -> Option<(i32, &'a str)> {
    let (comm, rest) = fields.strip_prefix(comm)?.rsplit_once(pid)?;
    Some((rest.split_whitespace().next()?.parse().ok()?, comm))
}

/// The number after the last of these keys: names may contain any of them, and come first.
fn number_in<T: std::str::FromStr>(fields: &str, keys: &[&str]) -> Option<T> {
    let (_, rest) = keys.iter().find_map(|key| fields.rsplit_once(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The text after the first of these keys, up to the end.
fn text_after<'a>(fields: &'a str, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| {
        let at = fields.match_indices(key).find(|(at, _)| *at == 0 || fields.as_bytes()[at - 1].is_ascii_whitespace());
        at.map(|(at, _)| fields[at + key.len()..].trim())
    })
}

fn number<T: std::str::FromStr>(fields: &str, keys: &[&str]) -> Option<T> {
    text_after(fields, keys)?.split_whitespace().next()?.parse().ok()
}

/// A switch, in both forms. A thread name may contain the arrow, too.
fn switch(fields: &str) -> Option<TextHappening<'_>> {
    const ARROW: &str = " ==> ";
    fields.rmatch_indices(ARROW).find_map(|(at, _)| switch_between(&fields[..at], &fields[at + ARROW.len()..]))
}

fn switch_between<'a>(left: &'a str, right: &'a str) -> Option<TextHappening<'a>> {
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
    let prev_state = state.chars().next().and_then(ThreadState::from_letter).unwrap_or(ThreadState::SLEEPING);
    Some(TextHappening::Switch { prev, prev_state, next })
}

/// A thread as `name:number [priority]`.
fn short_thread(text: &str) -> Option<(i32, &str)> {
    let (rest, _) = text.trim().rsplit_once(" [")?;
    let (name, pid) = rest.rsplit_once(':')?;
    Some((pid.parse().ok()?, name))
}

/// True if a word is a number without a sign.
pub(super) fn is_digits(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// A time in seconds with 6 or 9 decimals, and the number of decimals.
pub(super) fn seconds(text: &str) -> Option<(Nanos, usize)> {
    let (whole, fraction) = text.split_once('.')?;
    if !is_digits(whole) || !is_digits(fraction) || !matches!(fraction.len(), 6 | 9) {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let scale = 10_i64.pow(9 - fraction.len() as u32);
    let fraction_ns = fraction.parse::<i64>().ok()? * scale;
    let nanos = whole.checked_mul(1_000_000_000)?.checked_add(fraction_ns)?;
    // Sums of two fit.
    (nanos < i64::MAX / 4).then_some((Nanos::new(nanos), fraction.len()))
}
