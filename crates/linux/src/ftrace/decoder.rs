//! Decodes the records of a page into [`RawEvent`]s, using the kernel's format descriptions.
//!
//! Each event's fields are looked up once, when its format is learned; a record then costs one table look-up and a few checked loads. Nothing is
//! allocated per event.

use super::event::{RawEvent, RawHappening, VectorName};
use super::format::{EventFormat, EventFormatError, HeaderPage};
use super::page::{PageError, PageLayout};
use super::plan::{DecodingPlan, Int, Look};

/// Decodes pages of one kernel.
#[derive(Clone, Debug)]
pub struct Decoder {
    layout: PageLayout,
    /// The position of the event's number and the current thread's in every record; known with the first format.
    common: Option<Common>,
    /// The index of the plan for an event's number; [`NO_PLAN`] for events that were not learned.
    plan_of: Vec<u16>,
    plans: Vec<DecodingPlan>,
    vectors: Vec<String>,
}

const NO_PLAN: u16 = u16::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Common {
    kind: Int,
    flags: Int,
    pid: Int,
}

/// An event in an interrupt handler or a softirq: `TRACE_FLAG_HARDIRQ` and `TRACE_FLAG_SOFTIRQ` of `include/linux/trace_events.h`.
const IN_INTERRUPT: u64 = 0x08 | 0x10;

/// The result of decoding one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageSummary {
    /// Events passed to the sink, not counting those that report lost events.
    pub events: u64,
    /// Records of events that the decoder did not learn.
    pub ignored: u64,
    /// Whether the kernel lost events before this page.
    pub lost: bool,
    /// The reported number of lost events; 0 if the kernel does not report it.
    pub lost_events: u64,
    /// The time of the first record, in units of the trace clock.
    pub first: Option<u64>,
    /// The time of the last record.
    pub last: Option<u64>,
}

/// The fields of a record.
struct Record<'a> {
    pid: i32,
    in_interrupt: bool,
    what: RawHappening<'a>,
}

/// A page that does not match the kernel's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The page's own structure is broken.
    #[error(transparent)]
    Page(#[from] PageError),
    /// A record ends before a field of its event.
    #[error("ring-buffer page, byte {at}: a record of {length} bytes is too short for the fields of event {id}")]
    Short {
        /// The offset of the record in the page.
        at: usize,
        /// The length of its data, in bytes.
        length: usize,
        /// The number of its event; 0 if not even that could be read.
        id: u16,
    },
}

impl Decoder {
    /// A decoder that knows the page layout but no events yet.
    pub fn new(header: &HeaderPage) -> Self {
        Self {
            layout: PageLayout::new(header),
            common: None,
            plan_of: Vec::new(),
            plans: Vec::new(),
            vectors: Vec::new(),
        }
    }

    /// Learns an event of the given system (`irq`, `sched`), and returns whether it is decoded. Records of events that were never learned are skipped
    /// and counted. Fails on a format without a required field, or with one in an unreadable form.
    pub fn learn(&mut self, system: &str, format: &EventFormat) -> Result<bool, EventFormatError> {
        let look = Look(format);
        let Some(plan) = DecodingPlan::new(system, look, &mut self.vectors)? else { return Ok(false) };
        let common =
            Common { kind: look.int("common_type")?, flags: look.int("common_flags")?, pid: look.int("common_pid")? };
        if self.common.is_some_and(|known| known != common) {
            return Err(format.lacks("its common fields are not where those of the other events are".to_owned()));
        }
        self.common = Some(common);
        let id = usize::from(format.id);
        if self.plan_of.len() <= id {
            self.plan_of.resize(id + 1, NO_PLAN);
        }
        self.plan_of[id] = self.plans.len() as u16;
        self.plans.push(plan);
        Ok(true)
    }

    /// The stem of a vector's events: `local_timer`, `reschedule`. Empty for a name that another decoder gave.
    pub fn vector_name(&self, name: VectorName) -> &str {
        self.vectors.get(usize::from(name.0)).map_or("", String::as_str)
    }

    /// The learned vectors.
    pub fn vectors(&self) -> impl ExactSizeIterator<Item = (VectorName, &str)> {
        self.vectors.iter().enumerate().map(|(index, name)| (VectorName(index as u16), name.as_str()))
    }

    /// The number of bytes in use at the start of a sub-buffer: a page cut to that length decodes like the whole one.
    pub fn used(&self, page: &[u8]) -> usize {
        self.layout.used(page)
    }

    /// Decodes one whole sub-buffer, and passes its events to the sink in order. If the kernel lost events before the page, a [`RawHappening::Lost`]
    /// with the page's own time comes first. Fails on a page that does not match the kernel's format; the events before the fault have been passed.
    pub fn page<'a>(&self, page: &'a [u8], sink: &mut impl FnMut(RawEvent<'a>)) -> Result<PageSummary, DecodeError> {
        let page = self.layout.page(page)?;
        let mut summary = PageSummary::default();
        if let Some(missed) = page.missed {
            summary.lost = true;
            summary.lost_events = missed.count.unwrap_or(0);
            let what = RawHappening::Lost { count: missed.count };
            sink(RawEvent { time: page.stamp, pid: 0, in_interrupt: false, what });
        }
        for record in page.records() {
            let record = record?;
            summary.first.get_or_insert(record.time);
            summary.last = Some(record.time);
            match self.happening(record.data, record.at)? {
                Some(Record { pid, in_interrupt, what }) => {
                    summary.events += 1;
                    sink(RawEvent { time: record.time, pid, in_interrupt, what });
                }
                None => summary.ignored += 1,
            }
        }
        Ok(summary)
    }

    /// Passes the numbers of a sub-buffer's events, including those never learned. Fails on a page that does not match the kernel's format.
    pub fn ids(&self, page: &[u8], sink: &mut impl FnMut(u16)) -> Result<(), DecodeError> {
        let Some(common) = self.common else { return Ok(()) };
        for record in self.layout.page(page)?.records() {
            let record = record?;
            let short = DecodeError::Short { at: record.at, length: record.data.len(), id: 0 };
            sink(common.kind.read(record.data).ok_or(short)? as u16);
        }
        Ok(())
    }

    /// Decodes a single record without a page, as perf provides them, with the time that belongs to it; `None` for an event that was never learned.
    /// Fails on a record that ends before a field of its event.
    pub fn record<'a>(&self, data: &'a [u8], time: u64) -> Result<Option<RawEvent<'a>>, DecodeError> {
        let record = self.happening(data, 0)?;
        Ok(record.map(|Record { pid, in_interrupt, what }| RawEvent { time, pid, in_interrupt, what }))
    }

    /// Decodes the record that starts at this offset in its page.
    fn happening<'a>(&self, data: &'a [u8], at: usize) -> Result<Option<Record<'a>>, DecodeError> {
        let Some(common) = self.common else { return Ok(None) };
        let short = |id: u16| DecodeError::Short { at, length: data.len(), id };
        let id = common.kind.read(data).ok_or_else(|| short(0))? as u16;
        let plan = self.plan_of.get(usize::from(id)).and_then(|plan| self.plans.get(usize::from(*plan)));
        let Some(plan) = plan else { return Ok(None) };
        let pid = common.pid.read(data).ok_or_else(|| short(id))? as i32;
        let in_interrupt = common.flags.read(data).ok_or_else(|| short(id))? & IN_INTERRUPT != 0;
        let what = plan.extract(data).ok_or_else(|| short(id))?;
        Ok(Some(Record { pid, in_interrupt, what }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::Callback;
    use super::super::synth::{Long, SynthKernel};
    use super::*;
    use proptest::prelude::*;

    fn happening() -> impl Strategy<Value = Happened> {
        let comm = proptest::collection::vec(1_u8..=255, 0..15);
        prop_oneof![
            (any::<i32>(), proptest::collection::vec(1_u8..=255, 0..60)).prop_map(|(i, n)| Happened::IrqEntry(i, n)),
            any::<i32>().prop_map(Happened::IrqExit),
            (any::<bool>(), 0_usize..3, any::<i32>()).prop_map(|(e, n, v)| Happened::Vector(e, n, v)),
            (any::<bool>(), 0_u32..10).prop_map(|(e, v)| Happened::Softirq(e, v)),
            (any::<u32>(), any::<i64>()).prop_map(|(h, d)| Happened::Nmi(h, d)),
            (any::<bool>(), any::<u32>()).prop_map(|(e, r)| Happened::Ipi(e, r)),
            (comm.clone(), any::<[i32; 5]>(), comm).prop_map(|(p, i, n)| Happened::Switch(p, i, n)),
            (any::<bool>(), any::<[u32; 2]>()).prop_map(|(e, a)| Happened::Work(e, a)),
            (any::<bool>(), any::<[u32; 3]>()).prop_map(|(u, a)| Happened::Fault(u, a)),
            (0_usize..4, any::<u32>(), any::<u32>()).prop_map(|(c, f, request)| Happened::FunctionEntry(c, f, request)),
            any::<[u32; 4]>().prop_map(Happened::CallQueued),
            any::<[u32; 3]>().prop_map(Happened::InterruptSent),
            any::<[u32; 2]>().prop_map(Happened::WorkQueued),
            (0_u32..10).prop_map(Happened::SoftirqRaised),
            any::<bool>().prop_map(Happened::FunctionExit),
            ("[a-z]{0,15}", any::<i32>()).prop_map(|(comm, pid)| Happened::Waking(comm, pid)),
        ]
    }

    /// A happening that owns its bytes, with values that also fit a 32-bit kernel.
    #[derive(Clone, Debug)]
    enum Happened {
        IrqEntry(i32, Vec<u8>),
        IrqExit(i32),
        Vector(bool, usize, i32),
        Softirq(bool, u32),
        Nmi(u32, i64),
        Ipi(bool, u32),
        Switch(Vec<u8>, [i32; 5], Vec<u8>),
        Work(bool, [u32; 2]),
        Fault(bool, [u32; 3]),
        FunctionEntry(usize, u32, u32),
        CallQueued([u32; 4]),
        InterruptSent([u32; 3]),
        WorkQueued([u32; 2]),
        SoftirqRaised(u32),
        FunctionExit(bool),
        Waking(String, i32),
    }

    impl Happened {
        fn raw(&self, decoder: &Decoder) -> RawHappening<'_> {
            let vector = |index: usize| decoder.vectors().nth(index).unwrap().0;
            match self {
                Self::IrqEntry(irq, name) => RawHappening::IrqHandlerEntry { irq: *irq, name },
                Self::IrqExit(irq) => RawHappening::IrqHandlerExit { irq: *irq },
                Self::Vector(true, index, number) => {
                    RawHappening::VectorEntry { name: vector(*index), vector: *number }
                }
                Self::Vector(false, index, number) => {
                    RawHappening::VectorExit { name: vector(*index), vector: *number }
                }
                Self::Softirq(true, vec) => RawHappening::SoftirqEntry { vec: *vec },
                Self::Softirq(false, vec) => RawHappening::SoftirqExit { vec: *vec },
                Self::Nmi(handler, delta_ns) => {
                    RawHappening::NmiHandler { handler: u64::from(*handler), delta_ns: *delta_ns }
                }
                Self::Ipi(true, reason) => RawHappening::IpiEntry { reason: u64::from(*reason) },
                Self::Ipi(false, reason) => RawHappening::IpiExit { reason: u64::from(*reason) },
                Self::Switch(prev_comm, n, next_comm) => RawHappening::SchedSwitch {
                    prev_comm,
                    prev_pid: n[0],
                    prev_prio: n[1],
                    prev_state: i64::from(n[2]),
                    next_comm,
                    next_pid: n[3],
                    next_prio: n[4],
                },
                Self::Work(true, a) => RawHappening::WorkStart { work: u64::from(a[0]), function: u64::from(a[1]) },
                Self::Work(false, a) => {
                    RawHappening::WorkEnd { work: u64::from(a[0]), function: Some(u64::from(a[1])) }
                }
                Self::FunctionEntry(callback, function, request) => {
                    let callback =
                        [Callback::HighResolutionTimer, Callback::Call, Callback::Timer, Callback::Tasklet][*callback];
                    let request = if callback == Callback::Call { u64::from(*request) } else { 0 };
                    RawHappening::FunctionEntry { callback, function: u64::from(*function), request }
                }
                Self::CallQueued([cpu, site, function, request]) => RawHappening::CallQueued {
                    cpu: *cpu,
                    site: u64::from(*site),
                    function: u64::from(*function),
                    request: u64::from(*request),
                },
                Self::InterruptSent([cpu, site, callback]) => {
                    RawHappening::InterruptSent { cpu: *cpu, site: u64::from(*site), callback: u64::from(*callback) }
                }
                Self::WorkQueued([work, function]) => {
                    RawHappening::WorkQueued { work: u64::from(*work), function: u64::from(*function) }
                }
                Self::SoftirqRaised(vec) => RawHappening::SoftirqRaised { vec: *vec },
                Self::FunctionExit(timer) => RawHappening::FunctionExit {
                    callback: if *timer { Callback::HighResolutionTimer } else { Callback::Call },
                },
                Self::Waking(comm, pid) => RawHappening::Waking { comm: comm.as_bytes(), pid: *pid },
                Self::Fault(user, a) => RawHappening::PageFault {
                    user: *user,
                    address: u64::from(a[0]),
                    ip: u64::from(a[1]),
                    error_code: u64::from(a[2]),
                },
            }
        }
    }

    #[test]
    fn the_kernels_own_formats_are_all_learned() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/linux-6.18-x86_64");
        let header = std::fs::read_to_string(format!("{root}/header_page")).unwrap();
        let mut decoder = Decoder::new(&HeaderPage::parse("header_page", &header).unwrap());
        let mut learned = 0;
        for system in std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap()) {
            if !system.file_type().unwrap().is_dir() {
                continue;
            }
            for event in std::fs::read_dir(system.path()).unwrap().map(|entry| entry.unwrap().path().join("format")) {
                let text = std::fs::read_to_string(&event).unwrap();
                let format = EventFormat::parse(&event.display().to_string(), &text).unwrap();
                assert!(decoder.learn(system.file_name().to_str().unwrap(), &format).unwrap());
                learned += 1;
            }
        }
        assert_eq!(learned, 22);
        let mut names: Vec<&str> = decoder.vectors().map(|(_, name)| name).collect();
        names.sort_unstable();
        assert_eq!(names, ["local_timer", "reschedule"]);
    }

    #[test]
    fn a_format_without_a_needed_field_is_refused() {
        let text = include_str!("../../tests/data/linux-6.18-x86_64/irq/softirq_entry/format").replace("vec;", "v;");
        let header = super::super::synth::header_page_text(Long::Bits64, 4096);
        let mut decoder = Decoder::new(&HeaderPage::parse("h", &header).unwrap());
        let format = EventFormat::parse("irq/softirq_entry/format", &text).unwrap();
        let error = decoder.learn("irq", &format).unwrap_err().to_string();
        assert_eq!(error, "irq/softirq_entry/format: no field 'vec'");
    }

    #[test]
    fn an_old_kernel_does_not_name_the_function_at_the_end_of_work() {
        let text = include_str!("../../tests/data/linux-6.18-x86_64/workqueue/workqueue_execute_end/format");
        let old: String = text.lines().filter(|line| !line.contains("function;")).map(|l| format!("{l}\n")).collect();
        let kernel = SynthKernel::new(Long::Bits64, 4096);
        let mut decoder = Decoder::new(kernel.header());
        decoder.learn("workqueue", &EventFormat::parse("f", &old).unwrap()).unwrap();
        let mut builder = kernel.page(10);
        let mut data = [0_u8; 16];
        data[..2].copy_from_slice(&334_u16.to_ne_bytes());
        data[8] = 77;
        assert!(builder.push(11, &data));
        let mut seen = Vec::new();
        let page = builder.finish();
        decoder.page(&page, &mut |event| seen.push(event.what)).unwrap();
        assert_eq!(seen, [RawHappening::WorkEnd { work: 77, function: None }]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_decoded(
            wide: bool, size in prop_oneof![Just(4096_usize), Just(16384)],
            all in proptest::collection::vec((0_u64..1 << 30, any::<(i32, bool)>(), happening()), 1..200),
            lost in proptest::option::of(any::<u32>()),
        ) {
            let kernel = SynthKernel::new(if wide { Long::Bits64 } else { Long::Bits32 }, size);
            let mut time = 5_000;
            let events: Vec<RawEvent<'_>> = all.iter().map(|(step, (pid, in_interrupt), what)| {
                time += step;
                RawEvent { time, pid: *pid, in_interrupt: *in_interrupt, what: what.raw(kernel.decoder()) }
            }).collect();
            let mut given = events.clone();
            if let Some(count) = lost {
                let what = RawHappening::Lost { count: Some(u64::from(count)) };
                let at = given.len() / 2;
                given.insert(at, RawEvent { time: given[at].time, pid: 0, in_interrupt: false, what });
            }
            let pages = kernel.pages(&given);
            let mut decoded = Vec::new();
            let mut total = 0;
            for page in &pages {
                let summary = kernel.decoder().page(page, &mut |event| decoded.push(event)).unwrap();
                total += summary.events;
                prop_assert_eq!(summary.ignored, 0);
            }
            prop_assert_eq!(total as usize, events.len());
            prop_assert_eq!(decoded, given);
        }

        #[test]
        fn mutated_pages_never_panic(
            all in proptest::collection::vec((0_u64..1 << 30, any::<(i32, bool)>(), happening()), 1..60),
            flips in proptest::collection::vec((0_usize..4096, any::<u8>()), 1..20),
            cut in 0_usize..5000,
        ) {
            let kernel = SynthKernel::new(Long::Bits64, 4096);
            let mut time = 0;
            let events: Vec<RawEvent<'_>> = all.iter().map(|(step, (pid, in_interrupt), what)| {
                time += step;
                RawEvent { time, pid: *pid, in_interrupt: *in_interrupt, what: what.raw(kernel.decoder()) }
            }).collect();
            for mut page in kernel.pages(&events) {
                for (at, value) in &flips {
                    page[*at] = *value;
                }
                page.truncate(cut);
                let mut count = 0_u64;
                if let Ok(summary) = kernel.decoder().page(&page, &mut |_| count += 1) {
                    prop_assert_eq!(summary.events + u64::from(summary.lost), count);
                }
            }
        }
    }
}
