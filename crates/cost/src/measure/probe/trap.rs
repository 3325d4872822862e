//! The costs of kernel entry and exit: system calls, faults, signals, switches, wake-ups, interrupts of another CPU (the trap of T07
//! section 2, and the related rows of B07's catalogue).

use std::hint::black_box;

use becalm_linux::clock::Counter;
use becalm_linux::probe::clocks::{self, ClockId};
use becalm_linux::probe::{Child, Handler, Pages, getpid, huge_page_bytes};
use becalm_linux::sched::ThreadUsage;

use super::switch;
use crate::documents::{CostSamples, Probe, ProbeCosts, ProbeSamples};
use crate::measure::bench::{Bench, CostProgress, ForCounter, probes_at, text};
use crate::measure::{CostError, Site};

/// Page faults per round.
const PAGES: usize = 512;
/// Huge page faults per round.
const HUGE_PAGES: usize = 16;
/// vDSO calls in a sample.
const CALLS: u32 = 16;

/// Measures every trap and returns the document and samples. Takes about half a second. Fails if the CPU cannot be used, or no counter
/// runs. Other failures are reported in the rows.
pub fn traps(site: &Site, progress: &mut CostProgress<'_>) -> Result<(ProbeCosts, CostSamples), CostError> {
    probes_at(site, TrapProbes(progress))
}

/// A function that measures one kind of trap.
type Measurement<'a, C> = &'a dyn Fn(&Bench<C>) -> Vec<Probe>;

struct TrapProbes<'a, 'b>(&'a mut CostProgress<'b>);

impl ForCounter for TrapProbes<'_, '_> {
    type Out = Vec<Probe>;

    fn run<C: Counter>(self, bench: &Bench<C>) -> Vec<Probe> {
        let probes: [(&str, Measurement<'_, C>); 12] = [
            ("calls", &|bench| vec![system_call(bench)]),
            ("vDSO", &|bench| vec![vdso_call(bench)]),
            ("signals", &|bench| vec![signal(bench)]),
            ("faults", &|bench| vec![fault_minor(bench)]),
            ("zero page", &|bench| vec![fault_zero_page(bench)]),
            ("zero page", &|bench| vec![fault_zero_cow(bench)]),
            ("copies", &|bench| vec![fault_cow(bench)]),
            ("huge pages", &|bench| vec![fault_huge(bench)]),
            ("switches", &|bench| switch::pipe_probes(bench)),
            ("switches", &|bench| vec![switch::futex_probe(bench)]),
            ("wake-ups", &|bench| switch::wake_elsewhere(bench)),
            ("interrupts", &|bench| switch::interrupt_elsewhere(bench)),
        ];
        let mut rows = Vec::new();
        for (at, (name, probe)) in probes.iter().enumerate() {
            if !(self.0)(at, probes.len(), name) {
                break;
            }
            rows.extend(probe(bench));
        }
        rows
    }
}

fn system_call<C: Counter>(bench: &Bench<C>) -> Probe {
    let outcome = bench.series(1, 1_000, |samples| {
        Bench::<C>::time_each(samples, |_| {
            black_box(getpid());
        });
        Ok(())
    });
    Probe::new(
        "syscall",
        "system call: getpid",
        "the raw system call getpid, which does nothing in the kernel (T07's trap)",
        outcome,
    )
}

fn vdso_call<C: Counter>(bench: &Bench<C>) -> Probe {
    let outcome = bench.series(CALLS, 500, |samples| {
        Bench::<C>::time_each(samples, |_| {
            for _ in 0..CALLS {
                black_box(clocks::get(ClockId::MONOTONIC));
            }
        });
        Ok(())
    });
    Probe::new(
        "vdso",
        "vDSO call: clock_gettime",
        format!("clock_gettime(CLOCK_MONOTONIC) through the C library, {CALLS} calls a sample"),
        outcome,
    )
}

fn signal<C: Counter>(bench: &Bench<C>) -> Probe {
    let measure = || {
        let handler = Handler::install().map_err(text)?;
        let (before, mut raised) = (handler.caught(), 0);
        let series = bench.series(1, 300, |samples| {
            raised += samples.len() as u64;
            Bench::<C>::time_each(samples, |_| handler.raise());
            Ok(())
        })?;
        let caught = handler.caught() - before;
        if caught == raised {
            Ok(series)
        } else {
            Err(format!("only {caught} of {raised} signals reached their handler"))
        }
    };
    Probe::new(
        "signal",
        "signal to oneself, handler, and back",
        "tgkill of a real-time signal to the own thread, until the call returns, by when its handler has run",
        measure(),
    )
}

/// Times one touch of each page. `prepare` runs before each round, and `touch` must fault each time.
fn faults<C: Counter>(
    bench: &Bench<C>,
    pages: &Pages,
    mut prepare: impl FnMut() -> Result<(), String>,
    touch: impl Fn(usize),
) -> Result<ProbeSamples, String> {
    bench.series(1, pages.count(), |samples| {
        prepare()?;
        let before = ThreadUsage::for_current_thread();
        Bench::<C>::time_each(samples, &touch);
        let faults = ThreadUsage::for_current_thread().since(before).faults;
        let expected = samples.len() as u64;
        // Also proves that pages are small: a huge page would fault once for all of its small ones.
        if faults >= expected { Ok(()) } else { Err(format!("only {faults} of {expected} touches faulted")) }
    })
}

/// A fault by the first read or write of small pages, in the state that `prepare` leaves them in.
fn small_fault<C: Counter>(
    bench: &Bench<C>,
    prepare: impl Fn(&Pages) -> Result<(), String>,
    touch: impl Fn(&Pages, usize),
) -> Result<ProbeSamples, String> {
    let pages = Pages::small(PAGES).map_err(text)?;
    let fresh = || {
        pages.discard().map_err(text)?;
        prepare(&pages)
    };
    faults(bench, &pages, fresh, |page| touch(&pages, page))
}

pub(super) fn fault_minor<C: Counter>(bench: &Bench<C>) -> Probe {
    Probe::new(
        "fault_minor",
        "minor fault: first write to a page",
        "first write to pages of private anonymous memory; each is found, cleared and mapped",
        small_fault(bench, |_| Ok(()), Pages::write),
    )
}

pub(super) fn fault_zero_page<C: Counter>(bench: &Bench<C>) -> Probe {
    let touch = |pages: &Pages, page| {
        black_box(pages.read(page));
    };
    Probe::new(
        "fault_zero",
        "minor fault: first read, zero page",
        "first read of pages of private anonymous memory: the page, the kernel's one of zeros, is there already and \
                 only its entry is missing",
        small_fault(bench, |_| Ok(()), touch),
    )
}

fn fault_zero_cow<C: Counter>(bench: &Bench<C>) -> Probe {
    let read_all = |pages: &Pages| {
        (0..PAGES).for_each(|page| {
            black_box(pages.read(page));
        });
        Ok(())
    };
    Probe::new(
        "fault_zero_cow",
        "copy on write of the zero page",
        "first write to pages that were read before, which replaces the page of zeros",
        small_fault(bench, read_all, Pages::write),
    )
}

pub(super) fn fault_cow<C: Counter>(bench: &Bench<C>) -> Probe {
    let measure = || {
        let pages = Pages::small(PAGES).map_err(text)?;
        let mut child = None;
        let share = || {
            child = None;
            (0..PAGES).for_each(|page| pages.write(page));
            child = Some(Child::asleep().map_err(text)?);
            Ok(())
        };
        faults(bench, &pages, share, |page| pages.write(page))
    };
    Probe::new(
        "fault_cow",
        "copy on write after fork",
        "first write of the parent to each page that it shares with a sleeping child; each is copied",
        measure(),
    )
}

fn fault_huge<C: Counter>(bench: &Bench<C>) -> Probe {
    let root = bench.site.root();
    let size = huge_page_bytes(root).ok().flatten();
    let measure = || {
        let bytes = size.ok_or("this kernel has no transparent huge pages")?;
        let pages = Pages::huge(HUGE_PAGES, bytes).map_err(text)?;
        // If the kernel provides small pages instead, the other words of a page fault as well.
        let small = 4096 / size_of::<u64>();
        let before = ThreadUsage::for_current_thread();
        for word in pages.words()[..bytes / 8].iter().step_by(small) {
            word.store(1, std::sync::atomic::Ordering::Relaxed);
        }
        if ThreadUsage::for_current_thread().since(before).faults > 8 {
            return Err("the kernel gave small pages although huge ones were asked for: they are switched off \
                        (/sys/kernel/mm/transparent_hugepage/enabled), or memory is too fragmented"
                .to_owned());
        }
        faults(bench, &pages, || pages.discard().map_err(text), |page| pages.write(page))
    };
    Probe::new(
        "fault_huge",
        "minor fault: first write to a huge page",
        format!("first write to transparent huge pages of {} KiB; each is cleared", size.unwrap_or_default() >> 10),
        measure(),
    )
}
