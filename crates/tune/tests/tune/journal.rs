//! Whose a journal is, and what of it is believed: torn, damaged, forged, of an earlier boot, of another owner.

use std::fs;
use std::path::Path;

use crate::bench::{Bench, request};
use crate::fake::{Groups, snapshot};
use becalm_tune::{Family, Foreign, Owner, Request, Restoring, apply, restore};

#[test]
fn only_the_owner_of_a_journal_restores_it_by_name() {
    let bench = Bench::new(4, false, Groups::Two);
    bench.apply(&bench.plan(&request("1")));
    let tuned = snapshot(&bench.root());
    let other = Owner { pid: 1, ..bench.owner() };
    let theirs = Restoring { owner: Some(&other), ..Restoring::default() };
    assert_eq!(restore(&bench.fake, &bench.folder, theirs, &mut |_| ()).unwrap(), None);
    assert!(snapshot(&bench.root()) == tuned && bench.folder.journal().exists());
    let own = bench.owner();
    let ours = Restoring { owner: Some(&own), ..Restoring::default() };
    assert!(restore(&bench.fake, &bench.folder, ours, &mut |_| ()).unwrap().unwrap().is_complete());
}

#[test]
fn a_boot_that_cannot_be_told_keeps_the_journal() {
    let bench = Bench::new(4, false, Groups::Two);
    bench.apply(&bench.plan(&request("1")));
    let path = bench.root().join("proc/sys/kernel/random/boot_id");
    let boot = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let error = restore(&bench.fake, &bench.folder, Restoring::default(), &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("/proc/sys/kernel/random/boot_id cannot be read"), "{error}");
    assert!(bench.folder.journal().exists());
    fs::write(&path, boot).unwrap();
    assert!(bench.restore(Foreign::Leave).is_complete());
}

#[test]
fn a_damaged_line_costs_its_knob_and_no_other() {
    let bench = Bench::new(4, false, Groups::Two);
    let before = snapshot(&bench.root());
    bench.apply(&bench.plan(&request("1")));
    let text = fs::read_to_string(bench.folder.journal()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().rposition(|line| line.contains("\"done\"")).unwrap();
    lines[at] = "{\"record\":\"do";
    fs::write(bench.folder.journal(), lines.join("\n") + "\n").unwrap();
    let error = restore(&bench.fake, &bench.folder, Restoring::default(), &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains(&format!("line {} of the journal", at + 1)), "{error}");
    assert!(bench.restore(Foreign::Force).is_complete());
    assert_eq!(snapshot(&bench.root()), before);
}

#[test]
fn a_journal_is_for_one_user_alone() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let bench = Bench::new(4, false, Groups::Two);
    bench.apply(&bench.plan(&request("1")));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(bench.folder.path()), 0o700);
    assert_eq!((mode(&bench.folder.journal()), mode(&bench.folder.path().join("lock"))), (0o600, 0o600));
    let refused = || restore(&bench.fake, &bench.folder, Restoring::default(), &mut |_| ()).unwrap_err().to_string();
    let chmod = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    chmod(bench.folder.path(), 0o777);
    assert!(refused().contains("others may write it (its mode is 0777)"));
    chmod(bench.folder.path(), 0o700);
    chmod(&bench.folder.journal(), 0o666);
    assert!(refused().contains("others may write it (its mode is 0666)"));
    chmod(&bench.folder.journal(), 0o600);
    let elsewhere = bench.place.path().join("elsewhere");
    fs::rename(bench.folder.journal(), &elsewhere).unwrap();
    symlink(&elsewhere, bench.folder.journal()).unwrap();
    assert!(refused().contains("it is a link"));
    fs::rename(&elsewhere, bench.folder.journal()).unwrap();
    assert!(bench.restore(Foreign::Leave).is_complete());
}

#[test]
fn a_forged_journal_writes_no_file_of_anybody() {
    let bench = Bench::new(4, false, Groups::Two);
    bench.apply(&bench.plan(&Request { only: [Family::Vmstat].into(), ..request("1") }));
    let (secret, path) = (bench.root().join("etc/secret"), bench.folder.journal());
    fs::create_dir_all(secret.parent().unwrap()).unwrap();
    fs::write(&secret, "120").unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("/proc/sys/vm/stat_interval", "/etc/secret")).unwrap();
    for foreign in [Foreign::Leave, Foreign::Force] {
        let restored = bench.restore(foreign);
        assert!(!restored.is_complete());
        assert!(restored.changes[0].why.as_deref().unwrap().contains("is no setting of the kernel"), "{restored:?}");
        assert_eq!(fs::read_to_string(&secret).unwrap(), "120");
    }
}

#[test]
fn the_journal_of_an_earlier_boot_restores_nothing() {
    let bench = Bench::new(4, false, Groups::Two);
    bench.apply(&bench.plan(&request("1")));
    let tuned = snapshot(&bench.root().join("sys"));
    bench.fake.set("/proc/sys/kernel/random/boot_id", "boot-2\n");
    assert!(bench.restore(Foreign::Leave).earlier_boot);
    assert_eq!(snapshot(&bench.root().join("sys")), tuned);
    assert!(bench.folder.read().unwrap().is_none() && bench.folder.last().exists());
}

#[test]
fn only_one_at_a_time() {
    let bench = Bench::new(4, false, Groups::Two);
    let plan = bench.plan(&request("1"));
    let mut second = None;
    let mut observer = |_| {
        let other = || apply(&bench.fake, &bench.folder, &plan, &bench.owner(), &mut |_| ());
        second.get_or_insert_with(other);
    };
    apply(&bench.fake, &bench.folder, &plan, &bench.owner(), &mut observer).unwrap();
    let error = second.unwrap().unwrap_err();
    assert!(error.to_string().contains("at this moment"), "{error}");
    // A command that runs keeps others from restoring what it uses; its own end does not.
    let owner = bench.folder.read().unwrap().unwrap().owner;
    assert!(owner.pid == std::process::id().cast_signed() && !owner.runs_command);
}

/// A journal cut off anywhere, as by a machine that crashes during a write: what it says restores what was changed by then.
#[test]
fn torn_lines_are_ignored_and_damaged_ones_refused() {
    let bench = Bench::new(4, false, Groups::Two);
    let before = snapshot(&bench.root());
    bench.apply(&bench.plan(&Request { only: [Family::Vmstat, Family::Memory].into(), ..request("1") }));
    let journal = bench.folder.journal();
    let whole = fs::read(&journal).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
    for cut in first + 1..whole.len() {
        fs::write(&journal, &whole[..cut]).unwrap();
        let state = bench.folder.read().unwrap().unwrap();
        let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        assert!(lines > state.steps.iter().filter(|step| step.original.is_some()).count());
    }
    // The last line of a step is lost: its value may be anything, and is put back.
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let torn = [lines[..lines.len() - 2].concat(), lines[lines.len() - 2][..9].to_vec()].concat();
    fs::write(&journal, &torn).unwrap();
    let restored = bench.restore(Foreign::Leave);
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(snapshot(&bench.root()), before);

    let mut damaged = whole.clone();
    damaged[first + 2] = b'#';
    fs::write(&journal, &damaged).unwrap();
    let error = bench.folder.read().unwrap_err().to_string();
    assert!(error.contains("line 2 of the journal"), "{error}");
    let future = String::from_utf8(whole).unwrap().replacen("\"version\":1", "\"version\":9", 1);
    fs::write(&journal, future).unwrap();
    assert!(bench.folder.read().unwrap_err().to_string().contains("version 9"));
}
