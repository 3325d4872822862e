//! Plain `becalm`: what is missing or limited on this machine and why, and what to run first.

use std::io::Write;
use std::path::Path;

use becalm_command::arguments::FormArgs;
use becalm_command::output::{Output, emit};
use becalm_command::pager::Paging;
use becalm_command::{Exit, Task};
use becalm_tune::see;
use becalm_units::fault::{self, Context};

/// Looking at this machine, which is what becalm does without a command.
pub struct Welcome {
    /// The form of the report.
    pub form: FormArgs,
}

impl Task for Welcome {
    fn paging(&self) -> Paging {
        Paging::Long
    }

    fn run(self: Box<Self>, out: &mut dyn Write) -> fault::Result<Exit> {
        run(self.form.output(false)?, out).map(|()| Exit::Done)
    }
}

/// Reports what can be measured on this machine. An unreadable file of the machine is a finding, not an error. Fails if the output cannot
/// be written.
fn run(output: Output, out: &mut dyn Write) -> fault::Result<()> {
    let audit = see::look(Path::new("/"));
    emit(&audit, output, out).context("cannot write the findings")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest line of a text that nobody says the width of: a command that begins with, and what it is for.
    const LONGEST: usize = 140;

    #[test]
    fn the_document_and_the_text_agree() {
        let mut bytes = Vec::new();
        run(Output::Json, &mut bytes).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(document["schema"], "becalm.audit/1");
        let mut bytes = Vec::new();
        run(Output::Text { all: true }, &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let findings = document["findings"].as_array().unwrap();
        assert!(!findings.is_empty());
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for finding in findings {
            assert!(words(&text).contains(&words(finding["what"].as_str().unwrap())), "{finding}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= LONGEST), "{text}");
    }
}
