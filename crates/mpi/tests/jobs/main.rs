//! Real jobs of the MPI that the program was built with. Functions and ratios are tested, not times: the ranks may well
//! outnumber the CPUs.
//!
//! `BECALM_MPIRUN` is the launcher (`mpirun`), `BECALM_MPI_CROWD` what it needs to start more ranks than there are CPUs.
//! `BECALM_DOCUMENTS` names a folder in which the documents that were printed are kept, as `.ci/schemas --of FOLDER` holds them.

#![allow(clippy::print_stdout)]

mod predictions;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use becalm_bundle::PhaseRun;
use becalm_scale::network::Network;
use becalm_testing::{Need, attempts, machine_has, wait_until};
use serde_json::Value;

fn launcher(ranks: usize) -> Command {
    let variable = |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let mut command = Command::new(variable("BECALM_MPIRUN", "mpirun"));
    // Open MPI refuses root in a container unless told twice; others do not know these.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if ranks > cpus {
        command.args(variable("BECALM_MPI_CROWD", "--oversubscribe").split_whitespace());
    }
    command.args(["-n", &ranks.to_string()]);
    command
}

fn job(ranks: usize, arguments: &[&str]) -> Output {
    launcher(ranks).arg(env!("CARGO_BIN_EXE_becalm-mpi")).args(arguments).output().expect("the launcher is there")
}

fn document(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{error}");
    keep(&text);
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why} in {text}\n{error}"))
}

/// Keeps a document for `.ci/schemas --of FOLDER`, where the lane names a folder.
fn keep(document: &str) {
    static KEPT: AtomicUsize = AtomicUsize::new(0);
    let Some(folder) = std::env::var_os("BECALM_DOCUMENTS").map(PathBuf::from) else { return };
    fs::create_dir_all(&folder).expect("the folder can be made");
    let number = KEPT.fetch_add(1, Ordering::Relaxed);
    let file = folder.join(format!("{}-{number}.json", std::process::id()));
    fs::write(file, document).expect("the document can be kept");
}

fn path(folder: &Path) -> String {
    folder.join("job.becalm").to_str().expect("a plain name").to_owned()
}

/// The processes of a job, by the folder that its command line names.
fn processes(named: &str) -> Vec<u32> {
    let number = |entry: fs::DirEntry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        // Not the launcher and its helpers, whose command line names the program, too.
        let program = line.split(' ').next()?.ends_with("/becalm-mpi");
        (program && line.contains(named)).then_some(id)
    };
    fs::read_dir("/proc").expect("there is /proc").flatten().filter_map(number).collect()
}

/// The file holds parameters that `becalm predict --network` reads.
#[test]
fn a_network_is_measured_and_stored() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("net.json");
    let printed = document(&job(2, &["network", "--json", "-o", file.to_str().unwrap()]));
    let stored: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(printed, stored);
    assert_eq!(stored["schema"], "becalm.network/1");
    let network: Network = stored["network"].as_str().unwrap().parse().unwrap();
    assert!(network.overhead().get() > 0, "{stored}");
    assert_eq!(network.eager_limit(), stored["within"]["eager_bytes"].as_u64());
    // Two ranks of one node say nothing of messages between nodes.
    assert!(stored["between"].is_null(), "{stored}");
    assert!(stored["warnings"].to_string().contains("messages between nodes were not measured"), "{stored}");
    let alone = job(1, &["network"]);
    assert_eq!(alone.status.code(), Some(2), "{}", String::from_utf8_lossy(&alone.stderr));
}

#[test]
fn two_ranks_meet_in_every_phase() {
    let folder = tempfile::tempdir().unwrap();
    let path = path(folder.path());
    let json = document(&job(2, &["--phases", "200", "-o", &path, "--json"]));
    assert_eq!(json["schema"], "becalm.mpi/1");
    assert_eq!((&json["ranks"], &json["phases"]), (&2.into(), &200.into()));
    let what = |at: usize, name: &str| json["rows"][at][name].as_f64().unwrap();
    assert_eq!(json["rows"][2]["what"], "qtbt");
    // The shortest compute phase is about the grain, also on a busy machine.
    assert!((0.5e6..2e6).contains(&what(0, "min_ns")), "{json}");
    assert!(what(2, "mean_ns") >= what(0, "mean_ns") && what(0, "worst_ns") >= what(0, "mean_ns"), "{json}");

    // The bundle says the same, and that ranks did meet: nobody leaves a barrier before all have come.
    let run = PhaseRun::open(Path::new(&path)).unwrap();
    let mut ranks = vec![Vec::new(); 2];
    run.for_each(|_, rank, _, phase| ranks[rank as usize].push(phase)).unwrap();
    assert!(run.nodes[0].complete && ranks.iter().all(|phases| phases.len() == 200));
    for (one, other) in ranks[0].iter().zip(&ranks[1]) {
        let (came, left) = (other.start_ns + other.compute_ns, one.start_ns + one.compute_ns + one.collective_ns);
        assert!(left >= came - 1_000, "left at {left}, before the other came at {came}");
    }
    let slowest: i64 = ranks[0].iter().zip(&ranks[1]).map(|(a, b)| a.compute_ns.max(b.compute_ns)).sum();
    assert!((slowest as f64 / 200.0 - what(0, "mean_ns")).abs() < 1.0, "{json}");
}

#[test]
fn eight_ranks_in_every_collective() {
    for (collective, bytes) in [("none", "8"), ("barrier", "8"), ("allreduce", "100"), ("alltoall", "33")] {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path());
        let arguments =
            ["--phases", "20", "--grain", "100us", "--collective", collective, "--bytes", bytes, "-o", &path, "--json"];
        let json = document(&job(8, &arguments));
        assert_eq!(json["by_rank"].as_array().unwrap().len(), 8);
        assert_eq!(json["collective"], collective);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let warned = json["warnings"].to_string().contains("share a CPU");
        assert_eq!(warned, cpus < 8, "{json}");
    }
}

#[test]
fn several_grains_are_a_run_each() {
    let folder = tempfile::tempdir().unwrap();
    let whole = path(folder.path());
    let json = document(&job(2, &["--phases", "50", "--grain", "100us,1ms", "-o", &whole, "--json"]));
    assert_eq!(json["schema"], "becalm.mpi-sweep/1");
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{json}");
    for (row, grain) in rows.iter().zip([100_000, 1_000_000]) {
        assert_eq!(row["grain_ns"], grain);
        // The slowest rank takes about the grain at least, also where a calibration was disturbed.
        assert!(row["mean_ns"].as_f64().unwrap() > 0.5 * f64::from(grain), "{json}");
        let run = PhaseRun::open(Path::new(row["run"].as_str().unwrap())).unwrap();
        assert!(run.nodes[0].complete && run.nodes[0].job.phases == 50, "{row}");
    }
    let twice = job(2, &["--grain", "1ms,1ms"]);
    assert_eq!(twice.status.code(), Some(2), "{}", String::from_utf8_lossy(&twice.stderr));
}

#[test]
fn clocks_of_nodes_are_related_within_the_error_stated() {
    let folder = tempfile::tempdir().unwrap();
    let path = path(folder.path());
    let json = document(&job(2, &["--phases", "100", "--ranks-per-node", "1", "-o", &path, "--json"]));
    assert_eq!(json["nodes"].as_array().unwrap().len(), 2);
    let run = PhaseRun::open(Path::new(&path)).unwrap();
    let [first, second] = [&run.nodes[0], &run.nodes[1]];
    // Both are this machine, and read one counter: the truth is known.
    let rate = |node: &becalm_model::phases::PhasesDoc| node.clock.rate_hz;
    let apart = second.clock.origin_ticks as i64 - first.clock.origin_ticks as i64;
    let truth = apart as f64 / rate(first) * 1e9;
    let relation = second.relation;
    assert!(relation.round_trips > 100 && relation.error_ns > 0.0, "{relation:?}");
    assert!((relation.offset_ns - truth).abs() <= relation.error_ns + 100.0, "{relation:?}, and it is {truth}");
    assert_eq!(first.relation.round_trips, 0);
}

/// `becalm` itself under the launcher: each rank records a node of its own, from one instant on, and all write into one bundle side by side.
#[test]
fn ranks_record_nodes_side_by_side_into_one_bundle() {
    let becalm = Path::new(env!("CARGO_BIN_EXE_becalm-mpi")).with_file_name("becalm");
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(&becalm).args(arguments).output().expect("becalm was built beside becalm-mpi");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // The name of the node is the rank's number: Open MPI tells it, or MPICH.
    let line = r#"exec "$0" record --quiet --node "r${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" --duration 100ms "$@""#;
    // Begins late where others have the CPUs, and then tells that the instant is over.
    attempts(3, || {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 4;
        let bundle = folder.path().join(format!("{at}.becalm"));
        let bundle = bundle.to_str().unwrap();
        let mut job = launcher(4);
        job.args(["sh", "-c", line]).arg(&becalm).args(["--at", &format!("@{at}"), "-o", bundle]);
        let output = job.output().expect("the launcher is there");
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let fleet: Value = serde_json::from_str(&run(&["fleet", "--json", bundle])).unwrap();
        let mut names: Vec<&str> =
            fleet["nodes"].as_array().unwrap().iter().filter_map(|node| node["node"].as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["r0", "r1", "r2", "r3"], "{fleet}");
        let report: Value = serde_json::from_str(&run(&["report", "--json", bundle])).unwrap();
        let nodes = report["nodes"].as_array().unwrap();
        assert_eq!(nodes.len(), 4);
        Ok(())
    });
}

#[test]
fn a_job_fails_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = path(folder.path());
    let fails = |arguments: &[&str], code: i32, why: &str| {
        let output = job(2, arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert_eq!(error.matches("becalm-mpi: ").count(), 1, "{error}");
        assert!(error.contains(why), "{error}");
    };
    // All at once: a launcher waits for two seconds until it believes that a job has ended.
    std::thread::scope(|scope| {
        for (arguments, code, why) in [
            (vec!["--grain", "0s", "--collective", "none"], 2, "leaves nothing to do"),
            (vec!["--phases", "0", "-o", &path], 2, "--phases 0"),
            (vec!["-o", "/nowhere/at/all.becalm"], 1, "/nowhere/at"),
            (vec!["validate", "--collective", "none"], 2, "do not meet"),
            (vec!["validate", "--intervals", "10us", "--detours", "20us"], 2, "leave no time"),
            (vec!["validate", "--grain", "10us,70s"], 2, "--grain 70s"),
        ] {
            scope.spawn(move || fails(&arguments, code, why));
        }
    });
    assert!(!Path::new(&path).exists());
}

/// Starts a job that will still run when this returns, by what its command line names.
fn start(named: &str, arguments: &[&str]) -> Child {
    let mut command = launcher(2);
    command.arg(env!("CARGO_BIN_EXE_becalm-mpi")).args(arguments);
    let job = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the launcher is there");
    wait_until("two ranks run", || processes(named).len() == 2);
    job
}

fn kill(id: u32) {
    assert!(Command::new("kill").args(["-KILL", &id.to_string()]).status().unwrap().success());
}

/// Trace instances of becalm, where tracing can be seen.
fn instances() -> usize {
    let folder = fs::read_dir("/sys/kernel/tracing/instances");
    folder.map_or(0, |entries| {
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("becalm")).count()
    })
}

#[test]
fn a_kill_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let before = instances();
    for victim in ["launcher", "rank"] {
        // What names the folder is how the processes are found.
        let [run, figure] = ["becalm", "svg"].map(|form| folder.path().join(format!("{victim}.{form}")));
        let (run, figure) = (run.to_str().expect("a plain name"), figure.to_str().expect("a plain name"));
        let mut jobs = vec![(run, start(run, &["--phases", "1000000", "-o", run]))];
        if Need::Root.is_met() {
            let noise = ["validate", "--intervals", "1ms", "--detours", "200us", "--time", "10s", "--figure", figure];
            jobs.push((figure, start(figure, &noise)));
        }
        // In the midst of their work.
        sleep(Duration::from_millis(1_500));
        for (named, job) in &jobs {
            match victim {
                "launcher" => kill(job.id()),
                _ => kill(processes(named)[0]),
            }
        }
        for (named, mut job) in jobs {
            wait_until("no process and no thread of the job is left", || processes(named).is_empty());
            job.wait().unwrap();
        }
    }
    assert!(instances() <= before, "the job left a trace instance");
}

/// The same noises at two grains: a document of each in one, and a drawing of each; what they come to is held above.
#[test]
fn grains_are_validated_one_after_the_other() {
    // To make noise.
    if !machine_has(&[Need::Root]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let figure = folder.path().join("figure.svg");
    let mut arguments = vec!["validate", "--grain", "10us,100us,10us", "--intervals", "10ms", "--detours", "200us"];
    arguments.extend(["--ratios", "none", "--sched", "fifo:40", "--time", "20ms", "--repetitions", "2"]);
    arguments.extend(["--replicas", "2", "--noise-time", "100ms", "--json", "--figure", figure.to_str().unwrap()]);
    let json = document(&job(2, &arguments));
    assert_eq!(json["schema"], "becalm.mpi-validate-sweep/1");
    let grains = json["grains"].as_array().unwrap();
    assert_eq!(grains.iter().map(|of| of["grain_ns"].as_i64().unwrap()).collect::<Vec<_>>(), [10_000, 100_000]);
    for of in grains {
        assert_eq!(of["rows"].as_array().map(Vec::len), Some(2), "{of}");
        assert!(of["quiet_compute_ns"].as_f64() > Some(0.0), "{of}");
    }
    for name in ["figure-10us.svg", "figure-100us.svg"] {
        assert!(fs::read_to_string(folder.path().join(name)).unwrap().starts_with("<svg"));
    }
}
