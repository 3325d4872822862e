//! `becalm man`: manual pages, generated from the argument definitions.

use std::io::Write;
use std::path::PathBuf;

use becalm_bundle::Draft;
use becalm_command::{Exit, Task};
use becalm_linux::folder;
use becalm_units::fault::{Context, Result, UsageError};
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use crate::Arguments;

/// Write the manual pages
///
/// Without DIR, prints one page. To read one: `becalm man --page record | man -l -`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// Directory for all pages, such as /usr/local/share/man/man1; created if missing
    #[arg(value_name = "DIR", conflicts_with = "page")]
    folder: Option<PathBuf>,

    /// Print the page of this command instead of becalm's own
    #[arg(long, value_name = "COMMAND")]
    page: Option<String>,
}

impl Task for ManArgs {
    fn run(self: Box<Self>, out: &mut dyn Write) -> Result<Exit> {
        let mut command = Arguments::command().disable_help_subcommand(true);
        // Gives each command the name of its page.
        command.build();
        let pages = pages(&command);
        if let Some(folder) = &self.folder {
            folder::make_all(folder).with_context(|| format!("cannot create the directory {}", folder.display()))?;
            for (name, page) in &pages {
                let path = folder.join(format!("{name}.1"));
                let mut draft = Draft::replace(&path)?;
                draft.write_all(&render(page)?).with_context(|| format!("cannot write {}", path.display()))?;
                draft.finish()?;
            }
            return Ok(Exit::Done);
        }
        let wanted = self.page.as_ref().map_or_else(|| "becalm".to_owned(), |page| format!("becalm-{page}"));
        match pages.iter().find(|(name, _)| *name == wanted) {
            Some((_, page)) => out.write_all(&render(page)?)?,
            None => {
                let known: Vec<&str> = pages.iter().filter_map(|(name, _)| name.strip_prefix("becalm-")).collect();
                let page = self.page.as_deref().unwrap_or_default();
                let known = known.join(", ");
                return Err(UsageError::new(format!("'{page}' is no command; choose one of {known}")).into());
            }
        }
        Ok(Exit::Done)
    }
}

/// The program and its commands, each with the name of its page.
fn pages(command: &Command) -> Vec<(String, Command)> {
    let mut pages = vec![("becalm".to_owned(), command.clone())];
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        pages.push((format!("becalm-{}", sub.get_name()), sub.clone()));
    }
    pages
}

fn render(page: &Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let source = concat!("becalm ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(page.clone()).section("1").manual("becalm").source(source);
    man.render(&mut text).context("cannot make a manual page")?;
    Ok(text)
}
