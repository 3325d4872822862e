//! The noise of the nodes over time: a map of nodes and time, and the moments of each source by the wall clock, from the slots of the summary form.

use std::collections::BTreeMap;

use becalm_model::digest::{DigestDoc, SlotSet};
use becalm_model::node::{NodeDoc, Rung};
use becalm_units::{Nanos, counted};

use crate::survey::{Problem, SourceName};
use crate::together::{Moments, NODES, NODES_MIN, SLOTS_MIN, Together, strikes};

/// The columns of the map.
pub const COLUMNS: usize = 48;

/// The number of nodes whose moments are kept; not all of them will have been watched all the time.
const CANDIDATES: usize = 4 * NODES;

/// The noise of each node in equal parts of the time when most nodes were watched.
#[derive(Clone, Debug)]
pub struct Heat {
    /// The start of the first column, in nanoseconds since 1970 by the wall clock.
    pub begin_ns: i64,
    /// The length of a column, in nanoseconds.
    pub column_ns: i64,
    /// The noise of each of [`Fleet::nodes`](crate::Fleet::nodes) in each column, in the same order: the share of the watched CPUs' time that was
    /// lost, from 0 on; a detour counts where it occurred, at the resolution of slots.
    pub rows: Vec<Vec<f64>>,
}

/// A period, in nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    pub(super) begin: i64,
    pub(super) end: i64,
}

impl Window {
    pub(super) const fn length(self) -> i64 {
        self.end.saturating_sub(self.begin)
    }

    /// The period of a node's loops, by its wall clock; if that is unknown, since its own origin.
    pub(super) fn from_document(doc: &NodeDoc) -> Option<Self> {
        let origin = i64::try_from(doc.origin_ns()).unwrap_or(0);
        let begin = doc.cpus.iter().map(|cpu| cpu.start_ns.get()).min()?;
        let end = doc.cpus.iter().map(|cpu| cpu.start_ns.get().saturating_add(cpu.duration_ns.get())).max()?;
        (end > begin).then(|| Self { begin: origin.saturating_add(begin), end: origin.saturating_add(end) })
    }
}

/// Two periods: in one, most nodes were watched at some time; in the other, nearly all were watched all the time. Up to one node in ten may have a
/// wrong clock, or have died, without affecting either.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    pub(super) most: Window,
    common: Window,
}

impl Windows {
    pub(super) fn new(windows: impl Iterator<Item = Window>) -> Self {
        let (mut begins, mut ends): (Vec<i64>, Vec<i64>) = windows.map(|window| (window.begin, window.end)).unzip();
        begins.sort_unstable();
        ends.sort_unstable();
        let at = |values: &[i64], tenth: usize| {
            values.get(values.len().saturating_sub(1) * tenth / 10).copied().unwrap_or(0)
        };
        Self {
            most: Window { begin: at(&begins, 1), end: at(&ends, 9) },
            common: Window { begin: at(&begins, 9), end: at(&ends, 1) },
        }
    }

    /// Whether a node was never watched while most were.
    pub(super) const fn misses(&self, window: Window) -> bool {
        window.end <= self.most.begin || window.begin >= self.most.end
    }
}

/// The noise of a node in its slots.
struct SlotNoise {
    slot_ns: i64,
    first_slot: i64,
    cpus: usize,
    /// The sum over all CPUs, in nanoseconds; a column of the map needs three digits.
    noise: Vec<f32>,
}

impl SlotNoise {
    /// The share of time lost in each column of a window.
    fn row(&self, window: Window) -> Vec<f64> {
        let column = window.length() as f64 / COLUMNS as f64;
        let mut lost = vec![0.0; COLUMNS];
        for (at, noise) in self.noise.iter().enumerate() {
            let begin = (self.first_slot.saturating_add(at as i64)).saturating_mul(self.slot_ns);
            // In columns; a slot across several columns contributes its part to each.
            let from = begin.saturating_sub(window.begin) as f64 / column;
            let to = from + self.slot_ns as f64 / column;
            for (number, lost) in lost.iter_mut().enumerate().skip(from.max(0.0) as usize) {
                let (left, right) = (from.max(number as f64), to.min(number as f64 + 1.0));
                if number as f64 >= to {
                    break;
                }
                *lost += f64::from(*noise) * (right - left).max(0.0) / (to - from);
            }
        }
        let time = self.cpus as f64 * column;
        lost.into_iter().map(|lost| lost / time.max(1.0)).collect()
    }
}

/// A node whose sources may be tested for simultaneous noise.
struct Candidate {
    node: String,
    window: Window,
    /// The stated error of its wall clock, in nanoseconds.
    clock_error: Option<i64>,
    slot_ns: i64,
    first_slot: i64,
    slots: usize,
    moments: Vec<(SourceName, SlotSet)>,
}

/// The data read from the nodes so far.
#[derive(Default)]
pub(super) struct Gathered {
    noise: BTreeMap<String, SlotNoise>,
    candidates: Vec<Candidate>,
}

impl Gathered {
    /// Keeps the data of a node needed later.
    pub(super) fn take(&mut self, digest: &DigestDoc) {
        let mut noise = vec![0.0_f32; digest.slots];
        for cpu in &digest.cpus {
            noise.iter_mut().zip(&cpu.noise_ns).for_each(|(sum, ns)| *sum += *ns as f32);
        }
        // Without a start on the wall clock it cannot be placed among other nodes.
        if digest.run.origin.is_none() {
            return;
        }
        let noise_of_slots =
            SlotNoise { slot_ns: digest.slot_ns, first_slot: digest.first_slot, cpus: digest.cpus.len(), noise };
        self.noise.insert(digest.run.node.clone(), noise_of_slots);
        if let (Rung::Tracepoints, Some(window)) = (digest.run.rung, Window::from_document(&digest.run))
            && self.candidates.len() < CANDIDATES
        {
            let moments = digest.moments.iter().map(|moments| ((moments.kind, moments.source.clone()), moments.slots));
            self.candidates.push(Candidate {
                node: digest.run.node.clone(),
                window,
                clock_error: digest.run.clock.wall_error_ns.map(|error| error.get().max(0)),
                slot_ns: digest.slot_ns,
                first_slot: digest.first_slot,
                slots: digest.slots,
                moments: moments.collect(),
            });
        }
    }

    /// The map in the order of these nodes, and the sources that hit several at once. Reports nodes whose clocks may be too wrong for that.
    pub(super) fn finish<'a>(
        self,
        windows: &Windows,
        nodes: impl Iterator<Item = &'a str>,
        problems: &mut Vec<Problem>,
    ) -> (Option<Heat>, Result<Together, String>) {
        let window = windows.most;
        let column_ns = window.length() / COLUMNS as i64;
        let mut row = |node: &str| {
            let Some(noise) = self.noise.get(node) else {
                let why = "its file does not say when it was recorded: the map shows none of its noise";
                problems.push(Problem::from_comparison(node, why.to_owned()));
                return vec![0.0; COLUMNS];
            };
            noise.row(window)
        };
        let heat =
            (column_ns > 0).then(|| Heat { begin_ns: window.begin, column_ns, rows: nodes.map(&mut row).collect() });
        (heat, at_once(&self.candidates, windows.common, problems))
    }
}

/// The slot length, in nanoseconds, with which simultaneous events on two nodes fall into the same slot or neighbors despite clock errors: twice the
/// error. One node in ten may have a worse clock; and no longer than leaves enough slots of the common time.
fn widened(tested: &[&Candidate], slot_ns: i64, common: Window) -> i64 {
    let mut errors: Vec<i64> = tested.iter().filter_map(|node| node.clock_error).collect();
    errors.sort_unstable();
    let Some(error) = errors.get(errors.len().saturating_sub(1) * 9 / 10) else { return slot_ns };
    let mut wide = slot_ns;
    while !fits(*error, wide) && common.length() / wide.saturating_mul(2) > SLOTS_MIN as i64 {
        wide = wide.saturating_mul(2);
    }
    // If the clocks are too bad for any slots, longer ones do not help.
    if fits(*error, wide) { wide } else { slot_ns }
}

/// Whether a clock with this error, in nanoseconds, can resolve slots of this length.
const fn fits(error: i64, slot_ns: i64) -> bool {
    error <= slot_ns / 2
}

/// Tests the nodes that were watched all the time, in their common slots.
fn at_once(candidates: &[Candidate], common: Window, problems: &mut Vec<Problem>) -> Result<Together, String> {
    let covers = |node: &&Candidate| node.window.begin <= common.begin && node.window.end >= common.end;
    let mut tested: Vec<&Candidate> = candidates.iter().filter(covers).collect();
    let mut lengths: Vec<i64> = tested.iter().map(|node| node.slot_ns).collect();
    lengths.sort_unstable();
    // A node recorded for much longer has slots that are too long.
    let slot_ns = lengths.get(lengths.len() * 9 / 10).copied().unwrap_or(1);
    tested.retain(|node| node.slot_ns <= slot_ns);
    let slot_ns = widened(&tested, slot_ns, common);
    // With too few nodes nothing is reported, whatever their clocks.
    let few = tested.len() < NODES_MIN;
    let (fit, off): (Vec<&Candidate>, Vec<&Candidate>) =
        tested.into_iter().partition(|node| few || node.clock_error.is_none_or(|error| fits(error, slot_ns)));
    let worst = off.iter().filter_map(|node| node.clock_error).max();
    let slot = Nanos::new(slot_ns);
    if let (Some(worst), true) = (worst, fit.len() < NODES_MIN) {
        return Err(format!(
            "the clocks of {} may be off by up to {:.1}, but slots are {slot:.1} long; synchronize the clocks by NTP or PTP",
            counted(off.len() as u64, "node", "nodes"),
            Nanos::new(worst)
        ));
    }
    for node in off {
        let error = Nanos::new(node.clock_error.unwrap_or(0));
        let what = format!(
            "its clock may be off by {error:.1}, more than half a slot of {slot:.1}, so it is left out of the search for simultaneous \
             noise"
        );
        problems.push(Problem::from_comparison(&node.node, what));
    }
    let mut tested = fit;
    tested.truncate(NODES);
    let clock_error_ns = tested.iter().filter_map(|node| node.clock_error).max();
    let unstated = tested.iter().filter(|node| node.clock_error.is_none()).count();
    let first = common.begin.div_euclid(slot_ns) + i64::from(common.begin.rem_euclid(slot_ns) > 0);
    let slots = usize::try_from(common.end.div_euclid(slot_ns).saturating_sub(first)).unwrap_or(0);
    let slots = slots.min(becalm_model::digest::SLOTS);
    let moments_of_node = |node: &&Candidate| -> BTreeMap<SourceName, Moments> {
        let place = |slot: usize| {
            let number = node.first_slot.saturating_add(slot as i64).div_euclid(slot_ns / node.slot_ns);
            usize::try_from(number.saturating_sub(first)).ok().filter(|at| *at < slots)
        };
        let moments = node.moments.iter().map(|(name, set)| {
            let mut marks = vec![false; slots];
            set.slots().take_while(|slot| *slot < node.slots).filter_map(place).for_each(|at| marks[at] = true);
            (name.clone(), Moments::from_slots(marks))
        });
        moments.collect()
    };
    let found = strikes(&tested.iter().map(moments_of_node).collect::<Vec<_>>(), slots, slot_ns)?;
    Ok(Together { clock_error_ns, unstated, ..found })
}
