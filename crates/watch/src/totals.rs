//! All that was found since the start, and how it is told.

use std::collections::BTreeMap;

use becalm_linux::usage::Usage;
use becalm_model::node::Rung;
use becalm_units::{CpuId, CpuList, Nanos, Share};

use crate::exposition::{Exposition, Seconds};
use crate::feed::WindowSums;
use crate::kernel::KernelCounts;
use crate::request::Format;
use crate::sources::Sources;
use crate::traced::Traced;

/// The upper bounds of the classes by length, in nanoseconds and as they are told, in seconds.
pub const BUCKETS: [(i64, &str); 20] = [
    (200, "2e-07"),
    (500, "5e-07"),
    (1_000, "1e-06"),
    (2_000, "2e-06"),
    (5_000, "5e-06"),
    (10_000, "1e-05"),
    (20_000, "2e-05"),
    (50_000, "5e-05"),
    (100_000, "0.0001"),
    (200_000, "0.0002"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_000_000, "0.002"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (20_000_000, "0.02"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (200_000_000, "0.2"),
    (1_000_000_000, "1.0"),
];

/// The class of a detour; `BUCKETS.len()` for those above all bounds.
pub fn bucket(duration: Nanos) -> usize {
    BUCKETS.partition_point(|(bound, _)| *bound < duration.get())
}

/// The sums of one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct CpuTotals {
    watched: Nanos,
    noise: Nanos,
    detours: u64,
    last: Option<LastWindow>,
}

/// The last window on a CPU.
#[derive(Clone, Copy, Debug)]
struct LastWindow {
    ratio: f64,
    longest: Nanos,
    /// How many windows had been measured by then, on all CPUs.
    number: u64,
}

/// What the parts of the whole took of CPU time, as they count it themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Parts {
    /// Windows: setting up, loops, attribution, storing.
    pub windows: Nanos,
    /// Reading the trace between them.
    pub trace: Nanos,
    /// The process that guards the trace, which is not in the CPU time of this one.
    pub guard: Nanos,
}

/// What became of windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was measured.
    Measured,
    /// It was due, and no CPU was idle enough.
    Busy,
    /// It could not be measured.
    Failed,
}

/// Everything since the start.
#[derive(Clone, Debug)]
pub struct Totals {
    cpus: BTreeMap<CpuId, CpuTotals>,
    lengths: [u64; BUCKETS.len() + 1],
    detour_time: Nanos,
    /// The sources by what they took.
    pub sources: Sources,
    own: Nanos,
    lost_events: u64,
    incomplete: u64,
    unstored: u64,
    outcomes: [u64; 3],
    /// Alerts since the start.
    pub alerts: u64,
    /// Bundles that could not be stored.
    pub store_failures: u64,
    /// Configurations that were read anew, and those that were refused.
    pub reloads: (u64, u64),
    /// Bytes and number of the bundles in the ring.
    pub ring: (u64, u64),
    /// What was traced between the windows.
    pub traced: Traced,
    /// What the parts of the whole took, as they count it themselves.
    pub parts: Parts,
    /// What the kernel counted last.
    pub kernel: KernelCounts,
    rung: Option<Rung>,
    /// When a window was measured last, in nanoseconds of the wall clock; zero before the first.
    last_window_ns: u64,
    /// Whether the last window that was tried failed.
    failing: bool,
    /// What the whole may take.
    pub budget: Share,
}

impl Totals {
    /// Nothing yet.
    pub fn new(budget: Share) -> Self {
        Self {
            cpus: BTreeMap::new(),
            lengths: [0; BUCKETS.len() + 1],
            detour_time: Nanos::ZERO,
            sources: Sources::default(),
            own: Nanos::ZERO,
            lost_events: 0,
            incomplete: 0,
            unstored: 0,
            outcomes: [0; 3],
            alerts: 0,
            store_failures: 0,
            reloads: (0, 0),
            ring: (0, 0),
            traced: Traced::default(),
            parts: Parts::default(),
            kernel: KernelCounts::default(),
            rung: None,
            last_window_ns: 0,
            failing: false,
            budget,
        }
    }

    /// A window is over without having been measured.
    pub fn miss(&mut self, outcome: Outcome) {
        self.outcomes[outcome as usize] += 1;
        self.failing = outcome == Outcome::Failed || (self.failing && outcome == Outcome::Busy);
    }

    /// A window was measured.
    pub fn add(&mut self, window: &Measured<'_>, most_sources: usize) {
        let sums = window.sums;
        let detours: u64 = sums.lengths.iter().sum();
        let cpu = self.cpus.entry(window.cpu).or_default();
        cpu.watched += window.watched;
        cpu.noise += sums.noise;
        cpu.detours += detours + sums.unstored;
        let number = self.outcomes[Outcome::Measured as usize] + 1;
        cpu.last = Some(LastWindow { ratio: window.noise_ratio(), longest: sums.longest, number });
        self.lengths.iter_mut().zip(sums.lengths).for_each(|(all, new)| *all += new);
        self.detour_time += sums.noise;
        for ((kind, name), time) in &sums.sources {
            self.sources.add(*kind, name, *time, most_sources);
        }
        self.sources.rank(most_sources);
        self.own += sums.own;
        self.lost_events += window.lost_events;
        self.incomplete += sums.incomplete;
        self.unstored += sums.unstored;
        self.outcomes[Outcome::Measured as usize] += 1;
        (self.rung, self.failing, self.last_window_ns) = (Some(window.rung), false, window.at_ns);
    }

    /// Only these CPUs are there and wanted: of others no last window or interval is told any more. Nor is it of a CPU that was passed
    /// over, as it was busy, while all of them could have been measured twice: what it was like then says nothing of now.
    pub fn keep_cpus(&mut self, cpus: &CpuList) {
        let oldest = self.outcomes[Outcome::Measured as usize].saturating_sub(2 * cpus.len() as u64);
        for (cpu, sums) in &mut self.cpus {
            sums.last = sums.last.filter(|last| cpus.contains(*cpu) && last.number > oldest);
        }
        self.traced.keep_cpus(cpus);
    }

    /// Whether windows are measured, or are put off for a good reason.
    pub const fn is_healthy(&self) -> bool {
        !self.failing
    }

    /// How all is told. `usage` and `elapsed` are those of the process.
    pub fn text(&self, format: Format, usage: &Usage, elapsed: Nanos) -> String {
        let mut out = Exposition::new(format);
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
        out.counter("becalm_watched_seconds", "Time for which a loop watched the CPU.");
        for (cpu, sums) in &cpus {
            out.sample("becalm_watched_seconds_total", &[("cpu", cpu)], Seconds(sums.watched));
        }
        out.counter(
            "becalm_noise_seconds",
            "Time that the loop lost on the CPU. Divided by the watched time it is the noise ratio.",
        );
        for (cpu, sums) in &cpus {
            out.sample("becalm_noise_seconds_total", &[("cpu", cpu)], Seconds(sums.noise));
        }
        out.counter("becalm_detours", "Detours that were caught on the CPU.");
        for (cpu, sums) in &cpus {
            out.sample("becalm_detours_total", &[("cpu", cpu)], sums.detours);
        }
        out.family("becalm_noise_ratio", "gauge", "Noise ratio of the last window on the CPU, between 0 and 1.");
        let last: Vec<_> = cpus.iter().filter_map(|(cpu, sums)| Some((cpu, sums.last?))).collect();
        for (cpu, last) in &last {
            out.sample("becalm_noise_ratio", &[("cpu", cpu)], last.ratio);
        }
        out.family("becalm_longest_detour_seconds", "gauge", "Longest detour of the last window on the CPU.");
        for (cpu, last) in &last {
            out.sample("becalm_longest_detour_seconds", &[("cpu", cpu)], Seconds(last.longest));
        }
    }

    fn tell_detours(&self, out: &mut Exposition) {
        let named = ("becalm_detour_duration_seconds", "Detours of all CPUs by length.");
        out.histogram(named, &BUCKETS, &self.lengths, self.detour_time);
    }

    fn tell_sources(&self, out: &mut Exposition) {
        out.counter(
            "becalm_source_seconds",
            "Time that a source took by itself in detours; the many small ones together are source other.",
        );
        for ((kind, name), time) in self.sources.named() {
            out.sample("becalm_source_seconds_total", &[("kind", kind.name()), ("source", name)], Seconds(time));
        }
        out.sample(
            "becalm_source_seconds_total",
            &[("kind", "other"), ("source", "other")],
            Seconds(self.sources.other()),
        );
    }

    fn tell_health(&self, out: &mut Exposition) {
        out.family("becalm_healthy", "gauge", "1 unless the last window that was tried could not be measured.");
        out.sample("becalm_healthy", &[], u8::from(self.is_healthy()));
        out.family("becalm_rung", "gauge", "What the last window saw: 0 detours alone, 1 and counters of the kernel, 2 and sources by name; -1 before the first.");
        let rung = self.rung.map_or(-1, |rung| match rung {
            Rung::Loop => 0,
            Rung::Proc => 1,
            Rung::Tracepoints => 2,
        });
        out.sample("becalm_rung", &[], rung);
        out.counter("becalm_windows", "Windows that were due, by what became of them.");
        for (result, count) in ["measured", "busy", "failed"].iter().zip(self.outcomes) {
            out.sample("becalm_windows_total", &[("result", result)], count);
        }
        out.family(
            "becalm_last_window_timestamp_seconds",
            "gauge",
            "When a window was measured last; 0 before the first.",
        );
        out.sample(
            "becalm_last_window_timestamp_seconds",
            &[],
            Seconds(Nanos::new(i64::try_from(self.last_window_ns).unwrap_or(i64::MAX))),
        );
        for (name, help, value) in [
            ("becalm_alerts", "Windows that raised an alert.", self.alerts),
            ("becalm_lost_events", "Kernel events that the trace lost.", self.lost_events),
            ("becalm_incomplete_detours", "Detours in which kernel events were lost.", self.incomplete),
            (
                "becalm_unstored_detours",
                "Detours that were only counted, as there was no room for them.",
                self.unstored,
            ),
            ("becalm_store_failures", "Bundles that could not be stored.", self.store_failures),
        ] {
            out.counter(name, help);
            out.sample(&format!("{name}_total"), &[], value);
        }
        out.counter("becalm_config_reloads", "Configurations that were read anew.");
        out.sample("becalm_config_reloads_total", &[("result", "taken")], self.reloads.0);
        out.sample("becalm_config_reloads_total", &[("result", "refused")], self.reloads.1);
        out.family("becalm_ring_bytes", "gauge", "What the bundles on disk take.");
        out.sample("becalm_ring_bytes", &[], self.ring.0);
        out.family("becalm_ring_bundles", "gauge", "How many bundles are on disk.");
        out.sample("becalm_ring_bundles", &[], self.ring.1);
    }

    fn tell_kernel(&self, out: &mut Exposition) {
        out.counter(
            "becalm_context_switches",
            "Context switches of all CPUs since the boot, by the kernel's own count.",
        );
        out.sample("becalm_context_switches_total", &[], self.kernel.switches);
        out.counter(
            "becalm_steal_seconds",
            "Time that the hypervisor took of all CPUs since the boot, by its own statement.",
        );
        out.sample("becalm_steal_seconds_total", &[], Seconds(self.kernel.steal));
        out.counter("becalm_softirqs", "How often softirqs ran on all CPUs since the boot, by the kernel's own count.");
        for (name, count) in &self.kernel.softirqs {
            out.sample("becalm_softirqs_total", &[("softirq", name)], count);
        }
    }

    fn tell_own(&self, out: &mut Exposition, usage: &Usage, elapsed: Nanos) {
        out.counter(
            "becalm_own_cpu_seconds",
            "CPU time of becalm watch since its start, loops, setting up and answers included, by the kernel's count.",
        );
        out.sample("becalm_own_cpu_seconds_total", &[], Seconds(usage.cpu));
        out.counter(
            "becalm_own_part_seconds",
            "CPU time by what it was taken for, by becalm's own count; guard is another process, and events are what others paid for them.",
        );
        let rest = (usage.cpu - self.parts.windows - self.parts.trace).max(Nanos::ZERO);
        for (part, time) in [
            ("windows", self.parts.windows),
            ("trace", self.parts.trace),
            ("rest", rest),
            ("guard", self.parts.guard),
            ("events", self.traced.cost()),
        ] {
            out.sample("becalm_own_part_seconds_total", &[("part", part)], Seconds(time));
        }
        out.family(
            "becalm_own_cpu_ratio",
            "gauge",
            "Share of one CPU that becalm watch took on average since its start, with what others paid for the events that it traced.",
        );
        let whole = usage.cpu + self.parts.guard + self.traced.cost();
        out.sample("becalm_own_cpu_ratio", &[], whole.get() as f64 / elapsed.get().max(1) as f64);
        out.family("becalm_own_cpu_budget_ratio", "gauge", "Share of one CPU that it may take.");
        out.sample("becalm_own_cpu_budget_ratio", &[], self.budget.ratio());
        out.counter(
            "becalm_own_detour_seconds",
            "What becalm watch itself took of its loops, which is in no figure of noise.",
        );
        out.sample("becalm_own_detour_seconds_total", &[], Seconds(self.own));
        out.family("becalm_own_resident_bytes", "gauge", "Memory of becalm watch that is in RAM.");
        out.sample("becalm_own_resident_bytes", &[], usage.resident_bytes);
        out.family("becalm_own_descriptors", "gauge", "Open file descriptors of becalm watch.");
        out.sample("becalm_own_descriptors", &[], usage.descriptors);
        out.family("becalm_up_seconds", "gauge", "For how long becalm watch has run.");
        out.sample("becalm_up_seconds", &[], Seconds(elapsed));
        out.family("becalm_build_info", "gauge", "Always 1; the version is in its label.");
        out.sample("becalm_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    }
}

/// A window that was measured.
#[derive(Debug)]
pub struct Measured<'a> {
    /// Where.
    pub cpu: CpuId,
    /// For how long.
    pub watched: Nanos,
    /// What was found.
    pub sums: &'a WindowSums,
    /// Kernel events that were lost.
    pub lost_events: u64,
    /// What was to be seen.
    pub rung: Rung,
    /// When, in nanoseconds of the wall clock.
    pub at_ns: u64,
}

impl Measured<'_> {
    /// The share of the time that was lost.
    pub fn noise_ratio(&self) -> f64 {
        self.sums.noise.get() as f64 / self.watched.get().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_attribute::Interruptions;
    use becalm_model::{Kind, Labels};
    use proptest::prelude::*;
    use serde_json::Value;
    use std::collections::BTreeSet;

    use crate::traced::TraceState;

    #[test]
    fn a_window_is_told() {
        let mut sums =
            WindowSums { noise: Nanos::from_millis(3), longest: Nanos::from_millis(2), ..WindowSums::default() };
        sums.lengths[bucket(Nanos::from_millis(1))] += 1;
        sums.lengths[bucket(Nanos::from_millis(2))] += 1;
        sums.sources.insert((Kind::Task, "a \"b\"".to_owned()), Nanos::from_millis(3));
        let mut totals = Totals::new(Share::of_per_mille(1));
        totals.miss(Outcome::Failed);
        assert!(!totals.is_healthy());
        let window = Measured {
            cpu: CpuId::new(7),
            watched: Nanos::from_millis(300),
            sums: &sums,
            lost_events: 4,
            rung: Rung::Tracepoints,
            at_ns: 5,
        };
        totals.add(&window, 5);
        let text = totals.text(Format::OpenMetrics, &Usage::default(), Nanos::from_secs(1));
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
        let measured = |cpu| Measured {
            cpu: CpuId::new(cpu),
            watched: Nanos::from_secs(1),
            sums: &sums,
            lost_events: 0,
            rung: Rung::Proc,
            at_ns: 5,
        };
        let mut totals = Totals::new(Share::of_per_mille(1));
        totals.traced.state = TraceState::On;
        for cpu in 0..3 {
            totals.add(&measured(cpu), 5);
            totals.traced.add(CpuId::new(cpu), Nanos::from_secs(2), &Interruptions::default(), &Labels::new(), 5);
        }
        let told = |totals: &Totals, name: &str| {
            let text = totals.text(Format::OpenMetrics, &Usage::default(), Nanos::from_secs(1));
            let cpus = text.lines().filter_map(|line| line.strip_prefix(&format!("{name}{{cpu=\"")));
            cpus.map(|rest| rest[..1].to_owned()).collect::<String>()
        };
        let last = ["becalm_noise_ratio", "becalm_longest_detour_seconds", "becalm_longest_interruption_seconds"];
        for (there, cpus) in [("0-2", "012"), ("0,2-5", "02"), ("2", "2"), ("0-2", "2")] {
            totals.keep_cpus(&there.parse().unwrap());
            for name in last {
                assert_eq!(told(&totals, name), cpus, "{name} of {there}");
            }
        }
        // What was counted stays.
        assert_eq!(told(&totals, "becalm_watched_seconds_total"), "012");
        assert_eq!(told(&totals, "becalm_traced_seconds_total"), "012");
        // CPU 2 has work from now on, and the others are measured again and again.
        let all = "0-2".parse().unwrap();
        for (round, cpus) in [(0, "02"), (1, "012"), (2, "012"), (3, "012"), (4, "012"), (5, "01")] {
            totals.add(&measured(round % 2), 5);
            totals.keep_cpus(&all);
            assert_eq!(told(&totals, last[0]), cpus, "{round}");
        }
        totals.traced.state = TraceState::Off;
        totals.keep_cpus(&all);
        assert_eq!(told(&totals, last[2]), "");
    }

    /// The names of series that a text asks for.
    fn asked(text: &str) -> BTreeSet<&str> {
        let words = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
        words.filter(|word| word.starts_with("becalm_")).collect()
    }

    #[test]
    fn what_rules_and_dashboard_ask_for_is_told() {
        let sums = WindowSums::default();
        let (cpu, watched, rung) = (CpuId::new(0), Nanos::from_secs(1), Rung::Proc);
        let mut totals = Totals::new(Share::of_per_mille(1));
        totals.kernel.softirqs.push(("TIMER".to_owned(), 1));
        totals.add(&Measured { cpu, watched, sums: &sums, lost_events: 0, rung, at_ns: 5 }, 5);
        totals.traced.add(cpu, watched, &Interruptions::default(), &Labels::new(), 5);
        let text = totals.text(Format::Prometheus, &Usage::default(), watched);
        let told: BTreeSet<&str> = text.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
        let rules = include_str!("../../../deploy/prometheus/becalm.rules.yml");
        let dashboard: Value = serde_json::from_str(include_str!("../../../deploy/grafana/becalm.json")).unwrap();
        let targets =
            dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap());
        let expressions: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
        assert!(expressions.len() >= 8);
        for text in expressions.into_iter().chain([rules]) {
            let unknown: Vec<_> =
                asked(text).into_iter().filter(|name| !told.contains(name) && *name != "becalm_noise").collect();
            assert!(unknown.is_empty(), "{unknown:?} of {text}");
        }
    }

    proptest! {
        #[test]
        fn a_class_holds_what_is_not_longer_than_its_bound(duration in 0_i64..3_000_000_000) {
            let plain = BUCKETS.iter().position(|(bound, _)| duration <= *bound).unwrap_or(BUCKETS.len());
            prop_assert_eq!(bucket(Nanos::new(duration)), plain);
        }

        #[test]
        fn bounds_say_what_they_are(at in 0..BUCKETS.len()) {
            let (ns, text) = BUCKETS[at];
            prop_assert!((text.parse::<f64>().unwrap() * 1e9 - ns as f64).abs() < 1e-6 * ns as f64);
        }
    }
}
