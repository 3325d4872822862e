//! `becalm config`: shows which defaults apply, where each was set, and which can be set.

use std::io::{self, Write};

use becalm_command::messages::page_width;
use becalm_command::output::{Output, emit};
use becalm_command::pager::Paging;
use becalm_command::{Exit, Task};
use becalm_command::{color, looks};
use becalm_report::{ConfigFile, ConfigFileOf, ConfigFileState, ConfigReport, ConfigSetting, config_files};
use becalm_report::{Form, Sheet};
use becalm_units::fault::{Result, UsageError};
use clap::{Args, Subcommand};

use crate::command_line;
use crate::settings::{self, EXAMPLE, Place, PlaceKind, PlaceState, Setting, Settings};

/// Show the defaults that are set for options, and where
///
/// Options that can have a default, also per command: buffer, color, cpus, duration, folder, grain, max-detour, max-noise, network, no-argv,
/// no-last-error, node, pager, profile, ranks, sched, threshold, trace-buffer, width. Precedence: command line, environment variables such as
/// BECALM_RECORD_DURATION, ~/.config/becalm/config ($XDG_CONFIG_HOME), /etc/becalm/config. BECALM_CONFIG names one file to read instead of both; if
/// it is empty, becalm reads no defaults.
#[derive(Args, Debug)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: Option<ConfigCommand>,

    /// Also show unset options, with becalm's own defaults
    #[arg(long)]
    all: bool,

    /// Print one JSON document (becalm.config/1)
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Subcommand, Debug)]
enum ConfigCommand {
    /// List the config files, and whether they exist
    Path,
    /// Print a config file with every setting commented out
    Example,
}

impl Task for ConfigArgs {
    fn paging(&self) -> Paging {
        Paging::Long
    }

    fn run(self: Box<Self>, out: &mut dyn Write) -> Result<Exit> {
        if matches!(self.command, Some(ConfigCommand::Example)) {
            out.write_all(EXAMPLE.as_bytes())?;
            return Ok(Exit::Done);
        }
        let report = report(self.all);
        match self.command {
            Some(_) => {
                let form = Form::within(page_width()).with_color(color::has_color(&io::stdout()));
                config_files(&report, &mut Sheet::new(out, form))?;
                Ok(Exit::Done)
            }
            None if self.json => {
                emit(&report, Output::Json, out)?;
                Ok(if report.error.is_some() { Exit::Usage } else { Exit::Done })
            }
            None => match &report.error {
                Some(error) => Err(UsageError::new(error.clone()).into()),
                None => emit(&report, Output::Text { all: self.all }, out).map(|()| Exit::Done),
            },
        }
    }
}

/// The defaults that are set, or their error; with `all`, also unset ones.
pub fn report(all: bool) -> ConfigReport {
    let root = command_line();
    let off = settings::are_off() || looks::reads_no_defaults();
    let read = if off { Ok(Settings::default()) } else { Settings::read(&root) };
    let checked = read.and_then(|read| settings::check(&root, &read).map(|()| read));
    let (read, error) = match checked {
        Ok(read) => (read, None),
        Err(error) => (Settings { places: settings::looked_at(), ..Settings::default() }, Some(error.to_string())),
    };
    let rows = settings::all_keys(&root).into_iter().filter_map(|(command, option)| {
        match read.settings.iter().find(|set| (&set.command, &set.option) == (&command, &option)) {
            Some(set) => Some(row(set)),
            None if all => {
                let values = settings::built_in(&root, &command, &option).into_iter().collect();
                Some(ConfigSetting { command, option, values, origin: None })
            }
            None => None,
        }
    });
    ConfigReport { off, files: read.places.iter().map(file).collect(), settings: rows.collect(), error }
}

/// A default in the syntax of a file.
fn row(set: &Setting) -> ConfigSetting {
    let value = match set.switch() {
        Some(is_on) => if is_on { "yes" } else { "no" }.to_owned(),
        None => set.value.to_string_lossy().into_owned(),
    };
    ConfigSetting {
        command: set.command.clone(),
        option: set.option.clone(),
        values: vec![value],
        origin: Some(set.origin.to_string()),
    }
}

fn file(place: &Place) -> ConfigFile {
    let of = match place.kind {
        PlaceKind::System => ConfigFileOf::System,
        PlaceKind::User => ConfigFileOf::User,
        PlaceKind::Named => ConfigFileOf::Named,
    };
    let (state, why) = match &place.state {
        PlaceState::Absent => (ConfigFileState::Absent, None),
        PlaceState::Read => (ConfigFileState::Read, None),
        PlaceState::Refused(why) => (ConfigFileState::Refused, Some(why.clone())),
    };
    ConfigFile { of, path: place.shown(), state, why }
}
