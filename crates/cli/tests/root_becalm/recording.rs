//! What a recording says of itself where it is killed, flooded, or made in a namespace.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use becalm_bundle::Bundle;
use becalm_linux::perf::CpuClock;
use becalm_linux::sched;
use becalm_model::Kind;
use becalm_testing::program::{Running, becalm, document, executable, path, report, run, warning_codes};
use becalm_testing::{Need, attempts, find_program, machine_has, skip};
use serde_json::Value;

use crate::robust::alone;

fn number(value: &Value, name: &str) -> i64 {
    value[name].as_i64().unwrap_or_else(|| panic!("{name} is a number in {value:#}"))
}

#[test]
fn a_killed_recording_without_detours_knows_how_long_it_watched() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("quiet.becalm");
    let words = ["--quiet", "--cpus", "1", "--threshold", "9s", "--segment", "500ms", "--until-stopped"];
    let mut running = Running::start(becalm(&[&["record", "-o", path(&bundle)][..], &words].concat()));
    running.wait_for_start(&bundle);
    thread::sleep(Duration::from_secs(4));
    running.signal("KILL");
    running.end();
    let report = report(&bundle);
    let cpu = &report["cpus"][0];
    assert_eq!((number(cpu, "detours"), number(cpu, "cpu")), (0, 1), "{cpu:#}");
    // All but the segment that was being recorded, and what starting took.
    let watched = number(cpu, "duration_ns");
    assert!((2_500_000_000..4_500_000_000).contains(&watched), "{cpu:#}");
    assert_eq!(cpu["noise_ratio"].as_f64(), Some(0.0), "{cpu:#}");
}

/// Records steps of that length and more: hardly longer than the shortest, which makes twenty thousand to millions of detours a second, as the
/// processor will have it, and more than a small buffer takes. Where even the detours that are never left out are too many for the smallest one, as
/// on a machine with much noise of its own, it is given twice as much. Where the shortest is longer this time, as the processor's speed changed, the
/// threshold becomes what becalm says then.
fn storm(bundle: &Path, threshold: i64) -> Value {
    const MOST_KIBIBYTES: u32 = 512;
    let mut threshold = format!("{threshold}ns");
    let mut buffer = 4;
    for _ in 0..10 {
        let kibibytes = buffer.to_string();
        let words = ["--quiet", "--cpus", "1", "--duration", "2s", "--buffer", &kibibytes, "--threshold", &threshold];
        let ended = run(becalm(&[&["record", "-o", path(bundle)][..], &words].concat()));
        if let Some((_, least)) = ended.stderr.split_once("give at least ") {
            threshold = least.split(',').next().unwrap().to_owned();
        } else if ended.stderr.contains("a buffer was full") && buffer < MOST_KIBIBYTES {
            fs::remove_dir_all(bundle).unwrap();
            buffer *= 2;
        } else {
            ended.expect(0, &[]);
            return document(bundle);
        }
    }
    panic!("ten times in a row, at last with a threshold of {threshold} and a buffer of {buffer} KiB");
}

#[test]
fn a_storm_of_short_detours_ends_no_recording() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let quiet = folder.path().join("quiet.becalm");
    let t_min = number(&storm(&quiet, 1_000_000)["cpus"][0], "t_min_ns");
    let bundle = folder.path().join("storm.becalm");
    let doc = storm(&bundle, t_min + 1);
    assert_eq!(doc["ended"], "duration");
    assert!(warning_codes(&doc).contains(&"unstored"), "{doc:#}");
    let cpu = &doc["cpus"][0];
    let of = |name: &str| number(cpu, name);
    // How many steps are longer than the shortest is for the processor to say: 10,000 to millions, and 3,700 while others had the CPU for
    // half of the time.
    assert!(of("unstored") > 0, "{cpu:#}");
    // The books are closed: what was stored, counted and left out is the whole time. Each stored step may be rounded by a
    // nanosecond.
    let t_min = of("t_min_ns");
    let detours = of("total_ns") + of("unstored_ns") + (of("detours") + of("unstored")) * t_min;
    let off = of("duration_ns") - of("below_threshold_ns") - detours;
    assert!(off.abs() <= of("detours") + 2, "{off} ns vanished: {cpu:#}");
    // By length as in all, and none of 1 us and more.
    let lengths = cpu["unstored_lengths"].as_array().unwrap();
    let sum = |name: &str| lengths.iter().map(|length| number(length, name)).sum::<i64>();
    assert_eq!((sum("detours"), sum("total_ns")), (of("unstored"), of("unstored_ns")));
    assert!(lengths.iter().all(|length| number(length, "below_ns") < 1_000), "{lengths:#?}");
    // The noise is that of all of them.
    let report = report(&bundle);
    let ratio = report["cpus"][0]["noise_ratio"].as_f64().unwrap();
    let noise = (of("total_ns") + of("unstored_ns")) as f64 / of("duration_ns") as f64;
    assert!((ratio - noise).abs() < 1e-9, "{ratio} instead of {noise}");
}

/// Once a CPU has its detours, what goes on there is none of the recording's business, also while other CPUs still wait for theirs.
#[test]
fn each_cpu_is_watched_until_it_has_its_detours() {
    const DETOURS: i64 = 2_000;
    let Some(_alone) = alone() else { return };
    let cpus: Vec<_> = sched::allowed_cpus().unwrap().iter().take(2).collect();
    let [seldom, often] = cpus[..] else { return skip("there is one CPU") };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("counted.becalm");
    let (list, number_of) = (format!("{seldom},{often}"), DETOURS.to_string());
    // Interrupts alone are counted: of shorter steps some processors have thousands a second on each CPU.
    let words = [
        "--quiet",
        "--cpus",
        &list,
        "--detours",
        &number_of,
        "--segment",
        "200ms",
        "--duration",
        "1m",
        "--threshold",
        "3us",
    ];
    let (doc, longer, shorter) = attempts(3, || {
        _ = fs::remove_dir_all(&bundle);
        let clocks = [(seldom, 500), (often, 8_000)].map(|(cpu, rate)| CpuClock::start(cpu, rate).unwrap());
        run(becalm(&[&["record", "-o", path(&bundle)][..], &words].concat())).expect(0, &[]);
        drop(clocks);
        let doc = document(&bundle);
        assert_eq!((&doc["ended"], &doc["rung"]), (&"detours".into(), &"tracepoints".into()), "{doc:#}");
        let cpus = doc["cpus"].as_array().unwrap();
        assert!(cpus.len() == 2 && cpus.iter().all(|cpu| number(cpu, "detours") == DETOURS), "{doc:#}");
        let [longer, shorter] = [0, 1].map(|at: usize| number(&cpus[at], "duration_ns"));
        // A host may interrupt both CPUs more often than the clocks do.
        if shorter * 2 < longer { Ok((doc, longer, shorter)) } else { Err(format!("{shorter} and {longer} ns")) }
    });
    let [seldom, often] = &doc["cpus"].as_array().unwrap()[..] else { panic!("two CPUs: {doc:#}") };
    // Each interrupt of the clock is two events, and came in some detour until then.
    let [less, more] =
        [seldom, often].map(|cpu| number(cpu, "events") as f64 / number(cpu, "duration_ns") as f64 * 1e9);
    eprintln!("{less:.0} and {more:.0} events a second in {longer} and {shorter} ns");
    // To the end of the recording there would have been two at each of the clock's 8,000 interrupts a second. While other programs have the
    // CPU, its interrupts are no detours of the loop, and the loop needs longer.
    let to_the_end = 16_000.0 * longer as f64 / 1e9;
    assert!((number(often, "events") as f64) < 0.75 * to_the_end, "{doc:#}");
    assert_eq!(number(often, "voluntary_switches"), 0, "{doc:#}");
    // The figures leave becalm's own out; that the rows are as many as the document says is looked at by the report.
    let report = report(&bundle);
    let shown = number(&report["total"], "detours");
    assert!((2 * DETOURS * 9 / 10..=2 * DETOURS).contains(&shown), "{shown}");
    assert!(!warning_codes(&report).contains(&"rows_differ"), "{:#}", report["warnings"]);
}

/// How long becalm stayed on measured CPUs each time, in rising order, in nanoseconds.
fn own_stays(bundle: &Path) -> Vec<i64> {
    let bundle = Bundle::open(bundle).unwrap();
    let mut stays = Vec::new();
    for batch in bundle.activities(&bundle.nodes()[0].node).unwrap() {
        let batch = batch.unwrap();
        let own = (0..batch.len()).filter(|row| batch.kind(*row) == Kind::Becalm);
        stays.extend(own.map(|row| batch.self_times()[row]));
    }
    stays.sort_unstable();
    stays
}

#[test]
fn where_every_cpu_is_measured_becalm_never_stays_for_long() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("all.becalm");
    // So many events that a segment takes tens of milliseconds to attribute and to store.
    let cpus = sched::allowed_cpus().unwrap();
    let clocks: Vec<_> = cpus.iter().map(|cpu| CpuClock::start(cpu, 5_000).unwrap()).collect();
    let words = ["record", "--quiet", "--duration", "6s", "--segment", "2s", "-o", path(&bundle)];
    run(becalm(&words)).expect(0, &[]);
    drop(clocks);
    let doc = document(&bundle);
    assert_eq!((&doc["ended"], &doc["rung"]), (&Value::from("duration"), &Value::from("tracepoints")), "{doc:#}");
    for cpu in doc["cpus"].as_array().unwrap() {
        assert_eq!(number(cpu, "lost_events"), 0, "{cpu:#}");
    }
    let stays = own_stays(&bundle);
    let total: i64 = stays.iter().sum();
    assert!(
        stays.len() > 100 && total > 40_000_000,
        "{} stays of {total} ns: too little work to show anything",
        stays.len()
    );
    // The host of a guest and cold memory lengthen single ones, and a host whose CPUs are wanted by others lengthens all; a stay
    // that nothing but the scheduler ends takes four milliseconds here, and in one go this work would make every third stay
    // such a one. Half of the stays take less than half a millisecond, also where the host slows all of them down.
    let shares = [50, 90, 95, 99].map(|percent| stays[stays.len() * percent / 100]);
    eprintln!("{} stays of {total} ns together; 50, 90, 95, 99 % are below {shares:?} ns", stays.len());
    let [_, p90, ..] = shares;
    assert!(p90 < 2_500_000, "90 % of {} stays are below {p90} ns, the longest takes {:?}", stays.len(), stays.last());
}

/// A recording knows which threads of the trace are becalm's own.
fn knows_its_own_threads(bundle: &Path) {
    let doc = document(bundle);
    assert_eq!(doc["rung"], "tracepoints", "{doc:#}");
    let report = report(bundle);
    let sources: Vec<(&str, &str)> = report["sources"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|source| Some((source["kind"].as_str()?, source["source"].as_str()?)))
        .collect();
    assert!(number(&report["total"], "self_ns") > 0, "{:#}", report["total"]);
    // Another becalm may run beside this one; only this one has loops.
    let strangers: Vec<_> =
        sources.iter().filter(|(kind, name)| *kind == "task" && name.starts_with("becalm/")).collect();
    assert!(strangers.is_empty(), "{strangers:?}");
    // Each switch to the loop is one that attribution expects.
    let unmatched: i64 = doc["cpus"].as_array().unwrap().iter().map(|cpu| number(cpu, "unmatched_events")).sum();
    let events: i64 = doc["cpus"].as_array().unwrap().iter().map(|cpu| number(cpu, "events")).sum();
    assert!(unmatched <= events / 200 + 4, "{unmatched} of {events}");
}

#[test]
fn in_a_pid_namespace_becalm_knows_its_own_threads() {
    let Some(_alone) = alone() else { return };
    let Some(unshare) = find_program("unshare") else { return skip("there is no unshare") };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("inside.becalm");
    let mut command = Command::new(unshare);
    command.args(["--pid", "--fork", "--mount-proc"]).arg(executable());
    // Becalm's loop and its collector share the CPUs, so that both stand in the trace.
    command.args(["record", "--quiet", "--duration", "3s", "-o", path(&bundle)]);
    run(command).expect(0, &[]);
    knows_its_own_threads(&bundle);
}

/// In a new PID namespace, where /proc is of that namespace, with a library that takes `trace_marker` away, records into a bundle:
/// `way` is `refuse` or `swallow`.
fn record_without_marks(folder: &Path, way: &str) -> Value {
    let library = folder.join("marker.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/root_becalm/marker.c");
    let built =
        Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl").status();
    assert!(built.unwrap().success());
    let bundle = folder.join(format!("{way}.becalm"));
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "env", &format!("LD_PRELOAD={}", path(&library))]);
    command.arg(format!("MARKER={way}")).arg(executable());
    command.args(["record", "--quiet", "--duration", "1s", "-o", path(&bundle)]);
    run(command).expect(0, &[]);
    report(&bundle)
}

/// Where becalm cannot learn by which numbers the trace knows its own threads, it would take them for causes: it records without sources
/// and says why.
#[test]
fn in_a_pid_namespace_without_marks_nobody_is_named_wrongly() {
    let Some(_alone) = alone() else { return };
    if !machine_has(&[Need::Program("unshare"), Need::Program("cc")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let reasons =
        [("refuse", "Permission denied"), ("swallow", "not every thread that made itself known is in the trace")];
    for (way, reason) in reasons {
        let report = record_without_marks(folder.path(), way);
        assert_eq!((&report["rung"], report["sources"].as_array().map(Vec::len)), (&"proc".into(), Some(0)), "{way}");
        assert!(report["total"]["detours"].as_u64() > Some(0), "{way}: {:#}", report["total"]);
        let warnings = report["warnings"].to_string();
        for part in ["no_tracing", "cannot find its own", reason, "hostPID: true"] {
            assert!(warnings.contains(part), "{way}, {part}: {warnings}");
        }
    }
}

/// What a container is: namespaces of its own for processes, mounts, the host's name, messages and the network, and a root of its own,
/// with nothing of the host's in it but programs and libraries, /sys and /dev.
const CONTAINER: &str = r#"set -e
    root=$1; shift
    mount --make-rprivate /
    mount --bind "$root" "$root"
    for folder in usr bin sbin lib lib64; do
        if [ -L /$folder ]; then cp -a /$folder "$root/$folder"
        elif [ -d /$folder ]; then mkdir "$root/$folder"; mount --bind /$folder "$root/$folder"; fi
    done
    mkdir "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/old"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    hostname inside
    cd "$root"
    pivot_root . old
    cd /
    umount -l /old
    exec "$@""#;

/// Runs becalm, which lies in the folder as `becalm`, in a container whose root is that folder.
fn in_a_container(root: &Path, before: &[&str], arguments: &[&str]) {
    let mut command = Command::new("unshare");
    command.args(["--fork", "--pid", "--mount", "--uts", "--ipc", "--net", "sh", "-c", CONTAINER, "sh", path(root)]);
    run({
        command.args(before).arg("/becalm").args(arguments);
        command
    })
    .expect(0, &[]);
}

#[test]
fn in_a_container_becalm_knows_its_own_threads_or_records_without_sources() {
    let Some(_alone) = alone() else { return };
    if !machine_has(&[Need::Program("unshare"), Need::Program("pivot_root"), Need::Program("setpriv")]) {
        return;
    }
    let root = || {
        let root = tempfile::tempdir().unwrap();
        fs::copy(executable(), root.path().join("becalm")).unwrap();
        root
    };
    let privileged = root();
    in_a_container(privileged.path(), &[], &["record", "--quiet", "--duration", "3s", "-o", "/inside.becalm"]);
    let bundle = privileged.path().join("inside.becalm");
    knows_its_own_threads(&bundle);
    assert_eq!(document(&bundle)["node"], "inside");
    // As most are: no tracefs, and no right to mount it.
    let usual = root();
    let without = "umount -R /sys/kernel/tracing 2>/dev/null; umount -R /sys/kernel/debug 2>/dev/null
        exec setpriv --bounding-set=-sys_admin -- \"$@\"";
    let before = ["sh", "-c", without, "sh"];
    in_a_container(usual.path(), &before, &["record", "--quiet", "--duration", "1s", "-o", "/inside.becalm"]);
    let report = report(&usual.path().join("inside.becalm"));
    assert_eq!(report["rung"], "proc", "{:#}", report["warnings"]);
    assert!(report["warnings"].to_string().contains("cannot mount tracefs"), "{:#}", report["warnings"]);
}

/// Lines that drivers, architectures and later kernels add to the kernel's tables cost nothing else; what container runtimes mask is
/// said, and counts against nothing else.
#[test]
fn odd_lines_and_masks_of_the_kernels_counts_cost_nothing_else() {
    let Some(_alone) = alone() else { return };
    if !machine_has(&[Need::Program("unshare")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let own = |name: &str| fs::read_to_string(format!("/proc/{name}")).unwrap();
    let odd = "FIQ:              usb_fiq\n 901:         75          0  cs40l26 IRQ1 Controller   0 Level     GPIO1 rise\n \
               902:          1          0  SiFive PLIC   3 Edge      virtio1\n 903:          3          0  1e6c.gpio  14 Edge      button\nodd\n";
    let kept = [
        ("interrupts", own("interrupts") + odd, None),
        ("interrupts", own("interrupts").replace(" LOC: ", " LOC:"), None),
        ("interrupts", String::new(), Some("interrupts are not compared")),
        ("softirqs", own("softirqs") + "NEW: 5 6\nODD: x y\nodd\n", None),
        ("softirqs", String::new(), Some("softirqs are not compared")),
        ("stat", String::new(), Some("the steal time is unknown")),
        ("stat", own("stat") + "cpuX 1 2\nguest_time 5 6 7\nbtime x\n??\n", None),
        ("cpuinfo", format!("odd\n:\n{}flags : x\n", own("cpuinfo")), None),
        ("swaps", "Filename Type Size Used Priority\n/dev/x\n".to_owned(), None),
    ];
    let is_guest = own("cpuinfo").contains(" hypervisor");
    for (number, (name, text, said)) in kept.into_iter().enumerate() {
        if said.is_some_and(|said| said.starts_with("the steal time")) && !is_guest {
            continue;
        }
        let (file, bundle) = (folder.path().join("file"), folder.path().join(format!("{number}.becalm")));
        fs::write(&file, text).unwrap();
        let within = |arguments: &[&str]| {
            let mut command = Command::new("unshare");
            let mount = format!("mount --bind {} /proc/{name} && exec \"$0\" \"$@\"", path(&file));
            command.args(["-m", "sh", "-c", &mount]).arg(executable()).args(arguments).env("COLUMNS", "200");
            run(command)
        };
        let audit = within(&[]);
        within(&["record", "--quiet", "--duration", "500ms", "-o", path(&bundle)]).expect(0, &[]);
        let recorded = within(&["report", path(&bundle), "--full"]);
        let [audit, recorded] = [audit, recorded].map(|it| it.stdout.split_whitespace().collect::<Vec<_>>().join(" "));
        let checked = recorded.split_once(" checked ").and_then(|(_, rest)| rest.split_once(" lost "));
        let (checked, _) = checked.unwrap_or_else(|| panic!("{name}: {recorded}"));
        for what in ["interrupts are not compared", "softirqs are not compared"] {
            assert_eq!(checked.contains(what), said == Some(what), "{name}: {checked}");
        }
        assert!(said.is_none_or(|said| recorded.contains(said)), "{name}: {recorded}");
        assert!(!checked.starts_with("0 of"), "{name}: {checked}");
        for text in [audit, recorded] {
            assert_eq!(text.contains("cannot understand"), said.is_some(), "{name}: {text}");
        }
    }
}

#[test]
fn the_trace_holds_what_the_kernel_counted_and_names_functions() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("functions.becalm");
    let words = ["--quiet", "--cpus", "1", "--duration", "3s"];
    run(becalm(&[&["record", "-o", path(&bundle)][..], &words].concat())).expect(0, &[]);
    let report = report(&bundle);
    let timers = &report["checked"]["timer_interrupts"];
    let (counted, traced) = (number(timers, "counted"), number(timers, "traced"));
    // On whichever machine, the loop keeps the tick of its CPU going.
    assert!(counted > 0 && counted - traced <= 2, "{timers:#}");
    let softirqs = &report["checked"]["softirqs"];
    assert!(number(softirqs, "counted") - number(softirqs, "traced") <= 2, "{softirqs:#}");
    assert!(!warning_codes(&document(&bundle)).contains(&"untraced_interrupts"), "{:#}", report["checked"]);
    // An event takes more than its bytes do to be written, and less than a system call with a switch.
    let cost = report["measuring"]["event_cost_ns"].as_f64().unwrap();
    assert!((20.0..3_000.0).contains(&cost), "{:#}", report["measuring"]);
    // Each timer interrupt is named by what it was for.
    let sources = report["sources"].as_array().unwrap();
    let came = |name: &str| {
        let row = sources.iter().find(|row| row["kind"] == "irq" && row["source"] == name);
        row.map_or(0, |row| number(row, "count"))
    };
    assert!(came("tick") * 4 > counted && came("local_timer") * 20 < counted, "{sources:#?}");
}

/// A recording in summary form: what is a sum agrees with the loops' own count, and a killed one is there up to its last segment.
#[test]
fn the_summary_form_is_kept_while_it_is_recorded() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("short.becalm");
    run(becalm(&["record", "--summary", "--quiet", "--cpus", "1", "--duration", "2s", "-o", path(&bundle)]))
        .expect(0, &[]);
    let shown = report(&bundle);
    let cpu = &shown["cpus"][0];
    assert!(number(cpu, "detours") > 100 && number(cpu, "max_ns") > 0, "{cpu:#}");
    let codes = warning_codes(&shown);
    assert!(codes.contains(&"summary_form"), "{codes:?}");
    assert!(!codes.contains(&"rows_differ"), "{codes:?}");
    let files: Vec<_> = fs::read_dir(&bundle).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["runs"], "no table is kept");

    let bundle = folder.path().join("killed.becalm");
    let words = ["--summary", "--quiet", "--cpus", "1", "--segment", "500ms", "--until-stopped"];
    let mut running = Running::start(becalm(&[&["record", "-o", path(&bundle)][..], &words].concat()));
    running.wait_for_start(&bundle);
    thread::sleep(Duration::from_secs(3));
    running.signal("KILL");
    running.end();
    let shown = report(&bundle);
    assert!(warning_codes(&shown).contains(&"not_ended"));
    assert!(number(&shown["cpus"][0], "duration_ns") > 1_000_000_000, "{:#}", shown["cpus"][0]);
}

/// The loops begin at the instant that was given, to a few milliseconds.
#[test]
fn a_recording_begins_at_an_instant() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("at.becalm");
    let at = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 7;
    let instant = format!("@{at}");
    run(becalm(&["record", "--quiet", "--cpus", "1", "--duration", "1s", "--at", &instant, "-o", path(&bundle)]))
        .expect(0, &[]);
    let opened = Bundle::open(&bundle).unwrap();
    let doc = &opened.nodes()[0];
    let began = doc.origin_ns() + i128::from(doc.cpus[0].start_ns.get());
    let late = began - i128::from(at) * 1_000_000_000;
    assert!((-1_000_000..20_000_000).contains(&late), "{late} ns late");
    assert!(doc.clock.wall_error_ns.is_some() && doc.clock.wall_synchronized.is_some(), "{:?}", doc.clock);
    run(becalm(&["record", "--at", "@1", "-o", path(&folder.path().join("never.becalm"))]))
        .expect(2, &["is in the past"]);
    run(becalm(&["record", "--at", "noon"])).expect(2, &["is not a time"]);
}
