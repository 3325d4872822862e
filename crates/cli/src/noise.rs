//! The noise of a prediction: from a formula, or from a run with the books of its detours.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context;
use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;
use becalm_model::node::{NodeDoc, Warning};
use becalm_scale::books::{BookedNoise, BookedTrace, Entry};
use becalm_scale::spec::NoiseSpec;
use becalm_scale::{Noise, ScaleError};
use becalm_units::Nanos;

use crate::exit::UsageError;
use crate::progress::Reading;

/// What was typed: a formula or the path of a run.
#[derive(Clone, PartialEq, Debug)]
pub enum NoiseArg {
    /// `periodic:` or `poisson:`.
    Spec(NoiseSpec),
    /// A bundle.
    Run(PathBuf),
}

impl FromStr for NoiseArg {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Self, ScaleError> {
        // A misspelled formula gets the error of formulas rather than that of a file that is not there.
        let name = text.split(':').next();
        if matches!(name, Some("periodic" | "poisson")) && text.contains(':') || text.contains(",detour=") {
            text.parse().map(Self::Spec)
        } else {
            Ok(Self::Run(PathBuf::from(text)))
        }
    }
}

/// Noise to predict from, and what is to be said about it.
pub struct Source {
    /// The noise with its books; a formula has none, as has a run of which they were not asked for.
    pub booked: Option<BookedNoise>,
    /// The kind and the name of each source in the books.
    names: Vec<(String, String)>,
    /// The noise as it is.
    pub noise: Noise,
    /// Whether it was recorded, and so ends somewhere.
    pub recorded: bool,
    /// Where it is from.
    pub name: String,
    /// What limits it.
    pub warnings: Vec<Warning>,
}

impl Source {
    /// The noise of a formula, its detours drawn from the seed.
    ///
    /// # Errors
    /// If the formula makes no noise that can be: overlapping detours, nothing but detours.
    pub fn of_spec(spec: &NoiseSpec, seed: u64) -> anyhow::Result<Self> {
        let trace = spec.trace(seed).map_err(|error| UsageError(format!("{spec}: {error}")))?;
        let name = spec.to_string();
        let noise = Noise::apart(&name, trace);
        Ok(Self { booked: None, names: Vec::new(), noise, recorded: false, name, warnings: Vec::new() })
    }

    /// The noise of the selected CPUs of a run, with the books of its detours if they are asked for.
    ///
    /// # Errors
    /// If the run cannot be read, the selection names what is not there, books are asked for that are not there or do not
    /// fit their detours, or a CPU's detours are no noise trace.
    pub fn of_run(bundle: &Bundle, selection: &Selection, books: bool) -> anyhow::Result<Self> {
        let _reading = Reading::begin(bundle, 1);
        let mut warnings = Vec::new();
        let mut names = Names::default();
        let mut nodes = Vec::new();
        for doc in selection.documents(bundle)? {
            let mut cpus = read_detours(bundle, &doc)?;
            if books && !read_books(bundle, &doc, &mut cpus, &mut names)? {
                let path = bundle.path().display();
                let node = &doc.node;
                anyhow::bail!(
                    "{path} does not say what took the time on node {node}, so that no source can be taken out; record \
                     it with sources"
                );
            }
            let window = window(&doc, &cpus, &mut warnings);
            nodes.push((doc.node.clone(), window, cpus));
        }
        let mut booked = Vec::with_capacity(nodes.len());
        for (node, (begin, length), cpus) in nodes {
            let mut traces = Vec::with_capacity(cpus.len());
            for (number, cpu) in cpus {
                let sources = names.list.len();
                let trace = BookedTrace::new(begin, length, cpu.detours, cpu.entries, sources);
                traces.push(trace.with_context(|| format!("the recording of CPU {number} of node {node}"))?);
            }
            booked.push((node, traces));
        }
        let none = vec![false; names.list.len()];
        let booked = BookedNoise::new(names.shown(), booked)?;
        let noise = booked.without(&none)?;
        let name = bundle.path().display().to_string();
        Ok(Self { booked: books.then_some(booked), names: names.list, noise, recorded: true, name, warnings })
    }

    /// Marks the sources of certain kinds and names in the books.
    pub fn mark(&self, wanted: impl Fn(&str, &str) -> bool) -> Vec<bool> {
        self.names.iter().map(|(kind, name)| wanted(kind, name)).collect()
    }

    /// Takes the time of all sources of a kind out of every detour; of noise without books, nothing.
    ///
    /// # Errors
    /// If what is left is no noise.
    pub fn take_out_kind(&mut self, kind: &str) -> Result<(), ScaleError> {
        if let Some(booked) = &self.booked {
            let taken_out: Vec<bool> = self.names.iter().map(|(of, _)| of == kind).collect();
            self.noise = booked.without(&taken_out)?;
        }
        Ok(())
    }

    /// The numbers of the sources that a user's word means: a name, of whatever kind, or `kind:name`.
    ///
    /// # Errors
    /// [`ScaleError::UnknownSource`] with the names that there are.
    pub fn numbers_of(&self, text: &str) -> Result<Vec<usize>, ScaleError> {
        let meant = |(kind, name): &(String, String)| {
            name == text || text.strip_prefix(kind.as_str()).and_then(|rest| rest.strip_prefix(':')) == Some(name)
        };
        let numbers: Vec<usize> = (0..self.names.len()).filter(|number| meant(&self.names[*number])).collect();
        if numbers.is_empty() {
            let known = self.booked.as_ref().map_or_else(String::new, |booked| booked.sources().join(", "));
            return Err(ScaleError::UnknownSource { name: text.to_owned(), known });
        }
        Ok(numbers)
    }
}

/// Sources by kind and name, numbered as they come.
#[derive(Default)]
struct Names {
    list: Vec<(String, String)>,
    numbers: HashMap<(String, String), u32>,
}

impl Names {
    fn number(&mut self, kind: &str, name: &str) -> u32 {
        let key = (kind.to_owned(), name.to_owned());
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(key.clone());
        self.numbers.insert(key, number);
        number
    }

    /// What each is called in an answer: its name, with its kind in front where another kind has the same one.
    fn shown(&self) -> Vec<String> {
        let alone = |name: &String| self.list.iter().filter(|(_, other)| other == name).count() == 1;
        let shown = |(kind, name): &(String, String)| if alone(name) { name.clone() } else { format!("{kind}:{name}") };
        self.list.iter().map(shown).collect()
    }
}

/// What was recorded on one CPU.
#[derive(Default)]
struct Cpu {
    detours: Vec<(Nanos, Nanos)>,
    entries: Vec<Entry>,
}

/// The detours of the document's CPUs, in order of time.
fn read_detours(bundle: &Bundle, doc: &NodeDoc) -> anyhow::Result<BTreeMap<i32, Cpu>> {
    let numbers = doc.cpus.iter().filter_map(|cpu| i32::try_from(cpu.cpu.get()).ok());
    let mut cpus: BTreeMap<i32, Cpu> = numbers.map(|number| (number, Cpu::default())).collect();
    for batch in bundle.detours(&doc.node)? {
        let batch = batch?;
        for ((cpu, start), duration) in batch.cpus().iter().zip(batch.starts()).zip(batch.durations()) {
            if let Some(cpu) = cpus.get_mut(cpu) {
                cpu.detours.push((Nanos::new(*start), Nanos::new(*duration)));
            }
        }
    }
    Ok(cpus)
}

/// Adds the books. Says whether there are any, or nothing that they would be about.
fn read_books(
    bundle: &Bundle,
    doc: &NodeDoc,
    cpus: &mut BTreeMap<i32, Cpu>,
    names: &mut Names,
) -> anyhow::Result<bool> {
    let mut any = cpus.values().all(|cpu| cpu.detours.is_empty());
    for batch in bundle.activities(&doc.node)? {
        let batch = batch?;
        let (kinds, values) = (batch.kind_values(), batch.source_values());
        let mut numbers: Vec<Option<u32>> = vec![None; kinds.len() * values.len()];
        for row in 0..batch.len() {
            let Some(cpu) = cpus.get_mut(&batch.cpus()[row]) else { continue };
            let (kind, key) = (batch.kind_key(row), batch.source_key(row));
            let number = || names.number(kinds[kind].name(), values[key]);
            let source = *numbers[kind * values.len() + key].get_or_insert_with(number);
            let detour = usize::try_from(batch.detours()[row]).unwrap_or(usize::MAX);
            cpu.entries.push(Entry { detour, source, self_time: Nanos::new(batch.self_times()[row]) });
            any = true;
        }
    }
    Ok(any)
}

/// When all loops of a node ran: its begin and its length. Ranks of a node replay its CPUs side by side, so that what one
/// CPU alone was watched for is left out.
fn window(doc: &NodeDoc, cpus: &BTreeMap<i32, Cpu>, warnings: &mut Vec<Warning>) -> (Nanos, Nanos) {
    let begin = doc.cpus.iter().map(|cpu| cpu.start_ns).max().unwrap_or(Nanos::ZERO);
    let ends = doc.cpus.iter().map(|cpu| cpu.start_ns.checked_add(cpu.duration_ns).unwrap_or(Nanos::MAX));
    let end = if doc.ended.is_some() {
        ends.min()
    } else {
        warnings.push(Warning {
            code: "not_ended".to_owned(),
            message: format!("the recording of node {} did not end: it is used up to its last detour", doc.node),
            advice: "record again for a prediction that matters".to_owned(),
        });
        let last = cpus.values().filter_map(|cpu| cpu.detours.last());
        last.map(|(start, duration)| start.checked_add(*duration).unwrap_or(Nanos::MAX)).max()
    };
    let end = end.unwrap_or(Nanos::ZERO);
    let longest = doc.cpus.iter().map(|cpu| cpu.duration_ns).max().unwrap_or(Nanos::ZERO);
    let length = end.checked_sub(begin).unwrap_or(Nanos::ZERO);
    if doc.ended.is_some() && length.as_secs_f64() < 0.99 * longest.as_secs_f64() {
        warnings.push(Warning {
            code: "cut_to_common".to_owned(),
            message: format!(
                "node {}: its CPUs were watched for up to {longest}, but all of them together only for {length}, which is \
                 used",
                doc.node
            ),
            advice: "choose CPUs that were watched to the end with --cpus".to_owned(),
        });
    }
    (begin, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_told_from_paths() {
        let spec: NoiseArg = "periodic:interval=1ms,detour=50us".parse().unwrap();
        assert!(matches!(spec, NoiseArg::Spec(NoiseSpec::Periodic { .. })));
        for path in ["quiet", "a/b:c.becalm", "periodic"] {
            assert_eq!(path.parse(), Ok(NoiseArg::Run(PathBuf::from(path))));
        }
        for wrong in ["periodc:interval=1ms,detour=5us", "poisson:", "poisson:rate=1,detour=5us"] {
            assert!(wrong.parse::<NoiseArg>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_name_of_two_kinds_is_told_apart() {
        let mut names = Names::default();
        let numbers = [("irq", "timer"), ("softirq", "timer"), ("task", "a:b"), ("irq", "timer")];
        assert_eq!(numbers.map(|(kind, name)| names.number(kind, name)), [0, 1, 2, 0]);
        assert_eq!(names.shown(), ["irq:timer", "softirq:timer", "a:b"]);
        let mut source = Source::of_spec(&"poisson:rate=10Hz,detour=5us".parse().unwrap(), 1).unwrap();
        source.names = names.list;
        for (text, meant) in
            [("timer", vec![0, 1]), ("softirq:timer", vec![1]), ("a:b", vec![2]), ("task:a:b", vec![2])]
        {
            assert_eq!(source.numbers_of(text), Ok(meant), "{text}");
        }
        assert!(source.numbers_of("task:timer").is_err());
    }

    #[test]
    fn a_formula_of_nothing_but_noise_is_wrong_usage() {
        let spec = "periodic:interval=1ms,detour=1ms".parse().unwrap();
        let error = Source::of_spec(&spec, 1).err().unwrap();
        assert!(error.is::<UsageError>() && error.to_string().contains("100 %"), "{error}");
    }
}
