//! The tracing of a real kernel. Needs root and a tracefs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use becalm_linux::ftrace::{
    CALLS, Callback, Decoder, EventFormat, EventGroup, FUNCTIONS, Faults, HOST, Instance, InstanceConfig, InstanceName,
    LIVES, OWN_WORK, OwnWork, REQUESTS, RawEvent, RawHappening, TraceClock, Tracefs, TracefsError, WANTED, remove_dead,
};
use becalm_testing::{skip, wait_until};
use becalm_units::{CpuId, CpuList};

const PROC: &str = "/proc";

/// The tracefs to test with, or nothing where there is none to be had.
fn tracefs() -> Option<Tracefs> {
    let found = Tracefs::find(Path::new("/")).and_then(|tracefs| {
        let switch = tracefs.root().join("tracing_on");
        // Whether it may be used shows only at an attempt to write.
        match fs::OpenOptions::new().write(true).open(&switch) {
            Ok(_) => Ok(tracefs),
            Err(source) => Err(TracefsError::Io { action: "open for writing".to_owned(), path: switch, source }),
        }
    });
    match found {
        Ok(tracefs) => Some(tracefs),
        Err(error) => {
            skip(&error.to_string());
            None
        }
    }
}

fn all_cpus() -> CpuList {
    fs::read_to_string("/sys/devices/system/cpu/online").unwrap().parse().unwrap()
}

/// All events that becalm decodes, once each.
const EVENTS: &[&[EventGroup]] = &[WANTED, FUNCTIONS, LIVES, HOST, OWN_WORK, CALLS.split_at(1).0, REQUESTS];

fn config(buffer_kb: u32) -> InstanceConfig {
    let clock = if cfg!(target_arch = "x86_64") { TraceClock::X86Tsc } else { TraceClock::MonoRaw };
    InstanceConfig {
        cpus: all_cpus(),
        clock,
        buffer_kb,
        subbuf_kb: None,
        faults: Faults::All,
        events: EVENTS,
        concerned: CpuList::default(),
        threads: None,
    }
}

fn create(tracefs: &Tracefs, config: &InstanceConfig) -> Instance {
    Instance::create(tracefs, Path::new(PROC), config, None).unwrap()
}

/// Makes the kernel work for a while: timers, switches, wake-ups between CPUs, page faults.
fn stir(duration: Duration) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_micros(200));
                    touch_fresh_pages(1 << 16);
                }
            });
        }
        thread::sleep(duration);
        over.store(true, Ordering::Relaxed);
    });
}

/// Faults in pages that the kernel has to provide again each time. An allocator may keep what was given back to it, and
/// then nothing faults any more.
fn touch_fresh_pages(length: usize) {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice, written to within its length, and then given back.
    unsafe {
        let start = mmap_anonymous(std::ptr::null_mut(), length, access, MapFlags::PRIVATE).unwrap();
        for offset in (0..length).step_by(4096) {
            start.cast::<u8>().add(offset).write_volatile(1);
        }
        munmap(start, length).unwrap();
    }
}

/// Takes everything that waits in a CPU's buffer.
fn pages(instance: &Instance, cpu: CpuId) -> Vec<Vec<u8>> {
    let mut reader = instance.reader(cpu).unwrap();
    assert!(reader.read_page(&mut [0; 100]).is_err(), "a page must not be cut");
    let mut page = vec![0; reader.page_size()];
    let mut pages = Vec::new();
    while let Some(length) = reader.read_page(&mut page).unwrap() {
        pages.push(page[..length].to_vec());
    }
    pages
}

fn decode<'a>(decoder: &Decoder, pages: &'a [Vec<u8>]) -> Vec<RawEvent<'a>> {
    let mut events = Vec::new();
    for page in pages {
        let summary = decoder.page(page, &mut |event| events.push(event)).unwrap();
        assert_eq!(summary.ignored, 0, "only learned events are enabled");
    }
    events
}

/// One line of the kernel's own rendering.
struct TraceLine {
    pid: i32,
    time: String,
    event: String,
    fields: String,
}

/// Reads `  <idle>-0  [001] d.h1. 123456: local_timer_entry: vector=236`.
fn line(text: &str, cpu: CpuId) -> Option<TraceLine> {
    let (task, rest) = text.split_once(&format!(" [{:03}] ", cpu.get()))?;
    let mut parts = rest.trim_start().split_once(' ')?.1.splitn(3, ": ");
    Some(TraceLine {
        pid: task.trim().rsplit('-').next()?.parse().ok()?,
        time: parts.next()?.trim().to_owned(),
        event: parts.next()?.to_owned(),
        fields: parts.next()?.to_owned(),
    })
}

/// The comparable parts of a decoded event and its line: the event's name, and the fields that the kernel prints unchanged. It prints addresses of
/// functions as symbols, and a thread's state as letters.
fn rendered(decoder: &Decoder, what: &RawHappening<'_>) -> (String, Vec<String>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match what {
        RawHappening::Lost { .. } => ("lost".to_owned(), vec![]),
        RawHappening::IrqHandlerEntry { irq, name } => {
            ("irq_handler_entry".to_owned(), vec![format!("irq={irq} name={}", text(name))])
        }
        RawHappening::IrqHandlerExit { irq } => ("irq_handler_exit".to_owned(), vec![format!("irq={irq} ret=")]),
        RawHappening::VectorEntry { name, vector } => {
            (format!("{}_entry", decoder.vector_name(*name)), vec![format!("vector={vector}")])
        }
        RawHappening::VectorExit { name, vector } => {
            (format!("{}_exit", decoder.vector_name(*name)), vec![format!("vector={vector}")])
        }
        RawHappening::SoftirqEntry { vec } => ("softirq_entry".to_owned(), vec![format!("vec={vec} [")]),
        RawHappening::SoftirqExit { vec } => ("softirq_exit".to_owned(), vec![format!("vec={vec} [")]),
        RawHappening::NmiHandler { delta_ns, .. } => {
            ("nmi_handler".to_owned(), vec![format!("() delta_ns: {delta_ns} handled:")])
        }
        RawHappening::IpiEntry { .. } => ("ipi_entry".to_owned(), vec![]),
        RawHappening::IpiExit { .. } => ("ipi_exit".to_owned(), vec![]),
        RawHappening::SchedSwitch { prev_comm, prev_pid, prev_prio, prev_state, next_comm, next_pid, next_prio } => {
            let (prev, next) = (text(prev_comm), text(next_comm));
            let state = if *prev_state & 0xff == 0 { "R" } else { "" };
            (
                "sched_switch".to_owned(),
                vec![
                    format!("prev_comm={prev} prev_pid={prev_pid} prev_prio={prev_prio} prev_state={state}"),
                    format!(" ==> next_comm={next} next_pid={next_pid} next_prio={next_prio}"),
                ],
            )
        }
        RawHappening::FunctionEntry { callback, .. } => {
            let event = match callback {
                Callback::HighResolutionTimer => "hrtimer_expire_entry",
                Callback::Timer => "timer_expire_entry",
                Callback::Tasklet => "tasklet_entry",
                Callback::Call => "csd_function_entry",
            };
            (event.to_owned(), vec![if *callback == Callback::Call { "func=" } else { "function=" }.to_owned()])
        }
        RawHappening::FunctionExit { callback: Callback::Call } => {
            ("csd_function_exit".to_owned(), vec!["func=".to_owned()])
        }
        RawHappening::FunctionExit { .. } => ("hrtimer_expire_exit".to_owned(), vec!["hrtimer=".to_owned()]),
        RawHappening::Waking { comm, pid } => {
            ("sched_waking".to_owned(), vec![format!("comm={} pid={pid} prio=", text(comm))])
        }
        RawHappening::Woken { comm, pid, cpu, is_new } => {
            let event = if *is_new { "sched_wakeup_new" } else { "sched_wakeup" };
            (event.to_owned(), vec![format!("comm={} pid={pid} prio=", text(comm)), format!("target_cpu={cpu:03}")])
        }
        RawHappening::Moved { pid, cpu } => {
            ("sched_migrate_task".to_owned(), vec![format!(" pid={pid} prio="), format!("dest_cpu={cpu}")])
        }
        RawHappening::Created { comm, pid, .. } => {
            ("task_newtask".to_owned(), vec![format!("pid={pid} comm={} clone_flags=", text(comm))])
        }
        RawHappening::Forked { comm, pid } => {
            ("sched_process_fork".to_owned(), vec![format!("child_comm={} child_pid={pid}", text(comm))])
        }
        RawHappening::Renamed { comm, pid } => {
            ("task_rename".to_owned(), vec![format!("pid={pid} oldcomm="), format!("newcomm={} ", text(comm))])
        }
        RawHappening::Accounted { pid, runtime_ns } => {
            ("sched_stat_runtime".to_owned(), vec![format!(" pid={pid} runtime={runtime_ns} [ns]")])
        }
        RawHappening::WorkBegan(work) | RawHappening::WorkEnded(work) => {
            let began = matches!(what, RawHappening::WorkBegan(_));
            let event = match work {
                OwnWork::Reclaim => "mm_vmscan_direct_reclaim",
                OwnWork::GroupReclaim => "mm_vmscan_memcg_reclaim",
                OwnWork::Compaction => "mm_compaction",
                OwnWork::KernelLock => "contention",
            };
            (format!("{event}_{}", if began { "begin" } else { "end" }), vec![])
        }
        RawHappening::CallQueued { cpu, .. } => ("csd_queue_cpu".to_owned(), vec![format!("cpu={cpu} callsite=")]),
        RawHappening::InterruptSent { cpu, .. } => ("ipi_send_cpu".to_owned(), vec![format!("cpu={cpu} callsite=")]),
        RawHappening::WorkQueued { .. } => ("workqueue_queue_work".to_owned(), vec![" function=".to_owned()]),
        RawHappening::SoftirqRaised { vec } => ("softirq_raise".to_owned(), vec![format!("vec={vec} [")]),
        RawHappening::CallBegan { number } => ("sys_enter".to_owned(), vec![format!("NR {number} (")]),
        RawHappening::CallEnded => ("sys_exit".to_owned(), vec!["NR ".to_owned()]),
        RawHappening::Dirtied { pause } => ("balance_dirty_pages".to_owned(), vec![format!(" pause={pause} ")]),
        RawHappening::WorkStart { work, .. } => {
            ("workqueue_execute_start".to_owned(), vec![format!("work struct {work:016x}: function ")])
        }
        RawHappening::WorkEnd { work, .. } => {
            ("workqueue_execute_end".to_owned(), vec![format!("work struct {work:016x}: function ")])
        }
        RawHappening::PageFault { user, error_code, .. } => {
            let name = if *user { "page_fault_user" } else { "page_fault_kernel" };
            (name.to_owned(), vec![format!("error_code=0x{error_code:x}")])
        }
    }
}

#[test]
fn decoding_agrees_with_the_kernels_own_text_event_by_event() {
    let Some(tracefs) = tracefs() else { return };
    for subbuf_kb in [None, Some(16)] {
        let instance = create(&tracefs, &InstanceConfig { subbuf_kb, ..config(16 << 10) });
        // Shows addresses as they are, where the kernel can.
        let _ = fs::write(instance.folder().join("options/hash-ptr"), "0");
        let hashed =
            fs::read_to_string(instance.folder().join("options/hash-ptr")).is_ok_and(|text| text.trim() != "0");
        instance.start().unwrap();
        stir(Duration::from_secs(1));
        instance.stop().unwrap();
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for cpu in all_cpus().iter() {
            let stats = instance.stats(cpu).unwrap();
            assert_eq!(stats.lost(), 0, "the buffer is large enough");
            // Looking at the text takes nothing out of the buffer.
            let text = fs::read_to_string(instance.folder().join(format!("per_cpu/cpu{cpu}/trace"))).unwrap();
            let lines: Vec<TraceLine> = text.lines().filter_map(|text| line(text, cpu)).collect();
            let pages = pages(&instance, cpu);
            let events = decode(instance.decoder(), &pages);
            assert_eq!(events.len() as u64, stats.entries, "as many as the kernel counts");
            assert_eq!(events.len(), lines.len());
            for (event, line) in events.iter().zip(&lines) {
                if cfg!(target_arch = "x86_64") {
                    assert_eq!(event.time.to_string(), line.time);
                }
                assert_eq!(event.pid, line.pid);
                let (name, fields) = rendered(instance.decoder(), &event.what);
                assert_eq!(name, line.event);
                if hashed && name.starts_with("workqueue") {
                    continue;
                }
                for field in fields {
                    assert!(line.fields.contains(&field), "'{field}' is not in '{}'", line.fields);
                }
                *kinds.entry(name).or_default() += 1;
            }
            let ordered = events.windows(2).all(|pair| pair[0].time <= pair[1].time);
            assert!(ordered, "time runs forward");
        }
        // Guards against an empty comparison.
        for name in [
            "sched_switch",
            "softirq_entry",
            "page_fault_user",
            "hrtimer_expire_entry",
            "sched_waking",
            "sched_wakeup",
            "sys_enter",
        ] {
            assert!(kinds.get(name).is_some_and(|count| *count > 10), "{name}: {kinds:?}");
        }
        if let Some(kb) = subbuf_kb.filter(|_| tracefs.root().join("buffer_subbuf_size_kb").exists()) {
            assert_eq!(instance.page_size(), kb as usize * 1024);
        }
        instance.remove().unwrap();
    }
}

#[test]
fn local_timer_interrupts_are_as_many_as_the_kernel_counts() {
    let Some(tracefs) = tracefs() else { return };
    let count = || -> Option<u64> {
        let text = fs::read_to_string("/proc/interrupts").unwrap();
        let line = text.lines().find(|line| line.trim_start().starts_with("LOC:"))?;
        Some(line.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok()).sum())
    };
    if count().is_none() {
        skip("/proc/interrupts counts no local timer interrupts on this architecture");
        return;
    }
    let instance = create(&tracefs, &config(16 << 10));
    instance.start().unwrap();
    let before = count().unwrap();
    stir(Duration::from_secs(1));
    let counted = count().unwrap() - before;
    instance.stop().unwrap();
    let mut seen = 0;
    for cpu in all_cpus().iter() {
        let pages = pages(&instance, cpu);
        let timer = |event: &&RawEvent<'_>| match event.what {
            RawHappening::VectorEntry { name, .. } => instance.decoder().vector_name(name) == "local_timer",
            _ => false,
        };
        seen += decode(instance.decoder(), &pages).iter().filter(timer).count() as u64;
    }
    // The recording starts before the count and ends after it; little falls in between.
    assert!(counted > 100 && seen >= counted && seen - counted <= 20 + counted / 50, "{seen} seen, {counted} counted");
}

#[test]
fn lost_events_are_counted_in_the_pages() {
    let Some(tracefs) = tracefs() else { return };
    let instance = create(&tracefs, &config(16));
    instance.start().unwrap();
    stir(Duration::from_millis(500));
    instance.stop().unwrap();
    for cpu in all_cpus().iter() {
        let stats = instance.stats(cpu).unwrap();
        assert!(stats.overrun > 0, "the buffer is too small for what happened");
        let pages = pages(&instance, cpu);
        let events = decode(instance.decoder(), &pages);
        let lost: u64 = events
            .iter()
            .filter_map(|event| match event.what {
                RawHappening::Lost { count } => Some(count.unwrap_or(0)),
                _ => None,
            })
            .sum();
        assert!(matches!(events[0].what, RawHappening::Lost { .. }), "the oldest were lost, so the mark comes first");
        // A full page has no room for the count.
        assert!(lost == 0 || lost == stats.overrun, "{lost} in the pages, {} counted", stats.overrun);
        assert_eq!(events.len() as u64, stats.entries + 1);
    }
}

#[test]
fn a_reader_beside_the_recording_gets_every_event() {
    let Some(tracefs) = tracefs() else { return };
    let instance = create(&tracefs, &config(8 << 10));
    let over = AtomicBool::new(false);
    let cpus = all_cpus();
    thread::scope(|scope| {
        let mut readers = Vec::new();
        for cpu in cpus.iter() {
            let (instance, over) = (&instance, &over);
            readers.push(scope.spawn(move || {
                let mut reader = instance.reader(cpu).unwrap();
                let mut page = vec![0; reader.page_size()];
                let (mut events, mut last) = (0, 0);
                loop {
                    let ending = over.load(Ordering::Acquire);
                    while let Some(length) = reader.read_page(&mut page).unwrap() {
                        let summary = instance.decoder().page(&page[..length], &mut |event| {
                            assert!(event.time >= last, "time runs forward, over pages too");
                            last = event.time;
                        });
                        let summary = summary.unwrap();
                        assert!(!summary.lost);
                        events += summary.events;
                    }
                    if ending {
                        return (cpu, events);
                    }
                    thread::sleep(Duration::from_millis(20));
                }
            }));
        }
        instance.start().unwrap();
        stir(Duration::from_secs(1));
        instance.stop().unwrap();
        over.store(true, Ordering::Release);
        for reader in readers {
            let (cpu, events) = reader.join().unwrap();
            let stats = instance.stats(cpu).unwrap();
            assert_eq!((stats.entries, stats.lost(), stats.read_events), (0, 0, events));
            assert!(events > 100);
        }
    });
}

#[test]
fn two_instances_and_the_top_level_leave_each_other_alone() {
    let Some(tracefs) = tracefs() else { return };
    let global = || {
        ["tracing_on", "trace_clock", "set_event", "trace_options", "tracing_cpumask", "buffer_subbuf_size_kb"]
            .map(|file| fs::read_to_string(tracefs.root().join(file)).unwrap_or_default())
    };
    let before = global();
    let one = create(&tracefs, &config(4 << 10));
    let two = create(&tracefs, &InstanceConfig { clock: TraceClock::MonoRaw, ..config(4 << 10) });
    assert_ne!(one.name(), two.name());
    one.start().unwrap();
    two.start().unwrap();
    assert_eq!(global(), before);
    stir(Duration::from_millis(300));
    one.remove().unwrap();
    let count = |instance: &Instance| -> u64 {
        all_cpus().iter().map(|cpu| instance.stats(cpu).unwrap()).map(|stats| stats.entries + stats.overrun).sum()
    };
    let then = count(&two);
    assert!(then > 100);
    stir(Duration::from_millis(300));
    assert!(count(&two) > then + 100, "the other goes on recording");
    drop(two);
    assert_eq!(global(), before);
}

#[test]
fn only_the_measured_cpus_are_recorded_and_given_memory() {
    let Some(tracefs) = tracefs() else { return };
    let cpus = all_cpus();
    let Some(other) = cpus.iter().nth(1) else {
        skip("there is only one CPU");
        return;
    };
    let measured = cpus.iter().next().unwrap();
    let instance = create(&tracefs, &InstanceConfig { cpus: [measured].into_iter().collect(), ..config(1000) });
    instance.start().unwrap();
    stir(Duration::from_millis(200));
    assert!(instance.buffer_kb(measured).unwrap() >= 1000);
    assert!(instance.buffer_kb(other).unwrap() < 100);
    assert!(instance.stats(measured).unwrap().entries > 10);
    assert_eq!(instance.stats(other).unwrap().entries, 0);
    assert!(instance.missing().iter().all(|missing| !missing.why.is_empty() && !missing.unseen.is_empty()));
    assert!(!fs::read_to_string(instance.folder().join("trace_options")).unwrap().lines().any(|l| l == "record-cmd"));
}

/// Takes page faults in a thread of this name; gives the thread's number.
fn faulting(name: &str) -> i32 {
    let act = || {
        (0..50).for_each(|_| touch_fresh_pages(1 << 18));
        becalm_linux::sched::current_tid()
    };
    thread::Builder::new().name(name.to_owned()).spawn(act).unwrap().join().unwrap()
}

#[test]
fn faults_of_other_threads_are_not_recorded() {
    let Some(tracefs) = tracefs() else { return };
    let instance = create(&tracefs, &InstanceConfig { faults: Faults::Of("measuring/"), ..config(4 << 10) });
    if instance.enabled().iter().all(|event| event.system != "exceptions") {
        return skip("this kernel does not trace page faults");
    }
    instance.start().unwrap();
    let (ours, other) = (faulting("measuring/1"), faulting("beside"));
    instance.stop().unwrap();
    let mut faults: BTreeMap<i32, u64> = BTreeMap::new();
    for cpu in all_cpus().iter() {
        for event in decode(instance.decoder(), &pages(&instance, cpu)) {
            if matches!(event.what, RawHappening::PageFault { .. }) {
                *faults.entry(event.pid).or_default() += 1;
            }
        }
    }
    assert!(faults.get(&ours).is_some_and(|count| *count >= 50 * 64), "{faults:?}");
    assert_eq!(faults.len(), 1, "{other} among them, or others: {faults:?}");
}

#[test]
fn an_open_reader_keeps_an_instance_and_the_error_says_so() {
    let Some(tracefs) = tracefs() else { return };
    let instance = create(&tracefs, &config(64));
    let folder = instance.folder().to_owned();
    let reader = instance.reader(all_cpus().iter().next().unwrap()).unwrap();
    let error = instance.remove().unwrap_err().to_string();
    assert!(error.contains("another reader"), "{error}");
    drop(reader);
    fs::remove_dir(folder).unwrap();
}

#[test]
fn every_format_of_this_kernel_reads() {
    let Some(tracefs) = tracefs() else { return };
    let events = tracefs.root().join("events");
    let mut count = 0;
    for system in fs::read_dir(&events).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for event in fs::read_dir(&system).unwrap().map(|entry| entry.unwrap().path().join("format")) {
            // The directory `ftrace` also contains formats of records that are not events.
            if let Ok(text) = fs::read_to_string(&event) {
                let format = EventFormat::parse(&event.display().to_string(), &text).unwrap();
                assert!(format.field("common_pid").is_some(), "{}", event.display());
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn an_unknown_cpu_is_an_error_and_leaves_nothing() {
    let Some(tracefs) = tracefs() else { return };
    let name = InstanceName::own(Path::new(PROC)).unwrap();
    let error = Instance::create(
        &tracefs,
        Path::new(PROC),
        &InstanceConfig { cpus: "100000".parse().unwrap(), ..config(64) },
        None,
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("per_cpu/cpu100000/buffer_size_kb"), "{error}");
    assert!(error.contains(&format!("becalm-{}-", name.pid)), "{error}");
    let folder = error.split("instances/").nth(1).unwrap().split('/').next().unwrap();
    assert!(!tracefs.root().join("instances").join(folder).exists());
}

#[test]
fn leftovers_of_dead_processes_go_and_others_stay() {
    let Some(tracefs) = tracefs() else { return };
    let own = InstanceName::own(Path::new(PROC)).unwrap();
    let dead = InstanceName { start: own.start + 1, serial: 77, ..own };
    let live = InstanceName { serial: 78, ..own };
    let foreign = format!("foreign-{}", own.pid);
    let folder = |name: &str| tracefs.root().join("instances").join(name);
    let all = [dead.to_string(), live.to_string(), foreign];
    for name in &all {
        fs::create_dir(folder(name)).unwrap();
    }
    let leftovers = remove_dead(&tracefs, Path::new(PROC)).unwrap();
    let there = all.each_ref().map(|name| folder(name).exists());
    for name in &all[1..] {
        fs::remove_dir(folder(name)).unwrap();
    }
    assert!(leftovers.removed.contains(&all[0]), "{leftovers:?}");
    assert_eq!(there, [false, true, true]);
}

/// Runs `life` in a forked process, which has one thread.
fn forked(life: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child runs `life` and ends without returning into the harness; the C library keeps its allocator
    // usable over a fork.
    match unsafe { libc::fork() } {
        -1 => panic!("cannot fork"),
        0 => {
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(life));
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(ended.is_err())) }
        }
        process => process,
    }
}

fn reap(process: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is writable; the process is our child.
    assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
    status
}

#[test]
fn a_killed_recorders_instance_is_removed_by_the_janitor() {
    use becalm_linux::janitor::Janitor;
    let Some(tracefs) = tracefs() else { return };
    let instances = tracefs.root().join("instances");
    let process = forked(|| {
        let janitor = Janitor::spawn(Path::new(PROC)).unwrap();
        let instance =
            Instance::create(&tracefs, Path::new(PROC), &config(64), Some(std::sync::Arc::new(janitor))).unwrap();
        let _reader = instance.reader(all_cpus().iter().next().unwrap()).unwrap();
        instance.start().unwrap();
        loop {
            thread::sleep(Duration::from_secs(1000));
        }
    });
    let found = || {
        let names = fs::read_dir(&instances).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names = names.filter(|name| name.starts_with(&format!("becalm-{process}-")));
        names.collect::<Vec<String>>()
    };
    let is_on =
        |name: &String| fs::read_to_string(instances.join(name).join("tracing_on")).is_ok_and(|switch| switch == "1\n");
    let is_recording = || {
        found().first().is_some_and(|name| {
            is_on(name) && !fs::read_to_string(instances.join(name).join("set_event")).unwrap_or_default().is_empty()
        })
    };
    wait_until("it records", &is_recording);
    // SAFETY: the process is our child and not yet reaped.
    unsafe { libc::kill(process, libc::SIGKILL) };
    reap(process);
    wait_until("its instance goes", &|| found().is_empty());
}

#[test]
fn tracefs_is_mounted_where_it_is_not_and_unmounted_after() {
    let Some(tracefs) = tracefs() else { return };
    let status = reap(forked(|| {
        // Alone in a mount namespace of its own, where the machine's mounts can be taken away.
        let root = c"/".as_ptr();
        // SAFETY: the strings end in a zero; the calls change the mounts that this process alone sees.
        unsafe {
            assert_eq!(libc::unshare(libc::CLONE_NEWNS), 0);
            let private = libc::MS_REC | libc::MS_PRIVATE;
            assert_eq!(libc::mount(std::ptr::null(), root, std::ptr::null(), private, std::ptr::null()), 0);
        }
        while let Ok(found) = Tracefs::find(Path::new("/")) {
            let path = std::ffi::CString::new(found.root().to_str().unwrap()).unwrap();
            let parent = found.root().parent().unwrap().to_str().unwrap();
            let parent = std::ffi::CString::new(parent).unwrap();
            // The parent first: where that is debugfs, the kernel mounts tracefs there again whenever it is looked at.
            // SAFETY: the strings end in a zero.
            let gone = unsafe {
                libc::umount2(parent.as_ptr(), libc::MNT_DETACH) == 0
                    || libc::umount2(path.as_ptr(), libc::MNT_DETACH) == 0
            };
            assert!(gone, "{}", found.root().display());
        }
        let point = Path::new(Tracefs::MOUNT_POINT);
        let mounted = Tracefs::find_or_mount(Path::new("/"), point, None).unwrap();
        assert_eq!(mounted.mounted_here(), Some(point));
        let instance = create(&mounted, &config(64));
        drop(mounted);
        assert!(instance.folder().exists(), "an instance keeps the mount");
        drop(instance);
        assert!(matches!(Tracefs::find(Path::new("/")), Err(TracefsError::NotMounted)));
    }));
    assert_eq!(status, 0);
    assert!(tracefs.root().join("events").exists());
}
