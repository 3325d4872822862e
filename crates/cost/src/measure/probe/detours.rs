//! B07's catalogue of detours, from a cache miss to preemption, as far as a thread can cause them itself. A recording finds the others, the
//! tick and device interrupts.

use std::hint::black_box;

use becalm_linux::clock::Counter;
use becalm_linux::memory::total_bytes;
use becalm_linux::probe::{Pages, huge_page_bytes};
use becalm_linux::sysfs::cache::{caches, data_levels};
use becalm_stats::median_high;

use super::chase::{LINE, is_huge, lay, one_line_a_page, scatter, walk};
use super::trap::{fault_cow, fault_minor, fault_zero_page};
use super::{interrupt, preempt, swap};
use crate::documents::{CostSamples, Probe, ProbeCosts, ProbeSamples};
use crate::measure::bench::{Bench, CostProgress, ForCounter, probes_at, text};
use crate::measure::{CostError, Site};

/// Loads in a sample if they hit a near cache, and if they may go to memory.
const NEAR_LOADS: u32 = 1_024;
const FAR_LOADS: u32 = 256;
/// The samples of one round.
const SAMPLES: usize = 50;
/// Pages of the chase that misses the TLB: 1.5 times the entries of today's largest second-level TLB (4,096), so a cycle misses nearly each
/// time. Their lines and page tables fill less than half of an L2 cache of 1 MiB.
const TLB_PAGES: usize = 6_144;
/// The maximum memory for the TLB chase; with large pages it has fewer of them.
const TLB_BYTES: usize = 128 << 20;
/// The maximum memory of the chase through memory unless twice the largest cache is more, and the minimum.
const MEMORY_BYTES: std::ops::RangeInclusive<usize> = 64 << 20..=512 << 20;
/// The bytes of a cache line in the chase.
const LINE_BYTES: usize = LINE * size_of::<u64>();

/// Measures the catalogue and returns the document and samples. Takes about a second. Fails if the CPU cannot be used, or no counter runs.
/// Other failures are reported in the rows.
pub fn detours(site: &Site, progress: &mut CostProgress<'_>) -> Result<(ProbeCosts, CostSamples), CostError> {
    probes_at(site, DetourProbes(progress))
}

struct DetourProbes<'a, 'b>(&'a mut CostProgress<'b>);

impl ForCounter for DetourProbes<'_, '_> {
    type Out = Vec<Probe>;

    fn run<C: Counter>(self, bench: &Bench<C>) -> Vec<Probe> {
        let root = bench.site.root();
        let (levels, unknown) = match caches(root, bench.site.cpu) {
            Ok(caches) => (data_levels(&caches), None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let huge = huge_page_bytes(root).ok().flatten();
        let mut rows = Vec::new();
        if levels.is_empty() {
            let why = unknown.unwrap_or_else(|| "the kernel does not tell the sizes of this CPU's caches".to_owned());
            rows.push(Probe::new(
                "cache_miss",
                "cache miss",
                "a chase of pointers through a part of each cache",
                Err(why),
            ));
        }
        let largest = levels.last().map_or(0, |(_, bytes)| *bytes);
        let mut probes: Vec<(&str, Measurement<'_, C>)> = Vec::new();
        for (at, (level, bytes)) in levels.iter().enumerate() {
            let below = at.checked_sub(1).map_or(0, |below| levels[below].1);
            probes.push(("caches", Box::new(move |bench| cache(bench, *level, *bytes, below, huge))));
        }
        let rest: [(&str, Measurement<'_, C>); 8] = [
            ("memory", Box::new(|bench| memory(bench, largest, huge))),
            ("TLB", Box::new(|bench| tlb_miss(bench, huge))),
            (
                "zero page",
                Box::new(|bench| fault_zero_page(bench).called("pte_miss", "PTE miss: page there, entry missing")),
            ),
            ("faults", Box::new(|bench| fault_minor(bench).called("fault_minor", "page fault: first write to a page"))),
            ("copies", Box::new(|bench| fault_cow(bench).called("fault_cow", "page fault: copy on write"))),
            ("swap", Box::new(swap::swap_in)),
            ("interrupts", Box::new(interrupt::from_another_cpu)),
            ("preemption", Box::new(preempt::competitor_probe)),
        ];
        probes.extend(rest);
        let steps = probes.len();
        for (done, (name, probe)) in probes.into_iter().enumerate() {
            if !(self.0)(done, steps, name) {
                break;
            }
            rows.push(probe(bench));
        }
        rows
    }
}

/// A function that measures one kind of detour.
type Measurement<'a, C> = Box<dyn Fn(&Bench<C>) -> Probe + 'a>;

/// Names of the rows of a level, and the meaning of a hit.
fn names(level: u32) -> (&'static str, &'static str) {
    match level {
        1 => ("cache_l1", "L1 hit, for comparison"),
        2 => ("cache_l2", "cache miss: L1, found in L2"),
        3 => ("cache_l3", "cache miss: L2, found in L3"),
        _ => ("cache_l4", "cache miss: L3, found in L4"),
    }
}

/// The part of a level to walk through: half of it, or three quarters if half would nearly fit into the level below, which would then serve
/// most loads.
const fn share_of(bytes: usize, below: usize) -> usize {
    if bytes / 2 >= 2 * below { bytes / 2 } else { bytes / 4 * 3 }
}

fn cache<C: Counter>(bench: &Bench<C>, level: u32, bytes: usize, below: usize, huge: Option<usize>) -> Probe {
    let walked = share_of(bytes, below);
    let loads = if level <= 2 { NEAR_LOADS } else { FAR_LOADS };
    let (name, what) = names(level);
    let (outcome, pages) = chase(bench, walked, loads, huge);
    Probe::new(
        name,
        what,
        format!(
            "{loads} dependent loads a sample, in random order over {} KiB of the {} KiB of level {level}{pages}",
            walked >> 10,
            bytes >> 10
        ),
        outcome,
    )
}

/// The amount of memory to walk through, given the bytes of the largest cache and of the machine.
fn memory_walked(largest: usize, total: usize) -> usize {
    let most = (*MEMORY_BYTES.end()).max(largest.saturating_mul(2));
    largest.saturating_mul(4).clamp(*MEMORY_BYTES.start(), most).min(total / 8)
}

fn memory<C: Counter>(bench: &Bench<C>, largest: usize, huge: Option<usize>) -> Probe {
    let walked = memory_walked(largest, total_bytes());
    let (outcome, pages) = match walked {
        // Most of what remains of a larger set would be found in the cache.
        bytes if bytes < 2 * largest => {
            (Err(format!("the largest cache of {} MiB is too large for the memory to spare", largest >> 20)), "")
        }
        bytes => chase(bench, bytes, FAR_LOADS, huge),
    };
    Probe::new(
        "memory",
        "cache miss: all levels, from memory",
        format!("{FAR_LOADS} dependent loads a sample, in random order over {} MiB{pages}", walked >> 20),
        outcome,
    )
}

/// Loads along a cycle through this many bytes, and a note on the pages.
fn chase<C: Counter>(
    bench: &Bench<C>,
    bytes: usize,
    loads: u32,
    huge: Option<usize>,
) -> (Result<ProbeSamples, String>, &'static str) {
    let in_huge = huge.and_then(|size| Pages::huge(bytes.div_ceil(size), size).ok()).filter(is_huge);
    let note = if in_huge.is_some() { ", in huge pages" } else { ", in small pages, so it may include TLB misses" };
    let series = in_huge.map_or_else(|| Pages::small(bytes.div_ceil(4096)).map_err(text), Ok).and_then(|pages| {
        let words = pages.words();
        let mut at = lay(words, bytes / LINE_BYTES, |line| line * LINE);
        // Walk around once to fill the near cache.
        at = walk(words, at, (bytes / LINE_BYTES) as u32);
        bench.series(loads, SAMPLES, |samples| {
            Bench::<C>::time_each(samples, |_| at = walk(words, black_box(at), loads));
            black_box(at);
            Ok(())
        })
    });
    (series, note)
}

fn tlb_miss<C: Counter>(bench: &Bench<C>, huge: Option<usize>) -> Probe {
    let measure = || {
        let small = Pages::small(1).map_err(text)?.page_bytes();
        let count = TLB_PAGES.min(TLB_BYTES / small);
        let size = huge.ok_or("this kernel has no huge pages to compare with")?;
        let few = Pages::huge((count * small).div_ceil(size), size).map_err(text)?;
        if !is_huge(&few) {
            return Err("the kernel gave no huge pages to compare with \
                        (/sys/kernel/mm/transparent_hugepage/enabled)"
                .to_owned());
        }
        let line = |page| one_line_a_page(page, small / size_of::<u64>());
        let mut at_few = lay(few.words(), count, line);
        let mut references = Vec::new();
        let mut hits = vec![1; SAMPLES];
        let mut series = bench.series(FAR_LOADS, SAMPLES, |samples| {
            // The pages' addresses determine which lines and tables share a cache set, so each round gets new pages.
            let many = Pages::small(count).map_err(text)?;
            scatter(many.words(), count, line);
            let mut at_many = lay(many.words(), count, line);
            // Alternate, so both have the same neighbors. Walk around each once before timing, because the other one's lines may have
            // evicted its own.
            at_few = walk(few.words(), black_box(at_few), count as u32);
            Bench::<C>::time_each_uncounted(&mut hits, |_| at_few = walk(few.words(), black_box(at_few), FAR_LOADS));
            at_many = walk(many.words(), black_box(at_many), count as u32);
            Bench::<C>::time_each(samples, |_| at_many = walk(many.words(), black_box(at_many), FAR_LOADS));
            black_box((at_few, at_many));
            references.push(median_high(&mut hits).unwrap_or(0).saturating_sub(bench.overhead_ticks()));
            Ok(())
        })?;
        // Subtract the round's median of loads that hit the TLB; the first round was warm-up.
        for (round, reference) in series.rounds.iter_mut().zip(&references[1..]) {
            let reference = bench.picos(*reference, FAR_LOADS);
            round.iter_mut().for_each(|sample| *sample -= reference);
        }
        Ok(series)
    };
    Probe::new(
        "tlb_miss",
        "TLB miss",
        format!(
            "{FAR_LOADS} dependent loads a sample over one line in each of {TLB_PAGES} small pages from anywhere in \
             memory, less the same lines in huge pages; lines and page tables lie in the caches"
        ),
        measure(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A processor whose sockets share a level 3 of 260 MiB, and others; in MiB.
    #[test]
    fn memory_is_walked_beyond_the_largest_cache() {
        let walked = |largest: usize, total: usize| memory_walked(largest << 20, total << 20) >> 20;
        assert_eq!(walked(260, 24 << 10), 520);
        assert_eq!((walked(32, 24 << 10), walked(8, 24 << 10), walked(200, 64 << 10)), (128, 64, 512));
        // Not more than an eighth of the machine's memory, however large the cache is.
        assert_eq!(walked(260, 1 << 10), 128);
    }

    proptest! {
        #[test]
        fn a_walk_fits_its_level_and_not_the_one_below(below in 1_usize << 12..1 << 24, times in 2_usize..64) {
            let bytes = below * times;
            let walked = share_of(bytes, below);
            prop_assert!(walked < bytes && walked > below);
        }
    }
}
