//! `becalm explain` of steps with planted noise, and of steps that are slow by themselves.

use std::fmt::Write;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use becalm_linux::clock::wall_clocks;
use becalm_linux::sched;
use becalm_testing::cgroup::ControlGroup;
use becalm_testing::program::{Ended, Running, becalm, instances_of, path, run};
use becalm_testing::{attempts, skip};
use becalm_units::CpuId;
use serde_json::Value;

use crate::robust::alone;

/// The name of the thread that takes the steps.
const WORKER: &str = "ex-worker";

/// A step: start and end on the monotonic clock and on the wall clock.
#[derive(Clone, Copy)]
struct Step {
    monotonic: (u64, u64),
    realtime: (u64, u64),
}

/// Steps of a thread in a recording.
struct Steps {
    tid: i32,
    all: Vec<Step>,
}

/// Makes a worker a real-time thread, so a busy machine takes little from it.
fn be_urgent(_: i32) {
    // Elsewhere it competes with what runs there.
    let _ = sched::set_policy(sched::Policy::Fifo(1));
}

/// Computes a fixed amount.
fn compute(amount: u64) -> u64 {
    (0..amount).fold(1, |sum, number| black_box(sum ^ number.wrapping_mul(0x9e37_79b9)))
}

/// The amount that takes about this time.
fn amount_for(time: Duration) -> u64 {
    const TRIED: u64 = 1 << 16;
    let shortest = (0..20).map(|_| {
        let since = std::time::Instant::now();
        black_box(compute(TRIED));
        since.elapsed()
    });
    let shortest = shortest.min().expect("there were tries");
    (TRIED as f64 * time.as_secs_f64() / shortest.as_secs_f64()) as u64
}

fn last_cpu() -> CpuId {
    sched::allowed_cpus().unwrap().iter().last().expect("there is a CPU")
}

/// Takes steps on the last CPU while becalm observes, after `prepare` in the worker. `step` gets the number of each and the amount of an ordinary one;
/// `after` gets the number when the step is over.
fn observed_steps(
    bundle: &Path,
    count: u64,
    prepare: impl FnOnce(i32) + Send,
    step: impl Fn(u64, u64) + Send,
    after: impl Fn(u64) + Send,
) -> Steps {
    let words = ["observe", "--comm", WORKER, "-d", "10m", "-q", "-o", path(bundle)];
    recorded_steps(&words, 2, count, prepare, step, after)
}

/// The same while becalm runs with these words, which makes so many instances of the kernel's trace.
fn recorded_steps(
    words: &[&str],
    instances: usize,
    count: u64,
    prepare: impl FnOnce(i32) + Send,
    step: impl Fn(u64, u64) + Send,
    after: impl Fn(u64) + Send,
) -> Steps {
    let mut running = None;
    let (begin, begins) = std::sync::mpsc::channel::<()>();
    let steps = thread::scope(|scope| {
        let worker = move || {
            sched::pin_current_thread(last_cpu()).unwrap();
            let tid = sched::current_tid();
            prepare(tid);
            let amount = amount_for(Duration::from_millis(8));
            begins.recv().unwrap();
            let take = |number| {
                let [monotonic, realtime, _] = wall_clocks();
                step(number, amount);
                let [monotonic_end, realtime_end, _] = wall_clocks();
                after(number);
                // A real-time thread that always runs would reach the limit on these.
                thread::sleep(Duration::from_millis(1));
                Step { monotonic: (monotonic, monotonic_end), realtime: (realtime, realtime_end) }
            };
            Steps { tid, all: (0..count).map(take).collect() }
        };
        let worker = thread::Builder::new().name(WORKER.to_owned()).spawn_scoped(scope, worker).unwrap();
        let started = running.insert(Running::start(becalm(words)));
        let pid = started.pid();
        started.wait_until("its traces are there", || instances_of(pid).len() == instances);
        thread::sleep(Duration::from_millis(700));
        begin.send(()).unwrap();
        worker.join().unwrap()
    });
    let running = running.expect("it was started");
    running.signal("INT");
    running.end().expect(0, &[]);
    steps
}

/// The steps as a table with the times that `clock` returns.
fn table(steps: &Steps, clock: impl Fn(&Step) -> (u64, u64)) -> String {
    let mut text = "tid,start,end,name\n".to_owned();
    for step in &steps.all {
        let (start, end) = clock(step);
        writeln!(text, "{},{start},{end},step", steps.tid).unwrap();
    }
    text
}

fn explain(bundle: &Path, spans: &str, words: &[&str]) -> Ended {
    let file = bundle.with_extension("spans");
    fs::write(&file, spans).unwrap();
    let mut command = becalm(&[&["explain", path(bundle), "--spans", path(&file)], words].concat());
    command.env("COLUMNS", "80");
    run(command)
}

/// The document of an explanation, after checking what holds for all.
fn explained(bundle: &Path, spans: &str, words: &[&str]) -> Value {
    let ended = explain(bundle, spans, &[&["--json"], words].concat());
    ended.expect(0, &[]);
    let doc: Value = serde_json::from_str(&ended.stdout).unwrap();
    let sum = |list: &str| doc[list].as_array().unwrap().iter().map(|row| row["ns"].as_i64().unwrap()).sum::<i64>();
    let excess = doc["excess_ns"].as_i64().unwrap();
    assert_eq!((sum("sources"), sum("sides")), (excess, excess), "{doc:#}");
    for span in doc["worst"].as_array().unwrap() {
        let parts = span["causes"].as_array().unwrap().iter().map(|part| part["ns"].as_i64().unwrap());
        assert_eq!(parts.sum::<i64>(), span["ns"].as_i64().unwrap(), "{span:#}");
    }
    doc
}

fn side(doc: &Value, name: &str) -> f64 {
    let sides = doc["sides"].as_array().unwrap();
    sides.iter().find(|side| side["side"] == name).unwrap()["share_of_excess"].as_f64().unwrap()
}

/// The share of the excess of the causes for which `is_it`.
fn share(doc: &Value, is_it: impl Fn(&Value) -> bool) -> f64 {
    let sources = doc["sources"].as_array().unwrap().iter();
    sources.filter(|source| is_it(source)).map(|source| source["share_of_excess"].as_f64().unwrap()).sum()
}

/// A real-time program with this name on the last CPU: bursts of some 20 ms, each 0.4 s after the last one.
fn start_gremlin(folder: &Path, name: &str) -> Option<Child> {
    let program = folder.join(name);
    fs::copy("/bin/sh", &program).unwrap();
    let cpu = last_cpu().to_string();
    let script = "while :; do i=0; while [ $i -lt 17000 ]; do i=$((i+1)); done; sleep 0.4; done";
    let words = ["-f", "50", "taskset", "-c", &cpu, path(&program), "-c", script];
    let mut child = Command::new("chrt").args(words).stdin(Stdio::null()).spawn().ok()?;
    thread::sleep(Duration::from_millis(50));
    child.try_wait().unwrap().is_none().then_some(child)
}

/// Takes steps beside two such programs; `None` if none may be started.
fn beside_gremlins(folder: &Path, take: impl FnOnce() -> Steps) -> Option<Steps> {
    let gremlins = ["grem1", "grem2"].map(|name| start_gremlin(folder, name));
    let steps = gremlins.iter().all(Option::is_some).then(take);
    for mut gremlin in gremlins.into_iter().flatten() {
        let _ = gremlin.kill();
        let _ = gremlin.wait();
    }
    steps
}

/// Checks that the bursts are in the slow steps.
fn check_bursts(doc: &Value) {
    let of_both = share(doc, |source| matches!(source["source"].as_str(), Some("grem1" | "grem2")));
    eprintln!("{of_both} {}", doc["sentence"]);
    assert!(of_both >= 0.85 && doc["verdict"] == "system", "{of_both}: {:#}", doc["sources"]);
    assert_eq!((doc["clock"].as_str(), doc["clock_found"].as_bool()), (Some("monotonic"), Some(true)));
}

#[test]
fn bursts_of_other_programs_explain_the_slow_steps() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bursts.becalm");
    let ordinary = |_, amount| _ = black_box(compute(amount));
    let steps = beside_gremlins(folder.path(), || observed_steps(&bundle, 500, be_urgent, ordinary, |_| ()));
    let Some(steps) = steps else { return skip("no real-time program may be started") };
    let monotonic = table(&steps, |step| step.monotonic);
    let doc = explained(&bundle, &monotonic, &[]);
    check_bursts(&doc);
    assert!(doc["covered"].as_f64().unwrap() >= 0.999, "{}", doc["covered"]);
    // The report fits a small terminal.
    let text = explain(&bundle, &monotonic, &[]).stdout;
    let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(text.lines().count() <= 30 && longest <= 80, "{longest}\n{text}");

    // The same spans in other formats give the same document, and on the other clock the same but for its error.
    let realtime = table(&steps, |step| step.realtime);
    let by_wall = explained(&bundle, &realtime, &["--clock", "realtime"]);
    let micros = |ns: u64| format!("{}.{:03}", ns / 1_000, ns % 1_000);
    let mut chrome = r#"{"baseTimeNanoseconds":0,"traceEvents":["#.to_owned();
    let mut otlp = r#"{"resourceSpans":[{"scopeSpans":[{"spans":["#.to_owned();
    for (number, step) in steps.all.iter().enumerate() {
        let ((start, end), comma) = (step.realtime, if number == 0 { "" } else { "," });
        let (ts, dur, tid) = (micros(start), micros(end - start), steps.tid);
        write!(chrome, r#"{comma}{{"ph":"X","pid":1,"tid":{tid},"ts":{ts},"dur":{dur},"name":"step"}}"#).unwrap();
        write!(
            otlp,
            r#"{comma}{{"name":"step","startTimeUnixNano":"{start}","endTimeUnixNano":"{end}","attributes":[{{"key":"thread.id","value":{{"intValue":"{tid}"}}}}]}}"#
        )
        .unwrap();
    }
    assert_eq!(explained(&bundle, &(chrome + "]}"), &[]), by_wall);
    assert_eq!(explained(&bundle, &(otlp + "]}]}]}"), &[]), by_wall);
    let error = |doc: &Value| doc["clock_error_ns"].as_i64().unwrap();
    // Each of its 25 slow and 250 ordinary spans has two ends.
    let apart = (doc["excess_ns"].as_i64().unwrap() - by_wall["excess_ns"].as_i64().unwrap()).abs();
    assert!(apart <= 4 * (error(&doc) + error(&by_wall)) + 4_000, "{apart} {} {}", error(&doc), error(&by_wall));

    // Spans of another clock or of another thread are refused.
    let mistaken = explain(&bundle, &monotonic, &["--clock", "realtime"]);
    mistaken.expect(2, &["500 of 500 spans are outside of the recording by the clock realtime"]);
    let strangers = monotonic.replace(&format!("{},", steps.tid), "1,");
    explain(&bundle, &strangers, &[])
        .expect(2, &["500 of 500 spans are of threads that were not observed then, such as 1"]);
}

/// A recording of the CPU has the steps as interruptions of its loop, and the bursts as well.
#[test]
fn bursts_explain_the_slow_steps_by_a_recording_of_their_cpu() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("cpu.becalm");
    let cpu = last_cpu().to_string();
    let words = ["record", "--cpus", &cpu, "-d", "10m", "-q", "-o", path(&bundle)];
    let ordinary = |_, amount| _ = black_box(compute(amount));
    let steps = beside_gremlins(folder.path(), || recorded_steps(&words, 1, 500, be_urgent, ordinary, |_| ()));
    let Some(steps) = steps else { return skip("no real-time program may be started") };
    let monotonic = table(&steps, |step| step.monotonic);
    let doc = explained(&bundle, &monotonic, &[]);
    check_bursts(&doc);
    // The thread's own time in these interruptions is the program's, and the loop had the CPU while it slept.
    assert!(doc["notes"].to_string().contains("becalm's measuring loop had the CPU"), "{}", doc["notes"]);
    assert!(doc["sources"].as_array().unwrap().iter().all(|source| source["source"] != WORKER), "{}", doc["sources"]);
    let realtime = explained(&bundle, &table(&steps, |step| step.realtime), &["--clock", "realtime"]);
    let apart = (doc["excess_ns"].as_i64().unwrap() - realtime["excess_ns"].as_i64().unwrap()).abs();
    assert!(apart < 1_000_000, "{apart}");
    let elsewhere = if last_cpu() == CpuId::new(0) { "1" } else { "0" };
    explain(&bundle, &monotonic, &["--cpu", elsewhere]).expect(2, &["was not measured; the recording has CPU"]);
}

#[test]
fn slow_steps_of_the_program_itself_are_not_the_systems() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("own.becalm");
    let step =
        |number: u64, amount| _ = black_box(compute(if number.is_multiple_of(20) { 2 * amount } else { amount }));
    let steps = observed_steps(&bundle, 500, be_urgent, step, |_| ());
    let doc = explained(&bundle, &table(&steps, |step| step.monotonic), &[]);
    eprintln!("{}", doc["sentence"]);
    assert!(side(&doc, "system") < 0.1, "{:#}", doc["sources"]);
    assert!(side(&doc, "program") > 0.9 && doc["verdict"] == "program", "{:#}", doc["sources"]);
    let sentence = doc["sentence"].as_str().unwrap();
    assert!(sentence.contains("the system is not it") && sentence.contains("look in the program"), "{sentence}");
}

#[test]
fn a_quota_explains_the_steps_that_it_interrupts() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("quota.becalm");
    let Some(group) = ControlGroup::with_time(50_000, 100_000) else { return skip("there is no group with a quota") };
    let join = |tid| group.take_thread(tid).expect("a thread can be moved");
    let steps = observed_steps(&bundle, 500, join, |_, amount| _ = black_box(compute(amount)), |_| ());
    let doc = explained(&bundle, &table(&steps, |step| step.monotonic), &[]);
    let of_quota = share(&doc, |source| source["class"] == "quota");
    eprintln!("{of_quota} {}", doc["sentence"]);
    assert!(of_quota >= 0.85 && doc["verdict"] == "system", "{of_quota}: {:#}", doc["sources"]);
    assert!(doc["advice"].as_str().unwrap().contains("raise the quota"), "{}", doc["advice"]);
}

#[test]
fn reclaim_is_found_in_the_steps_that_free_memory() {
    /// The limits of the group, in MiB.
    const SMALL: u32 = 8;
    const LARGE: u32 = 1_024;
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(group) = ControlGroup::with_memory(LARGE) else { return skip("there is no group with a limit on memory") };
    let file = folder.path().join("data");
    // A hole, which no disk has to provide.
    fs::File::create(&file).unwrap().set_len(240 << 20).unwrap();
    // The kernel charges the group of the process's first thread.
    let process = std::process::id().cast_signed();
    if group.take_thread(process).is_none() {
        return skip("a thread cannot have a limit on memory of its own");
    }
    let step = |number: u64, amount| {
        // Every twentieth step frees what was read after the others.
        if number % 20 == 19 {
            group.limit_memory(SMALL).unwrap();
            group.limit_memory(LARGE).unwrap();
        }
        black_box(compute(amount));
    };
    let read = |number: u64| {
        let mut data = fs::File::open(&file).unwrap();
        let mut part = [0; 64 << 10];
        std::io::Seek::seek(&mut data, std::io::SeekFrom::Start((number % 20 * 12) << 20)).unwrap();
        (0..192).for_each(|_| std::io::Read::read_exact(&mut data, &mut part).unwrap());
    };
    attempts(3, || {
        let place = tempfile::tempdir().unwrap();
        let bundle = place.path().join("reclaim.becalm");
        let steps = observed_steps(&bundle, 400, be_urgent, step, read);
        let doc = explained(&bundle, &table(&steps, |step| step.monotonic), &[]);
        let reclaim = doc["sources"].as_array().unwrap().iter().find(|source| source["source"] == "group_reclaim");
        eprintln!("{} {reclaim:?}", doc["sentence"]);
        let reclaim = reclaim.unwrap_or_else(|| panic!("there is reclaim: {:#}", doc["sources"]));
        assert_eq!((&reclaim["class"], &reclaim["in_ordinary"]), (&Value::from("own_work"), &Value::from(0)));
        // Other programs may make other steps slow.
        let is_found = reclaim["in_slow"].as_u64() >= Some(18) && reclaim["share_of_excess"].as_f64() >= Some(0.85);
        if is_found { Ok(()) } else { Err(format!("{reclaim:#}")) }
    });
    group.release_thread(process).expect("a thread can be moved back");
}

/// Processes of one name are spans without any file, such as the runs that hyperfine repeats.
#[test]
fn repeated_processes_are_spans() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("repeated.becalm");
    // Every eighth run sleeps for longer.
    let script =
        "i=0; while [ $i -lt 40 ]; do i=$((i+1)); if [ $((i%8)) = 0 ]; then sleep 0.06; else sleep 0.01; fi; done";
    run(becalm(&["observe", "-q", "-o", path(&bundle), "--", "sh", "-c", script])).expect(0, &[]);
    let mut command = becalm(&["explain", path(&bundle), "--lives", "sleep", "--slowest", "10%", "--json"]);
    let ended = run({
        command.env("COLUMNS", "80");
        command
    });
    ended.expect(0, &[]);
    let doc: Value = serde_json::from_str(&ended.stdout).unwrap();
    let asleep = share(&doc, |source| source["class"] == "asleep");
    eprintln!("{asleep} {}", doc["sentence"]);
    assert_eq!((doc["spans"].as_u64(), doc["slow"].as_u64()), (Some(40), Some(4)), "{doc:#}");
    assert!(asleep >= 0.9 && doc["excess_ns"].as_i64() >= Some(40_000_000), "{asleep}: {:#}", doc["sources"]);
    for (name, why) in
        [("none", "no observed thread is called 'none'"), ("sh", "can be explained, and at least 20 are")]
    {
        run(becalm(&["explain", path(&bundle), "--lives", name])).expect(if name == "sh" { 1 } else { 2 }, &[why]);
    }
    run(becalm(&["explain", path(&bundle)])).expect(2, &["--spans"]);
}
