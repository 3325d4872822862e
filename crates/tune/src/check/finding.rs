//! Findings: what was seen, how grave it is, and what to do about it.

use std::path::Path;

use becalm_linux::file;
use becalm_linux::file::FileError;

use super::cost::Cost;
use crate::{Family, Noise};

/// What a finding is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Area {
    /// Which CPUs are kept apart, and whether that holds.
    Isolation,
    /// The timer interrupt.
    Tick,
    /// Parameters of the kernel's command line.
    Boot,
    /// Interrupts of devices.
    Irq,
    /// Work that the kernel puts off: work queues, softirqs of the network.
    Deferred,
    /// Threads that may run on the CPUs.
    Tasks,
    /// Lockup detectors and timers.
    Timers,
    /// The clock that the kernel keeps time with.
    Clock,
    /// Frequency and sleep.
    Power,
    /// What the kernel does to memory in the background.
    Memory,
    /// Tracing that is on.
    Tracing,
    /// How the kernel was built.
    Build,
    /// What lies below the kernel.
    Hypervisor,
}

impl Area {
    /// The area's name in tables and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Isolation => "isolation",
            Self::Tick => "tick",
            Self::Boot => "boot",
            Self::Irq => "irq",
            Self::Deferred => "deferred",
            Self::Tasks => "tasks",
            Self::Timers => "timers",
            Self::Clock => "clock",
            Self::Power => "power",
            Self::Memory => "memory",
            Self::Tracing => "tracing",
            Self::Build => "build",
            Self::Hypervisor => "hypervisor",
        }
    }
}

/// How grave a finding is, by one rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Was looked at, and is as quiet CPUs need it.
    Fine,
    /// Costs something only at times (when the CPU was idle, when memory is short), cannot be changed from within this
    /// machine, or could not be looked at.
    Note,
    /// Takes time from the CPUs while a program runs on them, and can be removed.
    Warning,
    /// Something that was asked of this kernel does not hold: a parameter that it refuses or ignores, settings that
    /// contradict each other, a tick that was to be gone, no CPU left for everything else.
    Error,
}

impl Severity {
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::Fine, Self::Note, Self::Warning, Self::Error];

    /// The severity's name in tables and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A file and what stands in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Evidence {
    /// The file, from the machine's root.
    pub path: String,
    /// The part of it that tells, or why it could not be read.
    pub value: String,
}

impl Evidence {
    /// A file and the part of it that tells.
    pub fn new(path: impl Into<String>, value: impl Into<String>) -> Self {
        Self { path: path.into(), value: value.into() }
    }
}

/// What removes a finding.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fix {
    /// What to do, in words.
    pub text: String,
    /// The knobs that do it while the kernel runs: `becalm tune plan --only FAMILY`.
    pub family: Option<Family>,
    /// The parameter to boot with; nothing if that does not help or is not needed.
    pub boot: Option<String>,
}

/// One thing that was found out.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// What it is about.
    pub area: Area,
    /// How grave it is.
    pub severity: Severity,
    /// What was seen, in one sentence.
    pub title: String,
    /// Where it was seen.
    pub evidence: Vec<Evidence>,
    /// What removes it; nothing if there is nothing to be done.
    pub fix: Option<Fix>,
    /// The sources of noise that it lets through, as recordings name them.
    pub noise: Vec<Noise>,
    /// What these took in a recording; nothing without one, or if none of them was seen.
    pub cost: Option<Cost>,
}

impl Finding {
    /// Adds a file and what stands in it.
    pub(super) fn seen(&mut self, path: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.evidence.push(Evidence::new(path, value));
        self
    }

    /// Says what to do.
    pub(super) fn fix(&mut self, text: impl Into<String>) -> &mut Self {
        self.fix.get_or_insert_default().text = text.into();
        self
    }

    /// Says which knobs do it.
    pub(super) fn by(&mut self, family: Family) -> &mut Self {
        self.fix.get_or_insert_default().family = Some(family);
        self
    }

    /// Says what to boot with.
    pub(super) fn boot(&mut self, parameter: impl Into<String>) -> &mut Self {
        self.fix.get_or_insert_default().boot = Some(parameter.into());
        self
    }

    /// Says which sources it lets through.
    pub(super) fn lets(&mut self, kind: &str, source: &str) -> &mut Self {
        self.noise.push(Noise::new(kind, source));
        self
    }
}

/// Findings on the way to a [`Check`](super::Check).
pub(super) struct Findings<'a> {
    root: &'a Path,
    list: Vec<Finding>,
}

impl<'a> Findings<'a> {
    pub fn new(root: &'a Path) -> Self {
        Self { root, list: Vec::new() }
    }

    /// Adds a finding, to be filled.
    pub fn add(&mut self, area: Area, severity: Severity, title: impl Into<String>) -> &mut Finding {
        let title = title.into();
        self.list.push(Finding {
            area,
            severity,
            title,
            evidence: Vec::new(),
            fix: None,
            noise: Vec::new(),
            cost: None,
        });
        // It was just added.
        let last = self.list.len() - 1;
        &mut self.list[last]
    }

    /// What a reader returned; that it failed is a finding.
    pub fn read<T>(&mut self, area: Area, result: Result<T, FileError>) -> Option<T> {
        let error = match result {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let (what, path, why) = match &error {
            FileError::Read { what, path, source } => (what, path, source.to_string()),
            FileError::Format { what, path, why } => (what, path, why.to_string()),
        };
        let path = match path.strip_prefix(self.root) {
            Ok(relative) => format!("/{}", relative.display()),
            Err(_) => path.display().to_string(),
        };
        let denied = error.is_denied();
        let verb = if matches!(error, FileError::Read { .. }) { "read" } else { "understood" };
        let finding = self.add(area, Severity::Note, format!("{what} could not be {verb}, so it was not checked"));
        finding.seen(path, why);
        if denied {
            finding.fix("run becalm as root");
        }
        None
    }

    /// A setting of the kernel as evidence; nothing where there is none or, which is a finding, it cannot be read.
    pub fn setting(&mut self, area: Area, path: &str) -> Option<Evidence> {
        let text = file::text(self.root, path);
        let value = self.read(area, text).flatten()?;
        Some(Evidence::new(path, value))
    }

    /// A setting that is a number; any other text is a finding.
    pub fn number(&mut self, area: Area, path: &str) -> Option<i64> {
        let evidence = self.setting(area, path)?;
        match evidence.value.parse() {
            Ok(number) => Some(number),
            Err(_) => {
                let what = "a setting could not be understood, so it was not checked";
                let value: String = evidence.value.chars().take(60).collect();
                self.add(area, Severity::Note, what).seen(path, value);
                None
            }
        }
    }

    pub fn into_vec(self) -> Vec<Finding> {
        self.list
    }
}
