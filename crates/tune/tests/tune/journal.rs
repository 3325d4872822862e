//! Whose a journal is, and what of it is believed: torn, damaged, forged, of an earlier boot, of another owner.

use std::fs;
use std::path::Path;

use crate::bench::{Bench, request};
use crate::fake::{Groups, snapshot};
use becalm_tune::{Family, Foreign, Knob, Owner, Request, RestoreOptions, Whose, apply, extend, restore, sealed};

/// Replaces a text in all records of a journal, whose lines are then as if becalm had written them.
fn forge(journal: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(journal).unwrap();
    let forged = text.lines().map(|line| format!("{{\"{}", &line[line.find("record").unwrap()..]));
    let forged = forged.enumerate().map(|(index, record)| sealed(index + 1, &record.replace(from, to)) + "\n");
    fs::write(journal, forged.collect::<String>()).unwrap();
}

/// A process is told by its number, its start and its boot: numbers are used again, and so are starts in another boot.
#[test]
fn only_the_owner_of_a_journal_restores_it_by_name() {
    let bench = Bench::new(4, false, Groups::Two);
    bench.apply(&bench.plan(&request("1")));
    let tuned = snapshot(&bench.root());
    let own = bench.owner();
    let restore_for = |owner: &Owner| {
        let restoring = RestoreOptions { whose: Whose::Process(owner), ..RestoreOptions::default() };
        restore(&bench.fake, &bench.folder, restoring, &mut |_| ()).unwrap()
    };
    let others = [
        Owner { pid: own.pid + 1, ..own.clone() },
        Owner { start_ticks: own.start_ticks + 1, ..own.clone() },
        Owner { boot_id: "00000000-0000-4000-8000-000000000002".to_owned(), ..own.clone() },
        Owner { runs_command: true, ..own.clone() },
    ];
    // Whoever holds the lock of another's journal keeps nobody waiting.
    let lock = fs::File::open(bench.folder.path().join("lock")).unwrap();
    lock.lock().unwrap();
    for other in &others {
        assert_eq!(restore_for(other), None, "{other:?}");
        assert!(snapshot(&bench.root()) == tuned && bench.folder.journal().exists());
    }
    lock.unlock().unwrap();
    assert!(restore_for(&own).unwrap().is_complete());
}

/// What was changed to stay, and what a command is running on, is not what a dead run has left.
#[test]
fn what_dead_runs_left_is_restored_alone() {
    let bench = Bench::new(4, false, Groups::Two);
    let before = snapshot(&bench.root());
    let plan = bench.plan(&request("1"));
    let this = Owner::this_process(&bench.fake, true).unwrap();
    let dead = Owner { start_ticks: this.start_ticks + 1, ..this.clone() };
    let apply_as = |owner: &Owner| apply(&bench.fake, &bench.folder, &plan, owner, &mut |_| ()).unwrap();
    let left = |foreign| {
        let restoring = RestoreOptions { whose: Whose::DeadRuns, foreign };
        restore(&bench.fake, &bench.folder, restoring, &mut |_| ()).unwrap()
    };
    assert_eq!(left(Foreign::Leave), None);
    for stays in [&this, &Owner { runs_command: false, ..dead.clone() }, &Owner { runs_command: false, ..this.clone() }]
    {
        apply_as(stays);
        let tuned = snapshot(&bench.root());
        for foreign in [Foreign::Leave, Foreign::Keep, Foreign::Force] {
            assert_eq!(left(foreign), None, "{stays:?}");
        }
        assert!(snapshot(&bench.root()) == tuned && bench.folder.journal().exists());
        assert!(bench.restore(Foreign::Leave).is_complete());
    }
    apply_as(&dead);
    assert!(left(Foreign::Leave).unwrap().is_complete());
    assert_eq!(snapshot(&bench.root()), before);
}

/// A container may hide the boot's identity by leaving it out, or by an empty file or a device in its place.
#[test]
fn a_boot_that_cannot_be_told_keeps_the_journal() {
    let bench = Bench::new(4, false, Groups::Two);
    bench.apply(&bench.plan(&request("1")));
    let tuned = snapshot(&bench.root().join("sys"));
    let path = bench.root().join("proc/sys/kernel/random/boot_id");
    let boot = fs::read(&path).unwrap();
    for (hidden, words) in [
        (None, "/proc/sys/kernel/random/boot_id cannot be read"),
        (Some(""), "does not tell which boot this is, but ''"),
        (Some("\n"), "but ''"),
        (Some("boot"), "but 'boot'"),
        (Some("00000000-0000-4000-8000_000000000001\n"), "does not tell"),
    ] {
        match hidden {
            None => fs::remove_file(&path).unwrap(),
            Some(text) => fs::write(&path, text).unwrap(),
        }
        for foreign in [Foreign::Leave, Foreign::Force] {
            let restoring = RestoreOptions { foreign, ..RestoreOptions::default() };
            let error = restore(&bench.fake, &bench.folder, restoring, &mut |_| ()).unwrap_err().to_string();
            assert!(error.contains(words), "{hidden:?}: {error}");
        }
        // Nor is one begun that nobody could tell from one of another boot.
        assert!(Owner::this_process(&bench.fake, false).unwrap_err().to_string().contains(words), "{hidden:?}");
        assert!(bench.folder.journal().exists() && snapshot(&bench.root().join("sys")) == tuned);
    }
    fs::write(&path, boot).unwrap();
    assert!(bench.restore(Foreign::Leave).is_complete());
}

/// One that was begun where the boot was hidden holds as long as nobody says otherwise.
#[test]
fn a_journal_of_no_boot_is_neither_restored_nor_put_away() {
    let bench = Bench::new(4, false, Groups::Two);
    let plan = bench.plan(&request("1"));
    bench.apply(&plan);
    forge(&bench.folder.journal(), &bench.owner().boot_id, "");
    let error = restore(&bench.fake, &bench.folder, RestoreOptions::default(), &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("the journal has no valid boot ID"), "{error}");
    let error = apply(&bench.fake, &bench.folder, &plan, &bench.owner(), &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("settings are changed already"), "{error}");
    assert!(bench.folder.journal().exists() && !bench.folder.last().exists());
}

/// Without the value before, a knob stays as it is, and is named with the value that it had when it was planned.
#[test]
fn a_damaged_line_costs_its_knob_and_no_other() {
    let bench = Bench::new(4, false, Groups::Two);
    let before = snapshot(&bench.root());
    bench.apply(&bench.plan(&request("1")));
    let tuned = snapshot(&bench.root());
    let text = fs::read_to_string(bench.folder.journal()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains("\"original\"")).unwrap();
    let number: usize = lines[at].split_once("\"step\":").unwrap().1.split(',').next().unwrap().parse().unwrap();
    let knob = bench.folder.read().unwrap().unwrap().steps[number].change.knob.clone();
    lines[at] = "{\"record\":\"or";
    fs::write(bench.folder.journal(), lines.join("\n") + "\n").unwrap();
    // A second time there is nothing left to do, and it says the same.
    for foreign in [Foreign::Leave, Foreign::Force, Foreign::Leave] {
        let restored = bench.restore(foreign);
        assert!(!restored.is_complete());
        assert_eq!(restored.damage.iter().map(|damage| damage.line).collect::<Vec<_>>(), [at + 1]);
        assert_eq!(restored.lost.iter().map(|change| &change.knob).collect::<Vec<_>>(), [&knob]);
        let Knob::File { path, .. } = &knob else { panic!("{knob}") };
        let path = bench.root().join(path.strip_prefix("/").unwrap());
        let mut wanted = before.clone();
        wanted.insert(path.clone(), tuned[&path].clone());
        assert_eq!(snapshot(&bench.root()), wanted);
    }
    // Nothing is changed on top of that, until it is given up.
    let plan = bench.plan(&Request { only: [Family::Memory].into(), ..request("1") });
    let refused = |result: Result<_, becalm_tune::TuneError>| result.unwrap_err().to_string();
    let error = refused(apply(&bench.fake, &bench.folder, &plan, &bench.owner(), &mut |_| ()));
    assert!(error.contains("settings are changed already"), "{error}");
    let error = refused(extend(&bench.fake, &bench.folder, &plan, &bench.owner(), &mut |_| ()));
    assert!(error.contains(&format!("line {} of the journal", at + 1)), "{error}");
    assert!(bench.restore(Foreign::Keep).is_complete() && !bench.folder.journal().exists());
}

/// If it is not known what the kernel made of a value, only the value that was wanted is taken for becalm's.
#[test]
fn what_others_change_stays_theirs_beside_damage() {
    let bench = Bench::new(4, false, Groups::Two);
    bench.apply(&bench.plan(&Request { only: [Family::Vmstat].into(), ..request("1") }));
    let text = fs::read_to_string(bench.folder.journal()).unwrap();
    fs::write(bench.folder.journal(), text.replacen("\"done\"", "\"dome\"", 1)).unwrap();
    bench.fake.set("/proc/sys/vm/stat_interval", "77\n");
    assert!(!bench.restore(Foreign::Leave).is_complete());
    assert_eq!(bench.fake.text("/proc/sys/vm/stat_interval"), "77");
    bench.fake.set("/proc/sys/vm/stat_interval", "120\n");
    assert!(!bench.restore(Foreign::Leave).is_complete());
    assert_eq!(bench.fake.text("/proc/sys/vm/stat_interval"), "1");
}

/// Bytes that are no text cost their line, and what restoring adds stands on lines of its own.
#[test]
fn bytes_that_are_no_text_cost_their_line_alone() {
    let bench = Bench::new(4, false, Groups::Two);
    let before = snapshot(&bench.root());
    bench.apply(&bench.plan(&Request { only: [Family::Vmstat, Family::Memory].into(), ..request("1") }));
    let mut bytes = fs::read(bench.folder.journal()).unwrap();
    let at = bytes.windows(6).rposition(|word| word == b"\"done\"").unwrap();
    bytes[at + 2] = 0xff;
    fs::write(bench.folder.journal(), &bytes).unwrap();
    assert_eq!(bench.folder.read().unwrap().unwrap().damage.len(), 1);
    assert_eq!(bench.restore(Foreign::Leave).damage.len(), 1);
    assert_eq!(snapshot(&bench.root()), before);
    let after = fs::read(bench.folder.journal()).unwrap();
    assert!(after.starts_with(&bytes) && !after.contains(&0));
    let added = String::from_utf8(after[bytes.len()..].to_vec()).unwrap();
    assert!(added.lines().count() > 2 && added.lines().all(|line| line.contains("\"record\":\"restored\"")), "{added}");
}

/// What a journal of some bytes restores on a machine that is tuned: whether it says that all is as it was. Every file has the value
/// that it had before or the one that it was given, and if all is said to be as it was, it is.
fn restores_nothing_wrong(bench: &Bench, journal: &[u8], before: &Files, tuned: &Files, what: &str) -> bool {
    for (path, text) in tuned.iter().filter(|(path, text)| !path.is_dir() && before[*path] != **text) {
        fs::write(path, text).unwrap();
    }
    let _ = fs::remove_file(bench.folder.last());
    let _ = fs::remove_file(bench.folder.journal());
    let mut file = fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    let mut file = file.write(true).create(true).truncate(true).open(bench.folder.journal()).unwrap();
    std::io::Write::write_all(&mut file, journal).unwrap();
    let is_complete = match restore(&bench.fake, &bench.folder, RestoreOptions::default(), &mut |_| ()) {
        Ok(restored) => restored.unwrap_or_else(|| panic!("{what}: the journal counts for nothing")).is_complete(),
        Err(error) => {
            assert!(error.to_string().contains("line 1 of the journal"), "{what}: {error}");
            false
        }
    };
    assert_eq!(is_complete, !bench.folder.journal().exists(), "{what}");
    for (path, text) in tuned {
        let now = if path.is_dir() { Vec::new() } else { fs::read(path).unwrap() };
        assert!(now == before[path] || !is_complete && now == *text, "{what}: {} is {now:?}", path.display());
    }
    is_complete
}

type Files = std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>;

/// A journal with records of most kinds, of a machine that is tuned: the files before and since.
fn tuned_machine() -> (Bench, Vec<u8>, Files, Files) {
    let bench = Bench::new(4, false, Groups::None);
    let before = snapshot(&bench.root());
    let only = |families: &[Family]| Request { only: families.iter().copied().collect(), ..request("1") };
    bench.apply(&bench.plan(&only(&[Family::Vmstat, Family::Affinity])));
    let plan = bench.plan(&only(&[Family::Memory]));
    extend(&bench.fake, &bench.folder, &plan, &bench.owner(), &mut |_| ()).unwrap();
    let journal = fs::read(bench.folder.journal()).unwrap();
    let tuned = snapshot(&bench.root());
    (bench, journal, before, tuned)
}

#[test]
fn no_single_bit_restores_a_wrong_value_and_says_that_all_is_well() {
    let (bench, journal, before, tuned) = tuned_machine();
    assert!(restores_nothing_wrong(&bench, &journal, &before, &tuned, "whole"));
    // Killed behind the value before: the change was made, and no line says so.
    let last = journal.windows(10).rposition(|word| word == b"\"original\"").unwrap();
    let cut = last + journal[last..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for (journal, from) in [(&journal[..], 0), (&journal[..cut], cut - 300)] {
        let mut complete = Vec::new();
        for at in from..journal.len() {
            // All bits of the last lines, in which it matters what is torn, and one of each other byte.
            let one = at as u32 % 8;
            for bit in if at + 300 > journal.len() { 0..8 } else { one..one + 1 } {
                let mut damaged = journal.to_vec();
                damaged[at] ^= 1 << bit;
                let what = format!("bit {bit} of byte {at} of {}", journal.len());
                if restores_nothing_wrong(&bench, &damaged, &before, &tuned, &what) {
                    complete.push(at);
                }
            }
        }
        // The end of the last line is the only byte that says nothing.
        assert!(complete.iter().all(|at| *at + 1 == journal.len()), "{complete:?}");
    }
}

/// Lines that are lost are noticed, those that stand elsewhere or twice are read as what they are, and torn ones are as if not written.
#[test]
fn lines_are_told_by_their_numbers() {
    let (bench, journal, before, tuned) = tuned_machine();
    let lines: Vec<&[u8]> = journal.split_inclusive(|byte| *byte == b'\n').collect();
    let is_complete =
        |lines: &[&[u8]], what: &str| restores_nothing_wrong(&bench, &lines.concat(), &before, &tuned, what);
    for at in 1..lines.len() {
        let mut twice = lines.clone();
        twice.insert(lines.len() - at, lines[at]);
        assert!(is_complete(&twice, &format!("line {at} twice")));
        let mut swapped = lines.clone();
        swapped.swap(at, lines.len() - 1);
        assert!(is_complete(&swapped, &format!("line {at} last")));
        let mut garbled = lines.clone();
        garbled.insert(at, b"\x00\xff garbage\n");
        assert!(is_complete(&garbled, &format!("garbage before line {at}")));
        let mut lost = lines.clone();
        lost.remove(at);
        // Nothing follows the last line, by which it would be missed.
        assert_eq!(is_complete(&lost, &format!("line {at} lost")), at + 1 == lines.len());
        if at + 1 < lines.len() {
            assert_eq!(bench.folder.read().unwrap().unwrap().damage[0].line, at + 1);
        }
    }
    // One of another journal with the same number.
    let mut other = lines.clone();
    let forged = sealed(lines.len() - 1, r#"{"record":"original","step":0,"value":"5"}"#) + "\n";
    other.push(forged.as_bytes());
    assert!(!is_complete(&other, "a line of another journal"));
}

/// A line that brought a change is lost: the others keep their numbers, and no knob gets the value of another.
#[test]
fn a_damaged_line_shifts_no_numbers() {
    let (bench, journal, before, tuned) = tuned_machine();
    let lines: Vec<&[u8]> = journal.split_inclusive(|byte| *byte == b'\n').collect();
    let has = |line: &[u8], word: &str| String::from_utf8_lossy(line).contains(word);
    let steps: Vec<usize> = (0..lines.len()).filter(|at| has(lines[*at], "\"record\":\"step\"")).collect();
    assert!(steps.len() > 4);
    for at in steps {
        let mut lost = lines.clone();
        lost[at] = b"{}\n";
        assert!(!restores_nothing_wrong(&bench, &lost.concat(), &before, &tuned, &format!("line {}", at + 1)));
        let changed = snapshot(&bench.root()).into_iter().filter(|(path, text)| before[path] != *text).count();
        // A thread has two files.
        assert!((1..=2).contains(&changed), "line {}: {changed}", at + 1);
        let damage = bench.folder.read().unwrap().unwrap().damage;
        assert!(damage[0].line == at + 1 && damage[1].why.contains("whose own line is lost"), "{damage:?}");
    }
}

/// The largest number has none behind it.
#[test]
fn a_change_with_the_largest_number_is_damaged() {
    let (bench, journal, before, tuned) = tuned_machine();
    let mut lines: Vec<String> = String::from_utf8(journal).unwrap().split_inclusive('\n').map(str::to_owned).collect();
    let step = lines.iter().find(|line| line.contains("\"record\":\"step\",\"step\":0")).unwrap();
    let (_, record) = step.trim_end().split_once("\",").unwrap();
    let largest = format!("{{{record}").replacen("\"step\":0", &format!("\"step\":{}", usize::MAX), 1);
    // Behind a gap, in which all numbers between may have been lost.
    lines.truncate(5);
    lines[1] = "{}\n".to_owned();
    lines.extend([6, 7].map(|number| sealed(number, &largest) + "\n"));
    assert!(!restores_nothing_wrong(&bench, lines.concat().as_bytes(), &before, &tuned, "the largest number"));
    let damage = bench.folder.read().unwrap().unwrap().damage;
    let refused = damage.iter().filter(|damage| damage.why.contains(&usize::MAX.to_string()));
    assert_eq!(refused.map(|damage| damage.line).collect::<Vec<_>>(), [6, 7], "{damage:?}");
}

/// Space for what restoring writes is held at every moment, also when applying has ended.
#[test]
fn space_is_held_for_what_restoring_writes() {
    use std::os::unix::fs::MetadataExt;
    let mut bench = Bench::new(4, false, Groups::Two);
    let tree = crate::fake::Tree { root: bench.root() };
    // So many that what is held is more than the rest of a page.
    for number in 1000..1400 {
        tree.file(&format!("/proc/irq/{number}/smp_affinity_list"), "0-3\n");
    }
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else { return };
    bench.folder = becalm_tune::Folder::new(memory.path().join("journal"));
    let plan = bench.plan(&Request { only: [Family::Irq, Family::Vmstat].into(), ..request("1") });
    let journal = bench.folder.journal();
    let check = |when: &str| {
        let (found, state) = (fs::metadata(&journal).unwrap(), bench.folder.read().unwrap().unwrap());
        let open = state.steps.iter().filter(|step| step.is_open()).count();
        let lines: usize = (0..open)
            .map(|step| sealed(100_000, &format!("{{\"record\":\"restored\",\"step\":{step},\"gone\":false}}\n")).len())
            .sum();
        let held = (found.blocks() * 512).saturating_sub(found.len()) as usize;
        assert!(held >= lines, "{when}: {held} bytes are held for {lines}");
        open
    };
    let mut moment = 0;
    apply(&bench.fake, &bench.folder, &plan, &bench.owner(), &mut |_| {
        moment += 1;
        if moment % 100 == 0 {
            check(&format!("at moment {moment}"));
        }
    })
    .unwrap();
    assert!(check("when applied") >= 400);
    // A last line that was torn is cut off, and with it all that was held.
    fs::OpenOptions::new()
        .append(true)
        .open(&journal)
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"{\"rec"))
        .unwrap();
    bench.fake.set("/proc/sys/vm/stat_interval", "77\n");
    assert!(!bench.restore(Foreign::Leave).is_complete());
    assert_eq!(check("when all but one are back"), 1);
    assert!(bench.restore(Foreign::Keep).is_complete());
}

#[test]
fn a_journal_is_for_one_user_alone() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let bench = Bench::new(4, false, Groups::Two);
    bench.apply(&bench.plan(&request("1")));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(bench.folder.path()), 0o700);
    assert_eq!((mode(&bench.folder.journal()), mode(&bench.folder.path().join("lock"))), (0o600, 0o600));
    let refused =
        || restore(&bench.fake, &bench.folder, RestoreOptions::default(), &mut |_| ()).unwrap_err().to_string();
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
    // Nor above it: who may write there puts another folder in its place, or none.
    chmod(bench.place.path(), 0o777);
    let aside = bench.place.path().join("aside");
    for there in [true, false] {
        if !there {
            fs::rename(bench.folder.path(), &aside).unwrap();
        }
        assert!(refused().contains("may be written by others (its mode is 0777)"));
        assert!(bench.folder.read().unwrap_err().to_string().contains("cannot use the journal's directory"));
    }
    fs::rename(&aside, bench.folder.path()).unwrap();
    chmod(bench.place.path(), 0o700);
    assert!(bench.restore(Foreign::Leave).is_complete());
}

#[test]
fn a_forged_journal_writes_no_file_of_anybody() {
    let bench = Bench::new(4, false, Groups::Two);
    bench.apply(&bench.plan(&Request { only: [Family::Vmstat].into(), ..request("1") }));
    let (secret, path) = (bench.root().join("etc/secret"), bench.folder.journal());
    fs::create_dir_all(secret.parent().unwrap()).unwrap();
    fs::write(&secret, "120").unwrap();
    forge(&path, "/proc/sys/vm/stat_interval", "/etc/secret");
    for foreign in [Foreign::Leave, Foreign::Force] {
        let restored = bench.restore(foreign);
        assert!(!restored.is_complete());
        assert!(restored.changes[0].why.as_deref().unwrap().contains("never changes /etc/secret"), "{restored:?}");
        assert_eq!(fs::read_to_string(&secret).unwrap(), "120");
    }
}

#[test]
fn the_journal_of_an_earlier_boot_restores_nothing() {
    let bench = Bench::new(4, false, Groups::Two);
    bench.apply(&bench.plan(&request("1")));
    let tuned = snapshot(&bench.root().join("sys"));
    bench.fake.set("/proc/sys/kernel/random/boot_id", "00000000-0000-4000-8000-000000000002\n");
    assert!(bench.restore(Foreign::Leave).earlier_boot);
    assert_eq!(snapshot(&bench.root().join("sys")), tuned);
    assert!(bench.folder.read().unwrap().is_none() && bench.folder.last().exists());
}

/// Killed before the journal had its name, an apply has changed nothing; what it had written goes with the next restore.
#[test]
fn a_journal_without_a_name_is_removed() {
    let bench = Bench::new(4, false, Groups::Two);
    let before = snapshot(&bench.root());
    bench.apply(&bench.plan(&request("1")));
    let draft = bench.folder.journal().with_file_name("journal.new");
    fs::rename(bench.folder.journal(), &draft).unwrap();
    let tuned = snapshot(&bench.root());
    assert!(restore(&bench.fake, &bench.folder, RestoreOptions::default(), &mut |_| ()).unwrap().is_none());
    assert!(!draft.exists() && snapshot(&bench.root()) == tuned && tuned != before);
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
fn torn_lines_are_ignored() {
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

    fs::write(&journal, &whole).unwrap();
    forge(&journal, "\"version\":1", "\"version\":9");
    assert!(bench.folder.read().unwrap_err().to_string().contains("version 9"));
    let mut damaged = whole;
    damaged[2] = b'#';
    fs::write(&journal, &damaged).unwrap();
    let error = bench.folder.read().unwrap_err().to_string();
    assert!(error.contains("line 1 of the journal") && error.contains("remove the file"), "{error}");
}
