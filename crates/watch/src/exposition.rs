//! The text of metrics: `OpenMetrics` 1.0, or the older text of Prometheus. Both carry classic histograms; native ones go in
//! protobuf alone, which is not served.

use std::fmt::{self, Display, Write};

use becalm_units::Nanos;

use crate::request::Format;

/// A text that is being written.
#[derive(Debug)]
pub struct Exposition {
    text: String,
    format: Format,
}

/// Escapes a label's value: a backslash, a quote or a line feed would end it.
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
pub struct Seconds(pub Nanos);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, ns) = (if self.0 < Nanos::ZERO { "-" } else { "" }, self.0.get().unsigned_abs());
        write!(f, "{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    }
}

impl Exposition {
    /// An empty text.
    pub const fn new(format: Format) -> Self {
        Self { text: String::new(), format }
    }

    /// Begins a counter; its samples have the ending `_total`.
    pub fn counter(&mut self, name: &str, help: &str) {
        // The older text names the family as its samples.
        let ending = if self.format == Format::OpenMetrics { "" } else { "_total" };
        self.family(&format!("{name}{ending}"), "counter", help);
    }

    /// Begins a family of another type.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A sample: the family's name with its ending, its labels, its value.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(name);
        for (number, (label, text)) in labels.iter().enumerate() {
            let begin = if number == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{begin}{label}=\"{}\"", Escaped(text));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }

    /// A classic histogram, whole: its name and help, how many lengths are in each class, the last one above all bounds, and what they add up
    /// to.
    pub fn histogram(&mut self, (name, help): (&str, &str), bounds: &[(i64, &str)], counts: &[u64], total: Nanos) {
        self.family(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        let mut below = 0;
        for (count, (_, bound)) in counts.iter().zip(bounds) {
            below += count;
            self.sample(&bucket, &[("le", bound)], below);
        }
        let all: u64 = counts.iter().sum();
        self.sample(&bucket, &[("le", "+Inf")], all);
        self.sample(&format!("{name}_sum"), &[], Seconds(total));
        self.sample(&format!("{name}_count"), &[], all);
    }

    /// The whole text.
    pub fn end(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_formats_name_counters_as_they_must() {
        let written = |format| {
            let mut text = Exposition::new(format);
            text.counter("a", "Says what.");
            text.sample("a_total", &[("b", "c\"d\\e\nf")], Seconds(Nanos::new(1_500_000_001)));
            text.end()
        };
        let sample = "a_total{b=\"c\\\"d\\\\e\\nf\"} 1.500000001\n";
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
