//! All results since the start, and their publication.

use std::collections::BTreeMap;

use becalm_linux::usage::Usage;
use becalm_model::node::Rung;
use becalm_units::{CpuId, CpuList, Nanos, Share};

use crate::exposition::{Exposition, Family, Type, Value};
use crate::feed::WindowSums;
use crate::histogram::Lengths;
use crate::kernel::KernelCounts;
use crate::sources::Sources;
use crate::traced::Traced;

#[derive(Clone, Copy, Debug, Default)]
struct CpuTotals {
    watched: Nanos,
    noise: Nanos,
    detours: u64,
    last: Option<LastWindow>,
}

#[derive(Clone, Copy, Debug)]
struct LastWindow {
    ratio: f64,
    longest: Nanos,
    /// The number of windows measured on all CPUs by then.
    number: u64,
}

/// The CPU time of the parts of the watch, as measured by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Parts {
    /// Windows: setup, loops, attribution, storing.
    pub windows: Nanos,
    /// Reading the trace between windows.
    pub trace: Nanos,
    pub answers: Nanos,
    /// The process that guards the trace, which is not in this process's CPU time.
    pub guard: Nanos,
}

/// Reasons why a window that was due was not measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Miss {
    /// No CPU was idle enough.
    Busy,
    /// It could not be measured.
    Failed,
}

/// Windows that were due, by their outcome.
#[derive(Clone, Copy, Debug, Default)]
struct WindowCounts {
    measured: u64,
    busy: u64,
    failed: u64,
}

/// Messages to a collector.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendCounts {
    /// Messages that the collector accepted.
    pub sent: u64,
    /// Messages that could not be sent.
    pub failed: u64,
}

/// Attempts to read the configuration again.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReloadCounts {
    pub taken: u64,
    pub refused: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct RingSize {
    pub bytes: u64,
    pub bundles: u64,
}

/// All totals since the start.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    cpus: BTreeMap<CpuId, CpuTotals>,
    lengths: Lengths,
    pub sources: Sources,
    own: Nanos,
    lost_events: u64,
    incomplete: u64,
    unstored: u64,
    windows: WindowCounts,
    /// Alerts since the start.
    pub alerts: u64,
    /// Bundles that could not be stored.
    pub store_failures: u64,
    /// Messages to the collector; `None` if there is no collector.
    pub sent: Option<SendCounts>,
    /// The last error in sending, if it was not reported yet.
    pub unsent: Option<String>,
    /// How often the server rested because answers took more than their allowance.
    pub answer_rests: u64,
    /// Messages that were dropped.
    pub unsaid: u64,
    /// Attempts to read the configuration again.
    pub reloads: ReloadCounts,
    pub ring: RingSize,
    pub traced: Traced,
    /// The CPU time of the parts of the watch, as measured by themselves.
    pub parts: Parts,
    /// The kernel's last counts.
    pub kernel: KernelCounts,
    rung: Option<Rung>,
    /// The end of the last window, in nanoseconds of the wall clock; 0 before the first.
    last_window_ns: u64,
    /// Whether the last window failed.
    failing: bool,
    /// The total budget.
    pub budget: Share,
}

impl Totals {
    /// No results yet.
    pub fn new(budget: Share) -> Self {
        Self { budget, ..Self::default() }
    }

    /// Counts a window that was not measured.
    pub fn miss(&mut self, miss: Miss) {
        match miss {
            Miss::Busy => self.windows.busy += 1,
            Miss::Failed => (self.windows.failed, self.failing) = (self.windows.failed + 1, true),
        }
    }

    pub fn add(&mut self, window: &MeasuredWindow<'_>, most_sources: usize) {
        let sums = window.sums;
        let cpu = self.cpus.entry(window.cpu).or_default();
        cpu.watched += window.watched;
        cpu.noise += sums.noise;
        cpu.detours += sums.lengths.count() + sums.unstored;
        let number = self.windows.measured + 1;
        cpu.last = Some(LastWindow { ratio: window.noise_ratio(), longest: sums.longest, number });
        self.lengths.merge(&sums.lengths);
        for ((kind, name), time) in &sums.sources {
            self.sources.add(*kind, name, *time);
        }
        self.sources.settle(most_sources);
        self.own += sums.own;
        self.lost_events += window.lost_events;
        self.incomplete += sums.incomplete;
        self.unstored += sums.unstored;
        self.windows.measured += 1;
        (self.rung, self.failing, self.last_window_ns) = (Some(window.rung), false, window.at_ns);
    }

    /// Only these CPUs exist and are wanted: drops the last window and interval of others. Also drops those of a busy CPU that was passed over while
    /// all CPUs could have been measured twice, because old values say nothing about the present.
    pub fn keep_cpus(&mut self, cpus: &CpuList) {
        let oldest = self.windows.measured.saturating_sub(2 * cpus.len() as u64);
        for (cpu, sums) in &mut self.cpus {
            sums.last = sums.last.filter(|last| cpus.contains(*cpu) && last.number > oldest);
        }
        self.traced.keep_cpus(cpus);
    }

    /// Whether windows are measured, or are postponed for a good reason.
    pub const fn is_healthy(&self) -> bool {
        !self.failing
    }

    /// All published metrics. `usage` and `elapsed` are those of the process.
    pub fn families(&mut self, usage: &Usage, elapsed: Nanos) -> Vec<Family> {
        let mut out = Exposition::default();
        self.tell_cpus(&mut out);
        self.tell_detours(&mut out);
        self.tell_sources(&mut out);
        self.traced.tell(&mut out);
        self.tell_health(&mut out);
        self.tell_kernel(&mut out);
        self.tell_own(&mut out, usage, elapsed);
        out.end()
    }

    fn tell_cpus(&self, out: &mut Exposition) {
        let cpus: Vec<(String, &CpuTotals)> = self.cpus.iter().map(|(cpu, sums)| (cpu.to_string(), sums)).collect();
        let mut each = |name, kind, help, value: &dyn Fn(&CpuTotals) -> Option<Value>| {
            out.family(name, kind, help);
            for (cpu, sums) in &cpus {
                value(sums).into_iter().for_each(|value| out.sample(&[("cpu", cpu)], value));
            }
        };
        each("becalm_watched_seconds", Type::Counter, "Time for which a loop watched the CPU.", &|sums| {
            Some(Value::Time(sums.watched))
        });
        each(
            "becalm_noise_seconds",
            Type::Counter,
            "Time that the loop lost on the CPU. Divided by the watched time it is the noise ratio.",
            &|sums| Some(Value::Time(sums.noise)),
        );
        each("becalm_detours", Type::Counter, "Detours that were caught on the CPU.", &|sums| {
            Some(Value::Count(sums.detours))
        });
        each(
            "becalm_noise_ratio",
            Type::Gauge,
            "Noise ratio of the last window on the CPU, between 0 and 1.",
            &|sums| Some(Value::Number(sums.last?.ratio)),
        );
        each("becalm_longest_detour_seconds", Type::Gauge, "Longest detour of the last window on the CPU.", &|sums| {
            Some(Value::Time(sums.last?.longest))
        });
    }

    fn tell_detours(&self, out: &mut Exposition) {
        out.single(
            "becalm_detour_duration_seconds",
            Type::Histogram,
            "Detours of all CPUs by length.",
            Value::Lengths(Box::new(self.lengths.clone())),
        );
    }

    fn tell_sources(&mut self, out: &mut Exposition) {
        out.sources(
            "becalm_source_seconds",
            "Time charged to a source in detours; sources without a series of their own are source other.",
            &mut self.sources,
        );
    }

    fn tell_health(&self, out: &mut Exposition) {
        let is_healthy = Value::Count(self.is_healthy().into());
        out.gauge("becalm_healthy", "1 unless the last window that was tried could not be measured.", is_healthy);
        let rung = self.rung.map_or(-1.0, |rung| match rung {
            Rung::Loop => 0.0,
            Rung::Proc => 1.0,
            Rung::Tracepoints => 2.0,
        });
        out.gauge("becalm_rung", "Access level of the last window: 0 detours alone, 1 also kernel counters, 2 also sources by name; -1 before the first.", Value::Number(rung));
        out.family("becalm_windows", Type::Counter, "Windows that were due, by outcome.");
        let WindowCounts { measured, busy, failed } = self.windows;
        for (result, count) in [("measured", measured), ("busy", busy), ("failed", failed)] {
            out.sample(&[("result", result)], Value::Count(count));
        }
        let last = Nanos::new(i64::try_from(self.last_window_ns).unwrap_or(i64::MAX));
        out.gauge(
            "becalm_last_window_timestamp_seconds",
            "Time of the last measured window; 0 before the first.",
            Value::Time(last),
        );
        for (name, help, value) in [
            ("becalm_alerts", "Windows that raised an alert.", self.alerts),
            ("becalm_lost_events", "Kernel events that the trace dropped.", self.lost_events),
            ("becalm_incomplete_detours", "Detours with dropped kernel events.", self.incomplete),
            (
                "becalm_unstored_detours",
                "Detours that were only counted, because there was no room for them.",
                self.unstored,
            ),
            ("becalm_store_failures", "Recordings that could not be stored.", self.store_failures),
            (
                "becalm_dropped_messages",
                "Messages that were dropped because nothing reads standard error.",
                self.unsaid,
            ),
            (
                "becalm_answer_rests",
                "How often requests had to wait because answers took more CPU time than their allowance.",
                self.answer_rests,
            ),
        ] {
            out.counter(name, help, Value::Count(value));
        }
        out.family("becalm_config_reloads", Type::Counter, "Attempts to read the configuration again, by result.");
        out.sample(&[("result", "taken")], Value::Count(self.reloads.taken));
        out.sample(&[("result", "refused")], Value::Count(self.reloads.refused));
        if let Some(SendCounts { sent, failed }) = self.sent {
            out.family("becalm_otlp_exports", Type::Counter, "Messages to an OpenTelemetry collector, by result.");
            out.sample(&[("result", "sent")], Value::Count(sent));
            out.sample(&[("result", "failed")], Value::Count(failed));
        }
        let RingSize { bytes, bundles } = self.ring;
        out.gauge("becalm_ring_bytes", "Size of the recordings on disk.", Value::Count(bytes));
        out.gauge("becalm_ring_bundles", "Number of recordings on disk.", Value::Count(bundles));
    }

    fn tell_kernel(&self, out: &mut Exposition) {
        out.single(
            "becalm_context_switches",
            Type::SinceBoot,
            "Context switches of all CPUs since the boot, by the kernel's own count.",
            Value::Count(self.kernel.switches),
        );
        out.single(
            "becalm_steal_seconds",
            Type::SinceBoot,
            "Steal time of all CPUs since the boot, reported by the hypervisor.",
            Value::Time(self.kernel.steal),
        );
        out.family(
            "becalm_softirqs",
            Type::SinceBoot,
            "How often softirqs ran on all CPUs since the boot, by the kernel's own count.",
        );
        for (name, count) in &self.kernel.softirqs {
            out.sample(&[("softirq", name)], Value::Count(*count));
        }
    }

    fn tell_own(&self, out: &mut Exposition, usage: &Usage, elapsed: Nanos) {
        out.counter(
            "becalm_own_cpu_seconds",
            "CPU time of becalm watch since its start, loops, setting up and answers included, by the kernel's count.",
            Value::Time(usage.cpu),
        );
        out.family(
            "becalm_own_part_seconds",
            Type::Counter,
            "CPU time by purpose, by becalm's own count; guard is another process, and events is the time that tracing added to others.",
        );
        let rest = (usage.cpu - self.parts.windows - self.parts.trace - self.parts.answers).max(Nanos::ZERO);
        for (part, time) in [
            ("windows", self.parts.windows),
            ("trace", self.parts.trace),
            ("answers", self.parts.answers),
            ("rest", rest),
            ("guard", self.parts.guard),
            ("events", self.traced.cost()),
        ] {
            out.sample(&[("part", part)], Value::Time(time));
        }
        let whole = usage.cpu + self.parts.guard + self.traced.cost();
        out.gauge("becalm_own_cpu_ratio", "Share of one CPU that becalm watch took on average since its start, with the time that tracing added to others.", Value::Number(whole.get() as f64 / elapsed.get().max(1) as f64));
        let budget = Value::Number(self.budget.ratio());
        out.gauge(
            "becalm_own_cpu_budget_ratio",
            "Share of one CPU that it may take. Answers to requests have a separate allowance of the same size.",
            budget,
        );
        out.counter(
            "becalm_own_detour_seconds",
            "Time that becalm watch itself took from its loops, which is in no figure of noise.",
            Value::Time(self.own),
        );
        let resident = Value::Count(usage.resident_bytes);
        out.gauge("becalm_own_resident_bytes", "Memory of becalm watch that is in RAM.", resident);
        let descriptors = Value::Count(usage.descriptors);
        out.gauge("becalm_own_descriptors", "Open file descriptors of becalm watch.", descriptors);
        out.gauge("becalm_up_seconds", "Time since the start of becalm watch.", Value::Time(elapsed));
        out.family("becalm_build_info", Type::Gauge, "Always 1; the version is in its label.");
        out.sample(&[("version", env!("CARGO_PKG_VERSION"))], Value::Count(1));
    }
}

#[derive(Debug)]
pub struct MeasuredWindow<'a> {
    /// The measured CPU.
    pub cpu: CpuId,
    /// The observed time.
    pub watched: Nanos,
    /// The results.
    pub sums: &'a WindowSums,
    pub lost_events: u64,
    /// The access level of the recording.
    pub rung: Rung,
    /// The time of the window, in nanoseconds of the wall clock.
    pub at_ns: u64,
}

impl MeasuredWindow<'_> {
    /// The share of lost time.
    pub fn noise_ratio(&self) -> f64 {
        self.sums.noise.get() as f64 / self.watched.get().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_attribute::Interruptions;
    use becalm_model::{Kind, Labels};
    use serde_json::Value;
    use std::collections::BTreeSet;

    use crate::exposition::text;
    use crate::request::Format;
    use crate::traced::TraceState;

    #[test]
    fn a_window_is_told() {
        let mut sums =
            WindowSums { noise: Nanos::from_millis(3), longest: Nanos::from_millis(2), ..WindowSums::default() };
        sums.lengths.add(Nanos::from_millis(1));
        sums.lengths.add(Nanos::from_millis(2));
        sums.sources.insert((Kind::Task, "a \"b\"".to_owned()), Nanos::from_millis(3));
        let mut totals = Totals::new(Share::from_per_mille(1));
        totals.miss(Miss::Failed);
        assert!(!totals.is_healthy());
        let window = MeasuredWindow {
            cpu: CpuId::new(7),
            watched: Nanos::from_millis(300),
            sums: &sums,
            lost_events: 4,
            rung: Rung::Tracepoints,
            at_ns: 5,
        };
        totals.add(&window, 5);
        let text = text(&totals.families(&Usage::default(), Nanos::from_secs(1)), Format::OpenMetrics);
        for line in [
            "becalm_noise_ratio{cpu=\"7\"} 0.01",
            "becalm_noise_seconds_total{cpu=\"7\"} 0.003000000",
            "becalm_detour_duration_seconds_bucket{le=\"0.0005\"} 0",
            "becalm_detour_duration_seconds_bucket{le=\"0.001\"} 1",
            "becalm_detour_duration_seconds_count 2",
            "becalm_source_seconds_total{kind=\"task\",source=\"a \\\"b\\\"\"} 0.003000000",
            "becalm_lost_events_total 4",
            "becalm_healthy 1",
            "becalm_windows_total{result=\"failed\"} 1",
        ] {
            assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn the_last_window_of_a_cpu_is_told_while_it_is_measured() {
        let sums = WindowSums::default();
        let measured = |cpu| MeasuredWindow {
            cpu: CpuId::new(cpu),
            watched: Nanos::from_secs(1),
            sums: &sums,
            lost_events: 0,
            rung: Rung::Proc,
            at_ns: 5,
        };
        let mut totals = Totals::new(Share::from_per_mille(1));
        totals.traced.state = TraceState::On;
        for cpu in 0..3 {
            totals.add(&measured(cpu), 5);
            totals.traced.add(CpuId::new(cpu), Nanos::from_secs(2), &Interruptions::default(), &Labels::new());
        }
        let told = |totals: &mut Totals, name: &str| {
            let text = text(&totals.families(&Usage::default(), Nanos::from_secs(1)), Format::OpenMetrics);
            let cpus = text.lines().filter_map(|line| line.strip_prefix(&format!("{name}{{cpu=\"")));
            cpus.map(|rest| rest[..1].to_owned()).collect::<String>()
        };
        let last = ["becalm_noise_ratio", "becalm_longest_detour_seconds", "becalm_longest_interruption_seconds"];
        for (there, cpus) in [("0-2", "012"), ("0,2-5", "02"), ("2", "2"), ("0-2", "2")] {
            totals.keep_cpus(&there.parse().unwrap());
            for name in last {
                assert_eq!(told(&mut totals, name), cpus, "{name} of {there}");
            }
        }
        // Counters are kept.
        assert_eq!(told(&mut totals, "becalm_watched_seconds_total"), "012");
        assert_eq!(told(&mut totals, "becalm_traced_seconds_total"), "012");
        // CPU 2 is busy from now on, and the others are measured repeatedly.
        let all = "0-2".parse().unwrap();
        for (round, cpus) in [(0, "02"), (1, "012"), (2, "012"), (3, "012"), (4, "012"), (5, "01")] {
            totals.add(&measured(round % 2), 5);
            totals.keep_cpus(&all);
            assert_eq!(told(&mut totals, last[0]), cpus, "{round}");
        }
        totals.traced.state = TraceState::Off;
        totals.keep_cpus(&all);
        assert_eq!(told(&mut totals, last[2]), "");
    }

    /// The names of series that a text queries.
    fn asked(text: &str) -> BTreeSet<&str> {
        let words = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
        words.filter(|word| word.starts_with("becalm_")).collect()
    }

    #[test]
    fn what_rules_and_dashboard_ask_for_is_told() {
        let sums = WindowSums::default();
        let (cpu, watched, rung) = (CpuId::new(0), Nanos::from_secs(1), Rung::Proc);
        let mut totals = Totals::new(Share::from_per_mille(1));
        totals.kernel.softirqs.push(("TIMER".to_owned(), 1));
        totals.add(&MeasuredWindow { cpu, watched, sums: &sums, lost_events: 0, rung, at_ns: 5 }, 5);
        totals.traced.add(cpu, watched, &Interruptions::default(), &Labels::new());
        let text = text(&totals.families(&Usage::default(), watched), Format::Prometheus);
        let told: BTreeSet<&str> = text.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
        let rules = include_str!("../../../deploy/prometheus/becalm.rules.yml");
        let dashboard: Value = serde_json::from_str(include_str!("../../../deploy/grafana/becalm.json")).unwrap();
        let targets =
            dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap());
        let expressions: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
        assert!(expressions.len() >= 8);
        // A native histogram is queried by the name of its family.
        let is_told = |name: &str| told.contains(name) || told.contains(format!("{name}_bucket").as_str());
        for text in expressions.into_iter().chain([rules]) {
            let unknown: Vec<_> =
                asked(text).into_iter().filter(|name| !is_told(name) && *name != "becalm_noise").collect();
            assert!(unknown.is_empty(), "{unknown:?} of {text}");
        }
    }
}
