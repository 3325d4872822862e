//! The configuration: built-in values, overridden by a configuration file, overridden by the command line.
//!
//! The file has one line per option, like the default files of all other commands.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use becalm_units::{ByteCount, CpuList, Nanos, SettingLine, Share, printable};

use crate::host::HostName;
use crate::otlp::Collector;
use crate::trigger::Trigger;

/// The options that were set; `None` for the others.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WatchConfig {
    /// The CPUs to measure.
    pub cpus: Option<CpuList>,
    /// The length of a window.
    pub window: Option<Nanos>,
    /// The length of the recording after an alert.
    pub alert: Option<Nanos>,
    /// The average share of one CPU that the whole watch may take.
    pub budget: Option<Share>,
    /// The interval between reads of the kernel's counters.
    pub interval: Option<Nanos>,
    /// CPUs that were busier than this in the last interval are not measured.
    pub busy: Option<Share>,
    /// The address of the metrics server.
    pub listen: Option<SocketAddr>,
    /// Host names allowed in requests for metrics; empty if unset.
    pub allow_host: Vec<HostName>,
    /// The URL of an OpenTelemetry collector.
    pub otlp: Option<Collector>,
    /// The interval between messages to it.
    pub otlp_interval: Option<Nanos>,
    /// The directory of the bundles.
    pub output: Option<PathBuf>,
    /// The maximum total size of the bundles in bytes.
    pub keep: Option<ByteCount>,
    /// Conditions that raise an alert; empty if unset.
    pub triggers: Vec<Trigger>,
    /// The number of sources with their own series.
    pub sources: Option<u32>,
    /// Whether the kernel is traced between the windows.
    pub trace: Option<bool>,
}

/// The complete configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct WatchSettings {
    /// The CPUs to measure; `None` means all online CPUs.
    pub cpus: Option<CpuList>,
    /// The length of a window, from 10 ms to 60 s.
    pub window: Nanos,
    /// The length of the recording after an alert, from 10 ms to 60 s.
    pub alert: Nanos,
    /// The average share of one CPU that the whole watch may take; more than 0.
    pub budget: Share,
    /// The interval between reads of the kernel's counters, and between checks for a due window; from 100 ms to an hour.
    pub interval: Nanos,
    /// CPUs that were busier than this in the last interval are not measured.
    pub busy: Share,
    /// The address of the metrics server.
    pub listen: SocketAddr,
    /// Host names allowed in requests, in addition to those that the machine knows itself.
    pub allow_host: Vec<HostName>,
    /// The URL of an OpenTelemetry collector; `None` without one.
    pub otlp: Option<Collector>,
    /// The interval between messages to it, from 1 s to an hour.
    pub otlp_interval: Nanos,
    /// The directory of the bundles; `None` if nothing is stored.
    pub output: Option<PathBuf>,
    /// The maximum total size of the bundles in bytes.
    pub keep: ByteCount,
    /// Conditions that raise an alert.
    pub triggers: Vec<Trigger>,
    /// The number of sources with their own series, at most 1,000.
    pub sources: u32,
    /// Whether the kernel is traced between the windows.
    pub trace: bool,
}

/// The default port.
const PORT: u16 = 9_749;

/// The largest accepted configuration file, in bytes.
pub const LARGEST: u64 = 64 << 10;

/// An invalid configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A line (counted from 1) that cannot be parsed, with the problem and the correct syntax.
    #[error("line {0}: {1}")]
    Line(usize, String),
    /// A value out of range.
    #[error("{key} is {value}; it must be {range}")]
    Range {
        /// The option's name.
        key: &'static str,
        /// The given value.
        value: String,
        /// The allowed range.
        range: &'static str,
    },
}

const KEYS: &str = "cpus, window, alert, budget, interval, busy, listen, allow-host, otlp, otlp-interval, output, keep, trigger, \
    sources, trace";

impl WatchConfig {
    /// Parses the file's text. Fails if a line is not `key = value`, a key or value is unknown, or a key other than `trigger` and `allow-host` occurs
    /// twice.
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
                return Err(err(format!("{} is given twice; leave one out", printable(key))));
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
            "output" if value.is_empty() => return Err("output names no directory".to_owned()),
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

    /// Fills unset options from `defaults`.
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

    /// Fills unset options with built-in values. Fails if a value is out of range.
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
            ("window = 1s\nwindow = 2s", "line 2: window is given twice"),
            ("window = \"1s", "line 1: a quote is not closed"),
            ("window = \"1s\" x", "line 1: unexpected 'x' behind the value"),
            ("listen = here", "line 1: 'here' is not an address with a port"),
            ("otlp = https://collector", "line 1: 'https://collector' names no collector"),
            ("allow-host = a:80", "line 1: 'a:80' is not the name of a host"),
            ("keep = much", "line 1: 'much' is not a count"),
            ("output =", "line 1: output names no directory"),
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
