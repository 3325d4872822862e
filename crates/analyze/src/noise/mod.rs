//! The input noise of a prediction: from a formula, or from a stored run with the books of its detours.

mod drawn;
mod error;
mod names;
mod threads;
pub(crate) mod window;

use std::collections::BTreeMap;

use becalm_account::{BatchOwners, CpuAccount, SourceIds};
use becalm_bundle::Bundle;
use becalm_model::node::{NodeDoc, Warning};
use becalm_model::{Kind, warning};
use becalm_scale::books::{BookEntry, BookedNode, BookedNoise, BookedTrace};
use becalm_scale::predict::Question;
use becalm_scale::spec::{Drawing, NoiseSpec};
use becalm_scale::{Alignment, NodeNoise, Noise, NoiseTrace, ScaleError};
use becalm_units::Nanos;

pub use self::drawn::draw_losses;
pub use self::error::NoiseError;
use self::window::WatchedTime;
pub use self::window::Window;
use crate::summary::Selection;

/// Noise for a prediction, with its limits.
#[derive(Clone, Debug)]
pub struct NoiseInput {
    /// The noise split by source. `None` for a formula, which has no sources, and for a run read without its books.
    pub booked: Option<BookedNoise>,
    /// The kind and the name of each source in the books.
    names: SourceIds,
    /// The noise.
    pub noise: Noise,
    /// The node and the CPU number of each trace; empty for a formula.
    pub places: Vec<(String, i32)>,
    /// Other draws of the same formula.
    pub draws: Vec<Noise>,
    /// Its origin.
    pub origin: NoiseOrigin,
    /// The formula, or the path of the run.
    pub name: String,
    /// The limits of the noise: a recording that did not end, CPUs that were watched for a shorter time.
    pub warnings: Vec<Warning>,
    /// The source of the draw, if it comes from a recording in summary form.
    pub summary: Option<SummaryOrigin>,
    /// Whether its traces are those of observed threads, each as a node of its own.
    pub of_threads: bool,
    /// When each of its nodes was watched, in wall-clock time.
    watched: Vec<WatchedTime>,
}

/// Noise that was drawn from a summary form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SummaryOrigin {
    /// The grain of the phases that it is valid for.
    pub grain: Nanos,
    /// The total recorded time of its CPUs.
    pub recorded: Nanos,
}

/// Maximum number of circles drawn from a formula; each may take 80 MB with its tables.
const DRAWS_LIMIT: u32 = 8;

/// How complete a noise is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoiseOrigin {
    /// A formula without randomness: complete.
    Exact,
    /// A formula with randomness: as much as was drawn.
    Drawn,
    /// As much as was recorded.
    Recorded,
}

impl NoiseInput {
    /// Draws the detours of a formula: one circle per replica, at most eight, because the content of one is random. Fails if the formula is
    /// impossible (detours overlap, or leave no time between them), or a file cannot be read.
    pub fn from_spec(spec: &NoiseSpec, drawing: Drawing<'_>, replicas: u64) -> Result<Self, ScaleError> {
        let name = spec.to_string();
        let draw = |number| Ok(Noise::apart(&name, spec.drawn(Drawing { number, ..drawing })?));
        let others =
            if spec.varies() { 1..DRAWS_LIMIT.min(u32::try_from(replicas).unwrap_or(DRAWS_LIMIT)) } else { 1..1 };
        let draws = others.map(draw).collect::<Result<_, ScaleError>>()?;
        let origin = if spec.varies() { NoiseOrigin::Drawn } else { NoiseOrigin::Exact };
        let noise = draw(0)?;
        Ok(Self { draws, origin, ..Self::recorded(noise, Vec::new(), name) })
    }

    /// Recorded noise without books.
    fn recorded(noise: Noise, places: Vec<(String, i32)>, name: String) -> Self {
        Self {
            booked: None,
            names: SourceIds::default(),
            noise,
            draws: Vec::new(),
            places,
            origin: NoiseOrigin::Recorded,
            name,
            warnings: Vec::new(),
            summary: None,
            of_threads: false,
            watched: Vec::new(),
        }
    }

    /// Reads the noise of the selected CPUs of a run, with the books of its detours if `books` is set. Fails if the run cannot be read, the selection
    /// does not exist, the requested books are missing or do not match their detours, or a CPU's detours are not a valid noise trace.
    pub fn from_run(bundle: &Bundle, selection: &Selection, books: bool) -> Result<Self, NoiseError> {
        let mut names = SourceIds::default();
        let mut nodes = Vec::new();
        let mut watched = Vec::new();
        let docs = selection.documents(bundle)?;
        let mut warnings = warning::bearing_warnings(&docs);
        for doc in docs {
            // Needed even without books, to find becalm's own part of the detours.
            let ReadCpus { mut cpus, has_books } = read_cpus(bundle, &doc, selection.with_self, &mut names)?;
            if books && !has_books {
                return Err(NoiseError::NoBooks { run: bundle.path().to_owned(), node: doc.node });
            }
            if !books {
                cpus.iter_mut().for_each(|cpu| cpu.entries.clear());
            }
            let last = cpus.iter().filter_map(|cpu| cpu.detours.last());
            let last = last.map(|(start, duration)| start.checked_add(*duration).unwrap_or(Nanos::MAX)).max();
            let window = Window::common_to_all_cpus(&doc, last, &mut warnings);
            watched.push(WatchedTime::new(&doc, window));
            nodes.push(NodeDetours { node: doc.node, window, cpus });
        }
        let noise = Self::from_detours(nodes, names, books)?;
        Ok(Self { name: bundle.path().display().to_string(), warnings, watched, ..noise })
    }

    /// The noise of one node without books, from the detours of its CPUs, each by start and duration: within a time of this length, in rising order.
    /// Fails if there is no CPU, or the detours of one are not a valid noise trace.
    pub fn from_cpus(name: &str, length: Nanos, cpus: Vec<Vec<(Nanos, Nanos)>>) -> Result<Self, NoiseError> {
        let places: Vec<(String, i32)> = (0..).take(cpus.len()).map(|cpu| (name.to_owned(), cpu)).collect();
        let trace = |(detours, (node, cpu)): (Vec<_>, &(String, i32))| {
            let trace = NoiseTrace::new(length, detours);
            trace.map_err(|error| NoiseError::Cpu { cpu: *cpu, node: node.clone(), source: error.into() })
        };
        let traces = cpus.into_iter().zip(&places).map(trace).collect::<Result<_, _>>()?;
        let noise = Noise::recorded(vec![NodeNoise::new(name, traces)?])?;
        Ok(Self::recorded(noise, places, name.to_owned()))
    }

    /// The noise of these detours.
    fn from_detours(nodes: Vec<NodeDetours>, names: SourceIds, books: bool) -> Result<Self, NoiseError> {
        let (mut booked, mut places) = (Vec::new(), Vec::new());
        for NodeDetours { node, window, cpus } in nodes {
            let mut traces = Vec::new();
            for CpuDetours { cpu, detours, entries } in cpus {
                places.push((node.clone(), cpu));
                let trace = BookedTrace::new(window.begin, window.length, detours, entries, names.len());
                traces.push(trace.map_err(|source| NoiseError::Cpu { cpu, node: node.clone(), source })?);
            }
            booked.push(BookedNode { name: node, cpus: traces });
        }
        let booked = BookedNoise::new(names::shown(&names), booked)?;
        let noise = booked.without(&vec![false; names.len()])?;
        Ok(Self { booked: books.then_some(booked), names, ..Self::recorded(noise, places, String::new()) })
    }

    /// Adds the detours of a formula to each CPU, to predict the cost of that cause; drops the books. Fails if both leave no time between them, or a
    /// file cannot be read.
    pub fn with_cause(self, spec: &NoiseSpec, drawing: Drawing<'_>) -> Result<Self, ScaleError> {
        let mut number = 0..;
        let mut node = |node: &NodeNoise| -> Result<NodeNoise, ScaleError> {
            let cpus = node.cpus().iter().zip(&mut number).map(|(cpu, number)| spec.added_to(cpu, number, drawing));
            Ok(NodeNoise::new(node.name(), cpus.collect::<Result<_, _>>()?)?)
        };
        let nodes = self.noise.nodes().iter().map(&mut node).collect::<Result<_, ScaleError>>()?;
        let name = format!("{}+{spec}", self.name);
        Ok(Self { booked: None, names: SourceIds::default(), noise: Noise::recorded(nodes)?, name, ..self })
    }

    /// Coalesces the noise in windows of this length that end on all ranks at the same instants: a detour that starts in one is postponed to its end.
    /// Drops the books. Fails if the windows are longer than a circle can be.
    pub fn coalesced(self, window: Nanos) -> Result<Self, ScaleError> {
        let draws = self.draws.iter().map(|draw| draw.coalesced(window)).collect::<Result<_, _>>()?;
        let noise = self.noise.coalesced(window)?;
        Ok(Self { booked: None, names: SourceIds::default(), noise, draws, ..self })
    }

    /// The noise of several equal recordings, without books: each rank replays one of them, with equal probability. Fails if there is none.
    pub fn pooled(inputs: Vec<Self>) -> Result<Self, ScaleError> {
        let nodes = inputs.iter().flat_map(|input| input.noise.nodes()).cloned().collect();
        let places = inputs.iter().flat_map(|input| input.places.iter().cloned()).collect();
        let name = inputs.iter().map(|input| input.name.as_str()).collect::<Vec<_>>().join(", ");
        let mut warnings: Vec<Warning> = Vec::new();
        for warning in inputs.into_iter().flat_map(|input| input.warnings) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        Ok(Self { warnings, ..Self::recorded(Noise::recorded(nodes)?, places, name) })
    }

    /// Aligns other ranks at a common offset. With several nodes as recorded, the noise is cut to the wall-clock time when all of them were
    /// watched. Fails if that is less than half of the longest recording, or if all noise of a CPU is cut off.
    pub fn aligned(self, alignment: Alignment) -> Result<Self, NoiseError> {
        let mut cut = self;
        if alignment == Alignment::Recording && cut.watched.len() > 1 {
            let common = WatchedTime::common(&cut.watched)?;
            let later: Vec<Nanos> = cut.watched.iter().map(|own| own.until(common)).collect();
            cut.booked = cut.booked.map(|booked| booked.cut(&later, common.length)).transpose()?;
            cut.noise = cut.noise.cut(&later, common.length)?;
        }
        cut.booked = cut.booked.map(|booked| booked.aligned(alignment)).transpose()?;
        cut.noise = cut.noise.aligned(alignment)?;
        Ok(cut)
    }

    /// A warning if a phase of the whole machine takes more CPU time than was recorded, or more than a tenth of what was drawn from a formula: then
    /// noise too rare to be in there would decide.
    pub fn short_recording(&self, question: &Question, ranks: &[u64]) -> Option<Warning> {
        let (made, enough): (fn(u64, Nanos, Nanos) -> Warning, f64) = match self.origin {
            NoiseOrigin::Exact => return None,
            NoiseOrigin::Drawn => (warning::short_formula, 0.1),
            NoiseOrigin::Recorded => (warning::short_recording, 1.0),
        };
        let time = match self.summary {
            Some(SummaryOrigin { recorded, .. }) => recorded.as_secs_f64(),
            None => self.noise.traces().map(|trace| trace.length().as_secs_f64()).sum(),
        };
        let cpu_time = |ranks: u64| ranks as f64 * question.grain.as_secs_f64();
        let ranks = ranks.iter().copied().filter(|ranks| cpu_time(*ranks) > enough * time).min()?;
        Some(made(ranks, question.grain, Nanos::new((time * 1e9) as i64)))
    }

    /// Marks the wanted sources in the books, in their order, by kind and name.
    pub fn mark(&self, wanted: impl Fn(Kind, &str) -> bool) -> Vec<bool> {
        self.names.names().iter().map(|(kind, name)| wanted(*kind, name)).collect()
    }

    /// The numbers of the sources that a user's text refers to: a name, of any kind, or `kind:name`.
    ///
    /// # Errors
    /// [`ScaleError::UnknownSource`] with the known names.
    pub fn source_numbers(&self, text: &str) -> Result<Vec<usize>, ScaleError> {
        let numbers = names::source_numbers(&self.names, text);
        if numbers.is_empty() {
            let known = self.booked.as_ref().map_or_else(String::new, |booked| booked.sources().join(", "));
            return Err(ScaleError::UnknownSource { name: text.to_owned(), known });
        }
        Ok(numbers)
    }
}

/// The detours of a node, in a window of time.
struct NodeDetours {
    node: String,
    window: Window,
    cpus: Vec<CpuDetours>,
}

/// The detours of one CPU.
#[derive(Default)]
struct CpuDetours {
    cpu: i32,
    /// The start and the duration of each detour, in order of time.
    detours: Vec<(Nanos, Nanos)>,
    entries: Vec<BookEntry>,
}

/// The CPUs of a node as read.
struct ReadCpus {
    cpus: Vec<CpuDetours>,
    /// Whether the run has books, or no detours that need any.
    has_books: bool,
}

/// Reads the detours of the document's CPUs with their books. becalm's own time is subtracted from the detours unless `with_self` is set.
fn read_cpus(bundle: &Bundle, doc: &NodeDoc, with_self: bool, names: &mut SourceIds) -> Result<ReadCpus, NoiseError> {
    let numbers = doc.cpus.iter().filter_map(|cpu| i32::try_from(cpu.cpu.get()).ok());
    let empty = |cpu| (CpuAccount::new(with_self), CpuDetours { cpu, ..CpuDetours::default() });
    let mut cpus: BTreeMap<i32, (CpuAccount, CpuDetours)> = numbers.map(|cpu| (cpu, empty(cpu))).collect();
    let mut has_books = false;
    for batch in bundle.activities(&doc.node)? {
        let batch = batch?;
        let (sources, details) = (batch.source_values(), batch.detail_values());
        let mut owners = BatchOwners::new(&sources, &details);
        for row in 0..batch.len() {
            let Some((account, cpu)) = cpus.get_mut(&batch.cpus()[row]) else { continue };
            has_books = true;
            let owner = owners.owner(names, batch.kind(row), batch.source_key(row), batch.detail_key(row));
            let (detour, self_ns) = (batch.detours()[row], batch.self_times()[row]);
            if account.activity(detour as u64, self_ns, owner) {
                let detour = usize::try_from(detour).unwrap_or(usize::MAX);
                let (source, root) = (owner.source.get(), owner.root.get());
                cpu.entries.push(BookEntry { detour, source, root, self_time: Nanos::new(self_ns) });
            }
        }
    }
    for batch in bundle.detours(&doc.node)? {
        let batch = batch?;
        for ((cpu, start), duration) in batch.cpus().iter().zip(batch.starts()).zip(batch.durations()) {
            if let Some((account, cpu)) = cpus.get_mut(cpu) {
                // Entries refer to detours by index, so a detour that is entirely becalm's own stays, with length 0.
                let left = account.detour(*duration).unwrap_or(0);
                cpu.detours.push((Nanos::new(*start), Nanos::new(left)));
            }
        }
    }
    let cpus: Vec<CpuDetours> = cpus.into_values().map(|(_, cpu)| cpu).collect();
    let has_books = has_books || cpus.iter().all(|cpu| cpu.detours.is_empty());
    Ok(ReadCpus { cpus, has_books })
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_scale::predict::Prediction;

    #[test]
    fn a_word_means_a_name_of_any_kind_or_of_one() {
        let read = |_: &std::path::Path| Err(String::new());
        let drawing = Drawing { seed: 1, number: 0, time: Nanos::ZERO, read: &read };
        let mut input = NoiseInput::from_spec(&"poisson:rate=10Hz,detour=5us".parse().unwrap(), drawing, 1).unwrap();
        for (kind, name) in [(Kind::Irq, "timer"), (Kind::Softirq, "timer"), (Kind::Task, "a:b")] {
            input.names.id(kind, name);
        }
        for (text, meant) in
            [("timer", vec![0, 1]), ("softirq:timer", vec![1]), ("a:b", vec![2]), ("task:a:b", vec![2])]
        {
            assert_eq!(input.source_numbers(text), Ok(meant), "{text}");
        }
        assert!(input.source_numbers("task:timer").is_err());
    }

    #[test]
    fn detours_that_are_known_are_noise_in_order_and_in_time() {
        let ns = |pairs: &[(i64, i64)]| pairs.iter().map(|(a, b)| (Nanos::new(*a), Nanos::new(*b))).collect::<Vec<_>>();
        let input = |cpus| NoiseInput::from_cpus("mine", Nanos::new(1_000), cpus);
        let two = input(vec![ns(&[(0, 10), (500, 20)]), Vec::new()]).unwrap();
        assert_eq!(two.noise.traces().map(NoiseTrace::len).collect::<Vec<_>>(), [2, 0]);
        assert_eq!(two.places, [("mine".to_owned(), 0), ("mine".to_owned(), 1)]);
        for wrong in [vec![ns(&[(500, 20), (0, 10)])], vec![Vec::new(), ns(&[(2_000, 1)])], Vec::new()] {
            assert!(input(wrong.clone()).is_err(), "{wrong:?}");
        }
        let error = input(vec![Vec::new(), ns(&[(2_000, 1)])]).unwrap_err().to_string();
        assert!(error.starts_with("the recording of CPU 1 of node mine"), "{error}");
    }

    /// The slowdown of 262,144 ranks with detours of 1 ms at 10 Hz in phases of 1 ms is 3.711, computed without becalm from the stationary workload
    /// of an M/D/1 queue and the ballot theorem. One circle deviates from that; several differ by the expected amount.
    #[test]
    fn intervals_of_a_formula_hold_what_it_costs_exactly() {
        let read = |_: &std::path::Path| Err(String::new());
        let spec: NoiseSpec = "poisson:rate=10Hz,detour=1ms".parse().unwrap();
        let holds = |seed: &u64| {
            let time = Nanos::from_secs(1 << 20);
            let input = NoiseInput::from_spec(&spec, Drawing { seed: *seed, number: 0, time, read: &read }, 5).unwrap();
            let question = Question {
                grain: Nanos::from_millis(1),
                phases: 1_000,
                collective: "ideal".parse().unwrap(),
                network: "infiniband".parse().unwrap(),
                bytes: 0,
                per_node: 1,
                synchronized: false,
                seed: *seed,
                replicas: 5,
            };
            let prediction = Prediction::new(&input.noise, question).unwrap().with_draws(&input.draws).unwrap();
            let slowdown = prediction.slowdown(1 << 18).unwrap().unwrap();
            assert!(slowdown.high - slowdown.low < 0.15, "{slowdown:?}");
            (slowdown.low..=slowdown.high).contains(&3.711)
        };
        let held = (1..=4).filter(holds).count();
        assert!(held >= 3, "{held} of 4");
    }
}
