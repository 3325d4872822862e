//! The text of the kernel's tracers osnoise and timerlat: the file `trace` of tracefs, which `rtla -t` stores. Each line is an event.
//!
//! ```text
//!     ksoftirqd/1-29    [001] d...3..    13.568047: thread_noise: ksoftirqd/1:29 start 13.568034816 duration 11471 ns
//!          thread-tid   [cpu] flags      seconds:   event: fields
//! ```
//!
//! From `kernel/trace/trace_osnoise.c` and the events' `TP_printk`. The stamp of a line is the end of its event, in microseconds and by the
//! clock of the trace, which need not be that of `start`: only `start` is used. A duration is *net*, without interruptions; only for a gap
//! in the tracer's own loop (`sample_threshold`) it is the whole time. Lines of one CPU are in the order of their ends. Names of threads
//! and interrupts may contain blanks and colons, so fields are read from the right. Other events and call chains are skipped.

use becalm_model::node::Warning;
use becalm_units::{CpuId, Nanos};

use super::ftrace_text::{self, TRACER, have_names};
use super::kernel_text::seconds;
use super::lines::{End, Lines, Progress, text};
use super::{ReadError, Source};

const TRACERS: [&str; 2] = ["osnoise", "timerlat"];

/// The kernel's comment if its own figures contradict each other.
const TAINTED: &str = "# osnoise is tainted!";

/// The event of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OsnoiseEvent<'a> {
    /// The CPU.
    pub cpu: CpuId,
    /// The thread on the CPU when the line was written; `None` for lost events.
    pub thread: Option<i32>,
    /// What happened.
    pub what: OsnoiseHappening<'a>,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OsnoiseHappening<'a> {
    /// Something had the CPU, and has ended.
    Noise {
        /// The noise maker.
        who: NoiseMaker<'a>,
        /// Its start.
        start: Nanos,
        /// Its time on the CPU, without interruptions.
        net: Nanos,
    },
    /// The tracer's loop was away from the CPU.
    Gap {
        /// The last reading of the clock before it.
        start: Nanos,
        /// The time until the clock was read again.
        duration: Nanos,
        /// The number of interruptions that the kernel counted in it.
        interference: u64,
    },
    /// A period of the tracer's loop has ended.
    Period(Period),
    /// timerlat measured a latency, which is no stolen time.
    Latency,
    /// Lines were lost before the next one of this CPU.
    Lost {
        /// The number of lost lines, if known.
        count: Option<u64>,
    },
}

/// A noise maker on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoiseMaker<'a> {
    /// Handlers of non-maskable interrupts.
    Nmi,
    /// The handler of an interrupt.
    Irq {
        /// The name of its source: `local_timer`.
        name: &'a str,
        /// Its vector, or its number.
        vector: i32,
    },
    /// A softirq.
    Softirq {
        /// Its number.
        vec: u32,
    },
    /// A thread, also the idle one, which has the number 0.
    Thread {
        /// Its name.
        name: &'a str,
        /// Its number.
        tid: i32,
    },
}

/// The tracer's own counts of a period.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Period {
    /// How long its loop ran.
    pub runtime: Nanos,
    /// All of its gaps together, in whole microseconds.
    pub noise: Nanos,
    /// The longest of them, in whole microseconds.
    pub longest: Nanos,
    /// Gaps without any kernel event.
    pub hardware: u64,
    /// Non-maskable interrupts.
    pub nmis: u64,
    /// Interrupts.
    pub irqs: u64,
    /// Softirqs.
    pub softirqs: u64,
    /// Threads.
    pub threads: u64,
}

/// The events of a text, line by line. After an error it ends.
pub struct Osnoise<'a, 'p> {
    lines: Lines<'a, 'p>,
    /// True if a trace has started: with its title, or an event.
    begun: bool,
    is_tainted: bool,
    ended: bool,
}

/// Starts to read a text. Fails if it is no text.
pub fn read<'a, 'p>(source: Source<'a>, progress: Progress<'p>) -> Result<Osnoise<'a, 'p>, ReadError> {
    Ok(Osnoise { lines: Lines::new(text(source.bytes)?, progress), begun: false, is_tainted: false, ended: false })
}

/// True if a text starts as these tracers' do, or has an event of theirs.
pub(super) fn looks_so(text: &str) -> bool {
    let has_title = |line: &str| line.strip_prefix(TRACER).is_some_and(|name| TRACERS.contains(&name.trim()));
    if text.lines().next().is_some_and(has_title) {
        return true;
    }
    let head = Source { name: "", bytes: text.as_bytes() };
    let is_noise =
        |event: OsnoiseEvent<'_>| matches!(event.what, OsnoiseHappening::Noise { .. } | OsnoiseHappening::Gap { .. });
    // The last line may be cut.
    read(head, &mut |_| {}).is_ok_and(|events| events.map_while(Result::ok).any(is_noise)) && have_names(text)
}

impl Osnoise<'_, '_> {
    /// Warnings about the text, once all of it was read.
    pub fn warnings(&self) -> Vec<Warning> {
        self.lines.warnings(End::Unmarked)
    }

    /// True if the kernel reported contradictory figures in the part that was read.
    pub const fn is_tainted(&self) -> bool {
        self.is_tainted
    }
}

impl<'a> Iterator for Osnoise<'a, '_> {
    type Item = Result<OsnoiseEvent<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let Some(line) = self.lines.next() else { break };
            if line.starts_with('#') {
                if line.starts_with(TRACER) && std::mem::replace(&mut self.begun, true) {
                    self.ended = true;
                    return Some(Err(self.lines.second_report()));
                }
                self.is_tainted |= line == TAINTED;
                continue;
            }
            match event(line) {
                Ok(None) => {}
                Ok(Some(event)) => {
                    self.begun = true;
                    return Some(Ok(event));
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

/// The event of a line; `None` if it has none of these.
fn event(line: &str) -> Result<Option<OsnoiseEvent<'_>>, String> {
    if let Some(event) = lost(line)? {
        return Ok(Some(event));
    }
    let Some(head) = ftrace_text::head(line) else { return Ok(None) };
    let Some(what) = happening(head.rest)? else { return Ok(None) };
    Ok(Some(OsnoiseEvent { cpu: cpu(head.cpu)?, thread: head.thread, what }))
}

fn cpu(number: &str) -> Result<CpuId, String> {
    let number = number.parse::<u32>().ok().filter(|cpu| *cpu < CpuId::LIMIT);
    number.map(CpuId::new).ok_or_else(|| format!("the CPU is above the limit of {}", CpuId::LIMIT - 1))
}

/// `CPU:1 [LOST 82 EVENTS]`, or without the number.
fn lost(line: &str) -> Result<Option<OsnoiseEvent<'_>>, String> {
    let Some((number, count)) = ftrace_text::gap(line) else { return Ok(None) };
    Ok(Some(OsnoiseEvent { cpu: cpu(number)?, thread: None, what: OsnoiseHappening::Lost { count } }))
}

fn happening(rest: &str) -> Result<Option<OsnoiseHappening<'_>>, String> {
    let Some((event, fields)) = rest.split_once(':') else { return period_or_latency(rest) };
    let fields = fields.trim();
    let unreadable = |what: &str| format!("{event} has no readable {what}");
    let who = match event {
        "irq_noise" | "softirq_noise" | "thread_noise" => {
            let (who, _) = fields.rsplit_once(" start ").ok_or_else(|| unreadable("start"))?;
            let (name, number) = who.rsplit_once(':').ok_or_else(|| unreadable("number"))?;
            let name = name.trim();
            let number = number.trim().parse::<i32>().ok().filter(|number| *number >= 0);
            let number = number.ok_or_else(|| unreadable("number"))?;
            match event {
                "irq_noise" => NoiseMaker::Irq { name, vector: number },
                "softirq_noise" => NoiseMaker::Softirq { vec: number.unsigned_abs() },
                _ => NoiseMaker::Thread { name, tid: number },
            }
        }
        "nmi_noise" => NoiseMaker::Nmi,
        "sample_threshold" => {
            let Span { start, duration, rest } = span(fields, event)?;
            // The kernel's documentation writes it with an s.
            let count = rest.split_whitespace().next_back().and_then(|count| count.parse().ok());
            let interference = count.ok_or_else(|| unreadable("interference"))?;
            return Ok(Some(OsnoiseHappening::Gap { start, duration, interference }));
        }
        "osnoise_sample" => return sample(fields).map(Some).ok_or_else(|| unreadable("counts")),
        "timerlat_sample" => return Ok(Some(OsnoiseHappening::Latency)),
        _ => return period_or_latency(rest),
    };
    let Span { start, duration: net, .. } = span(fields, event)?;
    Ok(Some(OsnoiseHappening::Noise { who, start, net }))
}

/// A time span: `start 13.568034816 duration 11471 ns`.
struct Span<'a> {
    start: Nanos,
    duration: Nanos,
    /// The text after it.
    rest: &'a str,
}

fn span<'a>(fields: &'a str, event: &str) -> Result<Span<'a>, String> {
    let unreadable = |what: &str| format!("{event} has no readable {what}");
    // The name of a thread comes before it.
    let at = fields.rfind("start ").ok_or_else(|| unreadable("start"))?;
    let (start, rest) = fields[at + "start ".len()..].split_once(" duration ").ok_or_else(|| unreadable("start"))?;
    let (start, _) = seconds(start.trim()).ok_or_else(|| unreadable("start"))?;
    let (duration, rest) = rest.trim().split_once(" ns").ok_or_else(|| unreadable("duration"))?;
    let duration: u64 = duration.trim().parse().map_err(|_| unreadable("duration"))?;
    let fits = i64::try_from(duration).ok().filter(|ns| *ns < i64::MAX / 4);
    let duration = fits.ok_or_else(|| {
        format!(
            "the duration of {event} is negative, or longer than times can be: the kernel's clock went backwards; take the \
             line out to read the rest"
        )
    })?;
    Ok(Span { start, duration: Nanos::new(duration), rest })
}

/// The tracers' own lines, without an event name: nine figures of a period, or a latency.
fn period_or_latency(rest: &str) -> Result<Option<OsnoiseHappening<'_>>, String> {
    if rest.starts_with('#') && rest.contains("timer_latency") {
        return Ok(Some(OsnoiseHappening::Latency));
    }
    let words: Vec<&str> = rest.split_whitespace().take(10).collect();
    let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if words.len() < 2 || !words.iter().all(is_number) {
        return Ok(None);
    }
    let &[runtime, noise, _, longest, hardware, nmis, irqs, softirqs, threads] = words.as_slice() else {
        return Err("the line of a period has not nine figures".to_owned());
    };
    let figures = [runtime, noise, longest, hardware, nmis, irqs, softirqs, threads];
    let period = period(figures.map(str::parse::<u64>).map(Result::ok));
    period.map(Some).ok_or_else(|| "the line of a period has a figure that cannot be".to_owned())
}

/// `runtime=1000000 noise=39 max_sample=33 hw_count=0 irq_count=12 nmi_count=1 softirq_count=24 thread_count=6`: newer kernels print
/// interrupts before non-maskable ones, unlike the line of a period.
fn sample(fields: &str) -> Option<OsnoiseHappening<'_>> {
    let figure = |key: &str| {
        let value = fields.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        value?.parse::<u64>().ok()
    };
    let keys =
        ["runtime", "noise", "max_sample", "hw_count", "nmi_count", "irq_count", "softirq_count", "thread_count"];
    period(keys.map(figure))
}

/// Figures; the first three are microseconds.
fn period<'a>(figures: [Option<u64>; 8]) -> Option<OsnoiseHappening<'a>> {
    let [runtime, noise, longest, hardware, nmis, irqs, softirqs, threads] = figures;
    let micros = |us: Option<u64>| {
        let ns = i64::try_from(us?).ok()?.checked_mul(1_000)?;
        (ns < i64::MAX / 4).then_some(Nanos::new(ns))
    };
    let count = |count: Option<u64>| count.filter(|count| *count <= u64::from(u32::MAX));
    Some(OsnoiseHappening::Period(Period {
        runtime: micros(runtime)?,
        noise: micros(noise)?,
        longest: micros(longest)?,
        hardware: count(hardware)?,
        nmis: count(nmis)?,
        irqs: count(irqs)?,
        softirqs: count(softirqs)?,
        threads: count(threads)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<OsnoiseEvent<'_>>, String> {
        let source = Source { name: "", bytes: text.as_bytes() };
        read(source, &mut |_| {}).unwrap().collect::<Result<_, _>>().map_err(|error| error.to_string())
    }

    fn only(fields: &str) -> Result<OsnoiseHappening<'static>, String> {
        let line = format!("  osnoise/3-90  [003] d..h1  81.000104: {fields}\n").leak();
        all(line).map(|events| events[0].what)
    }

    #[test]
    fn events_of_all_kinds_are_read_with_any_number_of_flags() {
        let text = "# tracer: osnoise\n#\n# osnoise is tainted!\n##### CPU 3 buffer started ####\n\
                    \x20   a [7] b: c-417  [003] d...3..    81.000115: thread_noise: kworker/3:2 start x:417 start 81.000110045 duration 5205 ns\n\
                    \x20<...>-0 (-----) [002] d.h.    81.000103: irq_noise: local_timer:236 start 81.000101220 duration 1840 ns\n\
                    CPU:2 [LOST 82 EVENTS]\nCPU:2 [LOST EVENTS]\n\
                    \x20<idle>-0 [002] 81.000104: softirq_noise:    TIMER:1 start 81.000103900 duration 960 ns\n\
                    => entry_SYSCALL_64\n\
                    \x20sh-5 [002] d... 81.000104: sys_enter: NR 1 (1, 2, 3)\n";
        let events = all(text).unwrap();
        let [thread, irq, lost, untold, softirq] = events.as_slice() else { panic!("{events:?}") };
        let noise = |who, start, net| OsnoiseHappening::Noise { who, start: Nanos::new(start), net: Nanos::new(net) };
        let who = NoiseMaker::Thread { name: "kworker/3:2 start x", tid: 417 };
        assert_eq!((thread.thread, thread.cpu.get(), thread.what), (Some(417), 3, noise(who, 81_000_110_045, 5_205)));
        let who = NoiseMaker::Irq { name: "local_timer", vector: 236 };
        assert_eq!((irq.thread, irq.what), (Some(0), noise(who, 81_000_101_220, 1_840)));
        assert_eq!(lost.what, OsnoiseHappening::Lost { count: Some(82) });
        assert_eq!(untold.what, OsnoiseHappening::Lost { count: None });
        assert_eq!(softirq.what, noise(NoiseMaker::Softirq { vec: 1 }, 81_000_103_900, 960));
        let told = &mut |_| {};
        let mut lines = read(Source { name: "", bytes: text.as_bytes() }, told).unwrap();
        assert!(!lines.is_tainted() && lines.by_ref().count() == 5 && lines.is_tainted());
    }

    #[test]
    fn gaps_periods_and_latencies_are_told_apart() {
        let gap =
            OsnoiseHappening::Gap { start: Nanos::new(81_000_101_100), duration: Nanos::new(9_011), interference: 2 };
        assert_eq!(only("sample_threshold: start 81.000101100 duration 9011 ns interference 2"), Ok(gap));
        assert_eq!(only("sample_threshold: start 81.000101100 duration 9011 ns interferences: 2"), Ok(gap));
        assert_eq!(
            only("nmi_noise: start 0.000000001 duration 1502 ns").map(|what| format!("{what:?}").len() > 9),
            Ok(true)
        );
        let period = only("1000000         39  99.99610      33      1      2     12     24      6").unwrap();
        let OsnoiseHappening::Period(figures) = period else { panic!("{period:?}") };
        assert_eq!(
            (figures.runtime, figures.noise, figures.longest),
            (Nanos::from_millis(1_000), Nanos::new(39_000), Nanos::new(33_000))
        );
        assert_eq!(
            (figures.hardware, figures.nmis, figures.irqs, figures.softirqs, figures.threads),
            (1, 2, 12, 24, 6)
        );
        let event = "osnoise_sample: runtime=1000000 noise=39 max_sample=33 hw_count=1 irq_count=12 nmi_count=2 softirq_count=24 thread_count=6";
        assert_eq!(only(event), Ok(period));
        assert_eq!(only("#12     context    irq timer_latency       932 ns"), Ok(OsnoiseHappening::Latency));
        assert_eq!(only("timerlat_sample: timer_latency=932 seqnum=1 context=0"), Ok(OsnoiseHappening::Latency));
    }

    #[test]
    fn a_line_that_is_cut_or_cannot_be_is_an_error_with_its_number() {
        for (fields, why) in [
            ("irq_noise: local_timer:236 start 81.0001", "line 1: irq_noise has no readable start"),
            ("thread_noise: a start 1.000000001 duration 5 ns", "no readable number"),
            ("nmi_noise: start 81.000120500 duration 1502", "no readable duration"),
            ("nmi_noise: start 81.000120500 duration 18446744073709551000 ns", "negative"),
            ("sample_threshold: start 81.000101100 duration 9011 ns", "no readable interference"),
            ("1000000 39 99.9", "nine figures"),
            ("1000000 39 99.99610 33 1 2 12 24 99999999999", "cannot be"),
            ("osnoise_sample: runtime=5", "no readable counts"),
        ] {
            let error = only(fields).unwrap_err();
            assert!(error.contains(why), "{fields}: {error}");
        }
        let far = "a-1 [9999999] d... 1.000001: nmi_noise: start 0.000000001 duration 1502 ns\n";
        assert!(all(far).unwrap_err().contains("above the limit"));
    }
}
