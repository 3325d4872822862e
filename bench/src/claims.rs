//! The table of a benchmark: claim, our figure, the other side's or the limit, their ratio, and whether it holds.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use crate::effort::Effort;

/// The result of a claim. Its line starts with this word, which the summary looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Measured, as promised.
    Holds,
    /// Measured, not as promised.
    Fails,
    /// A figure without a promise.
    Stated,
    /// Could not be measured here.
    Skipped,
}

impl Verdict {
    /// Every verdict, the best first.
    pub const ALL: [Self; 4] = [Self::Holds, Self::Fails, Self::Stated, Self::Skipped];

    /// The word at the start of the line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "FAILS",
            Self::Stated => "stated",
            Self::Skipped => "skipped",
        }
    }

    /// Parses the verdict at the start of a printed line.
    pub fn from_line(line: &str) -> Option<Self> {
        let word = line.split_whitespace().next()?;
        Self::ALL.into_iter().find(|verdict| verdict.word() == word)
    }

    const fn from_outcome(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Fails }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// The claims of one benchmark. Lines are printed immediately, because some take a minute.
#[derive(Debug)]
pub struct Claims {
    effort: Effort,
    failed: bool,
}

impl Claims {
    /// Starts a table by printing its title and the names of the columns.
    pub fn begin(title: &str, effort: Effort) -> Self {
        let claims = Self { effort, failed: false };
        claims.print(&format!("\n{title}\n{}", line("", "claim", "ours", "other", "ratio", "promised")));
        claims
    }

    /// Both sides were measured alternately; the ratio of ours to the other must be at most `limit`.
    pub fn at_most_times(&mut self, what: &str, ours: Figure, other: Figure, limit: f64) {
        let ratio = ours.value / other.value;
        let promise = format!("ratio at most {limit}");
        self.row(self.judge(ratio <= limit), what, &ours.to_string(), &other.to_string(), Some(ratio), &promise);
    }

    /// Our figure must be at most `limit`.
    pub fn at_most(&mut self, what: &str, ours: Figure, limit: f64) {
        let (ratio, promise) = (ours.value / limit, format!("at most {}", Figure { value: limit, ..ours }));
        let ratio = (limit != 0.0).then_some(ratio);
        self.row(self.judge(ours.value <= limit), what, &ours.to_string(), "-", ratio, &promise);
    }

    /// Our figure must be at least `limit`.
    pub fn at_least(&mut self, what: &str, ours: Figure, limit: f64) {
        let (ratio, promise) = (ours.value / limit, format!("at least {}", Figure { value: limit, ..ours }));
        self.row(self.judge(ours.value >= limit), what, &ours.to_string(), "-", Some(ratio), &promise);
    }

    /// There must be none of something that does not depend on the speed or load of the machine: judged in a quick benchmark, too.
    pub fn none(&mut self, what: &str, count: u64) {
        let verdict = Verdict::from_outcome(count == 0);
        self.row(verdict, what, &Figure::count(count).to_string(), "-", None, "none");
    }

    /// A figure without a promise.
    pub fn state(&mut self, what: &str, ours: Figure, remark: &str) {
        self.row(Verdict::Stated, what, &ours.to_string(), "-", None, remark);
    }

    /// Figures of both sides without a promise.
    pub fn state_beside(&mut self, what: &str, ours: Figure, other: Figure, remark: &str) {
        let ratio = Some(ours.value / other.value);
        self.row(Verdict::Stated, what, &ours.to_string(), &other.to_string(), ratio, remark);
    }

    /// A claim that cannot be measured here, with the reason.
    pub fn skip(&mut self, what: &str, why: &str) {
        self.row(Verdict::Skipped, what, "-", "-", None, why);
    }

    /// A failure where none is allowed: judged in a quick benchmark, too.
    pub fn fail(&mut self, what: &str, why: &str) {
        self.row(Verdict::Fails, what, "-", "-", None, why);
    }

    /// A failure of a measurement that only root may make: counts only for root.
    pub fn fail_as_root(&mut self, what: &str, why: &str) {
        if rustix::process::geteuid().is_root() { self.fail(what, why) } else { self.skip(what, why) }
    }

    /// A comment on the previous line.
    pub fn remark(&self, text: &str) {
        self.print(&format!("        {text}"));
    }

    /// The exit code: failure if a claim does not hold.
    #[must_use]
    pub fn end(self) -> ExitCode {
        if self.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    /// A quick benchmark measures too little for a verdict.
    const fn judge(&self, holds: bool) -> Verdict {
        match self.effort {
            Effort::Full => Verdict::from_outcome(holds),
            Effort::Quick => Verdict::Stated,
        }
    }

    fn row(&mut self, verdict: Verdict, what: &str, ours: &str, other: &str, ratio: Option<f64>, promise: &str) {
        self.failed |= verdict == Verdict::Fails;
        let ratio = ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
        self.print(&line(verdict.word(), what, ours, other, &ratio, promise));
    }

    fn print(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        // Ignore a closed pipe.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }
}

fn line(verdict: &str, what: &str, ours: &str, other: &str, ratio: &str, promise: &str) -> String {
    format!("{verdict:<7} {what:<58} {ours:>14} {other:>14} {ratio:>7}  {promise}")
}

/// A number with its unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// The number, in the unit.
    pub value: f64,
    /// Its unit, printed after it.
    pub unit: &'static str,
}

impl Figure {
    /// A time in nanoseconds.
    pub const fn ns(value: f64) -> Self {
        Self { value, unit: "ns" }
    }

    /// A time in seconds.
    pub const fn seconds(value: f64) -> Self {
        Self { value, unit: "s" }
    }

    /// Megabytes, of 1,000,000 bytes.
    pub fn megabytes(bytes: u64) -> Self {
        Self { value: bytes as f64 / 1e6, unit: "MB" }
    }

    /// A count of something.
    pub const fn count(value: u64) -> Self {
        Self { value: value as f64, unit: "" }
    }

    /// A number of events per second.
    pub const fn a_second(value: f64) -> Self {
        Self { value, unit: "/s" }
    }

    /// A share, in percent.
    pub const fn percent(value: f64) -> Self {
        Self { value, unit: "%" }
    }

    /// A ratio.
    pub const fn times(value: f64) -> Self {
        Self { value, unit: "x" }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, unit } = self;
        // Three significant digits; whole numbers unchanged.
        match value.abs() {
            _ if value.fract() == 0.0 => write!(f, "{value:.0}{unit}"),
            v if v >= 100.0 => write!(f, "{value:.0}{unit}"),
            v if v >= 10.0 => write!(f, "{value:.1}{unit}"),
            _ => write!(f, "{value:.2}{unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_print_three_digits() {
        for (figure, text) in [
            (Figure::ns(8.914), "8.91ns"),
            (Figure::ns(150.0), "150ns"),
            (Figure::seconds(12.34), "12.3s"),
            (Figure::count(50_123), "50123"),
            (Figure::megabytes(123_456_789), "123MB"),
        ] {
            assert_eq!(figure.to_string(), text);
        }
    }

    #[test]
    fn a_line_tells_its_verdict() {
        for verdict in Verdict::ALL {
            assert_eq!(Verdict::from_line(&line(verdict.word(), "a claim", "1", "2", "0.5", "")), Some(verdict));
        }
        assert_eq!(Verdict::from_line(&line("", "claim", "ours", "other", "ratio", "promised")), None);
        assert_eq!(Verdict::from_line(""), None);
    }

    #[test]
    fn one_claim_that_fails_fails_the_benchmark() {
        let mut claims = Claims::begin("test", Effort::Full);
        claims.at_most_times("a", Figure::ns(5.0), Figure::ns(4.0), 1.25);
        claims.at_most("b", Figure::count(0), 0.0);
        assert!(!claims.failed);
        claims.none("c", 0);
        assert!(!claims.failed);
        claims.at_least("d", Figure::times(0.9), 1.0);
        assert!(claims.failed);
    }

    #[test]
    fn a_quick_benchmark_fails_by_what_is_exact_alone() {
        let mut claims = Claims::begin("test", Effort::Quick);
        claims.at_least("a", Figure::times(0.9), 1.0);
        assert!(!claims.failed);
        claims.none("b", 1);
        assert!(claims.failed);
        let mut claims = Claims::begin("test", Effort::Quick);
        claims.fail("c", "it does not run");
        assert!(claims.failed);
    }
}
