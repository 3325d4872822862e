//! A Slurm of this host alone: one controller, and as many node daemons as there are nodes, each on a port of its own.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use becalm_testing::program::{Ended, Running, path, run};
use becalm_testing::{Need, find_program, machine_has};
use tempfile::TempDir;

/// The running daemons, which end with it.
pub struct Cluster {
    daemons: Vec<Running>,
    folder: TempDir,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.daemons.clear();
        // What slurmd had begun would write into the folder once more, and the next cluster's checks would take it for a job.
        let own = self.folder().as_os_str().as_encoded_bytes().to_vec();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(5) && is_named_by_a_process(&own) {
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Whether a process has this in its command line or environment. Steps of a job have it in their environment until they end.
fn is_named_by_a_process(words: &[u8]) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let files = processes.flat_map(|process| ["cmdline", "environ"].map(|name| process.path().join(name)));
    files.filter_map(|file| fs::read(file).ok()).any(|text| text.windows(words.len()).any(|part| part == words))
}

impl Cluster {
    /// So many nodes, called `n00` and so on, and `more` lines for slurm.conf made from the folder in which all lies. Nothing, said so, where
    /// this machine lacks something.
    pub fn start(nodes: usize, more: impl Fn(&Path) -> String) -> Option<Self> {
        let needs = ["slurmctld", "slurmd", "srun", "sbatch", "scontrol"].map(Need::Program);
        if !machine_has(&[&[Need::Root, Need::TwoCpus, Need::Tracefs], needs.as_slice()].concat()) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let configuration = configuration(folder.path(), nodes) + &more(folder.path());
        let conf = folder.path().join("slurm.conf");
        fs::write(&conf, configuration).unwrap();
        let daemon = |name: &str, arguments: &[&str]| {
            let mut command = Command::new(find_program(name).expect("it was found before"));
            // No job of another Slurm is this, should the test run in one.
            command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("SLURM_CONF", &conf);
            command.args(["-D", "-f", path(&conf)]).args(arguments);
            Running::start(command)
        };
        let mut daemons = vec![daemon("slurmctld", &["-c"])];
        for node in names(nodes) {
            fs::create_dir_all(folder.path().join("spool").join(&node)).unwrap();
            daemons.push(daemon("slurmd", &["-N", &node]));
        }
        let cluster = Self { daemons, folder };
        cluster.wait_until("all nodes are idle", || {
            let idle = cluster.said("sinfo", &["--noheader", "--Node", "--format=%T"]);
            idle.lines().filter(|state| *state == "idle").count() == nodes
        });
        Some(cluster)
    }

    /// The folder in which all of it lies.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A command of Slurm's, started in a folder that jobs write their output into.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(find_program(program).expect("it was found before"));
        command.args(arguments).current_dir(self.folder()).env("SLURM_CONF", self.folder().join("slurm.conf"));
        command
    }

    /// What a command of Slurm's prints.
    pub fn said(&self, program: &str, arguments: &[&str]) -> String {
        run(self.command(program, arguments)).stdout
    }

    /// Submits a job with these variables, waits until it has ended, and gives what it wrote and its state.
    pub fn job(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        let mut command = self.command("sbatch", &["--parsable"]);
        command.args(arguments).envs(variables.iter().copied());
        let submitted = run(command);
        submitted.expect(0, &[]);
        self.end_of(submitted.stdout.trim())
    }

    /// Waits until a job has ended, and gives what it wrote and its state.
    pub fn end_of(&self, job: &str) -> Ended {
        let state = || self.said("squeue", &["--noheader", "--states=all", "--format=%T", "--job", job]);
        self.wait_until(&format!("job {job} has ended"), || {
            let state = state();
            !state.trim().is_empty()
                && !["PENDING", "CONFIGURING", "RUNNING", "COMPLETING"].iter().any(|word| state.contains(word))
        });
        let completed = state().lines().all(|state| state == "COMPLETED");
        let output = fs::read_to_string(self.folder().join(format!("slurm-{job}.out"))).unwrap_or_default();
        Ended { code: i32::from(!completed), stdout: output, stderr: state() }
    }

    /// What Slurm knows of a node, as one line.
    pub fn node(&self, name: &str) -> String {
        self.said("scontrol", &["--oneliner", "show", "node", name])
    }

    /// Waits for something.
    #[track_caller]
    pub fn wait_until(&self, what: &str, happened: impl Fn() -> bool) {
        becalm_testing::wait_until(what, happened);
    }
}

/// The names of the nodes.
fn names(nodes: usize) -> impl Iterator<Item = String> {
    (0..nodes).map(|number| format!("n{number:02}"))
}

/// A configuration without a service of its own for credentials: whoever is root on this host is trusted.
fn configuration(folder: &Path, nodes: usize) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let (host, folder, last) = (host.trim(), path(folder), nodes - 1);
    let port = free_ports(nodes + 1);
    let (first, end) = (port + 1, port + nodes);
    for name in ["state", "spool"] {
        fs::create_dir(Path::new(folder).join(name)).unwrap();
    }
    format!(
        "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={port}\nSlurmUser=root\nSlurmdUser=root\n\
         AuthType=auth/none\nCredType=cred/none\nSchedulerParameters=sched_min_interval=0,batch_sched_delay=0\nProctrackType=proctrack/linuxproc\nSelectType=select/linear\nReturnToService=2\n\
         StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool/%n\n\
         SlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd-%n.pid\n\
         SlurmctldLogFile={folder}/slurmctld.log\nSlurmdLogFile={folder}/slurmd-%n.log\nSlurmdParameters=config_overrides\n\
         NodeName=n[00-{last:02}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{end}] CPUs=1\n\
         PartitionName=all Nodes=ALL Default=YES State=UP\n"
    )
}

/// The first of so many ports beside each other that nobody listens at.
fn free_ports(count: usize) -> usize {
    let free =
        |port: usize| u16::try_from(port).is_ok_and(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
    // Below those that the kernel gives to whoever asks for any.
    (17_000..32_000).step_by(count).find(|first| (*first..first + count).all(free)).expect("there are free ports")
}

/// The folder of what comes with becalm for Slurm.
pub fn deployed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/slurm").canonicalize().unwrap()
}
