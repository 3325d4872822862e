//! The noise that a job draws from: the traces of CPUs, and which ranks replay them at a common offset.

mod trace;

use becalm_units::Nanos;

pub(crate) use trace::MetDetours;
pub use trace::{LENGTH_LIMIT, NoiseTrace, TraceError};

/// The CPUs of one node, recorded together: their circles have one length and one origin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeNoise {
    name: String,
    cpus: Vec<NoiseTrace>,
}

impl NodeNoise {
    /// From the traces of its CPUs, in the order of rank placement.
    pub fn new(name: impl Into<String>, cpus: Vec<NoiseTrace>) -> Result<Self, TraceError> {
        let name = name.into();
        let first = cpus.first().ok_or(TraceError::NoTraces)?.length();
        if let Some(other) = cpus.iter().map(NoiseTrace::length).find(|length| *length != first) {
            return Err(TraceError::Lengths { node: name, first, other });
        }
        Ok(Self { name, cpus })
    }

    /// The name of the node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The traces of its CPUs.
    pub fn cpus(&self) -> &[NoiseTrace] {
        &self.cpus
    }
}

/// Which ranks of a job replay their CPUs at a common offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alignment {
    /// None: every rank draws a CPU and an offset of its own.
    Independent,
    /// Those of a node replay the CPUs of a recorded node simultaneously; each node has its own offset.
    Node,
    /// Those of as many nodes as were recorded replay all of them simultaneously; a larger job has several copies of the recording, each with its own
    /// offset.
    Recording,
}

/// The noise that a job's ranks draw from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Noise {
    nodes: Vec<NodeNoise>,
    together: bool,
    alignment: Alignment,
    /// If set, ranks only start at multiples of this time: the windows of coalesced noise.
    windows: Option<Nanos>,
}

impl Noise {
    /// Nodes as recorded: ranks that share a node replay its CPUs at one common offset.
    pub fn recorded(nodes: Vec<NodeNoise>) -> Result<Self, TraceError> {
        if nodes.is_empty() {
            Err(TraceError::NoTraces)
        } else {
            Ok(Self { nodes, together: true, alignment: Alignment::Node, windows: None })
        }
    }

    /// One trace without any CPUs, such as a formula's: every rank has its own offset, however many share a node.
    pub fn apart(name: impl Into<String>, trace: NoiseTrace) -> Self {
        let nodes = vec![NodeNoise { name: name.into(), cpus: vec![trace] }];
        Self { nodes, together: false, alignment: Alignment::Independent, windows: None }
    }

    /// Aligns other ranks at a common offset. A trace without any CPUs stays as it is. Fails for nodes with recordings of different lengths if all
    /// are to be simultaneous.
    pub fn aligned(self, alignment: Alignment) -> Result<Self, TraceError> {
        let first = self.nodes[0].cpus[0].length();
        let other = self.nodes.iter().find(|node| node.cpus[0].length() != first);
        if let (Alignment::Recording, Some(node)) = (alignment, other) {
            return Err(TraceError::Lengths { node: node.name.clone(), first, other: node.cpus[0].length() });
        }
        Ok(if self.together { Self { alignment, ..self } } else { self })
    }

    /// Cuts the circles of all nodes to one length, each starting `later` after its old start. Fails for a length of 0, or if a CPU has only noise in
    /// it. Panics without a time for each node.
    pub fn cut(&self, later: &[Nanos], length: Nanos) -> Result<Self, TraceError> {
        assert_eq!(later.len(), self.nodes.len(), "each node has a time from which it is cut");
        let cut = |(node, later): (&NodeNoise, &Nanos)| {
            let cpus: Result<Vec<_>, _> = node.cpus.iter().map(|cpu| cpu.cut(*later, length)).collect();
            NodeNoise::new(node.name.clone(), cpus?)
        };
        let nodes: Result<Vec<_>, _> = self.nodes.iter().zip(later).map(cut).collect();
        Ok(Self { nodes: nodes?, ..*self })
    }

    /// Which ranks replay their CPUs at a common offset.
    pub fn alignment(&self) -> Alignment {
        self.alignment
    }

    /// The default number of ranks per node: one per CPU of the node with the fewest; 1 if ranks are independent.
    pub fn ranks_per_node(&self) -> u64 {
        let fewest = self.nodes.iter().map(|node| node.cpus.len()).min().unwrap_or(1) as u64;
        if self.alignment == Alignment::Independent { 1 } else { fewest }
    }

    /// Removes all longer detours.
    pub fn no_longer_than(&self, longest: Nanos) -> Result<Self, TraceError> {
        self.with_traces(self.windows, |trace| {
            NoiseTrace::new(trace.length(), trace.detours().filter(|(_, duration)| *duration <= longest))
        })
    }

    /// Cuts longer detours to a length, from their end.
    pub(crate) fn cut_to(&self, longest: Nanos) -> Result<Self, TraceError> {
        self.with_traces(self.windows, |trace| {
            let detours = trace.detours().map(|(start, duration)| (start, duration.min(longest)));
            NoiseTrace::new(trace.length(), detours)
        })
    }

    /// The noise with other traces of the same CPUs; with `windows`, ranks only start at multiples of that.
    pub(crate) fn with_traces(
        &self,
        windows: Option<Nanos>,
        made: impl Fn(&NoiseTrace) -> Result<NoiseTrace, TraceError>,
    ) -> Result<Self, TraceError> {
        let node =
            |node: &NodeNoise| NodeNoise::new(node.name(), node.cpus.iter().map(&made).collect::<Result<_, _>>()?);
        let nodes = self.nodes.iter().map(node).collect::<Result<_, _>>()?;
        Ok(Self { nodes, windows, ..*self })
    }

    /// The windows of coalesced noise: ranks start at multiples of this, so their windows end together.
    pub const fn windows(&self) -> Option<Nanos> {
        self.windows
    }

    /// The noise of each node.
    pub fn nodes(&self) -> &[NodeNoise] {
        &self.nodes
    }

    /// Whether the CPUs of a node were recorded together.
    pub fn together(&self) -> bool {
        self.together
    }

    /// The traces of all CPUs of all nodes.
    pub fn traces(&self) -> impl Iterator<Item = &NoiseTrace> + '_ {
        self.nodes.iter().flat_map(|node| &node.cpus)
    }

    /// The share of time in detours over all traces, each weighted by its length.
    pub fn noise_ratio(&self) -> f64 {
        let (noise, length) = self.traces().fold((0_i128, 0_i128), |(noise, length), trace| {
            (noise + i128::from(trace.noise().get()), length + i128::from(trace.length().get()))
        });
        noise as f64 / length as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(length: i64, detours: &[(i64, i64)]) -> Result<NoiseTrace, TraceError> {
        NoiseTrace::new(Nanos::new(length), detours.iter().map(|(s, d)| (Nanos::new(*s), Nanos::new(*d))))
    }

    #[test]
    fn a_part_of_a_circle_has_what_goes_over_its_end_at_its_beginning() {
        let circle = trace(100, &[(20, 5), (95, 15)]).unwrap();
        assert_eq!(circle.cut(Nanos::new(2), Nanos::new(20)).unwrap(), trace(20, &[(0, 8), (18, 2)]).unwrap());
        let node = |name: &str| NodeNoise::new(name, vec![circle.clone()]).unwrap();
        let noise = Noise::recorded(vec![node("a"), node("b")]).unwrap();
        let cut = noise.cut(&[Nanos::new(2), Nanos::new(12)], Nanos::new(20)).unwrap();
        assert_eq!(cut.nodes()[1].cpus()[0], trace(20, &[(8, 5)]).unwrap());
    }

    #[test]
    fn nodes_at_one_time_have_one_length() {
        let node = |length: i64, cpus: usize| {
            NodeNoise::new("n", vec![NoiseTrace::silent(Nanos::new(length)).unwrap(); cpus]).unwrap()
        };
        let noise = |lengths: [i64; 2]| Noise::recorded(vec![node(lengths[0], 3), node(lengths[1], 2)]).unwrap();
        assert!(noise([10, 11]).aligned(Alignment::Recording).is_err());
        assert_eq!(noise([10, 10]).aligned(Alignment::Recording).unwrap().ranks_per_node(), 2);
        assert_eq!(noise([10, 11]).ranks_per_node(), 2);
        assert_eq!(noise([10, 11]).aligned(Alignment::Independent).unwrap().ranks_per_node(), 1);
    }
}
