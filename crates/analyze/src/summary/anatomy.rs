//! One complete occurrence of an interrupt: the time of kernel entry, handler, softirqs that it raised, exit, and cold caches afterward.

use becalm_bundle::{Bundle, BundleError};
use becalm_model::node::NodeDoc;
use becalm_model::{Kind, root};
use becalm_stats::{Moments, Quantiles};

use super::scan::runs;

/// The parts of an occurrence, in order of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// From the start of the detour to the handler.
    Entry,
    /// The handler.
    Handler,
    /// Softirqs on the way out, and the time between them.
    Softirqs,
    /// From the end of the last softirq to the end of the detour.
    Exit,
    /// The slow steps right after the detour.
    After,
}

impl Part {
    /// All parts, in the order of [`Anatomy::parts`].
    pub const ALL: [Self; 5] = [Self::Entry, Self::Handler, Self::Softirqs, Self::Exit, Self::After];

    /// Its name in tables and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Entry => "entry",
            Self::Handler => "handler",
            Self::Softirqs => "softirqs",
            Self::Exit => "exit",
            Self::After => "after",
        }
    }
}

/// The time of a part of an occurrence; an occurrence without it counts as 0.
#[derive(Clone, Debug)]
pub struct PartFigures {
    /// `None` for all parts together.
    pub part: Option<Part>,
    /// The time of each occurrence, in nanoseconds.
    pub times: Moments,
    /// The median, in nanoseconds.
    pub median_ns: Option<i64>,
    /// The 99th percentile, in nanoseconds.
    pub p99_ns: Option<i64>,
}

/// The cost of one occurrence of an interrupt.
#[derive(Clone, Debug)]
pub struct Anatomy {
    /// The stable name of the interrupt.
    pub source: String,
    /// The parts, then all of them together. Over the detours that contain it exactly once, so every part can be attributed.
    pub parts: Vec<PartFigures>,
}

/// The sums of a part over occurrences.
#[derive(Clone, Debug, Default)]
struct Sums {
    times: Moments,
    quantiles: Quantiles,
}

impl Sums {
    fn add(&mut self, time: i64) {
        self.times.add(time);
        self.quantiles.add(time);
    }
}

#[derive(Clone, Copy, Default)]
struct Occurrence {
    handlers: u32,
    parts: [i64; Part::ALL.len()],
}

impl Occurrence {
    fn close(&mut self, sums: &mut [Sums]) {
        if self.handlers == 1 {
            let all = self.parts.iter().copied().fold(0, i64::saturating_add);
            sums.iter_mut().zip(self.parts.into_iter().chain([all])).for_each(|(sums, time)| sums.add(time));
        }
        *self = Self::default();
    }
}

/// Reads the cost of an interrupt's occurrences on the CPUs of these documents; `None` if no detour contains it exactly once.
pub(super) fn anatomy(bundle: &Bundle, docs: &[&NodeDoc], source: &str) -> Result<Option<Anatomy>, BundleError> {
    let mut sums = vec![Sums::default(); Part::ALL.len() + 1];
    for doc in docs {
        let mut occurrence = Occurrence::default();
        let mut last: Option<(i32, i64)> = None;
        for batch in bundle.activities(&doc.node)? {
            let batch = batch?;
            let (sources, details) = (batch.source_values(), batch.detail_values());
            let is_named: Vec<bool> =
                details.iter().map(|detail| root::row_root(Kind::Edge, "", detail) == (Kind::Irq, source)).collect();
            for range in runs(batch.cpus()) {
                let cpu = batch.cpus()[range.start];
                if !doc.cpus.iter().any(|doc| i64::from(doc.cpu.get()) == i64::from(cpu)) {
                    continue;
                }
                for row in range {
                    let (kind, name) = (batch.kind(row), sources[batch.source_key(row)]);
                    let belongs = matches!(kind, Kind::Edge | Kind::Softirq) && is_named[batch.detail_key(row)];
                    let part = match (kind, name) {
                        (Kind::Irq, name) if name == source => Some(Part::Handler),
                        (Kind::Edge, "entry") if belongs => Some(Part::Entry),
                        (Kind::Edge, "exit") if belongs => Some(Part::Exit),
                        (Kind::Edge, "after") if belongs => Some(Part::After),
                        _ if belongs => Some(Part::Softirqs),
                        _ => None,
                    };
                    let place = Some((cpu, batch.detours()[row]));
                    if place != last && part != Some(Part::After) {
                        occurrence.close(&mut sums);
                    }
                    last = place;
                    if let Some(part) = part {
                        occurrence.handlers += u32::from(part == Part::Handler);
                        let sum = &mut occurrence.parts[part as usize];
                        *sum = sum.saturating_add(batch.self_times()[row]);
                    }
                }
            }
        }
        occurrence.close(&mut sums);
    }
    if sums[0].times.count() == 0 {
        return Ok(None);
    }
    let parts = sums.into_iter().zip(Part::ALL.map(Some).into_iter().chain([None])).map(|(mut sums, part)| {
        PartFigures { part, times: sums.times, median_ns: sums.quantiles.at(0.5), p99_ns: sums.quantiles.at(0.99) }
    });
    Ok(Some(Anatomy { source: source.to_owned(), parts: parts.collect() }))
}
