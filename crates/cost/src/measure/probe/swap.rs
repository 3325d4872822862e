//! Swap in: the first touch of a page that lies on a disk.

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
/// The number of swap-ins that are wanted in one process.
const WANTED: usize = 125;
/// The longest wait for them: 50 at 10 ms each, the time of a disk of 2007.
const LIMIT: Duration = Duration::from_millis(500);
/// The time limit of pages that are still being written to swap.
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
    // Once is enough: what is only read after that need not be written to swap again. From where writing takes time, as to a disk, a page
    // is first found still in memory, and leaves it when it is asked to the next time.
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
