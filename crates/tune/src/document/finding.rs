//! Findings: the observation, its severity, and the fix.

use becalm_model::Kind;
use becalm_model::remedy::NoiseSource;
use becalm_model::tune::Family;
use becalm_units::{CpuList, Nanos};
use serde::Serialize;

/// The subject of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Area {
    /// Which CPUs are kept apart, and whether that holds.
    Isolation,
    /// The timer interrupt that the scheduler keeps time by.
    Tick,
    /// Parameters of the kernel's command line.
    Boot,
    /// Interrupts of devices, and where they are sent.
    Irq,
    /// Work that the kernel puts off: work queues, softirqs of the network.
    Deferred,
    /// Threads that may run on the CPUs.
    Tasks,
    /// Lockup detectors and timers.
    Timers,
    /// The clock that the kernel keeps time with.
    Clock,
    /// Changes of frequency, and sleep states.
    Power,
    /// Background work of the kernel on memory.
    Memory,
    /// Tracing that is on.
    Tracing,
    /// How the kernel was built.
    Build,
    /// The hypervisor below the kernel.
    Hypervisor,
}

/// How grave a finding is, by one rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Severity {
    /// The setting was looked at, and is as quiet CPUs need it.
    Fine,
    /// It costs something only at times (when the CPU was idle, when memory is short), cannot be changed from within this
    /// machine, or could not be looked at.
    Note,
    /// It takes time from the CPUs while a program runs on them, and can be removed.
    Warning,
    /// Something that was asked of this kernel does not hold: a parameter that it refuses or ignores, settings that
    /// contradict each other, a tick that was to be gone, no CPU left for everything else.
    Error,
}

/// A file with its contents.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// The file, from the machine's root.
    pub path: String,
    /// The relevant part of the contents, or why the file could not be read.
    pub value: String,
}

impl Evidence {
    /// A file and the relevant part of its text.
    pub fn new(path: impl Into<String>, value: impl Into<String>) -> Self {
        Self { path: path.into(), value: value.into() }
    }
}

/// The fix for a finding.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fix {
    /// What to do, in words.
    pub text: String,
    /// The knobs of the fix at run time; `None` if it needs a reboot or another step.
    pub family: Option<Family>,
    /// The boot parameter; `None` if it does not help or is not needed.
    pub boot: Option<String>,
}

/// One result of a check.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// Its subject.
    pub area: Area,
    /// How grave it is.
    pub severity: Severity,
    /// The observation, in one sentence.
    pub title: String,
    /// The files that show it.
    pub evidence: Vec<Evidence>,
    /// The fix; `None` if there is nothing to do.
    pub fix: Option<Fix>,
    /// The noise that it permits, by source names as in recordings.
    pub noise: Vec<NoiseSource>,
    /// The recorded cost of that noise; `None` without a recording, or if none was seen.
    pub cost: Option<FindingCost>,
}

impl Finding {
    /// Adds a file and its text as evidence.
    pub fn seen(&mut self, path: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.evidence.push(Evidence::new(path, value));
        self
    }

    /// Sets the fix in words.
    pub fn fix(&mut self, text: impl Into<String>) -> &mut Self {
        self.fix.get_or_insert_default().text = text.into();
        self
    }

    /// Sets the knobs of the fix.
    pub fn by(&mut self, family: Family) -> &mut Self {
        self.fix.get_or_insert_default().family = Some(family);
        self
    }

    /// Sets the boot parameter of the fix.
    pub fn boot(&mut self, parameter: impl Into<String>) -> &mut Self {
        self.fix.get_or_insert_default().boot = Some(parameter.into());
        self
    }

    /// Adds noise that it permits: a row of the catalogue, or a source by name.
    pub fn lets(&mut self, noise: impl Into<NoiseSource>) -> &mut Self {
        self.noise.push(noise.into());
        self
    }
}

/// The recorded cost of the noise that a finding permits.
#[derive(Clone, PartialEq, Debug)]
pub struct FindingCost {
    /// The sources seen, the most expensive first.
    pub sources: Vec<SourceCost>,
    /// The time that they took together.
    pub total: Nanos,
    /// That time over the observed time of all CPUs of the recording: 0 to 1.
    pub ratio: f64,
}

/// The recorded cost of one source.
#[derive(Clone, PartialEq, Debug)]
pub struct SourceCost {
    /// The kind of the activity.
    pub kind: Kind,
    /// The source's stable name.
    pub source: String,
    /// The CPUs on which it was seen.
    pub cpus: CpuList,
    /// How often it ran within detours.
    pub count: u64,
    /// The time that it took.
    pub total: Nanos,
    /// That time over the observed time of these CPUs: 0 to 1.
    pub ratio: f64,
}
