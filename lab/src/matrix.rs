//! The kernel matrix: the same recording on the same emulated machine under kernels and boot parameters that differ in one thing each, and
//! the cost of that difference.
//!
//! An emulator shows counts and their order: the frequency of the tick, the softirqs, threads and detours per thousand ticks, and which
//! setting has more of them. It does not show durations, so the share of time lost and the slowdown of a job with 16,384 ranks belong to
//! the emulated machine and are comparable only with each other.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use serde::Serialize;
use serde_json::Value;

use crate::kernel::run;
use crate::{Flavor, LabError, Outcome, Scenario};

/// The scenario for each setting.
pub const SCENARIO: &str = "matrix";

/// A kernel with boot parameters that differs in one thing from Debian's default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Its name for selection and display.
    pub name: &'static str,
    /// The kernel.
    pub flavor: Flavor,
    /// Additional parameters of its command line.
    pub parameters: &'static str,
}

const fn setting(name: &'static str, flavor: Flavor, parameters: &'static str) -> Setting {
    Setting { name, flavor, parameters }
}

/// All settings, first the one that the others are compared with. Debian builds its kernels with one tick rate (CONFIG_HZ); the matrix
/// shows which. Other rates need custom kernels.
pub const SETTINGS: [Setting; 11] = [
    setting("stock", Flavor::Stock, ""),
    setting("preempt=none", Flavor::Stock, "preempt=none"),
    setting("preempt=voluntary", Flavor::Stock, "preempt=voluntary"),
    setting("preempt=full", Flavor::Stock, "preempt=full"),
    setting("nohz=off", Flavor::Stock, "nohz=off"),
    setting("nohz_full", Flavor::Stock, "isolcpus=1 nohz_full=1 rcu_nocbs=1"),
    setting("mitigations=off", Flavor::Stock, "mitigations=off"),
    setting("threadirqs", Flavor::Stock, "threadirqs"),
    setting("cloud", Flavor::Cloud, ""),
    setting("rt", Flavor::Realtime, ""),
    setting("rt nohz_full", Flavor::Realtime, "isolcpus=1 nohz_full=1 rcu_nocbs=1"),
];

impl Setting {
    /// Replaces the scenario's kernel and parameters by these.
    pub fn apply(&self, scenario: &Scenario) -> Scenario {
        Scenario { flavor: self.flavor, parameters: self.parameters.to_owned(), ..scenario.clone() }
    }
}

/// The findings under one setting, on the recorded CPU.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The setting's name.
    pub setting: String,
    /// The kernel's release.
    pub release: String,
    /// The tick rate in the kernel's configuration.
    pub config_hz: Option<u64>,
    /// The kernel's preemption model: `none voluntary (full)`; empty if unknown.
    pub preempt: String,
    /// The length of the recording, in seconds.
    pub seconds: f64,
    /// The timer interrupts that becalm found in detours.
    pub timer_interrupts: u64,
    /// The timer interrupts counted by the kernel from before the recording to after it; some are outside it.
    pub kernel_timer_interrupts: u64,
    /// Interrupts of all kinds.
    pub interrupts: u64,
    /// Softirqs, including those in threads of a real-time kernel.
    pub softirqs: u64,
    /// Runs of kernel threads and work items.
    pub kernel_threads: u64,
    /// Runs of other processes.
    pub tasks: u64,
    /// Detours of any length.
    pub detours: u64,
    /// The share of time lost, on the emulated machine.
    pub noise_ratio: f64,
    /// The slowdown by this noise of a bulk-synchronous job with 16,384 ranks and phases of 1 ms, on the emulated machine.
    pub slowdown_16k_ratio: Option<f64>,
}

impl Row {
    /// A count per second.
    pub fn a_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }

    /// A count per thousand timer interrupts; `None` without any.
    pub fn per_1000_ticks(&self, count: u64) -> Option<f64> {
        (self.timer_interrupts > 0).then(|| 1e3 * count as f64 / self.timer_interrupts as f64)
    }

    /// Reads a guest's results, with reports of its recording by this becalm: an emulated CPU would take long. Fails if a file is missing,
    /// or becalm fails, or its document is incomplete.
    pub fn from_outcome(setting: &str, config: &str, outcome: &Outcome, becalm: &Path) -> Result<Self, LabError> {
        let bundle = outcome.path("run.becalm");
        let report = ask(becalm, &["report".as_ref(), bundle.as_os_str()])?;
        let job = ["--ranks", "16Ki", "--phases", "2000"].map(OsStr::new);
        let predicted = ask(becalm, &[&["predict".as_ref(), bundle.as_os_str()], &job[..]].concat()).ok();
        let counters = outcome.text("before")?;
        let after = outcome.text("after")?;
        let optional = |name: &str| outcome.text(name).unwrap_or_default();
        Self::from_documents(&report, predicted.as_ref()).map_or_else(
            || Err(LabError::document(&bundle)),
            |row| {
                Ok(Self {
                    setting: setting.to_owned(),
                    release: optional("release"),
                    preempt: optional("preempt"),
                    config_hz: config_hz(config),
                    kernel_timer_interrupts: counted(&after, "LOC").saturating_sub(counted(&counters, "LOC")),
                    ..row
                })
            },
        )
    }

    /// The figures in a report of one CPU; `None` if one is missing.
    fn from_documents(report: &Value, predicted: Option<&Value>) -> Option<Self> {
        let cpu = report["cpus"].get(0)?;
        let sources = report["sources"].as_array()?;
        let count = |wanted: &dyn Fn(&str, &str) -> bool| -> u64 {
            let text = |source: &Value, field: &str| source[field].as_str().unwrap_or_default().to_owned();
            let matching = sources.iter().filter(|source| wanted(&text(source, "kind"), &text(source, "source")));
            matching.filter_map(|source| source["count"].as_u64()).sum()
        };
        Some(Self {
            setting: String::new(),
            release: String::new(),
            config_hz: None,
            preempt: String::new(),
            seconds: cpu["duration_ns"].as_f64()? / 1e9,
            timer_interrupts: count(&|kind, source| kind == "irq" && is_timer(source)),
            kernel_timer_interrupts: 0,
            interrupts: count(&|kind, _| kind == "irq"),
            softirqs: count(&|kind, _| kind == "softirq"),
            kernel_threads: count(&|kind, _| matches!(kind, "kthread" | "workqueue")),
            tasks: count(&|kind, _| kind == "task"),
            detours: cpu["detours"].as_u64()?,
            noise_ratio: cpu["noise_ratio"].as_f64()?,
            slowdown_16k_ratio: predicted.and_then(|document| document["rows"][0]["slowdown_ratio"].as_f64()),
        })
    }
}

/// Whether an interrupt is a timer interrupt: the tick, another timer, or an unnamed one.
pub fn is_timer(source: &str) -> bool {
    matches!(source, "tick" | "local_timer") || source.starts_with("timer:")
}

/// The number in a line `NAME COUNT` of the guest's counters; 0 without one.
fn counted(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// The tick rate in a kernel's configuration.
fn config_hz(config: &str) -> Option<u64> {
    config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse().ok())
}

fn ask(becalm: &Path, arguments: &[&OsStr]) -> Result<Value, LabError> {
    let mut command = Command::new(becalm);
    command.args(arguments).arg("--json");
    let output = run(&mut command, "becalm")?;
    serde_json::from_slice(&output).map_err(|_| LabError::document(becalm))
}

/// All rows, with a note on their limits.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Matrix {
    /// `becalm.kernel-matrix/1`.
    pub schema: &'static str,
    /// The limits of the figures.
    pub limits: &'static str,
    /// In the order of the settings.
    pub rows: Vec<Row>,
}

/// What an emulator can show, and what it cannot.
pub const LIMITS: &str = "Measured in an emulator: counts and their order are the kernel's; times, shares of time and slowdowns are \
                          the emulator's, and reproduce no figure of a real machine. Every kernel here has the tick rate that \
                          Debian builds; others need a kernel of one's own";

impl Matrix {
    /// The matrix of these rows.
    pub const fn new(rows: Vec<Row>) -> Self {
        Self { schema: "becalm.kernel-matrix/1", limits: LIMITS, rows }
    }

    /// The matrix as a table: counts per second, per thousand ticks, and at 16,384 ranks.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<23} {:>5} {:>8} {:>8} {:>9} {:>9} {:>9} | {:>8} {:>8} {:>9} | {:>7} {:>8}\n",
            "setting",
            "HZ",
            "ticks/s",
            "irqs/s",
            "softirq/s",
            "threads/s",
            "detours/s",
            "irqs",
            "softirqs",
            "threads",
            "lost",
            "16Ki"
        );
        text += &format!("{:>79}| {:^27} | of the emulator\n", "", "to 1,000 ticks");
        for row in &self.rows {
            text += &row.line();
        }
        text
    }
}

impl Row {
    fn line(&self) -> String {
        let rate_text = |count| self.per_1000_ticks(count).map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
        let threads = self.kernel_threads + self.tasks;
        format!(
            "{:<23} {:>5} {:>8.1} {:>8.1} {:>9.1} {:>9.1} {:>9.0} | {:>8} {:>8} {:>9} | {:>6.2}% {:>8}\n",
            self.setting,
            self.config_hz.map_or_else(|| "-".to_owned(), |hz| hz.to_string()),
            self.a_second(self.timer_interrupts),
            self.a_second(self.interrupts),
            self.a_second(self.softirqs),
            self.a_second(threads),
            self.a_second(self.detours),
            rate_text(self.interrupts),
            rate_text(self.softirqs),
            rate_text(threads),
            100.0 * self.noise_ratio,
            self.slowdown_16k_ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report() -> Value {
        let source = |source: &str, kind: &str, count: u64| json!({"source": source, "kind": kind, "count": count});
        json!({
            "cpus": [{"duration_ns": 4_000_000_000_u64, "detours": 5_000, "noise_ratio": 0.0125}],
            "sources": [
                source("tick", "irq", 900), source("timer:hrtimer_wakeup", "irq", 100), source("ttyS1", "irq", 20), source("sched", "softirq", 300),
                source("rcu", "softirq", 200), source("ksoftirqd", "kthread", 7), source("kworker:x", "workqueue", 3),
                source("sh", "task", 40), source("unseen", "unseen", 900),
            ],
        })
    }

    #[test]
    fn figures_are_sums_of_the_sources() {
        let predicted = json!({"rows": [{"slowdown_ratio": 1.75}]});
        let row = Row::from_documents(&report(), Some(&predicted)).unwrap();
        assert_eq!((row.timer_interrupts, row.interrupts, row.softirqs), (1_000, 1_020, 500));
        assert_eq!((row.kernel_threads, row.tasks, row.detours), (10, 40, 5_000));
        assert_eq!((row.seconds, row.slowdown_16k_ratio), (4.0, Some(1.75)));
        assert_eq!((row.a_second(1_000), row.per_1000_ticks(500)), (250.0, Some(500.0)));
        let none = Row { timer_interrupts: 0, ..row };
        assert_eq!(none.per_1000_ticks(5), None);
        assert_eq!(Row::from_documents(&json!({"cpus": [], "sources": []}), None), None);
    }

    #[test]
    fn the_table_has_a_line_a_setting_and_says_what_it_cannot() {
        let row = Row {
            setting: "nohz_full".to_owned(),
            config_hz: Some(250),
            ..Row::from_documents(&report(), None).unwrap()
        };
        let matrix = Matrix::new(vec![row]);
        let line = matrix.table().lines().last().unwrap().to_owned();
        let cells: Vec<&str> = line.split_whitespace().filter(|cell| *cell != "|").collect();
        let expected =
            ["nohz_full", "250", "250.0", "255.0", "125.0", "12.5", "1250", "1020", "500", "50", "1.25%", "-"];
        assert_eq!(cells, expected);
        assert!(serde_json::to_string(&matrix).unwrap().contains("reproduce no figure"));
    }

    #[test]
    fn counters_and_configurations_are_read() {
        assert_eq!(counted("12.5\nLOC 4711\nLOCX 3\n", "LOC"), 4711);
        assert_eq!(counted("", "LOC"), 0);
        assert_eq!(config_hz("# CONFIG_HZ_100 is not set\nCONFIG_HZ_250=y\nCONFIG_HZ=250\n"), Some(250));
        assert_eq!(config_hz(""), None);
    }

    #[test]
    fn every_setting_has_its_own_name_and_the_first_changes_nothing() {
        let names: std::collections::BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        assert_eq!(names.len(), SETTINGS.len());
        assert_eq!((SETTINGS[0].flavor, SETTINGS[0].parameters), (Flavor::Stock, ""));
        let scenario = Scenario::named(SCENARIO).unwrap();
        let changed = SETTINGS[5].apply(&scenario);
        assert_eq!((changed.parameters.contains("nohz_full=1"), changed.path), (true, scenario.path));
    }
}
