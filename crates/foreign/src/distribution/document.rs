//! The distribution of lengths that another program measured, also as `runs/node=HOST.json`: for programs that print a histogram or
//! statistics and no single events.
//!
//! It is no recording in summary form ([`digest`](becalm_model::digest)), where every figure is a share of a known time, buckets are fine,
//! and each value is time that a loop lost. Here the file of the other program decides what is known. Anything else is left out, and
//! [`Quantity`] names what the lengths measure. Lengths of different quantities are never compared.

use becalm_bundle::{Contents, Stored};
use becalm_model::Document;
use becalm_model::node::Warning;
use becalm_units::{CpuId, UnknownName};
use serde::{Deserialize, Serialize};

use crate::document::UNNAMED;

/// The version of the schema that this program writes and reads.
pub const SCHEMA: &str = Contents::Distribution.schema();

/// The most series of a document.
pub const SERIES: usize = 1 << 14;

/// The most buckets of a document, all series together.
pub const BUCKETS: usize = 1 << 20;

/// What lengths are of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
pub enum Quantity {
    /// Time that was taken from a loop which does nothing but look at a clock: detours.
    Stolen,
    /// All steps of such a loop, including those without an interruption.
    Steps,
    /// How late a handler or a thread ran after its timer. That is not stolen time: possibly no thread wanted the CPU before.
    Wakeup,
    /// How late a sleeping thread of a program woke up, with values put in for what it slept through. That is no stolen time either.
    Pause,
    /// The file does not say it.
    #[default]
    Unknown,
}

fn unknown(text: &str) -> UnknownName {
    UnknownName::new::<Quantity>("quantity", text)
}

impl Quantity {
    /// In words, to follow "the lengths are of".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Stolen => "time taken from a loop that only looks at a clock",
            Self::Steps => "steps of a loop that only looks at a clock, including those without an interruption",
            Self::Wakeup => "wake-up latencies: how late timers' handlers and threads ran",
            Self::Pause => "pauses: how late a sleeping thread of a program woke up",
            Self::Unknown => "something that the file does not name",
        }
    }
}

/// The content of one node's file.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DistributionDoc {
    /// The schema that the document follows; any other is refused.
    pub schema: String,
    /// The node's name, as in the file names.
    pub node: String,
    /// Who wrote the document: `becalm 0.1.0`.
    pub program: String,
    /// The format of the file that was read, by its name on the command line.
    pub format: String,
    /// The program that measured, with its version if the file has it: `cyclictest 2.40`.
    pub tool: String,
    /// The command line of that program, if the file has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The kernel's release, if the file has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// When measuring started, in the file's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<String>,
    /// When it ended, in the file's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The measured quantity.
    pub quantity: Quantity,
    /// Whether the shortest step of the loop was subtracted from each length; `None` where there is no loop, or it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_subtracted: Option<bool>,
    /// A series for each CPU, thread or name that the file keeps apart.
    pub series: Vec<Series>,
    /// Everything the reader must know before believing the numbers.
    pub warnings: Vec<Warning>,
}

/// Lengths with common statistics. Times are in nanoseconds; values that are `None` or empty are not in the file.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Series {
    /// Its name in the file: `CPU 3`, `thread 0`, `CPU 3 irq`, the tag of a log.
    pub name: String,
    /// The CPU, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuId>,
    /// How long was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_ns: Option<i64>,
    /// How long was to be measured, of programs that do not say how long it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_ns: Option<i64>,
    /// Shorter lengths were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_ns: Option<i64>,
    /// The shortest step of the loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_ns: Option<i64>,
    /// How many lengths there were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Their sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ns: Option<i64>,
    /// The shortest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<i64>,
    /// The mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
    /// The longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
    /// Of which edges of its buckets the program took the shortest, the mean and the longest; `None` where they are as they were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<Edges>,
    /// Quantiles that the program computed, by rising level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quantiles: Vec<Level>,
    /// The histogram, in rising order without overlap, each bucket with any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<Bucket>,
    /// Lengths beyond the last bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<Above>,
    /// Other counts, by the program's own names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<NamedCount>,
}

/// An edge of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Edges {
    /// The lower one: the real lengths are longer, by less than a bucket.
    Lower,
    /// The upper one: the real lengths are shorter, by less than a bucket.
    Upper,
}

/// A quantile that the program computed.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Level {
    /// Which part of the lengths is at most so long, from 0 to 1.
    pub at_ratio: f64,
    /// The length.
    pub ns: i64,
}

/// Lengths of a histogram; in the document a list of the three.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(from = "(i64, i64, u64)", into = "(i64, i64, u64)")]
pub struct Bucket {
    /// The shortest.
    pub from_ns: i64,
    /// The length that none of them reaches.
    pub below_ns: i64,
    /// How many there are.
    pub count: u64,
}

impl From<(i64, i64, u64)> for Bucket {
    fn from((from_ns, below_ns, count): (i64, i64, u64)) -> Self {
        Self { from_ns, below_ns, count }
    }
}

impl From<Bucket> for (i64, i64, u64) {
    fn from(bucket: Bucket) -> Self {
        (bucket.from_ns, bucket.below_ns, bucket.count)
    }
}

/// Lengths with a known lower bound only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Above {
    /// Not shorter than this.
    pub from_ns: i64,
    /// How many there were.
    pub count: u64,
}

/// Something that was counted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct NamedCount {
    /// Its name.
    pub name: String,
    /// How often it came.
    pub count: u64,
}

impl DistributionDoc {
    /// The document of a file of this tool, without node name and series.
    pub fn new(tool: &str, quantity: Quantity) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            node: UNNAMED.to_owned(),
            program: format!("becalm {}, import", env!("CARGO_PKG_VERSION")),
            tool: tool.to_owned(),
            quantity,
            ..Self::default()
        }
    }
}

impl Document for DistributionDoc {
    const SCHEMA: &'static str = SCHEMA;

    fn schema(&self) -> &str {
        &self.schema
    }

    fn node(&self) -> &str {
        &self.node
    }

    fn check(&self) -> Result<(), String> {
        if self.series.len() > SERIES {
            return Err(format!("it has {} series; at most {SERIES} can be", self.series.len()));
        }
        let buckets: usize = self.series.iter().map(|series| series.buckets.len()).sum();
        if buckets > BUCKETS {
            return Err(format!("it has {buckets} buckets; at most {BUCKETS} can be"));
        }
        self.series.iter().try_for_each(Series::check)
    }
}

impl Stored for DistributionDoc {
    const CONTENTS: Contents = Contents::Distribution;
}

impl Series {
    /// The number of lengths in its histogram and beyond.
    pub fn in_histogram(&self) -> u64 {
        let buckets = self.buckets.iter().fold(0, |sum: u64, bucket| sum.saturating_add(bucket.count));
        buckets.saturating_add(self.above.map_or(0, |above| above.count))
    }

    fn check(&self) -> Result<(), String> {
        let wrong = |what: &str| format!("series '{}': {what}", self.name);
        let times = [
            self.observed_ns,
            self.asked_ns,
            self.threshold_ns,
            self.loop_ns,
            self.total_ns,
            self.min_ns,
            self.max_ns,
            self.above.map(|above| above.from_ns),
        ];
        if times.into_iter().flatten().any(|ns| ns < 0) {
            return Err(wrong("a time is negative"));
        }
        if self.cpu.is_some_and(|cpu| cpu.get() >= CpuId::LIMIT) {
            return Err(wrong(&format!("its CPU is above the limit of {}", CpuId::LIMIT - 1)));
        }
        if self.mean_ns.is_some_and(|mean| !(mean.is_finite() && mean >= 0.0)) {
            return Err(wrong("its mean is no time"));
        }
        if self.quantiles.iter().any(|level| !(0.0..=1.0).contains(&level.at_ratio) || level.ns < 0) {
            return Err(wrong("a quantile is of no level or negative"));
        }
        let fits = |bucket: &Bucket| bucket.from_ns >= 0 && bucket.below_ns > bucket.from_ns && bucket.count > 0;
        if !self.buckets.iter().all(fits)
            || !self.buckets.windows(2).all(|pair| pair[0].below_ns <= pair[1].from_ns)
            || self.in_histogram() >= 1 << 60
        {
            return Err(wrong(
                "its buckets are no histogram: they are to rise without overlap, each with a count above 0",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use becalm_bundle::{Bundle, load_documents, store_document};
    use becalm_units::Named;

    use super::*;

    fn doc(series: Series) -> DistributionDoc {
        DistributionDoc { series: vec![series], ..DistributionDoc::new("cyclictest", Quantity::Wakeup) }
    }

    #[test]
    fn what_cannot_be_a_distribution_is_refused() {
        let bucket = |from_ns, below_ns, count| Bucket { from_ns, below_ns, count };
        let buckets = |buckets: &[Bucket]| Series { buckets: buckets.to_vec(), ..Series::default() };
        assert_eq!(doc(buckets(&[bucket(0, 10, 1), bucket(10, 20, 5)])).check(), Ok(()));
        for wrong in [
            buckets(&[bucket(0, 10, 1), bucket(9, 20, 5)]),
            buckets(&[bucket(0, 10, 0)]),
            buckets(&[bucket(10, 10, 1)]),
            buckets(&[bucket(0, 10, 1 << 60)]),
            Series { max_ns: Some(-1), ..Series::default() },
            Series { mean_ns: Some(f64::NAN), ..Series::default() },
            Series { cpu: Some(CpuId::new(CpuId::LIMIT)), ..Series::default() },
            Series { quantiles: vec![Level { at_ratio: 1.5, ns: 0 }], ..Series::default() },
        ] {
            assert!(doc(wrong.clone()).check().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_stored_distribution_is_read_again_and_is_no_recording() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("theirs.becalm");
        let doc = |node: &str| DistributionDoc {
            node: node.to_owned(),
            ..doc(Series { name: "CPU 0".to_owned(), count: Some(3), ..Series::default() })
        };
        let load = |path: &Path, node| load_documents::<DistributionDoc>(path, node);
        store_document(&path, &doc("n1")).unwrap();
        store_document(&path, &doc("n0")).unwrap();
        assert!(store_document(&path, &doc("n1")).is_err());
        assert_eq!(load(&folder.path().join("theirs"), None).unwrap(), [doc("n0"), doc("n1")]);
        assert_eq!(load(&path, Some("n1")).unwrap(), [doc("n1")]);
        assert!(load(&path, Some("n2")).is_err());
        assert_eq!(Contents::read(&path).unwrap(), Contents::Distribution);
        let error = Bundle::open(&path).unwrap_err().to_string();
        assert!(error.contains("holds a distribution of lengths that another program measured"), "{error}");
        let file = path.join("runs/node=n0.json");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace("\"count\": 3", "\"count\": 3, \"max_ns\": -3")).unwrap();
        assert!(load(&path, None).unwrap_err().to_string().contains("a time is negative"));
    }

    #[test]
    fn what_is_not_known_is_not_in_the_document() {
        let series = Series { name: "CPU 3".to_owned(), count: Some(5), ..Series::default() };
        assert_eq!(serde_json::to_string(&series).unwrap(), r#"{"name":"CPU 3","count":5}"#);
        for quantity in Quantity::ALL.iter().copied() {
            assert_eq!(serde_json::to_value(quantity).unwrap(), quantity.name());
        }
    }
}
