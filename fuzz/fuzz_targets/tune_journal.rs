//! Edited journals of `becalm tune`, restored on a machine in memory: whatever a journal contains, only kernel settings and systemd units
//! are changed, a complete journal is archived, and a second restore has nothing to do.
//!
//! The first line may contain `keep` or `force`, for settings that others changed.
#![no_main]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use becalm_fuzz::edits::{self, Edits};
use becalm_fuzz::machine::{MACHINE, put};
use becalm_fuzz::tree::{contents, scratch};
use becalm_fuzz::truths::check_report;
use becalm_linux::procfs::placement::{Placed, PlacedTasks};
use becalm_linux::procfs::task::ListedThread;
use becalm_tune::{
    Folder, Foreign, LiveMachine, Machine, Plan, Request, RestoreOptions, Stage, TuneDoing, TuneDoneReport, plan,
    restore, sealed,
};
use becalm_units::CpuList;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::{Value, json};

const WORDS: [&str; 2] = ["keep", "force"];

/// The places that becalm may write to: kernel settings, including control groups.
const PLACES: [&str; 3] = ["/proc/sys", "/proc/irq", "/sys"];

/// The machine's files on disk, for lookups below its root.
static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = scratch().join("machine");
    put(&root, &MACHINE, &mut Default::default());
    root
});

/// The journal of a completely applied plan, and the files in that state.
static VALID: LazyLock<Value> = LazyLock::new(|| {
    let cpus: CpuList = "1,3".parse().expect("a list");
    let request = Request { cpus, ..Request::default() };
    let plan: Plan = plan(&LiveMachine::for_root(&ROOT), &request).expect("a plan for a valid machine");
    let owner =
        json!({"pid": 1, "start_ticks": 1, "boot_id": "00000000-0000-4000-8000-000000000001", "runs_command": false});
    let changes = plan.steps.clone();
    let plan = Plan { steps: Vec::new(), ..plan };
    let mut records = vec![json!({"record": "begin", "version": 1, "owner": owner, "plan": plan})];
    let steps = changes.iter().enumerate();
    records.extend(steps.map(|(step, change)| json!({"record": "step", "step": step, "change": change})));
    records.push(json!({"record": "threads", "threads": [{"tid": 1, "start_ticks": 1, "cpus": "0-3"}]}));
    let mut files = serde_json::Map::new();
    for (step, change) in changes.iter().enumerate() {
        records.push(json!({"record": "original", "step": step, "value": change.from}));
        records.push(json!({"record": "done", "step": step, "value": change.to}));
        if let becalm_tune::Knob::File { path, .. } = &change.knob {
            files.insert(path.to_str().expect("our own path").to_owned(), change.to.clone().into());
        }
    }
    records.push(json!({"record": "applied"}));
    records.push(json!({"record": "restored", "step": 0, "gone": false}));
    json!({"records": records, "files": files, "torn": 0, "damaged": 0})
});

/// A machine whose files, groups, threads and units are in memory.
struct Memory {
    files: RefCell<BTreeMap<PathBuf, String>>,
}

/// Fails for writes outside settings.
fn check_place(path: &Path) {
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let known = PLACES.iter().any(|place| path.starts_with(place));
    assert!(plain && known, "{} was to be changed, which is no setting", path.display());
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Machine for Memory {
    fn root(&self) -> &Path {
        &ROOT
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        self.files.borrow().get(path).cloned().ok_or_else(missing)
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        check_place(path);
        let mut files = self.files.borrow_mut();
        let file = files.get_mut(path).ok_or_else(missing)?;
        text.clone_into(file);
        Ok(())
    }

    fn has_folder(&self, path: &Path) -> bool {
        self.files.borrow().keys().any(|file| file.starts_with(path) && file != path)
    }

    fn make_group(&self, path: &Path) -> io::Result<()> {
        check_place(path);
        self.files.borrow_mut().insert(path.join("cgroup.procs"), String::new());
        Ok(())
    }

    fn remove_group(&self, path: &Path) -> io::Result<()> {
        check_place(path);
        self.files.borrow_mut().retain(|file, _| !file.starts_with(path));
        Ok(())
    }

    fn tasks(&self) -> io::Result<PlacedTasks> {
        let placed = |pid: i32, ppid, cpus: &str| Placed {
            task: ListedThread { pid, tgid: pid, comm: format!("thread {pid}"), kthread: false },
            ppid,
            start_ticks: pid as u64,
            bound: false,
            cpus: cpus.parse().expect("a list"),
        };
        Ok(PlacedTasks { tasks: vec![placed(1, 0, "0"), placed(7, 1, "0"), placed(8, 7, "0-3")], unread: Vec::new() })
    }

    fn affinity(&self, tid: i32) -> io::Result<Option<(u64, CpuList)>> {
        Ok(self
            .tasks()?
            .tasks
            .into_iter()
            .find(|placed| placed.task.pid == tid)
            .map(|found| (found.start_ticks, found.cpus)))
    }

    fn set_affinity(&self, tid: i32, cpus: &CpuList) -> io::Result<()> {
        assert!(self.affinity(tid)?.is_some(), "thread {tid} was to be moved, which is not there");
        if cpus.is_empty() { Err(io::ErrorKind::InvalidInput.into()) } else { Ok(()) }
    }

    fn systemctl(&self, arguments: &[&str]) -> io::Result<String> {
        let known = ["show", "--property", "--value", "set-property", "--runtime", "start", "stop"];
        for argument in arguments {
            assert!(
                !argument.starts_with('-') || known.contains(argument),
                "systemctl would take '{argument}' for an option"
            );
        }
        Ok("active\n".to_owned())
    }
}

fn journal(edited: &Value) -> Vec<u8> {
    let records = edited["records"].as_array().map_or(&[][..], Vec::as_slice);
    // Each is sealed, so its contents are read; otherwise only checksums would be tested.
    let line = |(index, record)| format!("{}\n", sealed(index + 1, &String::from_utf8_lossy(&contents(record))));
    let mut text: Vec<u8> = records.iter().enumerate().flat_map(|record| line(record).into_bytes()).collect();
    // One bit may be flipped.
    let damaged = edited["damaged"].as_u64().unwrap_or(0) as usize;
    if damaged > 0 && !text.is_empty() {
        let at = damaged / 8 % text.len();
        text[at] ^= 1 << (damaged % 8);
    }
    let torn = edited["torn"].as_u64().unwrap_or(0) as usize;
    text.truncate(text.len().saturating_sub(torn));
    text
}

fn report(doing: TuneDoing, state: &becalm_tune::State, attempts: Vec<becalm_tune::Attempt>) {
    check_report(&TuneDoneReport {
        doing,
        stage: Stage::Untuned,
        summary: "it is as it is".to_owned(),
        cpus: state.quiet(),
        attempts,
        journal: None,
        advice: None,
    });
}

fuzz_target!(|input: &str| {
    static PLACE: LazyLock<PathBuf> = LazyLock::new(|| {
        let place = scratch().join("tune");
        fs::create_dir(&place).expect("a new directory");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).expect("our own directory");
        place
    });
    let edits = Edits::parse(input);
    let edited = edits.applied_to(&VALID);
    let folder = Folder::new(PLACE.as_path());
    fs::write(folder.journal(), journal(&edited)).expect("our own file");
    let files = edited["files"].as_object().into_iter().flatten();
    let files = files.map(|(path, value)| (path.into(), String::from_utf8_lossy(&contents(value)).into_owned()));
    let machine = Memory { files: RefCell::new(files.collect()) };
    if let Ok(Some(state)) = folder.read() {
        report(TuneDoing::Status, &state, state.in_force());
        let spent = state.is_spent();
        let foreign = match () {
            () if edits.has("force") => Foreign::Force,
            () if edits.has("keep") => Foreign::Keep,
            () => Foreign::Leave,
        };
        let restoring = RestoreOptions { foreign, ..RestoreOptions::default() };
        if let Ok(Some(restored)) = restore(&machine, &folder, restoring, &mut |_| {}) {
            assert!(!spent || restored.changes.is_empty(), "a journal of nothing, and something was restored");
            report(TuneDoing::Restore, &state, restored.changes.clone());
            if restored.is_complete() {
                assert!(!folder.journal().exists(), "everything is back, and the journal is still there");
                let again = restore(&machine, &folder, restoring, &mut |_| {});
                assert!(matches!(again, Ok(None)), "{again:?}");
            }
        }
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    edits::mutate(data, size, max_size, seed, |_| Some(&VALID), &WORDS)
});
