//! `becalm completions`: completion scripts for shells, generated from the argument definitions.

use std::io::Write;

use becalm_command::{Exit, Task};
use becalm_units::fault::Result;
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::{Shell, generate};

use crate::Arguments;

/// Print a completion script for a shell
///
/// bash: `becalm completions bash > ~/.local/share/bash-completion/completions/becalm`; zsh: into a file `_becalm` in a directory of $fpath; fish:
/// into ~/.config/fish/completions/becalm.fish.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// Shell to complete for
    #[arg(value_name = "SHELL")]
    shell: ShellArg,
}

/// The shells, with their names as users write them.
#[derive(Clone, Copy, ValueEnum, Debug)]
enum ShellArg {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

impl Task for CompletionsArgs {
    fn run(self: Box<Self>, out: &mut dyn Write) -> Result<Exit> {
        let shell = match self.shell {
            ShellArg::Bash => Shell::Bash,
            ShellArg::Zsh => Shell::Zsh,
            ShellArg::Fish => Shell::Fish,
            ShellArg::Elvish => Shell::Elvish,
            ShellArg::Powershell => Shell::PowerShell,
        };
        // The generator panics on write errors, so write to memory.
        let mut script = Vec::new();
        generate(shell, &mut Arguments::command(), "becalm", &mut script);
        out.write_all(&script)?;
        Ok(Exit::Done)
    }
}
