//! A list of hosts by ssh: a stand-in, of which some hosts do not answer, and a real one on loopback.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use becalm_testing::program::{Running, executable, path, report, run};
use becalm_testing::{Need, find_program, wait_until};

use crate::robust::alone;

/// The script on a list of hosts, which it reaches by that command.
fn hosts(folder: &Path, ssh: &str, list: &str, more: &[&str]) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ssh/becalm-hosts");
    fs::write(folder.join("hosts"), list).unwrap();
    let mut command = Command::new(script);
    command.current_dir(folder).env("BECALM_SSH", ssh).args(["--becalm", path(&executable())]).args(more);
    command
}

/// What hosts have left of recordings that are fetched.
fn leftovers() -> Vec<PathBuf> {
    let entries = fs::read_dir("/tmp").unwrap().flatten().map(|entry| entry.path());
    entries.filter(|path| path.to_string_lossy().starts_with("/tmp/becalm-hosts.")).collect()
}

/// The names of the nodes of a recording.
fn nodes(bundle: &Path) -> Vec<String> {
    let nodes = report(bundle)["nodes"].clone();
    let nodes = nodes.as_array().into_iter().flatten();
    nodes.filter_map(|node| node["node"].as_str().map(str::to_owned)).collect()
}

#[test]
fn root_hosts_that_do_not_answer_are_told_and_the_others_begin_at_one_instant_and_are_read() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let before = leftovers();
    let ssh = folder.path().join("ssh");
    // Its first argument is the host.
    let stand_in = "#!/bin/sh
        host=$1; shift
        case $host in
            silent) exec sleep 60 ;;
            refuses) echo \"ssh: connect to host $host port 22: Connection refused\" >&2; exit 255 ;;
            bare) exec sh -c 'sed \"s,.[^ ]*/becalm. .record.,/nowhere/becalm record,\" | sh -s' ;;
            evil) cat >/dev/null; echo '/tmp/becalm-hosts.x; touch owned'; exit 0 ;;
        esac
        exec \"$@\"\n";
    fs::write(&ssh, stand_in).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let list = "# all of them\nn01\nroot@n02 # as root\nsilent\nrefuses\nbare\nevil\n10.0.0.7 n07\n";
    let more = [
        "--at-once",
        "3",
        "--lead",
        "9",
        "--patience",
        "3",
        "-o",
        "run",
        "hosts",
        "--duration",
        "200ms",
        "--cpus",
        "1",
    ];
    run(hosts(folder.path(), path(&ssh), list, &more)).expect(
        1,
        &[
            "silent did not begin: no answer within 3 s",
            "refuses did not begin: ssh: connect to host refuses port 22: Connection refused",
            "bare has handed over nothing: ./job: 1: /nowhere/becalm: not found",
            "evil has handed over nothing: it did not name the folder",
            "4 of 7 hosts are missing: silent refuses bare evil",
        ],
    );
    let bundle = folder.path().join("run");
    assert_eq!(nodes(&bundle), ["n01", "n02", "n07"]);
    let starts = ["n01", "n02", "n07"].map(|node| {
        let text = fs::read_to_string(bundle.join(format!("runs/node={node}.json"))).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        document["run"]["origin"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap()
    });
    let apart = starts.iter().max().unwrap().as_millisecond() - starts.iter().min().unwrap().as_millisecond();
    assert!(apart < 300, "{starts:?}");
    assert!(!folder.path().join("owned").exists());
    assert_eq!(leftovers(), before);
}

#[test]
fn root_a_list_of_hosts_with_an_error_is_refused_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&str, &[&str], &str); 9] = [
        ("n01\n", &["--by", "rsh", "-o", "run", "hosts"], "hosts are reached by ssh, pdsh or clush"),
        ("n01\n", &["hosts"], "-o RUN is missing"),
        ("n01\n", &["-o", "run"], "HOSTS is missing"),
        ("\n# none\n", &["-o", "run", "hosts"], "hosts has no hosts"),
        ("n01\nroot@n01\n", &["-o", "run", "hosts"], "two hosts are called n01"),
        ("n01 a/b\n", &["-o", "run", "hosts"], "'a/b' is no name of a node"),
        ("-oProxyCommand=x\n", &["-o", "run", "hosts"], "'-oProxyCommand=x' is no host"),
        ("n01\n", &["-o", "run", "hosts", "--until-stopped"], "give --duration"),
        ("n01\n", &["--at-once", "many", "-o", "run", "hosts"], "--at-once is 'many'"),
    ];
    for (list, more, words) in cases {
        run(hosts(folder.path(), "/bin/false", list, more)).expect(2, &["becalm-hosts: ", words, "usage: "]);
        assert!(!folder.path().join("run").exists());
    }
}

#[test]
fn root_hosts_are_recorded_by_a_real_ssh() {
    let Some(_alone) = alone() else { return };
    // Tests install no server that others could log in by.
    if !["sshd", "ssh", "ssh-keygen"].map(Need::Program).iter().all(|need| need.is_met()) {
        eprintln!("there is no sshd here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let own = path(folder.path());
    for name in ["key", "host_key"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", &format!("{own}/{name}")]);
        run(keygen).expect(0, &[]);
    }
    let server = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {own}/host_key\nAuthorizedKeysFile {own}/key.pub\nUsePAM no\nStrictModes no\n\
         PermitRootLogin yes\nPidFile none\n"
    );
    fs::write(folder.path().join("server"), server).unwrap();
    let client = format!(
        "Host *\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {own}/key\n  IdentitiesOnly yes\n  BatchMode yes\n  \
         StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    );
    fs::write(folder.path().join("client"), client).unwrap();
    // Where it keeps itself when others log in.
    fs::create_dir_all("/run/sshd").unwrap();
    let mut sshd = Command::new(find_program("sshd").unwrap());
    sshd.args(["-D", "-e", "-f", &format!("{own}/server")]);
    let _sshd = Running::start(sshd);
    wait_until("sshd listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
    let more = ["--lead", "6", "-o", "run", "hosts", "--duration=200ms", "--cpus", "1"];
    let ended = run(hosts(folder.path(), &format!("ssh -F {own}/client"), "n01\nn02\n", &more));
    ended.expect(0, &["2 hosts record"]);
    assert!(ended.stdout.contains("Nodes, the noisiest first"), "{ended:#?}");
    assert_eq!(nodes(&folder.path().join("run")), ["n01", "n02"]);
    // And by what a site may have above ssh, where it is there.
    for (program, by) in [("pdsh", "pdsh -R ssh".to_owned()), ("clush", format!("clush -o -F{own}/client"))] {
        if !Need::Program(program).is_met() {
            eprintln!("there is no {program} here");
            continue;
        }
        let name = format!("{program}.becalm");
        let more =
            ["--by", &by, "--lead", "6", "-o", &name, "hosts", "--duration=200ms", "--max-noise=100%", "--cpus", "1"];
        let mut command = hosts(folder.path(), "/bin/false", "n01\nn02\nnone\n", &more);
        command.env("PDSH_SSH_ARGS_APPEND", format!("-F {own}/client"));
        let ended = run(command);
        ended.expect(0, &["3 hosts record"]);
        assert_eq!(nodes(&folder.path().join(name)), ["n01", "n02", "none"], "{ended:#?}");
    }
}
