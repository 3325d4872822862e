//! Resamples a recording in blocks of time: each node gets a random weight, and so does each of its blocks.
//!
//! The detours of all CPUs of a node in a block stay together, because they may have a common cause. CPUs are not resampled: another recording of the
//! machine would have the same ones.
//!
//! Blocks are as long as the memory of the noise, because bursts of a second must not be resampled in independent tenths of a second. The rule for
//! their length is that of the noise ratio's interval ([`becalm_stats::blocks`]), applied to the time that phases lose to delays below the threshold.
//! A few blocks scatter less than the process they come from, and their scatter is poorly known. So the weights vary more if there are fewer blocks:
//! the mean of independent blocks gets the interval of Student's t.

use becalm_stats::{CONFIDENCE, ROUGH_BLOCKS_MIN, blocks, student_quantile};

use super::cells::{CellDistribution, middle};
use crate::random::Stream;

/// Approximate number of blocks, over all nodes.
const BLOCKS: usize = 256;

/// Maximum number of blocks per node.
const NODE_BLOCKS: usize = 64;

/// Minimum number of blocks, however long the memory of the noise.
const LEAST_BLOCKS: usize = ROUGH_BLOCKS_MIN;

/// The standard normal quantile exceeded with 2.5 %, matching [`CONFIDENCE`].
const NORMAL: f64 = 1.959_964;

#[derive(Clone, Debug)]
pub(super) struct Blocks {
    nodes: usize,
    /// Per node.
    count: usize,
    /// The shape of their weights' distribution; see [`weight_shape`].
    shape: f64,
    /// The cells of each block, by node and time. Together they have probability 1, except for units without any delay.
    cells: Vec<Vec<f64>>,
    /// The share of units and time in each block.
    share: Vec<f64>,
    /// The longest delays.
    extremes: Vec<BlockExtreme>,
}

/// One of the longest delays.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockExtreme {
    pub(super) block: usize,
    /// Its rate per nanosecond of one unit.
    pub(super) rate: f64,
}

impl Blocks {
    /// From sampled phases; `extremes` gives each of the longest detours with its node, and the block within the node.
    pub(super) fn new(
        nodes: &[NodeBlocks],
        phases: f64,
        extremes: impl Iterator<Item = (usize, BlockExtreme)>,
    ) -> Self {
        let count = nodes.first().map_or(1, |node| node.cells.len());
        let cpus: u64 = nodes.iter().map(|node| node.cpus).sum();
        let cells = nodes.iter().flat_map(|node| &node.cells);
        let cells = cells.map(|cells| cells.iter().map(|cell| cell / phases).collect());
        let share = |node: &NodeBlocks| vec![node.cpus as f64 / (cpus.max(1) * count as u64) as f64; count];
        Self {
            nodes: nodes.len(),
            count,
            shape: weight_shape(count),
            cells: cells.collect(),
            share: nodes.iter().flat_map(share).collect(),
            extremes: extremes.map(|(node, one)| BlockExtreme { block: node * count + one.block, ..one }).collect(),
        }
    }

    /// Uses blocks as long as the memory of the noise, measured by what phases lose to delays up to `most` nanoseconds.
    pub(super) fn for_memory_length(self, most: f64) -> Self {
        let lost = |cells: &Vec<f64>| cells.iter().enumerate().map(|(at, mass)| mass * middle(at).min(most)).sum();
        let lost: Vec<f64> = self.cells.iter().map(lost).collect();
        let remembered = |node: &[f64]| blocks(node).map_or_else(|needed| needed, |blocks| blocks.length) as f64;
        let length = lost.chunks(self.count).map(remembered).sum::<f64>() / self.nodes as f64;
        let count = (self.count as f64 / length).round() as usize;
        self.joined(count)
    }

    /// Merges consecutive blocks to this many per node, but at least [`LEAST_BLOCKS`].
    fn joined(self, count: usize) -> Self {
        let least = LEAST_BLOCKS.min(self.count);
        let count = count.clamp(least, self.count);
        let joined = |block: usize| block / self.count * count + block % self.count * count / self.count;
        let mut cells = vec![Vec::new(); self.nodes * count];
        let mut share = vec![0.0; self.nodes * count];
        for (block, (more, held)) in self.cells.iter().zip(&self.share).enumerate() {
            share[joined(block)] += held;
            let cells: &mut Vec<f64> = &mut cells[joined(block)];
            cells.resize(cells.len().max(more.len()), 0.0);
            cells.iter_mut().zip(more).for_each(|(mass, more)| *mass += more);
        }
        let extremes = self.extremes.iter().map(|one| BlockExtreme { block: joined(one.block), ..*one }).collect();
        Self { count, shape: weight_shape(count), cells, share, extremes, ..self }
    }

    /// A random weight for each block, with mean 1.
    pub(super) fn weights(&self, stream: &mut Stream) -> Vec<f64> {
        let mut weights = Vec::with_capacity(self.cells.len());
        for _ in 0..self.nodes {
            let node = if self.nodes > 1 { stream.exponential() } else { 1.0 };
            let own: Vec<f64> = (0..self.count).map(|_| stream.gamma(self.shape)).collect();
            let scale = node * self.count as f64 / own.iter().sum::<f64>();
            weights.extend(own.iter().map(|weight| weight * scale));
        }
        let mean: f64 = weights.iter().zip(&self.share).map(|(weight, share)| weight * share).sum();
        weights.iter().map(|weight| weight / mean).collect()
    }

    /// The distribution of one unit's delay with these weights.
    pub(super) fn drawn(&self, weights: &[f64]) -> CellDistribution {
        let reach = self.cells.iter().map(Vec::len).max().unwrap_or(0);
        let mut sum = vec![0.0; reach];
        for (cells, weight) in self.cells.iter().zip(weights) {
            sum.iter_mut().zip(cells).for_each(|(sum, mass)| *sum += weight * mass);
        }
        CellDistribution(sum)
    }

    pub(super) fn all(&self) -> CellDistribution {
        self.drawn(&vec![1.0; self.cells.len()])
    }

    /// The rate of the `count` longest delays together, per nanosecond of one unit.
    pub(super) fn rate(&self, count: usize, weights: Option<&[f64]>) -> f64 {
        let weighted = |one: &BlockExtreme| weights.map_or(1.0, |weights| weights[one.block]) * one.rate;
        self.extremes[..count.min(self.extremes.len())].iter().map(weighted).sum()
    }
}

/// The shape of the gamma distribution of `blocks` weights, which are divided by their mean. The weighted mean of m values then has the variance S /
/// (m (m shape + 1)), with S the sum of their squares about the mean; that of Student's t, with quantile t for a normal one of z, is S / (m (m - 1))
/// (t/z)^2.
fn weight_shape(blocks: usize) -> f64 {
    let m = blocks as f64;
    if blocks < LEAST_BLOCKS {
        return 1.0;
    }
    let beyond = (1.0 - CONFIDENCE) / 2.0;
    let wider = student_quantile(beyond, m - 1.0) / NORMAL;
    ((m - 1.0) / (wider * wider) - 1.0) / m
}

/// Sampled phases of the CPUs of one node, by the block of time of their start.
#[derive(Clone, Debug)]
pub(super) struct NodeBlocks {
    /// The number of phases per cell of lateness.
    cells: Vec<Vec<f64>>,
    pub(super) cpus: u64,
}

impl NodeBlocks {
    pub(super) fn new() -> Self {
        Self { cells: vec![Vec::new(); NODE_BLOCKS], cpus: 0 }
    }

    /// The block of a relative time, 0 to 1.
    pub(super) fn block(&self, at: f64) -> usize {
        ((at.clamp(0.0, 1.0) * self.cells.len() as f64) as usize).min(self.cells.len() - 1)
    }

    /// Counts phases that start at a relative time.
    pub(super) fn add(&mut self, at: f64, cell: usize, phases: f64) {
        let block = self.block(at);
        let cells = &mut self.cells[block];
        if cell >= cells.len() {
            cells.resize(cell + 1, 0.0);
        }
        cells[cell] += phases;
    }

    /// Merges pairs of consecutive blocks until all nodes together have few enough, the same number in each.
    pub(super) fn fold(nodes: &mut [Self]) {
        let most = (BLOCKS / nodes.len().max(1)).clamp(1, NODE_BLOCKS);
        for node in nodes {
            while node.cells.len() > most.next_power_of_two() {
                let pairs = node.cells.chunks(2).map(|pair| {
                    let mut sum = vec![0.0; pair.iter().map(Vec::len).max().unwrap_or(0)];
                    pair.iter()
                        .flat_map(|cells| cells.iter().enumerate())
                        .for_each(|(cell, phases)| sum[cell] += phases);
                    sum
                });
                node.cells = pairs.collect();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    /// Two nodes, of one and of three CPUs, in blocks that all differ.
    fn two_nodes() -> Blocks {
        let mut nodes = [NodeBlocks::new(), NodeBlocks::new()];
        for (number, node) in nodes.iter_mut().enumerate() {
            node.cpus = [1, 3][number];
            for block in 0..NODE_BLOCKS {
                node.add((block as f64 + 0.5) / NODE_BLOCKS as f64, block % 7 + number, 1.0 + block as f64);
            }
        }
        Blocks::new(
            &nodes,
            10_000.0,
            [(0, 0, 1e-9), (1, 63, 2e-9)].map(|(node, block, rate)| (node, BlockExtreme { block, rate })).into_iter(),
        )
    }

    #[test]
    fn joined_blocks_hold_what_those_held_that_became_one() {
        let blocks = two_nodes();
        for (wanted, count) in [(64, 64), (100, 64), (23, 23), (8, 8), (0, 8)] {
            let joined = blocks.clone().joined(wanted);
            assert_eq!((joined.count, joined.cells.len()), (count, 2 * count));
            let same = |a: f64, b: f64| (a - b).abs() < 1e-12;
            assert!(joined.all().0.iter().zip(&blocks.all().0).all(|(a, b)| same(*a, *b)));
            assert!(same(joined.share.iter().sum(), 1.0) && same(joined.rate(2, None), 3e-9));
            assert_eq!(joined.extremes[0].block, 0);
            assert_eq!(joined.extremes[1].block, 2 * count - 1);
        }
    }

    /// A weighted mean of this few blocks scatters more than a normal mean, as much as Student's t.
    #[test]
    fn few_blocks_scatter_as_students_t_has_it() {
        let mut stream = Stream::new(5, Purpose::Recording, 0);
        for (count, students) in [(8_usize, 2.364_6), (16, 2.131_4), (64, 1.998_3)] {
            let values: Vec<f64> = (0..count).map(|at| (at * at % 11) as f64).collect();
            let mean = values.iter().sum::<f64>() / count as f64;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1) as f64;
            let shape = weight_shape(count);
            let drawn: Vec<f64> = (0..40_000)
                .map(|_| {
                    let weights: Vec<f64> = (0..count).map(|_| stream.gamma(shape)).collect();
                    let sum: f64 = weights.iter().zip(&values).map(|(weight, value)| weight * value).sum();
                    sum / weights.iter().sum::<f64>() - mean
                })
                .collect();
            let scatter = drawn.iter().map(|off| off * off).sum::<f64>() / drawn.len() as f64;
            let expected = variance / count as f64 * (students / NORMAL).powi(2);
            assert!((scatter / expected - 1.0).abs() < 0.05, "{count}: {scatter} {expected}");
        }
    }
}
