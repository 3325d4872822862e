//! /proc/interrupts: how often each CPU took each interrupt.
//!
//! There are two kinds of lines. A device interrupt has a number, a chip and the names of its handlers; an interrupt of the architecture (`LOC`,
//! `RES`, `CAL`, `TLB`, `IPI0`) has a short name and a description. `ERR` and `MIS` have one number for the whole machine. Architectures and drivers
//! may add lines of their own format, such as Arm's `FIQ`, which has a name and no counts. A CPU that goes offline or comes online while the kernel
//! writes the file changes the number of columns. Such lines are left out.

use std::collections::HashMap;
use std::path::Path;

use becalm_units::CpuId;

use super::columns;
use crate::file::{self, FileError, FormatError, parse};

/// A snapshot, or the growth between two.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Interrupts {
    /// The CPUs of the columns: those online when the snapshot was taken.
    pub cpus: Vec<CpuId>,
    /// One entry per parsed line, in the kernel's order.
    pub lines: Vec<InterruptLine>,
    /// The text before the colon of each other line: `FIQ`.
    pub left_out: Vec<String>,
}

/// The counts and the description of one interrupt.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct InterruptLine {
    /// The text before the colon: `36`, `LOC`.
    pub id: String,
    /// One count per CPU of [`Interrupts::cpus`], in order; empty if the line has none.
    pub counts: Vec<u64>,
    /// The count of the whole machine, for lines without columns.
    pub machine: Option<u64>,
    /// The text after the counts, with single spaces: `Local timer interrupts`.
    pub description: String,
    /// The parts of the description of a device interrupt.
    pub device: Option<Device>,
}

/// The kernel's description of a device interrupt.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Device {
    /// The interrupt's number in /proc/irq.
    pub irq: u32,
    /// The interrupt controller: `IO-APIC`, `PCI-MSIX-0000:00:02.0`, `GICv3`.
    pub chip: String,
    /// The controller's own number of it, with the trigger: `1-edge`, `30 Level`; empty if it has none.
    pub hwirq: String,
    /// The names of its handlers, `virtio1-req.0`; several if devices share it, empty if no handler is left.
    pub names: Vec<String>,
}

impl InterruptLine {
    /// How often the interrupt came, over all CPUs.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(self.machine.unwrap_or(0), |sum, count| sum.saturating_add(*count))
    }

    /// Identifies the same interrupt in two snapshots, because numbers are reassigned to other devices.
    fn identity(&self) -> (&str, &str) {
        (&self.id, &self.description)
    }
}

impl Interrupts {
    /// Parses the file's text. Fails if the header names no CPUs, or no line has a name and a count for each of them.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let mut text = text.lines();
        let cpus = columns::header(text.next().unwrap_or_default())?;
        let (lines, left_out) = file::lines(text, |line| parse_line(line, cpus.len()))?;
        if lines.is_empty() {
            return Err(columns::no_counts());
        }
        let id = |line: &str| line.split(':').next().unwrap_or_default().trim().to_owned();
        Ok(Self { cpus, lines, left_out: left_out.into_iter().map(id).collect() })
    }

    /// Reads `proc/interrupts`.
    pub fn read(root: &Path) -> Result<Self, FileError> {
        parse(root, "proc/interrupts", "the counts of interrupts", Self::parse)
    }

    /// How often a CPU took an interrupt; `None` if the snapshot lacks either.
    pub fn count(&self, id: &str, cpu: CpuId) -> Option<u64> {
        let column = self.cpus.iter().position(|candidate| *candidate == cpu)?;
        self.lines.iter().find(|line| line.id == id)?.counts.get(column).copied()
    }

    /// The line of a device interrupt.
    pub fn device(&self, irq: u32) -> Option<&Device> {
        self.lines.iter().filter_map(|line| line.device.as_ref()).find(|device| device.irq == irq)
    }

    /// The growth of the counts since an earlier snapshot.
    ///
    /// Contains only CPUs of both snapshots: a single snapshot does not show what a CPU counted before it went or came. A line that is new, or whose
    /// number now belongs to another device, grew from zero, because the kernel hides a line only while it has no handler and no count. Lines that
    /// have vanished, or could not be parsed in the earlier snapshot, are left out.
    pub fn since(&self, earlier: &Self) -> Self {
        let columns = columns::common(&self.cpus, &earlier.cpus);
        let before: HashMap<(&str, &str), &InterruptLine> =
            earlier.lines.iter().map(|line| (line.identity(), line)).collect();
        let known = self.lines.iter().filter(|line| !earlier.left_out.contains(&line.id));
        let lines = known.map(|line| {
            let before = before.get(&line.identity()).copied();
            let grown = |(now, then): &(usize, usize)| {
                let earlier = before.and_then(|line| line.counts.get(*then)).copied().unwrap_or(0);
                Some(columns::growth(earlier, *line.counts.get(*now)?))
            };
            let machine_before = before.and_then(|line| line.machine).unwrap_or(0);
            InterruptLine {
                counts: columns.iter().filter_map(grown).collect(),
                machine: line.machine.map(|now| columns::growth(machine_before, now)),
                ..line.clone()
            }
        });
        let cpus = columns.iter().map(|(now, _)| self.cpus[*now]).collect();
        Self { lines: lines.collect(), cpus, left_out: self.left_out.clone() }
    }
}

fn parse_line(line: &str, cpus: usize) -> Result<InterruptLine, FormatError> {
    let (id, rest) = columns::name(line)?;
    let (counts, rest) = columns::counts(rest, cpus);
    let description = rest.split_whitespace().collect::<Vec<_>>().join(" ");
    let base = InterruptLine { id: id.to_owned(), description, ..InterruptLine::default() };
    // On a machine with one CPU, these look like a line with one column.
    let for_machine = matches!(id, "ERR" | "MIS" | "Err" | "BAD") || (cpus > 1 && rest.is_empty());
    let is_count = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    match counts[..] {
        [count] if for_machine => Ok(InterruptLine { machine: Some(count), ..base }),
        // Descriptions and chips are not numbers: there are more columns than the header has.
        _ if counts.len() == cpus && !rest.split_whitespace().next().is_some_and(is_count) => {
            Ok(InterruptLine { counts, device: id.parse().ok().map(|irq| parse_device(irq, rest)), ..base })
        }
        _ => Err(FormatError::new("a count for each CPU of the header was expected", line.trim())),
    }
}

/// Parses `IO-APIC   4-edge      ttyS0`, `GICv3  30 Level     arch_timer`, `xen-dyn    -event     timer0`, `SiFive PLIC   3 Edge      virtio1`.
///
/// The kernel (`show_interrupts` of `kernel/irq/proc.c`) writes the chip, which may contain blanks, the controller's number if there is one, on some
/// architectures `Level` or `Edge`, the flow after a `-` if it has a name, and after two blanks the names of the handlers.
fn parse_device(irq: u32, text: &str) -> Device {
    let text = text.trim();
    // The start and end of each word. The first one is the chip's.
    let words: Vec<(usize, usize)> = text
        .split_whitespace()
        .map(|word| word.as_ptr() as usize - text.as_ptr() as usize)
        .map(|at| (at, text[at..].find(char::is_whitespace).map_or(text.len(), |length| at + length)))
        .collect();
    let word = |at: usize| words.get(at).map_or("", |(begin, end)| &text[*begin..*end]);
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_level = |word: &str| matches!(word, "Level" | "Edge");
    let is_flow = |word: &str| word.split_once('-').is_some_and(|(number, _)| number.is_empty() || is_number(number));
    let is_followed_by_names = |at: usize| at + 1 == words.len() || words[at + 1].0 - words[at].1 > 1;
    // The number follows the chip, which has no two consecutive blanks.
    let gap = (1..words.len()).find(|at| words[*at].0 - words[at - 1].1 > 1);
    let last = gap.unwrap_or(words.len().saturating_sub(1));
    let find = |fits: &dyn Fn(usize) -> bool| (1..=last).find(|at| fits(*at));
    // The most reliable sign of the number comes first, because a chip's name may contain some of the others.
    let number = find(&|at| is_number(word(at)) && is_level(word(at + 1)))
        .or_else(|| find(&|at| is_level(word(at)) || is_flow(word(at))))
        .or_else(|| find(&|at| is_number(word(at)) && is_followed_by_names(at)));
    let (chip_end, names_begin) = match number {
        Some(first) => {
            let mut end = first + 1;
            while is_level(word(end)) || word(end).starts_with('-') {
                end += 1;
            }
            (first, end)
        }
        // Neither number nor flow: the names come after two blanks.
        None => {
            let names = gap.unwrap_or(1);
            (names, names)
        }
    };
    let joined = |from: usize, to: usize| (from..to).map(word).collect::<Vec<_>>().join(" ");
    // The kernel joins the names of a shared interrupt with ", "; a name may hold single spaces.
    let names = words.get(names_begin).map_or("", |(begin, _)| &text[*begin..]).split(", ");
    let names = names.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Device { irq, chip: joined(0, chip_end.min(words.len())), hwirq: joined(chip_end, names_begin), names }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const X86: &str = "\
           CPU0       CPU2       CPU3       
 26:          0         14          1  IO-APIC   4-edge      ttyS0
 16:          5          0          0  IR-IO-APIC  16-fasteoi   ehci_hcd:usb1, PCIe PME
 28:          0          0          0  xen-dyn    -event     timer0
 36:          0      81335          0 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 99:          0          1          0  IO-APIC   9-edge      
NMI:          0          0          0   Non-maskable interrupts
LOC:     113527     119608          7   Local timer interrupts
ERR:          3
MIS:          0
";

    #[test]
    fn device_and_architecture_lines() {
        let it = Interrupts::parse(X86).unwrap();
        assert_eq!(it.cpus, [0, 2, 3].map(CpuId::new));
        assert_eq!(it.count("LOC", CpuId::new(2)), Some(119_608));
        assert_eq!(it.count("LOC", CpuId::new(1)), None);
        let device = it.device(36).unwrap();
        assert_eq!((device.chip.as_str(), device.hwirq.as_str()), ("PCI-MSIX-0000:00:02.0", "1-edge"));
        assert_eq!(device.names, ["virtio1-req.0"]);
        assert_eq!(it.device(16).unwrap().names, ["ehci_hcd:usb1", "PCIe PME"]);
        assert_eq!(it.device(28).unwrap().names, ["timer0"]);
        assert_eq!(it.device(28).unwrap().hwirq, "-event");
        assert!(it.device(99).unwrap().names.is_empty());
        let error = it.lines.iter().find(|line| line.id == "ERR").unwrap();
        assert_eq!((error.machine, error.counts.len(), error.total()), (Some(3), 0, 3));
        assert_eq!(it.lines.iter().find(|line| line.id == "LOC").unwrap().description, "Local timer interrupts");
    }

    #[test]
    fn lines_of_arm_machines_are_read() {
        let text = "           CPU0\n 11:  123  GICv3  30 Level     arch_timer\n\
                    IPI0:      77       Rescheduling interrupts\nErr:          4\n";
        let it = Interrupts::parse(text).unwrap();
        assert_eq!(it.device(11).unwrap().hwirq, "30 Level");
        assert_eq!(it.device(11).unwrap().names, ["arch_timer"]);
        assert_eq!(it.count("IPI0", CpuId::new(0)), Some(77));
        assert_eq!((it.lines[2].machine, it.lines[2].counts.len()), (Some(4), 0));
    }

    #[test]
    fn a_line_of_another_form_costs_no_other_line() {
        // A Raspberry Pi's FIQ; a CPU that came online while the kernel wrote; one that went; text that is no line.
        let text = "CPU0 CPU1\nFIQ:              usb_fiq\n 5: 1 2 GICv3 30 Level     arch_timer\n 6: 1 2 3 GICv3 31 Level     x\n\
                    IPI0: 4  Rescheduling interrupts\nwhat\nLOC:113527 7 Local timer interrupts\nERR: 3\n";
        let it = Interrupts::parse(text).unwrap();
        assert_eq!(it.lines.iter().map(|line| line.id.as_str()).collect::<Vec<_>>(), ["5", "LOC", "ERR"]);
        assert_eq!((it.count("LOC", CpuId::new(0)), it.lines[2].machine), (Some(113_527), Some(3)));
        assert_eq!(it.left_out, ["FIQ", "6", "IPI0", "what"]);
        // Lines that could not be parsed before have not grown from zero.
        let later = Interrupts::parse(
            "CPU0 CPU1\nIPI0: 4000 5000 Rescheduling interrupts\nLOC: 113530 7 Local timer interrupts\n",
        )
        .unwrap();
        assert_eq!(later.since(&it).lines.iter().map(InterruptLine::total).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn handlers_have_their_names_whatever_the_chip_is_called() {
        for (text, chip, hwirq, names) in [
            (
                "cs40l26 IRQ1 Controller   0 Level     GPIO1 rise",
                "cs40l26 IRQ1 Controller",
                "0 Level",
                &["GPIO1 rise"][..],
            ),
            ("SiFive PLIC   3 Edge      virtio1", "SiFive PLIC", "3 Edge", &["virtio1"]),
            ("1e6c.gpio  14 Edge      button", "1e6c.gpio", "14 Edge", &["button"]),
            ("   GICv3  25 Level    -fasteoi   uart, Edge 4", "GICv3", "25 Level -fasteoi", &["uart", "Edge 4"]),
            ("MIPS   7  timer", "MIPS", "7", &["timer"]),
            ("INTC 2 low  11  eth0", "INTC 2 low", "11", &["eth0"]),
            ("    None          cascade", "None", "", &["cascade"]),
            ("mux of two          left-hand 3-way", "mux of two", "", &["left-hand 3-way"]),
            ("       -   9 Edge  ", "-", "9 Edge", &[]),
            (
                "IR-PCI-MSI-0000:00:1f.2    0-edge      ahci[0000:00:1f.2]",
                "IR-PCI-MSI-0000:00:1f.2",
                "0-edge",
                &["ahci[0000:00:1f.2]"],
            ),
        ] {
            let it = Interrupts::parse(&format!("CPU0\n 7: 1 {text}\n")).unwrap();
            let device = it.device(7).unwrap();
            assert_eq!((device.chip.as_str(), device.hwirq.as_str()), (chip, hwirq), "{text}");
            assert_eq!(device.names, names, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "CPU0 CPU1\n", "x y", "CPU0\nno colon", "CPU0 CPU1\nLOC: 1 Local"] {
            assert!(Interrupts::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn growth_follows_cpus_and_lines_that_come_and_go() {
        let earlier = "CPU0 CPU1\n 5: 10 20 A 1-edge  x\n 6: 7 7 A 2-edge  gone\n 7: 9 9 A 3-edge  old\n\
                       LOC: 4294967290 5 Local\nERR: 1\n";
        let later = "CPU1 CPU2\n 5: 25 99 A 1-edge  x\n 7: 2 0 A 3-edge  reused\n 8: 3 4 A 4-edge  fresh\n\
                     LOC: 9 7 Local\nERR: 4\n";
        let parse = |text| Interrupts::parse(text).unwrap();
        let grown = parse(later).since(&parse(earlier));
        assert_eq!(grown.cpus, [CpuId::new(1)]);
        let counts: Vec<(&str, u64)> = grown.lines.iter().map(|line| (line.id.as_str(), line.total())).collect();
        assert_eq!(counts, [("5", 5), ("7", 2), ("8", 3), ("LOC", 4), ("ERR", 3)]);
        let wrapped = parse("CPU0\nLOC: 4 Local\n").since(&parse("CPU0 CPU1\nLOC: 4294967290 5 Local\n"));
        assert_eq!(wrapped.count("LOC", CpuId::new(0)), Some(10));
    }

    #[test]
    fn the_interrupts_of_this_machine_are_read() {
        let it = Interrupts::read(Path::new("/")).unwrap();
        assert!(!it.cpus.is_empty() && !it.lines.is_empty());
        assert!(it.since(&it).lines.iter().all(|line| line.total() == 0));
    }

    proptest! {
        #[test]
        fn never_panics(text in "(CPU[0-3] ?){0,3}\n([0-9A-Z]{0,3}:? ?[ 0-9a-zé,-]{0,20}\n){0,4}") {
            let _ = Interrupts::parse(&text);
        }
    }
}
