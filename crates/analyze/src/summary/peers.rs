//! CPUs of a node, and nodes of a run, compared with each other.

use super::nodes::NodeNoise;
use super::{CpuSummary, OutlierSummary, PeersSummary};
use becalm_stats::Interval;
use becalm_stats::outliers::{Outlier, TooFewPeers, outliers};
use becalm_units::CpuId;

/// The compared peers and the outliers.
#[derive(Default)]
pub(super) struct Peers {
    pub(super) outliers: Vec<OutlierSummary>,
    pub(super) compared: Vec<PeersSummary>,
    nodes: Vec<(String, (f64, Interval))>,
}

impl Peers {
    pub(super) fn compare_cpus(&mut self, node: &str, cpus: &[CpuSummary]) {
        let known: Vec<(CpuId, (f64, Interval))> = cpus
            .iter()
            .filter_map(|cpu| Some((cpu.cpu, cpu.figures.noise_ratio().zip(cpu.figures.interval)?)))
            .collect();
        let ratios: Vec<(f64, Interval)> = known.iter().map(|cpu| cpu.1).collect();
        let found = outliers(&ratios);
        self.note(Some(node.to_owned()), &ratios, &found);
        for outlier in found.into_iter().flatten() {
            self.outliers.push(OutlierSummary { node: node.to_owned(), cpu: Some(known[outlier.place].0), outlier });
        }
    }

    /// Keeps a node for the comparison with the others.
    pub(super) fn add_node(&mut self, node: &str, noise: NodeNoise) {
        self.nodes.push((node.to_owned(), (noise.ratio, noise.interval)));
    }

    /// Compares the nodes, if there are several.
    pub(super) fn compare_nodes(mut self) -> Self {
        if self.nodes.len() > 1 {
            let ratios: Vec<(f64, Interval)> = self.nodes.iter().map(|node| node.1).collect();
            let found = outliers(&ratios);
            self.note(None, &ratios, &found);
            for outlier in found.into_iter().flatten() {
                let node = self.nodes[outlier.place].0.clone();
                self.outliers.push(OutlierSummary { node, cpu: None, outlier });
            }
        }
        self
    }

    fn note(&mut self, node: Option<String>, ratios: &[(f64, Interval)], found: &Result<Vec<Outlier>, TooFewPeers>) {
        let compared = match found {
            Err(TooFewPeers { compared }) => *compared,
            Ok(_) => ratios.iter().filter(|(_, interval)| interval.low().is_some_and(|low| low > 0.0)).count(),
        };
        self.compared.push(PeersSummary { node, compared, enough: found.is_ok() });
    }
}
