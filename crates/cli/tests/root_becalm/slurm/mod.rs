//! What comes for Slurm, by Debian's Slurm: nodes that share this host take turns, and are told apart by their names.

mod cluster;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use becalm_testing::attempts;
use becalm_testing::program::{Ended, Running, becalm, executable, path, report, run as run_command, run_becalm};
use serde_json::Value;

use self::cluster::{Cluster, deployed};
use crate::robust::alone;

/// Records each virtual node as a real-time thread sees it, to keep the tests' own programs out of the noise.
const OPTIONS: &str = "--sched fifo:80 --threshold 500ns --buffer 256 --trace-buffer 512";

/// Noise that all nodes have. Beside it, what this one machine and its hypervisor do during the turn of one node and not of another is small.
const COMMON: [&str; 9] = ["inject", "--cpus", "0-1", "--interval", "2ms", "--detour", "400us", "--sched", "fifo:90"];

/// A becalm whose recordings take turns: 32 nodes share two CPUs here, so that one of them at a time is recorded on each. One instant for all
/// of them is then over for most, and left out, unless ONE is set. All of a becalm stays on the CPU of its turn: on the other one, a loop of the
/// other turn would keep it from starting its own in time. On the node PLANTED a program called `writeback` takes time meanwhile.
fn turns(folder: &Path) -> PathBuf {
    let (script, becalm) = (folder.join("turns"), executable());
    // Waits and works without starting anything.
    let work = r#"exec 3<>"$0"; : >"$0.begun"; while :; do read -rt 0.001 -u 3; for ((i = 0; i < 1000; i++)); do :; done; done"#;
    let text = format!(
        "#!/bin/bash
        [ \"$1\" = record ] || exec {becalm} \"$@\"
        cpu=$((10#${{SLURMD_NODENAME#n}} % 2))
        exec 9>{folder}/turns.$cpu
        flock 9
        arguments=()
        while [ $# -gt 0 ]; do
            if [ \"$1\" = --at ] && [ -z \"${{ONE:-}}\" ]; then shift; else arguments+=(\"$1\"); fi
            shift
        done
        if [ \"$SLURMD_NODENAME\" = \"${{PLANTED:-}}\" ]; then
            mkfifo {folder}/nothing
            cp /bin/bash {folder}/writeback
            chrt -f 85 taskset -c $cpu {folder}/writeback -c '{work}' {folder}/nothing 9>&- &
            noise=$!
            # On a busy machine it comes late.
            until [ -e {folder}/nothing.begun ]; do sleep 0.01; done
        fi
        taskset -c $cpu {becalm} \"${{arguments[@]}}\" --cpus $cpu
        code=$?
        [ -z \"${{noise:-}}\" ] || kill $noise
        exit $code\n",
        becalm = path(&becalm),
        folder = path(folder)
    );
    write_program(&script, &text);
    script
}

fn write_program(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What `becalm fleet` says of a recording.
fn fleet(run: &Path) -> Value {
    serde_json::from_str(&run_becalm(&["fleet", "--json", path(run)]).expect(0, &[]).stdout).unwrap()
}

/// A copy of a recording in summary form, but for some nodes.
fn without(run: &Path, nodes: &[String], copy: &Path) {
    fs::create_dir_all(copy.join("runs")).unwrap();
    for entry in fs::read_dir(run.join("runs")).unwrap().flatten() {
        let name = entry.file_name();
        if !nodes.iter().any(|node| name == format!("node={node}.json").as_str()) {
            fs::copy(entry.path(), copy.join("runs").join(name)).unwrap();
        }
    }
}

/// Has a job of some nodes record each of them, in its turn, and rank them.
fn nodes_job(cluster: &Cluster, turns: &Path, run: &Path, more: &[&str], variables: &[(&str, &str)]) -> Ended {
    let script = deployed().join("becalm-nodes.sbatch");
    let settings = [
        ("BECALM", path(turns)),
        ("BECALM_RUN", path(run)),
        // Twice as long as noise needs to have an interval: with fewer slots a short one at an end widens it much.
        ("BECALM_DURATION", "720ms"),
        ("BECALM_OPTIONS", OPTIONS),
        ("BECALM_LEAD", "2"),
    ];
    cluster.job(&[more, &[path(&script)]].concat(), &[&settings, variables].concat())
}

#[test]
fn root_one_planted_node_among_32_of_a_job_is_named_with_its_source_and_no_other_is() {
    let Some(_alone) = alone() else { return };
    let Some(cluster) = Cluster::start(32, |_| String::new()) else { return };
    let common = Running::start(becalm(&COMMON));
    let turns = turns(cluster.folder());
    let job = |run: &Path, more: &[&str], variables: &[(&str, &str)]| nodes_job(&cluster, &turns, run, more, variables);
    let (planted, begin) = (cluster.folder().join("planted.becalm"), Instant::now());
    let ended = job(&planted, &["--nodes=32"], &[("PLANTED", "n17")]);
    eprintln!("32 nodes: {:.1?}\n{}", begin.elapsed(), ended.stdout);
    ended.expect(0, &[]);
    let first = ended.stdout.lines().find(|line| line.contains("the noise of its peers")).expect("a node is named");
    assert!(first.trim().starts_with("n17: ") && first.contains("is writeback"), "{first}");
    assert!(cluster.folder().join("planted.becalm.html").exists());
    let named = fleet(&planted);
    assert_eq!(named["nodes"].as_array().map(Vec::len), Some(32));
    assert_eq!(named["nodes"][0]["node"], "n17");
    // The same nodes, and that one as it is without planted noise, by a job that begins at its instant. What struck another node of this
    // one machine while its turn was is recorded once more as well.
    let (mut equal, mut again) = (planted, vec!["n17".to_owned()]);
    attempts(3, || {
        let copy = cluster.folder().join(format!("equal-{}.becalm", again.join("-")));
        without(&equal, &again, &copy);
        let nodes = (format!("--nodes={}", again.len()), format!("--nodelist={}", again.join(",")));
        job(&copy, &[&nodes.0, &nodes.1], &[("ONE", if again.len() == 1 { "yes" } else { "" })]).expect(0, &[]);
        let fleet = fleet(&copy);
        assert_eq!(fleet["nodes"].as_array().map(Vec::len), Some(32));
        let named = fleet["outliers"].as_array().into_iter().flatten();
        (equal, again) = (copy, named.filter_map(|outlier| outlier["node"].as_str().map(str::to_owned)).collect());
        if again.is_empty() { Ok(()) } else { Err(format!("{}", fleet["outliers"])) }
    });
    array(&cluster, &turns);
    common.signal("INT");
    common.end();
}

/// How often a node of a fleet of equals is named, of fleets whose number is fixed beforehand: each is counted, and none recorded again.
#[test]
#[ignore = "takes ten minutes; make fleets starts it"]
fn root_of_twenty_fleets_of_equals_at_most_one_has_a_node_that_is_named() {
    let Some(_alone) = alone() else { return };
    let Some(cluster) = Cluster::start(32, |_| String::new()) else { return };
    let common = Running::start(becalm(&COMMON));
    let turns = turns(cluster.folder());
    let mut with_names = 0;
    for number in 1..=20 {
        let run = cluster.folder().join(format!("fleet-{number}.becalm"));
        nodes_job(&cluster, &turns, &run, &["--nodes=32"], &[]).expect(0, &[]);
        let fleet = fleet(&run);
        assert_eq!(fleet["nodes"].as_array().map(Vec::len), Some(32));
        let outliers = fleet["outliers"].as_array().map_or(&[][..], Vec::as_slice);
        with_names += usize::from(!outliers.is_empty());
        eprintln!("fleet {number}: {} named", outliers.len());
        outliers.iter().for_each(|outlier| eprintln!("  {outlier}"));
    }
    common.signal("INT");
    common.end();
    eprintln!("{with_names} of 20 fleets have a node that is named");
    assert!(with_names <= 1, "{with_names} of 20 fleets");
}

/// An array of three tasks records what nodes it gets, and the job that it submits ranks them.
fn array(cluster: &Cluster, turns: &Path) {
    let (run, script) = (cluster.folder().join("array.becalm"), deployed().join("becalm-array.sbatch"));
    let settings = [
        ("BECALM", path(turns)),
        ("BECALM_RUN", path(&run)),
        ("BECALM_DURATION", "100ms"),
        ("BECALM_OPTIONS", OPTIONS),
    ];
    let mut command = cluster.command("sbatch", &["--parsable", "--array=1-3", path(&script)]);
    command.envs(settings);
    let submitted = run_command(command);
    let array = submitted.expect(0, &[]).stdout.trim().to_owned();
    cluster.end_of(&array).expect(0, &[]);
    let output = cluster.folder().join(format!("becalm-rank-{array}.out"));
    cluster.wait_until("the nodes are ranked", || {
        fs::read_to_string(&output)
            .is_ok_and(|text| text.contains("Nodes, the noisiest first") && text.contains("3 nodes"))
    });
}

/// Copies what comes for slurmd into a folder, with settings of its own.
fn deploy(folder: &Path, settings: &str) {
    fs::create_dir_all(folder).unwrap();
    for name in ["becalm-common.sh", "becalm-prolog", "becalm-epilog", "becalm-health"] {
        fs::copy(deployed().join(name), folder.join(name)).unwrap();
    }
    fs::write(folder.join("becalm.conf"), settings).unwrap();
}

#[test]
fn root_a_prolog_and_an_epilog_record_and_a_node_is_drained_with_the_reason_on_request_alone() {
    let Some(_alone) = alone() else { return };
    let Some(cluster) = Cluster::start(1, |folder| {
        let (around, health) = (folder.join("around"), folder.join("health"));
        let settings = format!("BECALM={}\nBECALM_FOLDER={}\n", path(&executable()), path(folder));
        deploy(&around, &format!("{settings}BECALM_CHECK=200ms\nBECALM_JOB_CPUS=0\n"));
        // Nothing is checked yet, and whatever else fails drains nothing.
        deploy(&health, "BECALM=/bin/false\nBECALM_DRAIN=yes\nBECALM_DRAIN_AFTER=1\nBECALM_FOLDER=/proc/none\n");
        format!(
            "Prolog={around}/becalm-prolog\nEpilog={around}/becalm-epilog\nHealthCheckProgram={health}/becalm-health\n\
             HealthCheckInterval=1\nHealthCheckNodeState=IDLE\n",
            around = path(&around),
            health = path(&health)
        )
    }) else {
        return;
    };
    let (folder, log) = (cluster.folder().join("n00"), cluster.folder().join("n00/log"));
    let logged = |words: &str| fs::read_to_string(&log).is_ok_and(|text| text.contains(words));
    // A job with its recordings: before, meanwhile, after.
    cluster.job(&["--wrap=sleep 0.3"], &[]).expect(0, &[]);
    cluster.wait_until("the epilog has ended", || logged("check-1-after: "));
    assert!(logged("job-1: the recording has ended"), "{}", fs::read_to_string(&log).unwrap());
    for name in ["check-1-before", "job-1", "check-1-after"] {
        let bundle = folder.join(format!("{name}.becalm"));
        assert!(bundle.exists(), "{name}: {}", fs::read_to_string(&log).unwrap());
        report(&bundle);
    }
    assert_eq!(report(&folder.join("job-1.becalm"))["nodes"][0]["ended"], "signal");
    // Settings that the shell cannot read fail neither the job nor the node.
    fs::write(cluster.folder().join("around/becalm.conf"), "BECALM=(\n").unwrap();
    cluster.job(&["--wrap=true"], &[]).expect(0, &[]);
    assert!(cluster.node("n00").contains("State=IDLE "), "{}", cluster.node("n00"));
    drains_on_request(&cluster, logged);
}

/// A node that is too noisy is drained where that is asked for, with the figure and its source.
fn drains_on_request(cluster: &Cluster, logged: impl Fn(&str) -> bool) {
    let noise = Running::start(becalm(&["inject", "--interval", "5ms", "--detour", "1ms", "--cpus", "1"]));
    let settings = |more: &str| {
        let file = cluster.folder().join("health/becalm.conf");
        let becalm = path(&executable()).to_owned();
        let text = format!(
            "BECALM={becalm}\nBECALM_FOLDER={folder}\nBECALM_CHECK=300ms\nBECALM_OPTIONS='--cpus 1 --sched fifo:40'\n\
             BECALM_MAX_NOISE=4%\nSLURM_CONF={folder}/slurm.conf\n{more}\n",
            folder = path(cluster.folder())
        );
        fs::write(&file, text).unwrap();
    };
    settings("BECALM_DRAIN_AFTER=1");
    cluster.wait_until("a check fails", || logged("the node is not drained, as BECALM_DRAIN is not yes"));
    assert!(!cluster.node("n00").contains("DRAIN"), "{}", cluster.node("n00"));
    settings("BECALM_DRAIN=yes");
    cluster.wait_until("the node is drained", || logged(" the node is drained"));
    let node = cluster.node("n00");
    let (_, reason) = node.split_once("Reason=").expect("there is a reason");
    assert!(node.contains("DRAIN") && reason.starts_with("becalm: CPU 1 lost "), "{node}");
    assert!(
        reason.contains(" % of its time, more than --max-noise 4%; ")
            && reason.contains("% of that is task becalm-inject"),
        "{node}"
    );
    noise.signal("INT");
    noise.end();
}
