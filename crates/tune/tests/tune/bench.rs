//! A machine made of files, and a folder for the journal beside it.

use crate::fake::{Fake, Groups, machine};
use becalm_tune::{Applied, Folder, Foreign, Owner, Plan, Request, RestoreOptions, Restored, apply, plan, restore};

pub fn request(cpus: &str) -> Request {
    Request { cpus: cpus.parse().unwrap(), ..Request::default() }
}

/// A machine, and a folder for the journal beside it.
pub struct Bench {
    pub place: tempfile::TempDir,
    pub fake: Fake,
    pub folder: Folder,
}

/// A folder in memory, where there is one: thousands of files of made-up machines need no disk.
pub fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

impl Bench {
    pub fn new(cpus: u32, siblings: bool, groups: Groups) -> Self {
        let place = place();
        let root = place.path().join("root");
        machine(&root, cpus, siblings, groups);
        Self { fake: Fake::new(&root), folder: Folder::new(place.path().join("journal")), place }
    }

    pub fn root(&self) -> std::path::PathBuf {
        self.place.path().join("root")
    }

    pub fn owner(&self) -> Owner {
        Owner { start_ticks: 70, ..Owner::this_process(&self.fake, false).unwrap() }
    }

    pub fn plan(&self, request: &Request) -> Plan {
        plan(&self.fake, request).unwrap()
    }

    pub fn apply(&self, plan: &Plan) -> Applied {
        apply(&self.fake, &self.folder, plan, &self.owner(), &mut |_| ()).unwrap()
    }

    pub fn restore(&self, foreign: Foreign) -> Restored {
        let restoring = RestoreOptions { foreign, ..RestoreOptions::default() };
        restore(&self.fake, &self.folder, restoring, &mut |_| ()).unwrap().expect("there is a journal")
    }
}
