//! The metrics as a list and as text: `OpenMetrics` 1.0, or the older Prometheus format. Both have classic histograms; native ones are only in
//! `protobuf`.

use std::fmt::{self, Display, Write};

use becalm_units::Nanos;

use crate::histogram::{BUCKETS, Lengths};
use crate::request::Format;
use crate::sources::Sources;

/// The type of a family of metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// Only increases; its samples have the suffix `_total`. It counts since the watch started.
    Counter,
    /// The same, but it counts since the machine booted.
    SinceBoot,
    /// Increases and decreases.
    Gauge,
    /// Lengths in buckets.
    Histogram,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Count(u64),
    /// A time, shown in seconds.
    Time(Nanos),
    Number(f64),
    /// A histogram.
    Lengths(Box<Lengths>),
}

/// A value and its labels.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// Name and value of each label.
    pub labels: Vec<(&'static str, String)>,
    /// The current value.
    pub value: Value,
}

/// A family of metrics, with its name (without a suffix) and its samples.
#[derive(Clone, PartialEq, Debug)]
pub struct Family {
    /// Its published name.
    pub name: &'static str,
    /// Its description in one sentence.
    pub help: &'static str,
    /// Its type.
    pub kind: Type,
    pub samples: Vec<Sample>,
}

impl Family {
    /// The name of its samples; in the older text format and in protobuf, also the name of the family.
    pub fn sample_name(&self) -> String {
        let ending = if matches!(self.kind, Type::Counter | Type::SinceBoot) { "_total" } else { "" };
        format!("{}{ending}", self.name)
    }
}

/// The list under construction.
#[derive(Debug, Default)]
pub struct Exposition {
    families: Vec<Family>,
}

impl Exposition {
    /// Starts a family, to which the next samples belong.
    pub fn family(&mut self, name: &'static str, kind: Type, help: &'static str) {
        self.families.push(Family { name, help, kind, samples: Vec::new() });
    }

    /// Adds a sample to the current family.
    pub fn sample(&mut self, labels: &[(&'static str, &str)], value: Value) {
        let labels = labels.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        self.families.last_mut().expect("a family that was begun").samples.push(Sample { labels, value });
    }

    /// Adds a family with one sample without labels.
    pub fn single(&mut self, name: &'static str, kind: Type, help: &'static str, value: Value) {
        self.family(name, kind, help);
        self.sample(&[], value);
    }

    /// Adds a gauge without labels.
    pub fn gauge(&mut self, name: &'static str, help: &'static str, value: Value) {
        self.single(name, Type::Gauge, help, value);
    }

    /// Adds a counter without labels.
    pub fn counter(&mut self, name: &'static str, help: &'static str, value: Value) {
        self.single(name, Type::Counter, help, value);
    }

    /// Adds a family with one sample per source with a series, and one for all others.
    pub fn sources(&mut self, name: &'static str, help: &'static str, sources: &mut Sources) {
        self.family(name, Type::Counter, help);
        let (named, other) = sources.tell();
        for ((kind, source), time) in named {
            self.sample(&[("kind", kind.name()), ("source", &source)], Value::Time(time));
        }
        self.sample(&[("kind", "other"), ("source", "other")], Value::Time(other));
    }

    /// The whole list.
    pub fn end(self) -> Vec<Family> {
        self.families
    }
}

/// Escapes a label's value: backslashes, quotes and line feeds.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A time in seconds, exactly.
struct Seconds(Nanos);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, ns) = (if self.0 < Nanos::ZERO { "-" } else { "" }, self.0.get().unsigned_abs());
        write!(f, "{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    }
}

pub fn text(families: &[Family], format: Format) -> String {
    let mut out = String::new();
    for family in families {
        let name = family.sample_name();
        // The older format names the family like its samples.
        let title = if format == Format::OpenMetrics { family.name } else { name.as_str() };
        let kind = match family.kind {
            Type::Counter | Type::SinceBoot => "counter",
            Type::Gauge => "gauge",
            Type::Histogram => "histogram",
        };
        let _ = writeln!(out, "# HELP {title} {}\n# TYPE {title} {kind}", family.help);
        for sample in &family.samples {
            match &sample.value {
                Value::Count(count) => line(&mut out, &name, &sample.labels, count),
                Value::Time(time) => line(&mut out, &name, &sample.labels, Seconds(*time)),
                Value::Number(number) => line(&mut out, &name, &sample.labels, number),
                Value::Lengths(lengths) => histogram(&mut out, &name, &sample.labels, lengths),
            }
        }
    }
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

fn line(out: &mut String, name: &str, labels: &[(&'static str, String)], value: impl Display) {
    out.push_str(name);
    for (number, (label, text)) in labels.iter().enumerate() {
        let begin = if number == 0 { '{' } else { ',' };
        let _ = write!(out, "{begin}{label}=\"{}\"", Escaped(text));
    }
    let end = if labels.is_empty() { "" } else { "}" };
    let _ = writeln!(out, "{end} {value}");
}

fn histogram(out: &mut String, name: &str, labels: &[(&'static str, String)], lengths: &Lengths) {
    let bucket = format!("{name}_bucket");
    let mut bounded = labels.to_vec();
    let mut below = 0;
    let bounds = BUCKETS.iter().map(|(_, bound)| *bound).chain(["+Inf"]);
    for (count, bound) in lengths.classic().iter().zip(bounds) {
        below += count;
        bounded.push(("le", bound.to_owned()));
        line(out, &bucket, &bounded, below);
        bounded.pop();
    }
    line(out, &format!("{name}_sum"), labels, Seconds(lengths.total()));
    line(out, &format!("{name}_count"), labels, lengths.count());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_formats_name_counters_as_they_must() {
        let mut list = Exposition::default();
        list.family("a", Type::Counter, "Says what.");
        list.sample(&[("b", "c\"d\\e\nf")], Value::Time(Nanos::new(1_500_000_001)));
        let list = list.end();
        let sample = "a_total{b=\"c\\\"d\\\\e\\nf\"} 1.500000001\n";
        let written = |format| text(&list, format);
        assert_eq!(written(Format::OpenMetrics), format!("# HELP a Says what.\n# TYPE a counter\n{sample}# EOF\n"));
        assert_eq!(written(Format::Prometheus), format!("# HELP a_total Says what.\n# TYPE a_total counter\n{sample}"));
    }

    proptest! {
        #[test]
        fn a_label_stays_within_its_quotes(value in any::<String>()) {
            let escaped = Escaped(&value).to_string();
            prop_assert!(!escaped.contains('\n'));
            // Read as a scraper does.
            let (mut read, mut chars) = (String::new(), escaped.chars());
            while let Some(c) = chars.next() {
                prop_assert_ne!(c, '"');
                read.push(if c != '\\' { c } else { match chars.next() { Some('n') => '\n', Some(c) => c, None => '!' } });
            }
            prop_assert_eq!(read, value);
        }
    }
}
