//! What is said of a command line that cannot be understood, beyond what the parser says: what users of other programs wrote there, and how
//! numbers are written here.

use std::io;
use std::process::ExitCode;

use becalm_command::Exit;
use becalm_command::messages::{say, say_error};
use becalm_command::{color, pager};
use becalm_units::plain_number;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::commands;

/// Programs and commands of others, and what answers the same here.
const COMMANDS: &[(&str, &str)] = &[
    ("osnoise", "what `rtla osnoise` shows is shown by becalm record --cpus LIST, and live by becalm top"),
    (
        "timerlat",
        "becalm measures what a thread loses, not how late a timer wakes it; what delays the wake-up is in becalm record --cpus LIST --sched \
         fifo:95, as it catches each interrupt and thread by name",
    ),
    (
        "hwnoise",
        "what no kernel event explains is kind unseen in becalm record --cpus LIST, beside everything else; nothing is disabled for it",
    ),
    (
        "hwlatdetect",
        "what the firmware and the processor take is kind unseen, source smi or long, in becalm record --cpus LIST",
    ),
    (
        "cyclictest",
        "becalm has no timer that wakes late: becalm record --cpus LIST --sched fifo:95 --duration 1m catches what would delay it, with its \
         source, and --max-detour 100us ends in exit code 3",
    ),
    ("oslat", "becalm record --cpus LIST --duration 1m is the same busy loop, with the source of each interruption"),
    ("hiccups", "becalm record --cpus LIST --duration 1m is the same busy loop, with the source of each interruption"),
    (
        "sysjitter",
        "becalm record --cpus LIST --duration 1m is the same busy loop, with the source of each interruption",
    ),
    ("osjitter", "becalm record --cpus LIST --duration 1m is the same busy loop, with the source of each interruption"),
    (
        "selfish",
        "becalm record --cpus LIST --duration 1m is the same busy loop; becalm import --from selfish reads its files",
    ),
    (
        "netgauge",
        "becalm record --cpus LIST --duration 1m is the same busy loop; becalm import --from netgauge reads its files",
    ),
    ("ftq", "becalm work --fixed time is FTQ"),
    ("fwq", "becalm work --fixed work is FWQ"),
    ("rtla", "becalm record --cpus LIST shows what rtla osnoise does, and becalm top shows it live"),
    (
        "perf",
        "what interrupts a CPU is recorded by becalm record --cpus LIST, and a command beside it by becalm record -- COMMAND",
    ),
    (
        "trace-cmd",
        "what interrupts a CPU is recorded by becalm record --cpus LIST: the trace is set up, read and removed by it",
    ),
    (
        "hyperfine",
        "repetitions of a command on quiet CPUs are made by becalm run-quiet -- COMMAND, which writes hyperfine's JSON as well",
    ),
    (
        "loggopsim",
        "what noise costs a parallel job is said by becalm predict RUN; becalm export --to loggopsim writes noise files",
    ),
    ("taskset", "a command on quiet CPUs is run by becalm tune run --cpus LIST -- COMMAND"),
    ("cpuset", "a command on quiet CPUs is run by becalm tune run --cpus LIST -- COMMAND"),
    ("tuned", "becalm tune plan --cpus LIST --format tuned writes a profile for tuned"),
    ("list", "becalm report RUN shows a stored run, and becalm --help lists the commands"),
    (
        "run",
        "a command is run on quiet CPUs by becalm tune run --cpus LIST -- COMMAND or becalm run-quiet -- COMMAND, and beside a recording by becalm record -- COMMAND",
    ),
    ("stat", "becalm report RUN shows a stored run, and becalm record makes one"),
    ("plot", "becalm report RUN --html FILE writes a page with charts"),
    ("diff", "becalm compare A B says what changed"),
    ("version", "becalm --version prints it"),
];

/// Options of other programs, and what is written here.
const OPTIONS: &[(&[&str], &str)] = &[
    (
        &["-p", "--period"],
        "the loops of becalm never sleep, so they have no period; a priority is given by --sched fifo:80",
    ),
    (&["-i", "--interval"], "the loops of becalm never sleep, so there is no interval between their looks"),
    (&["-D", "--runtime", "--time"], "how long is said by --duration, with its unit: --duration 10s"),
    (&["-a", "-C", "--cpu", "--cpu-list", "--affinity"], "CPUs are named by --cpus, like --cpus 1-3,8"),
    (
        &["-P", "--prio", "--priority", "--rtprio", "-R"],
        "the scheduling class is given by --sched, like --sched fifo:80",
    ),
    (&["-T", "-b", "--breaktrace", "--stop", "-s"], "a limit is set by --max-detour 100us, which ends in exit code 3"),
    (&["-t", "--threads", "-S", "--smp"], "there is a loop on each CPU that --cpus names, without it on all"),
    (&["-m", "--mlockall"], "the memory of the loops is always locked"),
    (&["-H", "--house-keeping"], "becalm keeps off the CPUs that it measures by itself, where there are others"),
    (&["-l", "--loops", "-n", "--count"], "how often is said by the length: --duration 10s, or --detours N"),
    (&["--format"], "--json prints one document"),
];

/// Says what is wrong with the command line; exit code 2. Help and version, which were asked for, are printed, with exit code 0.
pub fn explain(mut error: clap::Error) -> ExitCode {
    // Where nobody can be told, the exit code tells.
    if !error.use_stderr() {
        let _ = pager::show(&color::styled(&error.render(), &io::stdout()));
        return Exit::Done.into();
    }
    if let Some(lacks) = subcommand(&error).and_then(commands::not_built_in) {
        say_error(format_args!("{lacks}"));
        return Exit::Usage.into();
    }
    let tip = tip(&error);
    if tip.is_some() {
        guess_nothing(&mut error);
    }
    let _ = error.print();
    if let Some(tip) = tip {
        say(format_args!("{tip}"));
    }
    Exit::Usage.into()
}

/// Takes out what the parser guesses by letters alone, like `import` for `timerlat`: it is known what was meant.
fn guess_nothing(error: &mut clap::Error) {
    for guess in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::Suggested] {
        error.remove(guess);
    }
}

/// The word that was taken for a command, and is none.
fn subcommand(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) => Some(name),
        _ => None,
    }
}

/// What else helps.
fn tip(error: &clap::Error) -> Option<String> {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => command_hint(said(ContextKind::InvalidSubcommand)?).map(str::to_owned),
        ErrorKind::UnknownArgument => option_hint(said(ContextKind::InvalidArg)?).map(str::to_owned),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => value_hint(said(ContextKind::InvalidValue)?),
        _ => None,
    }
}

fn command_hint(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    COMMANDS.iter().find(|(of_others, _)| *of_others == name).map(|(_, here)| *here)
}

fn option_hint(option: &str) -> Option<&'static str> {
    let name = option.split('=').next().unwrap_or(option);
    OPTIONS.iter().find(|(of_others, _)| of_others.contains(&name)).map(|(_, here)| *here)
}

fn value_hint(value: &str) -> Option<String> {
    let plain = plain_number(value)?;
    Some(format!(
        "numbers have a point before their fraction and nothing between thousands, and their unit stands right behind them: write {plain}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;
    use clap::{CommandFactory, Parser};

    fn tip_of(line: &str) -> Option<String> {
        tip(&Arguments::try_parse_from(line.split(' ')).unwrap_err())
    }

    #[test]
    fn what_others_have_is_answered() {
        for name in ["osnoise", "timerlat", "hwnoise", "cyclictest", "oslat", "perf", "Cyclictest"] {
            let tip = tip_of(&format!("becalm {name}")).unwrap();
            assert!(tip.contains("becalm record"), "{tip}");
        }
        assert_eq!(tip_of("becalm recrod"), None, "the parser knows better");
        assert!(tip_of("becalm record --period 1000").unwrap().contains("never sleep"));
        assert!(tip_of("becalm record -D 10").unwrap().contains("--duration 10s"));
        assert!(tip_of("becalm record -a 1").unwrap().contains("--cpus"));
        assert!(tip_of("becalm record --prio=80").unwrap().contains("--sched fifo:80"));
    }

    #[test]
    fn where_it_is_known_what_was_meant_nothing_is_guessed() {
        for (line, guess) in [("becalm timerlat", "import"), ("becalm record -a 1", "'-- -a'")] {
            let mut error = Arguments::try_parse_from(line.split(' ')).unwrap_err();
            assert!(error.render().to_string().contains(guess), "the parser has learned something: {}", error.render());
            guess_nothing(&mut error);
            let text = error.render().to_string();
            assert!(!text.contains("tip:") && text.contains("unexpected") | text.contains("unrecognized"), "{text}");
        }
    }

    #[test]
    fn numbers_of_others_are_written_anew() {
        for (line, plain) in [
            ("becalm record --duration 1,5s", "write 1.5s"),
            ("becalm record --max-noise 0,1%", "write 0.1%"),
            ("becalm record --detours 10,000", "write 10000"),
            ("becalm record --buffer \u{ff11}\u{ff10}", "write 10"),
            ("becalm work --samples 10'000", "write 10000"),
        ] {
            let tip = tip_of(line).unwrap();
            assert!(tip.ends_with(plain), "{line}: {tip}");
        }
        assert_eq!(tip_of("becalm record --duration fast"), None);
        assert!(Arguments::try_parse_from(["becalm", "predict", "x", "--ranks", "10,000"]).is_err());
    }

    /// Whatever is advised can be typed.
    #[test]
    fn what_is_advised_is_there() {
        let command = Arguments::command();
        let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        for (of_others, here) in COMMANDS {
            assert!(!names.contains(of_others), "{of_others} is a command");
            for (_, rest) in here.match_indices("becalm ").map(|(at, word)| (at, &here[at + word.len()..])) {
                let word: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
                let is_said = ["has", "measures", "keeps"].contains(&word.as_str());
                assert!(is_said || word.starts_with("--") || names.contains(&word.as_str()), "becalm {word}");
            }
        }
    }
}
