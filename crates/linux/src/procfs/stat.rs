//! /proc/stat: the time that each CPU spent in each way, according to the kernel's accounting, and its event counts.
//!
//! The kernel accounts in clock ticks (10 ms on most machines); the accuracy depends on its configuration. On a virtual machine, `steal` is the
//! hypervisor's own figure and bounds `unseen`.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use becalm_units::{CpuId, Nanos};

use crate::file::{self, FileError, FormatError, parse, path_below};

const WHAT: &str = "the CPUs' times";

/// The file at one instant. All counts are since boot.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stat {
    /// Each CPU that was online, in rising order.
    pub cpus: Vec<(CpuId, CpuTimes)>,
    /// Context switches of all CPUs since boot.
    pub context_switches: u64,
    /// When the machine booted, in seconds since 1970.
    pub boot_time_s: u64,
    /// Threads and processes created since boot.
    pub forks: u64,
}

macro_rules! cpu_times {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Time since boot, or between two snapshots.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct CpuTimes {
            $($(#[doc = $doc])+ pub $name: Nanos,)+
        }

        impl CpuTimes {
            /// Reads the numbers of a line; columns that an old kernel lacks are zero.
            fn from_columns(mut next: impl FnMut() -> Result<Nanos, FormatError>) -> Result<Self, FormatError> {
                Ok(Self { $($name: next()?,)+ })
            }

            /// Every field, with its name in the kernel's documentation.
            pub fn fields(&self) -> Vec<(&'static str, Nanos)> {
                vec![$((stringify!($name), self.$name),)+]
            }

            /// The growth since an earlier snapshot; zero for fields that decreased, because the kernel lets `idle` and `iowait` do so.
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($name: (self.$name - earlier.$name).max(Nanos::ZERO),)+ }
            }
        }
    };
}

cpu_times! {
    /// Running in user mode; includes `guest`.
    user,
    /// Running in user mode at low priority; includes `guest_nice`.
    nice,
    /// Running in the kernel for processes.
    system,
    /// Idle, with no request to a disk waiting.
    idle,
    /// Idle while a disk request of this CPU was in progress.
    iowait,
    /// Running the handlers of hardware interrupts.
    irq,
    /// Running the handlers of softirqs.
    softirq,
    /// Taken by the hypervisor although this CPU wanted to run.
    steal,
    /// Running a virtual machine's CPU.
    guest,
    /// Running a virtual machine at low priority.
    guest_nice,
}

impl Stat {
    /// Parses the file's text, given the number of the kernel's clock ticks per second (`_SC_CLK_TCK`).
    ///
    /// A line that is not made of numbers is left out, as if the kernel had not written it. Fails if no line can be parsed.
    pub fn parse(text: &str, ticks_per_second: u64) -> Result<Self, FormatError> {
        let mut stat = Self::default();
        file::lines(text.lines(), |line| {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap_or_default();
            let number = |word: Option<&str>| {
                let number = word.and_then(|word| word.parse::<u64>().ok());
                number.ok_or_else(|| FormatError::new("a number was expected", line))
            };
            match name {
                "ctxt" => stat.context_switches = number(words.next())?,
                "btime" => stat.boot_time_s = number(words.next())?,
                "processes" => stat.forks = number(words.next())?,
                // The line "cpu" alone is the sum, which includes the time of offline CPUs.
                _ => {
                    let Some(id) = name.strip_prefix("cpu").filter(|id| !id.is_empty()) else { return Ok(()) };
                    let cpu = CpuId::new(id.parse().map_err(|_| FormatError::new("cpuN was expected", line))?);
                    let times = CpuTimes::from_columns(|| match words.next() {
                        None => Ok(Nanos::ZERO),
                        word => Ok(from_ticks(number(word)?, ticks_per_second)),
                    })?;
                    stat.cpus.push((cpu, times));
                }
            }
            Ok(())
        })?;
        if stat.cpus.is_empty() {
            return Err(FormatError::new("a line for each CPU was expected", ""));
        }
        Ok(stat)
    }

    /// Reads `proc/stat`.
    pub fn read(root: &Path) -> Result<Self, FileError> {
        let hz = rustix::param::clock_ticks_per_second();
        parse(root, "proc/stat", WHAT, |text| Self::parse(text, hz))
    }

    /// The times of a CPU; `None` if it was offline.
    pub fn cpu(&self, cpu: CpuId) -> Option<&CpuTimes> {
        self.cpus.iter().find(|(candidate, _)| *candidate == cpu).map(|(_, times)| times)
    }
}

/// `proc/stat`, kept open for repeated reading.
///
/// Opening and closing a file leaves the kernel memory to free after an RCU grace period, which its threads process on any CPU: during a recording
/// that did so ten times per second, `rcu_preempt` ran four times as often as without.
#[derive(Debug)]
pub struct StatFile {
    path: PathBuf,
    file: File,
    text: String,
}

impl StatFile {
    /// Opens it below a root directory.
    pub fn open(root: &Path) -> Result<Self, FileError> {
        let path = path_below(root, "proc/stat");
        match File::open(&path) {
            Ok(file) => Ok(Self { path, file, text: String::new() }),
            Err(source) => Err(FileError::Read { what: WHAT, path, source }),
        }
    }

    /// The current content.
    pub fn read(&mut self) -> Result<Stat, FileError> {
        self.read_text().map_err(|source| FileError::Read { what: WHAT, path: self.path.clone(), source })?;
        Stat::parse(&self.text, rustix::param::clock_ticks_per_second()).map_err(|why| FileError::Format {
            what: WHAT,
            path: self.path.clone(),
            why,
        })
    }

    fn read_text(&mut self) -> io::Result<()> {
        self.text.clear();
        self.file.rewind()?;
        self.file.read_to_string(&mut self.text)?;
        Ok(())
    }
}

/// Saturates after 292 years, so no file can cause a panic.
fn from_ticks(ticks: u64, ticks_per_second: u64) -> Nanos {
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(ticks_per_second.max(1));
    Nanos::new(i64::try_from(ns).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "cpu  53488 3657 9651 333069 816 0 84 29 0 0\n\
        cpu0 25723 1624 3290 169608 92 0 26 11 0 0\ncpu3 27765 2032 6360 163461 723 0 58 18 1 2\n\
        intr 469313 0 0\nctxt 694508\nbtime 1795236129\nprocesses 14541\nprocs_running 1\nsoftirq 276665 0\n";

    #[test]
    fn times_are_in_nanoseconds() {
        let stat = Stat::parse(TEXT, 100).unwrap();
        assert_eq!(stat.cpus.len(), 2);
        let cpu = stat.cpu(CpuId::new(3)).unwrap();
        assert_eq!(cpu.steal, Nanos::from_millis(180));
        assert_eq!(cpu.fields()[9], ("guest_nice", Nanos::from_millis(20)));
        assert_eq!((stat.context_switches, stat.boot_time_s, stat.forks), (694_508, 1_795_236_129, 14_541));
        assert!(stat.cpu(CpuId::new(1)).is_none());
    }

    #[test]
    fn what_goes_back_has_not_grown() {
        let parse = |text| Stat::parse(text, 100).unwrap().cpus[0].1;
        let grown = parse("cpu0 5 0 0 10 3").since(&parse("cpu0 3 0 0 10 4"));
        assert_eq!((grown.user, grown.iowait, grown.steal), (Nanos::from_millis(20), Nanos::ZERO, Nanos::ZERO));
    }

    #[test]
    fn nonsense_is_refused_and_huge_numbers_saturate() {
        for text in ["cpu0 1 x", "cpux 1", "ctxt", "btime -4"] {
            assert!(Stat::parse(text, 100).is_err(), "{text}");
            assert_eq!(Stat::parse(&format!("{text}\n{TEXT}"), 100), Stat::parse(TEXT, 100), "{text}");
        }
        let huge = Stat::parse("cpu0 18446744073709551615", 0).unwrap().cpus[0].1;
        assert_eq!(huge.user, Nanos::MAX);
    }

    #[test]
    fn the_times_of_this_machine_are_read() {
        let stat = Stat::read(Path::new("/")).unwrap();
        assert!(stat.context_switches > 0 && stat.cpus.iter().any(|(_, times)| times.user > Nanos::ZERO));
        let mut file = StatFile::open(Path::new("/")).unwrap();
        let (first, second) = (file.read().unwrap(), file.read().unwrap());
        assert!(stat.context_switches <= first.context_switches && first.context_switches <= second.context_switches);
        assert_eq!((first.cpus.len(), second.boot_time_s), (stat.cpus.len(), stat.boot_time_s));
    }

    #[test]
    fn an_open_file_says_what_was_written_since() {
        let root = tempfile::tempdir().unwrap();
        assert!(StatFile::open(root.path()).unwrap_err().is_missing());
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let write = |text| std::fs::write(root.path().join("proc/stat"), text).unwrap();
        write("cpu0 1 2 3 4\nctxt 77\n");
        let mut file = StatFile::open(root.path()).unwrap();
        assert_eq!(file.read().unwrap().context_switches, 77);
        write("ctxt 78\ncpu1 1 2 3 4\ncpu2 1 2 3 4\n");
        let stat = file.read().unwrap();
        assert_eq!((stat.cpus.len(), stat.context_switches), (2, 78));
        for text in ["ctxt x\n", "ctxt 79\n", ""] {
            write(text);
            assert!(file.read().unwrap_err().to_string().contains("proc/stat"), "{text}");
        }
    }
}
