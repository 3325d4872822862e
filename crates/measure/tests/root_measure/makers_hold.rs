//! The noise makers make the noise that they claim, by the kernel's own counters. Needs root and two CPUs.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use becalm_linux::perf::CpuClock;
use becalm_linux::procfs::interrupts::Interrupts;
use becalm_linux::procfs::softirqs::Softirqs;
use becalm_linux::sched::{Policy, set_policy};
use becalm_linux::sysfs::cpu::CpuSets;
use becalm_testing::{Need, machine_has};
use becalm_units::{CpuId, Nanos, TickRate};

use crate::makers::{Maker, burn_until, faults, flood, gremlin, hotplug, ipi, now};

const LENGTH: Duration = Duration::from_secs(1);

/// Counters of the whole machine do not tell one test's noise from another's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The CPU that a test makes noise on, and the one that it makes it from; nothing where the test is skipped.
fn cpus() -> Option<(CpuId, CpuId)> {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return None;
    }
    let online = CpuSets::read(Path::new("/")).expect("sysfs lists the CPUs").online;
    let mut cpus = online.iter();
    cpus.next().zip(cpus.next()).map(|(from, measured)| (measured, from))
}

fn locked() -> std::sync::MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The counter's rate, well enough for these checks.
fn rate() -> TickRate {
    let (start, ticks) = (Instant::now(), now());
    std::thread::sleep(Duration::from_millis(100));
    TickRate::from_hz((now() - ticks).get() as f64 / start.elapsed().as_secs_f64())
}

/// A thread that spins on a CPU, so that storms have somebody to hit; real-time, so that it is there on a busy machine.
fn spinner(cpu: CpuId) -> Maker<()> {
    Maker::start("spinner", cpu, |stop| {
        set_policy(Policy::Fifo(1)).expect("root can take a real-time priority");
        while !stop.load(Ordering::Relaxed) {}
    })
}

fn interrupts() -> Interrupts {
    Interrupts::read(Path::new("/")).expect("proc lists interrupts")
}

/// By how much a counter of a CPU has grown.
fn growth(name: &str, cpu: CpuId, earlier: &Interrupts) -> u64 {
    interrupts().since(earlier).count(name, cpu).expect("a count of the measured CPU")
}

#[test]
fn root_gremlin_burns_what_it_logs() {
    let Some((cpu, _)) = cpus() else { return };
    let _alone = locked();
    let rate = rate();
    let maker = gremlin::start(cpu, rate);
    std::thread::sleep(LENGTH);
    let log = maker.stop();
    eprintln!("gremlin: {} bursts", log.len());
    assert!((7..=9).contains(&log.len()), "{}", log.len());
    for burst in &log {
        let length = Nanos::new(((burst.end - burst.start).get() as f64 * rate.tick_ns()) as i64);
        assert!(length >= gremlin::BURST && length < gremlin::BURST + gremlin::BURST, "{length}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn root_storms_interrupt_the_other_cpu() {
    let Some((cpu, from)) = cpus() else { return };
    let _alone = locked();
    let pause = Duration::from_micros(200);
    for name in ["mprotect", "private", "global"] {
        // A CPU learns that our process takes part in global barriers when it next begins to run it after another one; since
        // idling keeps the process's memory, a few tests on this CPU alone never make it do so.
        let elsewhere = Command::new("taskset").args(["-c", &cpu.to_string(), "true"]).status();
        assert!(elsewhere.is_ok_and(|status| status.success()), "a program runs on CPU {cpu}");
        let spinner = spinner(cpu);
        let before = interrupts();
        let storm = match name {
            "mprotect" => ipi::mprotect_storm(from, pause),
            "private" => ipi::membarrier_storm(from, ipi::Barrier::Private, pause),
            _ => ipi::membarrier_storm(from, ipi::Barrier::Global, pause),
        };
        std::thread::sleep(LENGTH);
        let sent = storm.stop();
        // Old kernels count a shootdown as TLB only, new ones as CAL too.
        let (tlb, cal) = (growth("TLB", cpu, &before), growth("CAL", cpu, &before));
        spinner.stop();
        eprintln!("{name}: {sent} sent, TLB +{tlb}, CAL +{cal}");
        assert!(sent > 100 && tlb.max(cal) >= sent / 2, "{name}: {sent} sent, TLB +{tlb}, CAL +{cal}");
    }
}

#[test]
fn root_flood_is_received_on_the_chosen_cpu() {
    let Some((cpu, from)) = cpus() else { return };
    let _alone = locked();
    let softirqs = || Softirqs::read(Path::new("/")).expect("proc lists softirqs");
    let steering = || std::fs::read_to_string("/sys/class/net/lo/queues/rx-0/rps_cpus").expect("loopback");
    let (before, original) = (softirqs(), steering());
    let maker = flood::start(from, cpu, Duration::from_micros(200));
    std::thread::sleep(LENGTH);
    let sent = maker.stop();
    let grown = softirqs().since(&before).count("NET_RX", cpu).expect("a count of NET_RX");
    eprintln!("flood: {sent} sent, NET_RX +{grown}");
    assert!(sent > 100 && grown >= sent / 2, "{sent} sent, NET_RX +{grown}");
    assert_eq!(steering(), original);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn root_perf_clock_interrupts_at_its_rate() {
    let Some((cpu, _)) = cpus() else { return };
    let _alone = locked();
    let spinner = spinner(cpu);
    let before = interrupts();
    let event = CpuClock::start(cpu, 5_000).expect("root can open a perf event");
    std::thread::sleep(LENGTH);
    let ran = event.stop().expect("an open event can be stopped");
    let grown = growth("LOC", cpu, &before);
    spinner.stop();
    let due = (ran.as_secs_f64() * 5_000.0) as u64;
    eprintln!("perf clock: ran {}, {due} due, LOC +{grown}", ran);
    // The tick adds at most 1,000 a second.
    assert!(grown >= due * 9 / 10 && grown < due * 2, "{due} due, LOC +{grown}");
}

#[test]
fn root_hotplug_takes_a_cpu_and_brings_it_back() {
    let Some((cpu, _)) = cpus() else { return };
    let _alone = locked();
    let online = || CpuSets::read(Path::new("/")).expect("sysfs lists the CPUs").online;
    match hotplug::offline(cpu) {
        Ok(unplugged) => {
            assert!(!online().contains(cpu) && unplugged.went.1 > unplugged.went.0);
            drop(unplugged);
            assert!(online().contains(cpu));
        }
        Err(error) => eprintln!("hotplug: skipped, as CPU {cpu} cannot be taken offline: {error}"),
    }
}

#[test]
fn root_faults_are_taken_and_contents_kept() {
    let Some((cpu, from)) = cpus() else { return };
    let _alone = locked();
    const LENGTH_BYTES: usize = 4096;
    // SAFETY: an anonymous mapping at a place of the kernel's choice touches no other memory.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            LENGTH_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(page, libc::MAP_FAILED);
    let address = page as usize;
    // SAFETY: the mapping is locked as it is, and unlocked by the kernel when it is unmapped.
    assert_eq!(unsafe { libc::mlock(page, LENGTH_BYTES) }, 0);
    let rate = rate();
    let writer = Maker::start("writer", cpu, move |stop| {
        // SAFETY: the mapping is aligned, and lives until the writer is stopped.
        let cell = unsafe { &*(address as *const AtomicU64) };
        set_policy(Policy::Fifo(1)).expect("root can take a real-time priority");
        let before = minor_faults();
        let mut written = 0;
        while !stop.load(Ordering::Relaxed) {
            burn_until(now().get() + rate.ticks_in(Nanos::from_micros(5)).get());
            assert_eq!(cell.fetch_add(1, Ordering::Relaxed), written);
            written += 1;
        }
        minor_faults() - before
    });
    // SAFETY: the range is one page of a shared anonymous mapping, which is unmapped after the maker has stopped.
    let maker = unsafe { faults::start(from, address, LENGTH_BYTES, Duration::from_millis(1)) };
    std::thread::sleep(LENGTH);
    let (times, faults) = (maker.stop(), writer.stop());
    // SAFETY: nobody uses the page any more.
    unsafe { libc::munmap(page, LENGTH_BYTES) };
    eprintln!("faults: taken away {times} times, {faults} faults");
    assert!(times > 100 && faults >= times / 2 && faults <= times + 50, "{times} times, {faults} faults");
}

/// Minor faults of the calling thread.
fn minor_faults() -> u64 {
    // SAFETY: rusage is plain numbers, for which zeros are valid; the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    usage.ru_minflt.cast_unsigned()
}
