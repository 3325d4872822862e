//! What is watched and how: built-in values, over them those of a configuration file, over them those of the command line.
//!
//! The file has a line for each option, as the files of defaults of all other commands have them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use becalm_units::{ByteCount, CpuList, Nanos, SettingLine, Share, printable};

use crate::host::HostName;
use crate::otlp::Collector;
use crate::trigger::Trigger;

/// What was said of each option; `None` where nothing was.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WatchConfig {
    /// The CPUs that are measured.
    pub cpus: Option<CpuList>,
    /// How long a window is.
    pub window: Option<Nanos>,
    /// How long the recording after an alert is.
    pub alert: Option<Nanos>,
    /// Which share of one CPU the whole may take on average.
    pub budget: Option<Share>,
    /// How often the kernel's counters are read.
    pub interval: Option<Nanos>,
    /// A CPU that was busier than this in the last interval is not measured.
    pub busy: Option<Share>,
    /// Where metrics are told.
    pub listen: Option<SocketAddr>,
    /// Names under which metrics may be asked for; empty where nothing was said.
    pub allow_host: Vec<HostName>,
    /// Where a collector of OpenTelemetry takes metrics.
    pub otlp: Option<Collector>,
    /// How often it gets them.
    pub otlp_interval: Option<Nanos>,
    /// The folder of the bundles.
    pub output: Option<PathBuf>,
    /// How many bytes the bundles may have.
    pub keep: Option<ByteCount>,
    /// What raises an alert; empty where nothing was said.
    pub triggers: Vec<Trigger>,
    /// How many sources have a series of their own.
    pub sources: Option<u32>,
    /// Whether the kernel is traced between the windows.
    pub trace: Option<bool>,
}

/// What is watched and how.
#[derive(Clone, PartialEq, Debug)]
pub struct WatchSettings {
    /// The CPUs that are measured; `None` means all that are online.
    pub cpus: Option<CpuList>,
    /// How long a window is; from 10 ms to 60 s.
    pub window: Nanos,
    /// How long the recording after an alert is; from 10 ms to 60 s.
    pub alert: Nanos,
    /// Which share of one CPU the whole may take on average; more than 0.
    pub budget: Share,
    /// How often the kernel's counters are read, and looked whether a window is due; from 100 ms to an hour.
    pub interval: Nanos,
    /// A CPU that was busier than this in the last interval is not measured.
    pub busy: Share,
    /// Where metrics are told.
    pub listen: SocketAddr,
    /// Names under which they may be asked for, besides those that the machine knows of itself.
    pub allow_host: Vec<HostName>,
    /// Where a collector of OpenTelemetry takes metrics; `None` where there is none.
    pub otlp: Option<Collector>,
    /// How often it gets them; from 1 s to an hour.
    pub otlp_interval: Nanos,
    /// The folder of the bundles; `None` where nothing is stored.
    pub output: Option<PathBuf>,
    /// How many bytes the bundles may have.
    pub keep: ByteCount,
    /// What raises an alert.
    pub triggers: Vec<Trigger>,
    /// How many sources have a series of their own; at most 1,000.
    pub sources: u32,
    /// Whether the kernel is traced between the windows.
    pub trace: bool,
}

/// The port where nothing else is said.
const PORT: u16 = 9_749;

/// The largest configuration that is read, in bytes.
pub const LARGEST: u64 = 64 << 10;

/// A configuration that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A line, counted from 1, is not understood: what is wrong, and what to write.
    #[error("line {0}: {1}")]
    Line(usize, String),
    /// A value is out of its range.
    #[error("{key} is {value}; it must be {range}")]
    Range {
        /// The option's name.
        key: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        range: &'static str,
    },
}

const KEYS: &str = "cpus, window, alert, budget, interval, busy, listen, allow-host, otlp, otlp-interval, output, keep, trigger, \
    sources, trace";

impl WatchConfig {
    /// From the file's text. Fails if a line is no `key = value`, or a key or value is unknown, or a key other than
    /// `trigger` and `allow-host` comes twice.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let err = |why| ConfigError::Line(number + 1, why);
            let (key, value) = match SettingLine::parse(line).map_err(err)? {
                SettingLine::Nothing => continue,
                SettingLine::Section(name) => {
                    return Err(err(format!("[{}]: this file has no sections", printable(name))));
                }
                SettingLine::Setting { key, value } => (key, value),
            };
            if !matches!(key, "trigger" | "allow-host") && seen.contains(&key) {
                return Err(err(format!("{} stands twice; leave one out", printable(key))));
            }
            seen.push(key);
            config.set(key, value).map_err(err)?;
        }
        Ok(config)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        fn read<T: std::str::FromStr>(value: &str) -> Result<Option<T>, String>
        where
            T::Err: std::fmt::Display,
        {
            value.parse().map(Some).map_err(|error: T::Err| printable(&error.to_string()).to_string())
        }
        match key {
            "cpus" => self.cpus = read(value)?,
            "window" => self.window = read(value)?,
            "alert" => self.alert = read(value)?,
            "budget" => self.budget = read(value)?,
            "interval" => self.interval = read(value)?,
            "busy" => self.busy = read(value)?,
            "listen" => {
                self.listen = Some(value.parse().map_err(|_| {
                    format!("'{}' is not an address with a port; write one like 127.0.0.1:{PORT}", printable(value))
                })?);
            }
            "allow-host" => self.allow_host.extend(read::<HostName>(value)?),
            "otlp" => self.otlp = read(value)?,
            "otlp-interval" => self.otlp_interval = read(value)?,
            "output" if value.is_empty() => return Err("output names no folder".to_owned()),
            "output" => self.output = Some(value.into()),
            "keep" => self.keep = read(value)?,
            "trigger" => self.triggers.extend(read::<Trigger>(value)?),
            "sources" => self.sources = read(value)?,
            "trace" => {
                self.trace = Some(match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(format!("'{}' is neither yes nor no", printable(value))),
                });
            }
            _ => return Err(format!("there is no option '{}'; there are {KEYS}", printable(key))),
        }
        Ok(())
    }

    /// Fills the options that are not set from `defaults`.
    #[must_use]
    pub fn with_defaults(self, defaults: Self) -> Self {
        Self {
            cpus: self.cpus.or(defaults.cpus),
            window: self.window.or(defaults.window),
            alert: self.alert.or(defaults.alert),
            budget: self.budget.or(defaults.budget),
            interval: self.interval.or(defaults.interval),
            busy: self.busy.or(defaults.busy),
            listen: self.listen.or(defaults.listen),
            allow_host: if self.allow_host.is_empty() { defaults.allow_host } else { self.allow_host },
            otlp: self.otlp.or(defaults.otlp),
            otlp_interval: self.otlp_interval.or(defaults.otlp_interval),
            output: self.output.or(defaults.output),
            keep: self.keep.or(defaults.keep),
            triggers: if self.triggers.is_empty() { defaults.triggers } else { self.triggers },
            sources: self.sources.or(defaults.sources),
            trace: self.trace.or(defaults.trace),
        }
    }

    /// With the built-in values where nothing was said. Fails if a value is out of its range.
    pub fn settle(self) -> Result<WatchSettings, ConfigError> {
        let recording = Nanos::from_millis(10)..=Nanos::from_secs(60);
        let interval = Nanos::from_millis(100)..=Nanos::from_secs(3_600);
        let (minute, sending) = (Nanos::from_secs(60), Nanos::from_secs(1)..=Nanos::from_secs(3_600));
        let settings = WatchSettings {
            cpus: self.cpus,
            window: in_range(
                "window",
                self.window.unwrap_or(Nanos::from_millis(200)),
                recording.clone(),
                "from 10ms to 60s",
            )?,
            alert: in_range("alert", self.alert.unwrap_or(Nanos::from_secs(1)), recording, "from 10ms to 60s")?,
            interval: in_range(
                "interval",
                self.interval.unwrap_or(Nanos::from_secs(10)),
                interval,
                "from 100ms to 1h",
            )?,
            budget: self.budget.unwrap_or(Share::from_per_mille(1)),
            busy: self.busy.unwrap_or(Share::from_per_mille(100)),
            listen: self.listen.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT)),
            allow_host: self.allow_host,
            otlp: self.otlp,
            otlp_interval: in_range("otlp-interval", self.otlp_interval.unwrap_or(minute), sending, "from 1s to 1h")?,
            output: self.output,
            keep: self.keep.unwrap_or(ByteCount::new(1 << 30)),
            triggers: self.triggers,
            sources: self.sources.unwrap_or(20),
            trace: self.trace.unwrap_or(true),
        };
        if settings.budget.ratio() <= 0.0 {
            let value = settings.budget.to_string();
            return Err(ConfigError::Range { key: "budget", value, range: "more than 0%, and at most 100%" });
        }
        if settings.sources > 1_000 {
            let value = settings.sources.to_string();
            return Err(ConfigError::Range { key: "sources", value, range: "at most 1000" });
        }
        Ok(settings)
    }
}

fn in_range(
    key: &'static str,
    value: Nanos,
    allowed: RangeInclusive<Nanos>,
    range: &'static str,
) -> Result<Nanos, ConfigError> {
    if allowed.contains(&value) { Ok(value) } else { Err(ConfigError::Range { key, value: value.to_string(), range }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_says_what_is_watched() {
        let text = "# all of it\ncpus = 1-3 # quiet ones\nwindow=\"50ms\"\n\nkeep = 2GiB\ntrigger = \"detour>1ms\"\n\
            trigger = noise>1%\nlisten = 127.0.0.1:9000\noutput = /var/lib/becalm\nbudget = 0.05%\nsources = 3\n";
        let settings = WatchConfig::parse(text).unwrap().settle().unwrap();
        assert_eq!(settings.cpus.unwrap().to_string(), "1-3");
        assert_eq!((settings.window, settings.keep.get()), (Nanos::from_millis(50), 2 << 30));
        assert_eq!((settings.triggers.len(), settings.sources, settings.listen.port()), (2, 3, 9_000));
        assert_eq!(settings.interval, Nanos::from_secs(10));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, said) in [
            ("\nwindw = 1s", "line 2: there is no option 'windw'; there are cpus, window"),
            ("window", "line 1: 'window' is not key = value"),
            ("[watch]", "line 1: [watch]: this file has no sections"),
            ("window = 1s\nwindow = 2s", "line 2: window stands twice"),
            ("window = \"1s", "line 1: a quote is not closed"),
            ("window = \"1s\" x", "line 1: behind the value stands 'x'"),
            ("listen = here", "line 1: 'here' is not an address with a port"),
            ("otlp = https://collector", "line 1: 'https://collector' names no collector"),
            ("allow-host = a:80", "line 1: 'a:80' is not the name of a host"),
            ("keep = much", "line 1: 'much' is not a count"),
            ("output =", "line 1: output names no folder"),
        ] {
            let error = WatchConfig::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
        for text in
            ["window = 1ms", "budget = 0%", "sources = 1001", "interval = 1ms", "alert = 2h", "otlp-interval = 0s"]
        {
            let error = WatchConfig::parse(text).unwrap().settle().unwrap_err().to_string();
            assert!(error.contains("it must be"), "{error}");
        }
    }

    #[test]
    fn the_command_line_is_over_the_file() {
        let file = WatchConfig::parse("window = 1s\ntrigger = noise>1%\nsources = 5").unwrap();
        let line = WatchConfig::parse("window = 2s\ntrigger = detour>1s").unwrap();
        let both = line.clone().with_defaults(file);
        assert_eq!((both.window, both.sources), (line.window, Some(5)));
        assert_eq!(both.triggers, line.triggers);
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "([a-z]{0,8} ?= ?.{0,12}\n?|.{0,20}\n){0,6}") {
            if let Err(error) = WatchConfig::parse(&text).and_then(WatchConfig::settle) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
