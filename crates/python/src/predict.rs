//! `becalm.predict`.

use becalm_analyze::noise::NoiseInput;
use becalm_answer::network::network;
use becalm_answer::noise::NoiseList;
use becalm_answer::predict::{AskedNoise, PredictQuestion};
use becalm_scale::Alignment;
use becalm_scale::collective::Collective;
use pyo3::prelude::*;

use crate::caller::{self, Answer};
use crate::detours::GivenDetours;
use crate::error::usage;
use crate::values;

/// A noise: a text for one or several, or detours in arrays.
#[derive(FromPyObject)]
pub enum Noise {
    /// A run, a formula, or both.
    Named(String),
    /// Detours in memory.
    Given(GivenDetours),
}

/// The options of `becalm predict`, by their names in Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct PredictOptions {
    node: Option<String>,
    cpus: Option<Vec<u32>>,
    with_self: bool,
    ranks: Vec<u64>,
    grains_ns: Vec<i64>,
    phases: u64,
    collectives: Vec<String>,
    network: String,
    payloads: Vec<u64>,
    ranks_per_node: Option<u64>,
    independent: bool,
    as_recorded: bool,
    sync: Option<String>,
    coalesce_ns: Vec<i64>,
    without: Vec<String>,
    blame: bool,
    tolerate: Option<f64>,
    node_hours: Option<f64>,
    seed: u64,
    replicas: u64,
    allow_long: bool,
}

impl PredictOptions {
    fn alignment(&self) -> PyResult<Alignment> {
        match (self.as_recorded, self.independent, &self.sync) {
            (true, true, _) | (true, _, Some(_)) => {
                Err(usage("as_recorded=True cannot be used with independent= or sync=: leave one of them out"))
            }
            (true, ..) => Ok(Alignment::Recording),
            (_, true, _) => Ok(Alignment::Independent),
            _ => Ok(Alignment::Node),
        }
    }

    fn synchronized(&self) -> PyResult<&'static [bool]> {
        match self.sync.as_deref() {
            None => Ok(&[false]),
            Some("yes") => Ok(&[true]),
            Some("both") => Ok(&[false, true]),
            Some(other) => Err(usage(format!("sync cannot be '{other}': it is 'yes' or 'both'"))),
        }
    }

    /// Creates the question about these noises.
    fn question(self, noises: Vec<(String, AskedNoise)>) -> PyResult<PredictQuestion> {
        if noises.is_empty() || self.grains_ns.is_empty() || self.collectives.is_empty() {
            return Err(usage("a prediction needs a noise, a grain and a collective"));
        }
        if self.payloads.is_empty() || self.coalesce_ns.is_empty() {
            return Err(usage("a prediction needs a number of bytes and a window, which may be 0"));
        }
        if !(1..=100_000).contains(&self.replicas) {
            return Err(usage(format!("a job is replayed 1 to 100000 times, and not {}", self.replicas)));
        }
        if self.ranks_per_node == Some(0) {
            return Err(usage("a node has at least one rank"));
        }
        if let Some(hours) = self.node_hours.filter(|hours| !(0.0..=1e15).contains(hours)) {
            return Err(usage(format!("'{hours}' is no number of node-hours: write one up to 1e15")));
        }
        let collective = |text: &String| values::parsed::<Collective>(text);
        Ok(PredictQuestion {
            noises,
            alignment: self.alignment()?,
            synchronized: self.synchronized()?,
            selection: values::selection(self.node, self.cpus, self.with_self)?,
            ranks: self.ranks,
            grains: values::times(self.grains_ns),
            phases: self.phases,
            collectives: self.collectives.iter().map(collective).collect::<PyResult<_>>()?,
            network: network(&self.network).map_err(usage)?,
            bytes: self.payloads,
            ranks_per_node: self.ranks_per_node,
            coalesced: values::times(self.coalesce_ns),
            without: self.without,
            blame: self.blame,
            tolerated: self.tolerate.map(values::tolerated).transpose()?,
            node_hours: self.node_hours,
            seed: self.seed,
            replicas: self.replicas,
            allow_long: self.allow_long,
        })
    }
}

/// The equivalent of `becalm predict --json`, also for detours in memory.
#[pyfunction]
#[pyo3(signature = (noises, options))]
pub fn predict(py: Python<'_>, noises: Vec<Noise>, options: PredictOptions) -> PyResult<Answer> {
    let mut asked = Vec::new();
    for noise in noises {
        match noise {
            Noise::Named(text) => {
                let list: NoiseList = values::parsed(&text)?;
                asked.extend(list.0.into_iter().map(|(text, noise)| (text, AskedNoise::Named(noise))));
            }
            Noise::Given(detours) => {
                let input: NoiseInput = detours.noise(py)?;
                asked.push((input.name.clone(), AskedNoise::Given(Box::new(input))));
            }
        }
    }
    let question = options.question(asked)?;
    caller::ask(py, |caller| {
        question.check()?;
        question.answer(caller)
    })
}
