//! Detours with their books: the time of each source in each detour, for removing sources.

use becalm_units::{Nanos, counted};

use crate::ScaleError;
use crate::noise::{Alignment, NodeNoise, Noise, NoiseTrace, TraceError};

/// One entry: the own time of a source in a detour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BookEntry {
    /// The index of the detour, in the order given.
    pub detour: usize,
    /// The index of the source in the list of names.
    pub source: u32,
    /// The index of its root: the source that it is removed with.
    pub root: u32,
    /// Its time in the detour.
    pub self_time: Nanos,
}

impl BookEntry {
    /// Whether it is removed with the marked sources.
    pub(crate) fn is_out(&self, out: &[bool]) -> bool {
        out[self.source as usize] || out[self.root as usize]
    }
}

/// A detour and its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnedDetour {
    /// Its start, relative to its window; negative if it was under way then.
    pub start: Nanos,
    /// Its length.
    pub length: Nanos,
    /// The source that is the root of most of it, on ties the lowest; `None` if it has no entries.
    pub owner: Option<u32>,
}

/// The remainder of a detour after removing sources.
pub(crate) struct LeftDetour<'a> {
    pub start: Nanos,
    /// Its remaining length.
    pub left: Nanos,
    /// Its entries, including removed ones.
    pub entries: &'a [BookEntry],
}

/// Why books were rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BooksError {
    /// The detours themselves are not a valid trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// An entry has the number of a detour, but there are only so many.
    #[error("a source's time is booked on detour {0}, but the trace has only {detours}", detours = counted(*.1 as u64, "detour", "detours"))]
    NoSuchDetour(usize, usize),
    /// An entry of a source that does not exist.
    #[error("time in detour {detour} is booked on source {source_number}, but names are known for only {sources}")]
    NoSuchSource {
        /// The number of the detour.
        detour: usize,
        /// The number of the source in the entry.
        source_number: u32,
        /// The number of named sources.
        sources: usize,
    },
    /// An entry of this detour has this negative time.
    #[error("a source has the negative time {1} in detour {0}")]
    Negative(usize, Nanos),
    /// The entries exceed the detour.
    #[error("the sources of detour {detour} take {booked} together, but it lasts {duration}")]
    Overbooked {
        /// The number of the detour.
        detour: usize,
        /// The sum of its entries.
        booked: Nanos,
        /// The duration of the detour, which its entries exceed.
        duration: Nanos,
    },
}

/// The detours of one CPU in a window, with their books.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BookedTrace {
    begin: Nanos,
    length: Nanos,
    detours: Vec<(Nanos, Nanos)>,
    entries: Vec<BookEntry>,
}

impl BookedTrace {
    /// From detours `(start, duration)` in a window of time, and the entries of their books in any order.
    ///
    /// Incomplete books are accepted: time without an entry stays when all sources are removed. Books that exceed a detour's duration are rejected.
    pub fn new(
        begin: Nanos,
        length: Nanos,
        detours: Vec<(Nanos, Nanos)>,
        mut entries: Vec<BookEntry>,
        sources: usize,
    ) -> Result<Self, BooksError> {
        NoiseTrace::from_window(begin, length, detours.iter().copied())?;
        entries.sort_by_key(|entry| entry.detour);
        for booked in entries.chunk_by(|a, b| a.detour == b.detour) {
            let detour = booked[0].detour;
            let Some((_, duration)) = detours.get(detour) else {
                return Err(BooksError::NoSuchDetour(detour, detours.len()));
            };
            let mut sum = Nanos::ZERO;
            for BookEntry { source, root, self_time, .. } in booked {
                if let Some(source_number) = [*source, *root].into_iter().find(|number| *number as usize >= sources) {
                    return Err(BooksError::NoSuchSource { detour, source_number, sources });
                }
                if *self_time < Nanos::ZERO {
                    return Err(BooksError::Negative(detour, *self_time));
                }
                sum = sum.checked_add(*self_time).unwrap_or(Nanos::MAX);
                if sum > *duration {
                    return Err(BooksError::Overbooked { detour, booked: sum, duration: *duration });
                }
            }
        }
        Ok(Self { begin, length, detours, entries })
    }

    /// Cuts to a window within its own, `later` after its start and of length `length`.
    fn cut(&self, later: Nanos, length: Nanos) -> Self {
        Self { begin: self.begin + later, length, detours: self.detours.clone(), entries: self.entries.clone() }
    }

    /// The trace without some sources and everything charged to them: a detour keeps its start and is shortened by their time.
    fn without(&self, out: &[bool]) -> Result<NoiseTrace, TraceError> {
        NoiseTrace::from_window(self.begin, self.length, self.left(out).map(|detour| (detour.start, detour.left)))
    }

    /// Start, duration and entries of each detour, in order of time.
    fn booked(&self) -> impl Iterator<Item = (Nanos, Nanos, &[BookEntry])> {
        let mut rest = self.entries.as_slice();
        self.detours.iter().enumerate().map(move |(number, (start, duration))| {
            let own = rest.iter().take_while(|entry| entry.detour == number).count();
            let entries = rest.split_off(..own).unwrap_or_default();
            (*start, *duration, entries)
        })
    }

    /// Each detour without some sources and everything charged to them, in order of time.
    pub(crate) fn left<'a>(&'a self, out: &'a [bool]) -> impl Iterator<Item = LeftDetour<'a>> {
        self.booked().map(|(start, duration, entries)| {
            let gone = entries.iter().filter(|entry| entry.is_out(out)).map(|entry| entry.self_time);
            LeftDetour { start, left: duration - gone.sum::<Nanos>(), entries }
        })
    }

    /// Each detour with its owner, in order of time.
    fn owned(&self) -> impl Iterator<Item = OwnedDetour> {
        self.booked().map(|(start, length, entries)| {
            let time = |root: u32| entries.iter().filter(|entry| entry.root == root).map(|entry| entry.self_time).sum();
            let owner = entries.iter().map(|entry| (time(entry.root), std::cmp::Reverse(entry.root))).max();
            let owner = owner.filter(|(most, _): &(Nanos, _)| *most > Nanos::ZERO).map(|(_, root)| root.0);
            OwnedDetour { start: start - self.begin, length, owner }
        })
    }

    /// The start of the window of the recording.
    pub(crate) fn begin(&self) -> Nanos {
        self.begin
    }

    pub(crate) fn length(&self) -> Nanos {
        self.length
    }
}

/// A node with the books of its CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BookedNode {
    /// The name of the node.
    pub name: String,
    /// Its CPUs.
    pub cpus: Vec<BookedTrace>,
}

/// The noise of a run with its books.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BookedNoise {
    sources: Vec<String>,
    nodes: Vec<BookedNode>,
    alignment: Alignment,
}

impl BookedNoise {
    /// From the names of sources and the CPUs of each node. Fails without CPUs, or if CPUs of one node have different lengths.
    pub fn new(sources: Vec<String>, nodes: Vec<BookedNode>) -> Result<Self, TraceError> {
        let booked = Self { sources, nodes, alignment: Alignment::Node };
        booked.without(&vec![false; booked.sources.len()])?;
        Ok(booked)
    }

    /// Aligns other ranks at a common offset.
    pub fn aligned(self, alignment: Alignment) -> Result<Self, TraceError> {
        let booked = Self { alignment, ..self };
        booked.without(&vec![false; booked.sources.len()])?;
        Ok(booked)
    }

    /// Cuts the windows of all nodes to one length, each starting `later` after its old start. Fails for a length of 0, or if a CPU has only noise in
    /// it. Panics without a time for each node.
    pub fn cut(&self, later: &[Nanos], length: Nanos) -> Result<Self, TraceError> {
        assert_eq!(later.len(), self.nodes.len(), "each node has a time from which it is cut");
        let cut = |(node, later): (&BookedNode, &Nanos)| BookedNode {
            name: node.name.clone(),
            cpus: node.cpus.iter().map(|cpu| cpu.cut(*later, length)).collect(),
        };
        let nodes = self.nodes.iter().zip(later).map(cut).collect();
        Self::new(self.sources.clone(), nodes)?.aligned(self.alignment)
    }

    /// The names of the sources.
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// The books of all CPUs of all nodes, in the order of [`Noise::traces`].
    pub(crate) fn cpus(&self) -> impl Iterator<Item = &BookedTrace> {
        self.nodes.iter().flat_map(|node| &node.cpus)
    }

    /// The detours of each CPU of all nodes with their owners, in the order of [`Noise::traces`].
    pub fn owned(&self) -> impl Iterator<Item = impl Iterator<Item = OwnedDetour> + '_> + '_ {
        self.cpus().map(BookedTrace::owned)
    }

    /// The number of a source.
    pub fn source(&self, name: &str) -> Result<usize, ScaleError> {
        self.sources
            .iter()
            .position(|source| source == name)
            .ok_or_else(|| ScaleError::UnknownSource { name: name.to_owned(), known: self.sources.join(", ") })
    }

    /// The time charged to each source, over all detours.
    pub fn totals(&self) -> Vec<Nanos> {
        let mut totals = vec![Nanos::ZERO; self.sources.len()];
        for entry in self.nodes.iter().flat_map(|node| &node.cpus).flat_map(|cpu| &cpu.entries) {
            totals[entry.root as usize] += entry.self_time;
        }
        totals
    }

    /// The noise without the sources marked in `out`, which has an element for each.
    /// Panics with a list of another length.
    pub fn without(&self, out: &[bool]) -> Result<Noise, TraceError> {
        assert_eq!(out.len(), self.sources.len(), "each source is in or out");
        let node = |BookedNode { name, cpus }: &BookedNode| {
            let cpus: Result<Vec<_>, _> = cpus.iter().map(|cpu| cpu.without(out)).collect();
            NodeNoise::new(name.clone(), cpus?)
        };
        Noise::recorded(self.nodes.iter().map(node).collect::<Result<_, _>>()?)?.aligned(self.alignment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(ns: i64) -> Nanos {
        Nanos::new(ns)
    }

    fn entry(detour: usize, source: u32, time: i64) -> BookEntry {
        BookEntry { detour, source, root: source, self_time: ns(time) }
    }

    #[test]
    fn a_source_goes_with_all_of_which_it_is_the_root() {
        // A detour of a tick of 6 with a softirq of 3 and an exit of 2, and a packet of 4.
        let [tick, softirq, exit, packet] = [0, 1, 2, 3];
        let part = |source, root, time| BookEntry { detour: 0, source, root, self_time: ns(time) };
        let entries = vec![part(tick, tick, 6), part(softirq, tick, 3), part(exit, tick, 2), part(packet, packet, 4)];
        let cpu = BookedTrace::new(ns(0), ns(100), vec![(ns(10), ns(15))], entries, 4).unwrap();
        let names = ["local_timer", "rcu", "exit", "eth0"].map(str::to_owned).to_vec();
        let noise = BookedNoise::new(names, vec![BookedNode { name: "a".into(), cpus: vec![cpu] }]).unwrap();
        assert_eq!(noise.totals(), [ns(11), ns(0), ns(0), ns(4)]);
        let left = |source: usize| {
            let out: Vec<bool> = (0..4).map(|number| number == source).collect();
            noise.without(&out).unwrap().traces().next().unwrap().detours().map(|(_, length)| length).sum::<Nanos>()
        };
        assert_eq!([0, 1, 2, 3].map(left), [ns(4), ns(12), ns(13), ns(11)]);
    }

    #[test]
    fn takes_sources_out_of_their_detours() {
        let entries = vec![entry(1, 0, 5), entry(0, 0, 4), entry(0, 1, 6), entry(0, 1, 1)];
        let cpu = BookedTrace::new(ns(100), ns(100), vec![(ns(110), ns(11)), (ns(150), ns(5))], entries, 2).unwrap();
        let noise = BookedNoise::new(
            vec!["timer".into(), "net_rx".into()],
            vec![BookedNode { name: "a".into(), cpus: vec![cpu] }],
        )
        .unwrap();
        assert_eq!(noise.totals(), [ns(9), ns(7)]);
        let left = |out: [bool; 2]| noise.without(&out).unwrap().traces().next().unwrap().detours().collect::<Vec<_>>();
        assert_eq!(left([false, false]), [(ns(10), ns(11)), (ns(50), ns(5))]);
        assert_eq!(left([true, false]), [(ns(10), ns(7))]);
        assert_eq!(left([true, true]), []);
        assert_eq!(noise.source("net_rx"), Ok(1));
        assert!(noise.source("sshd").unwrap_err().to_string().contains("timer, net_rx"));
    }

    #[test]
    fn refuses_books_that_cannot_be() {
        let detours = || vec![(ns(10), ns(5))];
        for (entries, why) in [
            (vec![entry(1, 0, 1)], "detour 1, but the trace has only 1 detour"),
            (vec![entry(0, 3, 1)], "source 3, but names are known for only 1"),
            (vec![entry(0, 0, -1)], "negative"),
            (vec![entry(0, 0, 3), entry(0, 0, 3)], "take 6ns together, but it lasts 5ns"),
            (vec![entry(0, 0, i64::MAX)], "take"),
        ] {
            let error = BookedTrace::new(ns(0), ns(100), detours(), entries, 1).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
