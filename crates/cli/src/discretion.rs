//! Removes private data from texts: names of hosts, users and files, addresses, and anything that looks like a secret.
//!
//! Data known to this process is matched exactly: its host, its users, their homes, the values of its environment, the words of its command
//! line. Everything else is recognized by its form, and in doubt is hidden.

use std::env;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use becalm_linux::procfs::kernel::hostname;

/// Names that are not private, and would make other words unreadable if hidden.
const COMMON: &[&str] = &["root", "localhost", "becalm", "(none)", "linux", "user", "nobody"];

/// Paths below these are the same on every system.
const OF_THE_SYSTEM: &[&str] =
    &["/proc", "/sys", "/usr", "/lib", "/lib64", "/bin", "/sbin", "/dev/cpu", "/dev/shm", "/dev/kmsg"];

/// becalm's own files and directories; names inside are private.
const OF_BECALM: &[&str] = &["/etc/becalm", "/run/becalm", "/var/lib/becalm"];

/// Suffixes that identify a word as a file name.
const ENDINGS: &[&str] = &[
    "becalm", "study", "csv", "json", "jsonl", "html", "txt", "parquet", "xml", "sarif", "tick", "conf", "toml", "dat",
    "log", "sh", "py", "so",
];

/// Shorter values of variables are treated as normal words.
const VALUE: usize = 8;

/// Removes all private data from texts.
#[derive(Clone, Default, Debug)]
pub struct Discretion {
    /// Known private texts, the longest first, with their replacements.
    known: Vec<(String, &'static str)>,
}

impl Discretion {
    /// Hides what this process knows of itself.
    pub fn for_process() -> Self {
        let mut discretion = Self::default();
        let host = hostname(Path::new("/")).unwrap_or_default();
        discretion.add(&host, "HOST");
        discretion.add(host.split('.').next().unwrap_or_default(), "HOST");
        for name in ["HOSTNAME", "HOST"] {
            discretion.add(&env::var(name).unwrap_or_default(), "HOST");
        }
        for name in ["USER", "LOGNAME", "SUDO_USER", "USERNAME"] {
            discretion.add(&env::var(name).unwrap_or_default(), "USER");
        }
        for name in ["HOME", "SUDO_HOME"] {
            let home = env::var(name).unwrap_or_default();
            // A home of `/` is not private.
            if home.len() > 1 {
                discretion.add(&home, "HOME");
                discretion.add(home.rsplit('/').next().unwrap_or_default(), "USER");
            }
        }
        for (_, value) in env::vars_os() {
            let value = value.to_string_lossy();
            let is_a_word = value.chars().all(|c| c.is_ascii_lowercase());
            let is_of_the_system = value.split(':').all(stays);
            if value.len() >= VALUE && !is_a_word && !is_of_the_system {
                discretion.add(&value, "VALUE");
            }
        }
        discretion.sort();
        discretion
    }

    /// Also hides these words of a command line.
    #[must_use]
    pub fn and_words<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        words.into_iter().for_each(|word| self.add(word, "ARGUMENT"));
        self.sort();
        self
    }

    fn add(&mut self, text: &str, instead: &'static str) {
        let text = text.trim();
        let is_number = text.chars().all(|c| c.is_ascii_digit() || ".,-".contains(c));
        if text.len() > 1 && !is_number && !COMMON.contains(&text.to_ascii_lowercase().as_str()) {
            self.known.push((text.to_owned(), instead));
        }
    }

    fn sort(&mut self) {
        self.known.sort_by(|(one, _), (other, _)| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        self.known.dedup_by(|(one, _), (other, _)| one == other);
    }

    /// The text without private data.
    pub fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (known, instead) in &self.known {
            text = replaced(&text, known, instead);
        }
        by_shape(&text)
    }
}

/// Replaces a text wherever it occurs as a separate word.
fn replaced(text: &str, known: &str, instead: &str) -> String {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (mut result, mut rest) = (String::new(), text);
    let mut before = None;
    while let Some(at) = rest.find(known) {
        let (head, tail) = rest.split_at(at);
        let after = &tail[known.len()..];
        let last = head.chars().next_back().or(before);
        let inside = |c: Option<char>, edge: Option<char>| part(c) && part(edge);
        let is_word = !inside(last, known.chars().next()) && !inside(after.chars().next(), known.chars().next_back());
        result += head;
        result += if is_word { instead } else { known };
        before = known.chars().next_back();
        rest = after;
    }
    result + rest
}

/// Hides anything that looks like a file, an address or a secret.
fn by_shape(text: &str) -> String {
    let mut result = String::new();
    let mut word = String::new();
    let mut is_secret = false;
    let mut end = |word: &mut String, result: &mut String| {
        if !word.is_empty() {
            *result += &shown(word, is_secret);
            // The word after such a word is the secret itself.
            is_secret = names_a_secret(word);
            word.clear();
        }
    };
    for c in text.chars() {
        if c.is_whitespace() || "'\"`()<>{};,=|&".contains(c) {
            end(&mut word, &mut result);
            result.push(c);
        } else {
            word.push(c);
        }
    }
    end(&mut word, &mut result);
    result
}

fn names_a_secret(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
    ["password", "passwd", "secret", "token", "apikey", "api-key", "api_key", "bearer"]
        .iter()
        .any(|name| word.ends_with(name))
}

/// A word, or its replacement.
fn shown(word: &str, is_secret: bool) -> String {
    // Keep punctuation after a name.
    let core = word.trim_end_matches(['.', ':', '!', '?']);
    let rest = &word[core.len()..];
    let hidden = if is_secret && !core.is_empty() && core != "is" {
        Some("SECRET".to_owned())
    } else if core.contains("://") {
        Some("URL".to_owned())
    } else if is_address(core) {
        Some("ADDRESS".to_owned())
    } else if is_token(core) {
        Some("TOKEN".to_owned())
    } else {
        path(core)
    };
    hidden.map_or_else(|| word.to_owned(), |hidden| hidden + rest)
}

/// Whether it is a network, hardware or mail address.
fn is_address(word: &str) -> bool {
    let host = word.split('/').next().unwrap_or_default().trim_matches(['[', ']']);
    let is_mac = |separator: char| {
        let groups: Vec<&str> = word.split(separator).collect();
        groups.len() >= 6 && groups.iter().all(|group| group.len() == 2 && group.chars().all(|c| c.is_ascii_hexdigit()))
    };
    let of_a_person = word.split_once('@').is_some_and(|(name, at)| !name.is_empty() && !at.is_empty());
    host.parse::<IpAddr>().is_ok() || word.parse::<SocketAddr>().is_ok() || is_mac(':') || is_mac('-') || of_a_person
}

/// Whether it looks like a key, a serial number or a generated machine name.
fn is_token(word: &str) -> bool {
    let is_of = |c: char| c.is_ascii_alphanumeric() || "_-+/=.".contains(c);
    if word.starts_with('/') || !word.chars().all(is_of) {
        return false;
    }
    let hex = word.chars().filter(|c| *c != '-').all(|c| c.is_ascii_hexdigit());
    let count = |is: fn(&char) -> bool| word.chars().filter(is).count();
    let (upper, lower) = (count(char::is_ascii_uppercase), count(char::is_ascii_lowercase));
    let digits = count(char::is_ascii_digit);
    (word.len() >= 32 && hex)
        || (word.len() >= 16 && upper > 0 && lower > 0 && digits > 0)
        || (word.len() >= 20 && digits >= 5)
}

/// Whether a path is the same on every system.
fn stays(path: &str) -> bool {
    OF_THE_SYSTEM
        .iter()
        .any(|system| path.strip_prefix(system).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// The replacement of a path: its suffix, and the directory if that is becalm's own.
fn path(word: &str) -> Option<String> {
    let ending = word.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
    let ending = ending.filter(|ending| ENDINGS.contains(ending));
    let instead = ending.map_or_else(|| "PATH".to_owned(), |ending| format!("PATH.{ending}"));
    let is_whole = word.starts_with('/') && word.len() > 1;
    if is_whole && stays(word) {
        return None;
    }
    if let Some(own) = OF_BECALM
        .iter()
        .find(|own| word.strip_prefix(*own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    {
        return (word != *own).then(|| format!("{own}/{instead}"));
    }
    let is_below = ["./", "../", "~"].iter().any(|begin| word.starts_with(begin));
    let is_named = ending.is_some() && !word.starts_with('.');
    (is_whole || is_below || is_named).then_some(instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(words: &[(&str, &'static str)]) -> Discretion {
        let mut discretion = Discretion::default();
        words.iter().for_each(|(text, instead)| discretion.add(text, instead));
        discretion.sort();
        discretion
    }

    #[test]
    fn what_is_known_is_hidden_where_it_is_a_word() {
        let discretion =
            known(&[("al", "USER"), ("vm-7", "HOST"), ("/home/al", "HOME"), ("root", "USER"), ("12", "ARGUMENT")]);
        assert_eq!(
            discretion.hide("cannot read /home/al: al has no right on vm-7"),
            "cannot read HOME: USER has no right on HOST"
        );
        assert_eq!(discretion.hide("also always vm-70, root, 12 ms"), "also always vm-70, root, 12 ms");
        assert_eq!(discretion.hide("vm-7.becalm of al, al"), "PATH.becalm of USER, USER");
        assert_eq!(known(&[("aa", "X")]).hide("aaaa aa"), "aaaa X", "no part of a word");
    }

    #[test]
    fn paths_keep_what_every_system_has() {
        for (text, shown) in [
            ("cannot read /srv/customer/run.becalm: gone", "cannot read PATH.becalm: gone"),
            ("in secret-project.becalm.", "in PATH.becalm."),
            ("./a/b or ../c or ~/d or ~al", "PATH or PATH or PATH or PATH"),
            ("/sys/kernel/tracing and /proc/stat, /usr/bin/perf", "/sys/kernel/tracing and /proc/stat, /usr/bin/perf"),
            ("/etc/becalm/watch.conf", "/etc/becalm/PATH.conf"),
            ("/run/becalm is held", "/run/becalm is held"),
            ("/etc/becalm-other/x", "PATH"),
            ("'/data/x y'", "'PATH y'"),
            ("loop and /proc: 3 B/s of 1/2", "loop and /proc: 3 B/s of 1/2"),
            ("0.5 % of 3.25ms. becalm.audit/1", "0.5 % of 3.25ms. becalm.audit/1"),
        ] {
            assert_eq!(by_shape(text), shown, "{text}");
        }
    }

    #[test]
    fn addresses_and_secrets_are_known_by_their_shape() {
        for (text, shown) in [
            ("cannot listen at 10.1.2.3:9749: in use", "cannot listen at ADDRESS: in use"),
            ("fe80::1 or [2001:db8::7]:80 or 10.0.0.0/8", "ADDRESS or ADDRESS or ADDRESS"),
            ("mac 00:1a:2b:3c:4d:5e, 00-1a-2b-3c-4d-5e", "mac ADDRESS, ADDRESS"),
            ("ask jane@example.org.", "ask ADDRESS."),
            ("to https://user:pw@collector/v1", "to URL"),
            ("--key ghp_16C7e42F292c6912E7710c838347Ae178B4a", "--key TOKEN"),
            ("password=hunter2 token: abc", "password=SECRET token: SECRET"),
            ("4c4c4544-0042-3510-8051-b7c04f4e3332", "TOKEN"),
            ("12:34:56 and 0-3,8 and 2026-01-31T12:00:00Z", "12:34:56 and 0-3,8 and 2026-01-31T12:00:00Z"),
            (
                "smp_apic_timer_interrupt and __x64_sys_clock_nanosleep",
                "smp_apic_timer_interrupt and __x64_sys_clock_nanosleep",
            ),
            (
                "Intel(R) Xeon(R) Platinum 8581C, 6.18.5-cloud-amd64",
                "Intel(R) Xeon(R) Platinum 8581C, 6.18.5-cloud-amd64",
            ),
        ] {
            assert_eq!(by_shape(text), shown, "{text}");
        }
    }

    #[test]
    fn the_process_hides_its_own() {
        let discretion = Discretion::for_process().and_words(["my-command", "--duration", "x"]);
        let home = env::var("HOME").unwrap_or_default();
        if home.len() > 1 {
            assert_eq!(discretion.hide(&format!("in {home}: no")), "in HOME: no");
        }
        assert_eq!(discretion.hide("my-command failed"), "ARGUMENT failed");
    }
}
