//! The kernel's command line, split into words like in the kernel (`next_arg` of `lib/cmdline.c`), and the value of `isolcpus=`
//! (`housekeeping_isolcpus_setup` of `kernel/sched/isolation.c`).

use std::path::Path;

use super::parse_kernel_list;
use crate::file::{FileError, FormatError, read};
use becalm_units::CpuList;

/// The parameters that the kernel was booted with, in order, without those for init after `--`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CommandLine(Vec<Parameter>);

/// One parameter of the command line: `NAME` or `NAME=VALUE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its name as written: `isolcpus`, `rcutree.kthread_prio`.
    pub name: String,
    /// The text after the first `=`, without quotes; `None` without `=`.
    pub value: Option<String>,
}

impl CommandLine {
    /// Splits a command line. No text is invalid: the kernel accepts any.
    pub fn parse(text: &str) -> Self {
        let mut parameters = Vec::new();
        let mut rest = text.trim_start_matches(is_blank);
        while !rest.is_empty() {
            let (word, tail) = next_word(rest);
            rest = tail.trim_start_matches(is_blank);
            let parameter = Parameter::from_word(word);
            if parameter.name == "--" && parameter.value.is_none() {
                break;
            }
            parameters.push(parameter);
        }
        Self(parameters)
    }

    /// Reads `proc/cmdline`.
    pub fn read(root: &Path) -> Result<Self, FileError> {
        Ok(Self::parse(read(root, "proc/cmdline", "the kernel's command line")?.trim_end_matches('\n')))
    }

    /// Every value given for a parameter, in order; `-` and `_` in names are the same, as in the kernel. A parameter without a value has the empty
    /// text.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let same = move |written: &str| written.bytes().map(dash).eq(name.bytes().map(dash));
        let named = self.0.iter().filter(move |parameter| same(&parameter.name));
        named.map(|parameter| parameter.value.as_deref().unwrap_or_default())
    }

    /// The last value given for a parameter, which is the one that most parameters use.
    pub fn last<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).last()
    }

    /// Whether a parameter was given, with or without a value.
    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// The parameters in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Parameter> {
        self.0.iter()
    }
}

/// White space like the kernel's `isspace`, except the no-break space of Latin-1, which no boot loader writes.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

fn dash(byte: u8) -> u8 {
    if byte == b'-' { b'_' } else { byte }
}

/// The text up to the first blank outside of quotes, and the rest. Quotes may be anywhere; an unclosed one extends to the end.
fn next_word(text: &str) -> (&str, &str) {
    let mut quoted = false;
    let end = text.find(|c: char| {
        quoted ^= c == '"';
        !quoted && is_blank(c)
    });
    text.split_at(end.unwrap_or(text.len()))
}

impl Parameter {
    /// Removes quotes around the whole word and around the value; others remain.
    fn from_word(word: &str) -> Self {
        let whole = word.strip_prefix('"');
        let word = match whole {
            // A word that is a single quote has none left at its end.
            Some(rest) => rest.strip_suffix('"').unwrap_or(rest),
            None => word,
        };
        // A parameter does not start with "=".
        let equals = word.char_indices().skip(1).find(|(_, c)| *c == '=').map(|(at, _)| at);
        let Some(equals) = equals else { return Self { name: word.to_owned(), value: None } };
        let value = &word[equals + 1..];
        let value = match value.strip_prefix('"') {
            Some(rest) if whole.is_none() => rest.strip_suffix('"').unwrap_or(rest),
            Some(rest) => rest,
            None => value,
        };
        Self { name: word[..equals].to_owned(), value: Some(value.to_owned()) }
    }
}

/// The flags and the CPUs of `isolcpus=`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IsolCpus {
    /// Remove the CPUs from load balancing; the default without flags.
    pub domain: bool,
    /// Stop the tick while one task runs, as `nohz_full=` does.
    pub nohz: bool,
    /// Keep away interrupts with kernel-managed affinity, as long as other CPUs are online.
    pub managed_irq: bool,
    /// Flags that the kernel skips as unknown.
    pub unknown: Vec<String>,
    /// The CPUs to isolate, among those that the machine can have.
    pub cpus: CpuList,
}

impl IsolCpus {
    /// Parses the parameter's value, on a machine that can have `count` CPUs. Fails if the kernel would ignore the parameter: a flag contains
    /// characters other than letters and `_`, the list of CPUs is invalid, or no list follows the flags.
    pub fn parse(text: &str, count: u32) -> Result<Self, FormatError> {
        let mut it = Self::default();
        let mut rest = text;
        while rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let (flag, tail) = rest
                .split_once(',')
                .ok_or_else(|| FormatError::new("flags, then a list of CPUs were expected", text))?;
            match flag {
                "nohz" => it.nohz = true,
                "domain" => it.domain = true,
                "managed_irq" => it.managed_irq = true,
                unknown if unknown.chars().all(|c| c.is_ascii_alphabetic() || c == '_') => {
                    it.unknown.push(unknown.to_owned());
                }
                invalid => return Err(FormatError::new("a flag of letters was expected", invalid)),
            }
            rest = tail;
        }
        it.domain |= !it.nohz && !it.managed_irq;
        it.cpus = parse_kernel_list(rest, count)?;
        Ok(it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `next_arg` of Linux 6.18, byte by byte: (name, value) of every word.
    fn plain(text: &str) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let space = |c: u8| matches!(c, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r');
        let mut args: Vec<u8> = text.bytes().collect();
        args.push(0);
        let mut found = Vec::new();
        let mut at = 0;
        while space(args[at]) {
            at += 1;
        }
        while args[at] != 0 {
            let (mut in_quote, mut quoted) = (false, false);
            if args[at] == b'"' {
                at += 1;
                (in_quote, quoted) = (true, true);
            }
            let (mut i, mut equals) = (0, 0);
            while args[at + i] != 0 {
                if space(args[at + i]) && !in_quote {
                    break;
                }
                if equals == 0 && args[at + i] == b'=' {
                    equals = i;
                }
                if args[at + i] == b'"' {
                    in_quote = !in_quote;
                }
                i += 1;
            }
            let end = at + i;
            let last = args[end];
            args[end] = 0;
            let mut value_at = None;
            if equals > 0 {
                args[at + equals] = 0;
                let mut begin = at + equals + 1;
                if args[begin] == b'"' {
                    begin += 1;
                    if args[end - 1] == b'"' {
                        args[end - 1] = 0;
                    }
                }
                value_at = Some(begin);
            }
            if quoted && i > 0 && args[end - 1] == b'"' {
                args[end - 1] = 0;
            }
            let string = |from: usize| args[from..].iter().copied().take_while(|c| *c != 0).collect::<Vec<u8>>();
            found.push((string(at), value_at.map(string)));
            if last == 0 {
                break;
            }
            at = end + 1;
            while space(args[at]) {
                at += 1;
            }
        }
        let end = found.iter().position(|(name, value)| name == b"--" && value.is_none());
        found.truncate(end.unwrap_or(found.len()));
        found
    }

    fn mine(text: &str) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let parameters = CommandLine::parse(text).0.into_iter();
        parameters.map(|p| (p.name.into_bytes(), p.value.map(String::into_bytes))).collect()
    }

    /// `housekeeping_isolcpus_setup` of Linux 6.18: the flags, and the rest of the text.
    fn plain_flags(text: &str) -> Option<(IsolCpus, &str)> {
        let bytes = text.as_bytes();
        let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
        let (mut i, mut flags) = (0, IsolCpus::default());
        while at(i).is_ascii_alphabetic() {
            let rest = &bytes[i..];
            if rest.starts_with(b"nohz,") {
                (i, flags.nohz) = (i + 5, true);
                continue;
            }
            if rest.starts_with(b"domain,") {
                (i, flags.domain) = (i + 7, true);
                continue;
            }
            if rest.starts_with(b"managed_irq,") {
                (i, flags.managed_irq) = (i + 12, true);
                continue;
            }
            let (begin, mut illegal) = (i, false);
            while at(i) != 0 && at(i) != b',' {
                illegal |= !at(i).is_ascii_alphabetic() && at(i) != b'_';
                i += 1;
            }
            // At the end of the text, the kernel steps over it, and reads what happens to follow.
            if illegal || at(i) == 0 {
                return None;
            }
            flags.unknown.push(text[begin..i].to_owned());
            i += 1;
        }
        if !flags.nohz && !flags.domain && !flags.managed_irq {
            flags.domain = true;
        }
        Some((flags, &text[i..]))
    }

    #[test]
    fn words_quotes_and_the_end() {
        let line = CommandLine::parse(
            "quiet nohz-full=2-3 dyndbg=\"file a.c +p\" \"x=y z\" isolcpus=1 isolcpus=managed_irq,2 -- isolcpus=9",
        );
        assert_eq!(line.last("nohz_full"), Some("2-3"));
        assert_eq!(line.last("dyndbg"), Some("file a.c +p"));
        assert_eq!(line.last("x"), Some("y z"));
        assert_eq!(line.all("isolcpus").collect::<Vec<_>>(), ["1", "managed_irq,2"]);
        assert!(line.has("quiet") && !line.has("nohz") && line.last("quiet") == Some(""));
    }

    #[test]
    fn flags_of_isolcpus() {
        let parse = |text| IsolCpus::parse(text, 8);
        let it = parse("managed_irq,domain,1-3").unwrap();
        assert!(it.managed_irq && it.domain && !it.nohz);
        assert_eq!(it.cpus.to_string(), "1-3");
        assert!(parse("4").unwrap().domain && !parse("managed_irq,4").unwrap().domain);
        assert_eq!(parse("io_queue,nohz,2").unwrap().unknown, ["io_queue"]);
        // The kernel treats letters as a flag before it looks for a list.
        for text in ["nohz", "all", "N", "domain", "no-hz,1", "domain1,2", "9", "domain,x1"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("").unwrap().cpus.len(), 0);
    }

    #[test]
    fn the_command_line_of_this_machine_is_read() {
        assert!(CommandLine::read(Path::new("/")).is_ok());
    }

    proptest! {
        #[test]
        fn flags_are_the_kernels(text in "(nohz,|domain,|managed_irq,|io_queue,|no2,|nohz|[a-c,_]){0,4}[0-9N,-]{0,5}") {
            let wanted = plain_flags(&text)
                .and_then(|(flags, rest)| Some(IsolCpus { cpus: parse_kernel_list(rest, 8).ok()?, ..flags }));
            prop_assert_eq!(IsolCpus::parse(&text, 8).ok(), wanted, "{}", text);
        }

        #[test]
        fn it_is_the_kernels(text in "([a-c_.=-]{1,3}|\"| |\t|=\"|--|é){0,12}") {
            prop_assert_eq!(mine(&text), plain(&text), "{}", text);
        }
    }
}
