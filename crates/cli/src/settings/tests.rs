use clap::Parser;

use super::*;
use crate::{Arguments, command_line};

fn set(text: &str) -> Result<Settings, SettingsError> {
    set_over("", text)
}

/// The combined settings of two files.
fn set_over(system: &str, user: &str) -> Result<Settings, SettingsError> {
    let root = command_line();
    let mut settings = Settings::default();
    for (kind, path, text) in [(PlaceKind::System, "/etc/c", system), (PlaceKind::User, "/home/c", user)] {
        let place = Place { kind, path: path.into(), state: PlaceState::Read };
        parse_text(&root, &place, text)?.into_iter().for_each(|setting| settings.add(setting));
    }
    Ok(settings)
}

/// The value of an option in a command line with these settings, as text.
fn value(settings: &Settings, line: &str, id: &str) -> Option<String> {
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let matches = match ask(&command_line(), settings, &words) {
        Ok(matches) => matches,
        Err(error) => panic!("{line}: {error:?}"),
    };
    let mut at = &matches;
    while let Some((_, below)) = at.subcommand() {
        at = below;
    }
    let values: Vec<_> = at.get_raw(id)?.map(|value| value.to_string_lossy()).collect();
    Some(values.join(","))
}

fn refused(settings: &Settings, line: &str) -> String {
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    match ask(&command_line(), settings, &words) {
        Ok(_) => panic!("{line} is obeyed"),
        Err(Asked::Line(error)) => error.to_string(),
        Err(Asked::Settings(error)) => error.to_string(),
    }
}

#[test]
fn the_command_line_is_over_the_user_and_the_user_over_the_system() {
    let system = "color = never\n[record]\nduration = 1s\nbuffer = 64\nsched = rr:3";
    let settings = set_over(system, "[record]\nduration = 2s\n[top]\nbuffer = 32").unwrap();
    let value_in = |line: &str, id: &str| value(&settings, line, id).unwrap();
    assert_eq!(value_in("becalm record", "duration"), "2s");
    assert_eq!(value_in("becalm record --duration 3s", "duration"), "3s");
    assert_eq!(value_in("becalm record", "buffer"), "64");
    assert_eq!(value_in("becalm top", "buffer"), "32");
    assert_eq!(value_in("becalm record", "sched"), "rr:3");
    assert_eq!(value_in("becalm top", "sched"), "other");
    assert_eq!(value_in("becalm record", "color"), "never");
    assert_eq!(value_in("becalm record --color always", "color"), "always");
    assert_eq!(value_in("becalm --color always record", "color"), "always");
    assert_eq!(value(&settings, "becalm work", "duration"), None);
}

#[test]
fn variables_are_over_files() {
    let root = command_line();
    let mut settings = set("width = 90\n[tune plan]\nprofile = hpc\n[record]\nno-argv = yes").unwrap();
    let variables = [
        ("BECALM_TUNE_PLAN_PROFILE", "benchmark"),
        ("BECALM_RECORD_NO_ARGV", "no"),
        ("BECALM_WIDTH", "70"),
        ("BECALM_RUN", "x"),
    ];
    let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
    from_environment(&root, variables).unwrap().into_iter().for_each(|setting| settings.add(setting));
    assert_eq!(value(&settings, "becalm tune plan --cpus 1", "profile").unwrap(), "benchmark");
    assert_eq!(value(&settings, "becalm record", "no_argv").unwrap(), "false");
    assert_eq!(value(&settings, "becalm record", "width").unwrap(), "70");
    let wrong = [("BECALM_RECORD_NO_ARGV".into(), "maybe".into())];
    let error = from_environment(&root, wrong.into_iter()).unwrap_err().to_string();
    assert_eq!(error, "BECALM_RECORD_NO_ARGV: 'maybe' is neither yes nor no");
}

#[test]
fn what_is_on_can_be_switched_off_and_on_again() {
    let settings = set("no-last-error = yes\n[record]\nno-argv = yes").unwrap();
    let value_in = |line: &str, id: &str| value(&settings, line, id).unwrap();
    assert_eq!(value_in("becalm record", "no_argv"), "true");
    assert_eq!(value_in("becalm record --argv", "no_argv"), "false");
    assert_eq!(value_in("becalm record --argv --no-argv", "no_argv"), "true");
    assert_eq!(value_in("becalm record --no-argv --argv", "no_argv"), "false");
    assert_eq!(value_in("becalm record --last-error", "no_last_error"), "false");
    // Also without any default.
    assert_eq!(value(&Settings::default(), "becalm record --no-argv --argv", "no_argv").unwrap(), "false");
    let settings = set_over("[record]\nno-argv = yes", "[record]\nno-argv = no").unwrap();
    assert_eq!(value(&settings, "becalm record", "no_argv").unwrap(), "false");
}

#[test]
fn a_default_gives_way_to_what_contradicts_it() {
    let settings = set("[record]\nduration = 5s\n[check]\nduration = 3s").unwrap();
    assert_eq!(value(&settings, "becalm record --until-stopped", "duration"), None);
    // Its built-in default differs.
    assert_eq!(value(&settings, "becalm check --max-noise 1% x.becalm", "duration").unwrap(), "10s");
    assert_eq!(value(&settings, "becalm check --max-noise 1%", "duration").unwrap(), "3s");
}

#[test]
fn lists_replace_lists() {
    let settings = set("[predict]\nranks = 1,2").unwrap();
    assert_eq!(value(&settings, "becalm predict x", "ranks").unwrap(), "1,2");
    assert_eq!(value(&settings, "becalm predict x --ranks 3,4", "ranks").unwrap(), "3,4");
}

/// Required arguments may come from a default.
#[test]
fn what_has_a_default_need_not_be_said() {
    let settings = set("[tune plan]\ncpus = 1").unwrap();
    assert_eq!(value(&settings, "becalm tune plan", "cpus").unwrap(), "1");
    assert!(refused(&set("[predict]\ngrain = 1ms").unwrap(), "becalm predict --law --rate 10Hz").contains("--delay"));
}

#[test]
fn what_cannot_be_meant_is_said_with_its_place() {
    for (text, said) in [
        ("\n[recrod]", "/home/c:2: there is no command 'recrod'; did you mean record?"),
        ("[tune paln]", "/home/c:1: there is no command 'tune paln'; did you mean tune plan?"),
        ("[record]\nduraton = 1s", "/home/c:2: [record] has no option 'duraton'; did you mean duration?"),
        ("colour = never", "/home/c:1: no option that all commands have is 'colour'; did you mean color?"),
        ("json = yes", "/home/c:1: json can be no default; there are color, width, pager, no-last-error"),
        (
            "[record]\ncolor = never",
            "/home/c:2: [record] has no option 'color'; all commands have it, so it belongs above the first section",
        ),
        ("[record]\nno-argv = on", "/home/c:2: 'on' is neither yes nor no"),
        ("[record]\ncpus = 1\ncpus = 2", "/home/c:3: cpus is set twice, first at /home/c:2; remove one"),
        ("[record\n", "/home/c:1: a bracket is not closed"),
        ("color", "/home/c:1: 'color' is not key = value"),
        ("[watch]", "/home/c:1: [watch] can have no defaults: becalm watch has a file of its own"),
        (
            "[tune apply]\nprofile = hpc",
            "/home/c:1: [tune apply] can have no defaults: the command line alone decides what becalm changes on the machine",
        ),
        ("[record]\noutput = x", "/home/c:2: output can be no default; there are "),
        ("[report]\nhtml = x", "/home/c:2: html can be no default; there are cpus, "),
        ("[record]\nas-root = yes", "/home/c:2: as-root can be no default"),
        ("[tune plan]\nroot = /x", "/home/c:2: [tune plan] has no option 'root'"),
    ] {
        let error = set(text).unwrap_err().to_string();
        assert!(error.starts_with(said), "{text}: {error}");
    }
}

#[test]
fn a_wrong_value_is_said_with_its_place_where_the_command_is_used() {
    let settings =
        set("[record]\nduration = fast\n[top]\nbuffer = 1\n[predict]\nnetwork = x\n[tune plan]\nprofile = y").unwrap();
    let said = refused(&settings, "becalm record");
    assert!(said.starts_with("/home/c:2: duration = fast: "), "{said}");
    let said = refused(&settings, "becalm top");
    assert!(said.starts_with("/home/c:4: buffer = 1: 1 is not in 4..="), "{said}");
    let said = refused(&settings, "becalm predict x");
    assert!(said.starts_with("/home/c:6: network = x: "), "{said}");
    let said = refused(&settings, "becalm tune plan --cpus 1");
    assert!(said.starts_with("/home/c:8: profile = y: "), "{said}");
    // Errors of the command line are not attributed to a file.
    let said = refused(&settings, "becalm record --duration slow");
    assert!(said.contains("'slow' for '--duration"), "{said}");
    assert!(value(&settings, "becalm record --duration 1s", "duration").is_some());
    assert!(check(&command_line(), &settings).unwrap_err().to_string().starts_with("/home/c:2: duration = fast: "));
}

#[test]
fn each_line_of_the_example_can_be_used() {
    let mut used = 0;
    let mut whole = String::new();
    for line in EXAMPLE.lines() {
        let setting = line.strip_prefix("# ").filter(|line| {
            let key = line.split_once(" = ").map_or("", |(key, _)| key);
            !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        });
        used += usize::from(setting.is_some());
        whole += setting.unwrap_or(line);
        whole.push('\n');
    }
    assert!(used > 20, "{used}");
    let settings = set(&whole).unwrap();
    assert_eq!(settings.settings.len(), used);
    check(&command_line(), &settings).unwrap();
    let root = command_line();
    for line in ["becalm record", "becalm check", "becalm report x", "becalm predict x", "becalm top"] {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        assert!(ask(&root, &settings, &words).is_ok(), "{line}");
    }
    // Unchanged, it has no effect.
    assert_eq!(set(EXAMPLE).unwrap().settings, []);
    // A value with a fixed default is the built-in one.
    for setting in &settings.settings {
        let Some(built_in) = built_in(&root, &setting.command, &setting.option) else { continue };
        let given = if setting.value == "false" { "no".into() } else { setting.value.clone() };
        assert_eq!(given.to_str(), Some(&*built_in), "{setting:?}");
    }
}

/// The command line can switch off any default that is on.
#[test]
fn each_option_that_is_on_or_off_has_an_opposite() {
    let root = command_line();
    let mut flags = 0;
    for (section, name) in all_keys(&root) {
        let mut command = &root;
        for word in section.split(' ').filter(|word| !word.is_empty()) {
            command = command.find_subcommand(word).unwrap();
        }
        let argument = |long: &str| command.get_arguments().find(|argument| argument.get_long() == Some(long));
        if matches!(argument(&name).unwrap().get_action(), clap::ArgAction::SetTrue) {
            flags += 1;
            let opposite = argument(&line::opposite(&name)).unwrap_or_else(|| panic!("[{section}] {name}"));
            assert!(opposite.is_hide_set(), "[{section}] {name}");
        }
    }
    assert!(flags >= 2, "{flags}");
}

/// Each variable stands for one key, and none is one of becalm's other variables.
#[test]
fn the_names_of_variables_are_of_one_key_each() {
    let root = command_line();
    let names: Vec<String> = all_keys(&root).iter().map(|(section, name)| variable(section, name)).collect();
    let mut once = names.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), names.len());
    // Those have other meanings.
    for other in
        [SWITCH, "BECALM_RUN", "BECALM_DRAIN", "BECALM_CHECK", "BECALM_INJECT", "BECALM_OPTIONS", "BECALM_FOLDER"]
    {
        assert!(!names.contains(&other.to_owned()), "{other}");
    }
    assert!(names.contains(&"BECALM_COLOR".to_owned()) && names.contains(&"BECALM_FLEET_PREDICT_RANKS".to_owned()));
}

#[test]
fn the_parser_holds_its_own_rules() {
    command_line().debug_assert();
    assert!(Arguments::try_parse_from(["becalm", "--color", "never", "record"]).is_ok());
}
