//! Swap in: the first touch of a page on disk.

use std::hint::black_box;
use std::thread::sleep;
use std::time::{Duration, Instant};

use becalm_linux::clock::Counter;
use becalm_linux::probe::Pages;
use becalm_linux::procfs::swaps::swaps;
use becalm_linux::sched::major_faults;

use crate::documents::{Probe, ProbeSamples, into_rounds};
use crate::measure::bench::{Bench, text};

/// Pages that are swapped out at a time.
const PAGES: usize = 512;
/// The number of swap-ins per process.
const WANTED: usize = 125;
/// The longest wait for them: 50 at 10 ms each, the time of a disk of 2007.
const LIMIT: Duration = Duration::from_millis(500);
/// The time to wait for pages still being written to swap.
const WRITTEN: Duration = Duration::from_millis(10);

/// The fault that brings a page back from swap.
pub(super) fn swap_in<C: Counter>(bench: &Bench<C>) -> Probe {
    Probe::new(
        "swap_in",
        "swap in",
        "read of a page that the kernel was asked to swap out (MADV_PAGEOUT); only faults that it counts as major, \
                 as others found their page still in memory or read ahead",
        measure(bench),
    )
}

fn measure<C: Counter>(bench: &Bench<C>) -> Result<ProbeSamples, String> {
    let swaps = swaps(bench.site.root()).map_err(|error| error.to_string())?;
    if swaps.is_empty() {
        return Err("this machine has no swap".to_owned());
    }
    let pages = Pages::small(PAGES).map_err(text)?;
    let mut times = Vec::with_capacity(WANTED + PAGES);
    let watch = bench.watch();
    let end = Instant::now() + LIMIT;
    // Write once: pages that are only read afterwards need not be written to swap again. With slow swap, such as a disk, the first page-out
    // finds a page still in memory, and only the next one removes it.
    (0..PAGES).for_each(|page| pages.write(page));
    while times.len() < WANTED && Instant::now() < end {
        let found = times.len();
        pages.page_out().map_err(text)?;
        for page in 0..PAGES {
            let faults = major_faults();
            let before = C::read_ordered();
            black_box(pages.read(page));
            let after = C::read_ordered();
            if major_faults() > faults {
                times.push(after.saturating_sub(before));
            }
            if Instant::now() > end {
                break;
            }
        }
        if times.len() == found {
            sleep(WRITTEN);
        }
    }
    if times.is_empty() {
        return Err("there is swap, but the kernel kept every page in memory: the cgroup may not swap \
                    (memory.swap.max), or swap is full"
            .to_owned());
    }
    Ok(bench.finish(watch, 1, &into_rounds(&times)))
}
