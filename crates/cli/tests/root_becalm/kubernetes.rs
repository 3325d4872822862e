//! The job for Kubernetes, with the rights that its manifest gives and no others, as far as that can be had without a cluster: user 0 with
//! two capabilities, a root folder that cannot be written, and a process namespace of the host's.

use std::fs;
use std::path::Path;
use std::process::Command;

use becalm_testing::program::{Running, executable, path, report};
use becalm_testing::{Need, machine_has};

use crate::robust::alone;

/// What pods run: the lines below `args:`, without their indentation.
fn script(manifest: &str) -> String {
    let lines = manifest.lines().skip_while(|line| line.trim() != "- |").skip(1);
    let lines = lines.take_while(|line| line.starts_with("              "));
    lines.map(|line| line.trim_start().to_owned() + "\n").collect()
}

/// The capabilities that a manifest adds, as setpriv takes them.
fn capabilities(manifest: &str) -> String {
    let (_, added) = manifest.split_once("capabilities: { drop: [ALL], add: [").expect("all but some are dropped");
    let (added, _) = added.split_once(']').unwrap();
    added.split(", ").fold("-all".to_owned(), |list, name| format!("{list},+{}", name.to_lowercase()))
}

#[test]
fn root_pods_of_the_job_record_all_sources_with_the_rights_of_the_manifest() {
    let Some(_alone) = alone() else { return };
    if !machine_has(&[Need::Program("unshare"), Need::Program("setpriv")]) {
        return;
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes/becalm-job.yaml");
    let manifest = fs::read_to_string(file).unwrap();
    let (script, capabilities) = (script(&manifest), capabilities(&manifest));
    assert!(script.contains("becalm record") && script.contains("becalm fleet"), "{script}");
    let folder = tempfile::tempdir().unwrap();
    // Nothing but the volume can be written.
    let pod = r#"mount --bind "$RECORDINGS" "$RECORDINGS" && mount -o remount,bind,ro / && exec "$@""#;
    let bounding = format!("--bounding-set={capabilities}");
    let pods = ["node-a", "node-b"].map(|node| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", pod, "sh", "setpriv", &bounding, "--inh-caps=-all", "--no-new-privs"]);
        command.args(["sh", "-c", &script]).current_dir("/");
        let programs = format!("{}:/usr/bin:/bin", path(executable().parent().unwrap()));
        command.env("PATH", programs).env("NODE_NAME", node).env("JOB_NAME", "becalm-x7x7x");
        command.env("JOB_COMPLETION_INDEX", if node == "node-a" { "0" } else { "1" });
        command
            .env("RECORDINGS", folder.path())
            .env("DURATION", "200ms")
            .env("STEP", "2")
            .env("LEAD", "1")
            .env("SETTLE", "1");
        Running::start(command)
    });
    let [ranks, other] = pods.map(Running::end);
    other.expect(0, &[]);
    ranks.expect(0, &[]);
    assert!(ranks.stdout.contains("Nodes, the noisiest first") && ranks.stdout.contains("node-b"), "{ranks:#?}");
    let report = report(&folder.path().join("becalm-x7x7x.becalm"));
    assert_eq!(report["rung"], "tracepoints");
    let warnings = report["warnings"].to_string();
    for code in ["no_symbols", "memory_not_locked"] {
        assert!(!warnings.contains(code), "{warnings}");
    }
}
