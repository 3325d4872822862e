//! Unfinished findings.

use std::path::Path;

use becalm_linux::file::{self, FileError};

use crate::document::{Area, Evidence, Finding, Severity};

/// Findings for a [`Check`](crate::document::Check).
pub(super) struct Findings<'a> {
    root: &'a Path,
    list: Vec<Finding>,
}

impl<'a> Findings<'a> {
    pub fn new(root: &'a Path) -> Self {
        Self { root, list: Vec::new() }
    }

    /// Adds a finding, to be completed.
    pub fn add(&mut self, area: Area, severity: Severity, title: impl Into<String>) -> &mut Finding {
        let title = title.into();
        self.list.push(Finding {
            area,
            severity,
            title,
            evidence: Vec::new(),
            fix: None,
            noise: Vec::new(),
            cost: None,
        });
        // It was just added.
        let last = self.list.len() - 1;
        &mut self.list[last]
    }

    /// The result of a reader; a failure becomes a finding.
    pub fn read<T>(&mut self, area: Area, result: Result<T, FileError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let (FileError::Read { what, .. } | FileError::Format { what, .. }) = &error;
                let verb = if matches!(error, FileError::Read { .. }) { "read" } else { "understood" };
                self.unread(area, format!("{what} could not be {verb}, so it was not checked"), &error);
                None
            }
        }
    }

    /// Adds a finding about something unknown because of this error.
    pub fn unread(&mut self, area: Area, title: String, error: &FileError) {
        let (path, why) = match error {
            FileError::Read { path, source, .. } => (path, source.to_string()),
            FileError::Format { path, why, .. } => (path, why.to_string()),
        };
        let path = match path.strip_prefix(self.root) {
            Ok(relative) => format!("/{}", relative.display()),
            Err(_) => path.display().to_string(),
        };
        let finding = self.add(area, Severity::Note, title);
        finding.seen(path, why);
        if error.is_denied() {
            finding.fix("run becalm as root");
        }
    }

    /// A kernel setting as evidence; `None` if there is none, or if it is unreadable, which becomes a finding.
    pub fn setting(&mut self, area: Area, path: &str) -> Option<Evidence> {
        let text = file::text(self.root, path);
        let value = self.read(area, text).flatten()?;
        Some(Evidence::new(path, value))
    }

    /// A numeric setting; any other text becomes a finding.
    pub fn number(&mut self, area: Area, path: &str) -> Option<i64> {
        let evidence = self.setting(area, path)?;
        match evidence.value.parse() {
            Ok(number) => Some(number),
            Err(_) => {
                let what = "a setting could not be understood, so it was not checked";
                let value: String = evidence.value.chars().take(60).collect();
                self.add(area, Severity::Note, what).seen(path, value);
                None
            }
        }
    }

    pub fn into_vec(self) -> Vec<Finding> {
        self.list
    }
}
