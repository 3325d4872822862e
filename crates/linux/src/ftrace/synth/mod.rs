//! A replacement for the kernel's side of tracing, for tests and benchmarks: format texts of a 64-bit or a 32-bit kernel, records, and ring-buffer
//! pages with time extends, absolute stamps, discarded events and lost-event marks.
//!
//! Measurements do not use it.

mod builder;
mod long;
mod shapes;

use super::decoder::Decoder;
use super::event::{Callback, OwnWork, RawEvent, RawHappening};
use super::format::{EventField, EventFormat, FieldKind, HeaderPage};

pub use builder::PageBuilder;
pub use long::Long;
pub use shapes::formats;

/// The text of `events/header_page` for sub-buffers of `size` bytes.
pub(super) fn header_page_text(long: Long, size: usize) -> String {
    let (word, at) = (long.bytes(), long.data_at());
    format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:{word};\tsigned:1;\n\
         \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
         \tfield: char data;\toffset:{at};\tsize:{};\tsigned:0;\n",
        size.saturating_sub(at)
    )
}

/// A kernel with a given word and sub-buffer size that has every event that becalm decodes.
#[derive(Clone, Debug)]
pub struct SynthKernel {
    long: Long,
    size: usize,
    header: HeaderPage,
    formats: Vec<(&'static str, EventFormat)>,
    decoder: Decoder,
}

impl SynthKernel {
    /// A kernel with sub-buffers of `size` bytes. Panics if this module contradicts the format parser, which its tests exclude.
    pub fn new(long: Long, size: usize) -> Self {
        let header = HeaderPage::parse("header_page", &header_page_text(long, size)).expect("a header page of our own");
        let mut decoder = Decoder::new(&header);
        let parse = |(system, name, text): (&'static str, &str, String)| {
            let format = EventFormat::parse(name, &text).expect("a format of our own");
            assert!(decoder.learn(system, &format).expect("a format of our own"), "{name} is decoded");
            (system, format)
        };
        let formats = shapes::formats(long).map(parse).collect();
        Self { long, size, header, formats, decoder }
    }

    /// The description of its pages.
    pub fn header(&self) -> &HeaderPage {
        &self.header
    }

    /// A decoder that has learned all its events. It knows the vectors `local_timer`, `reschedule` and `call_function_single`.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Starts a page with this time stamp in its header, in units of the trace clock.
    pub fn page(&self, stamp: u64) -> PageBuilder {
        PageBuilder::new(self.long, self.size, stamp)
    }

    /// The pages that this kernel would record for the events of one CPU. A [`RawHappening::Lost`] starts a new page. An event that does not fit an
    /// empty page is left out.
    pub fn pages(&self, events: &[RawEvent<'_>]) -> Vec<Vec<u8>> {
        let mut pages = Vec::new();
        let mut page: Option<PageBuilder> = None;
        for event in events {
            if let RawHappening::Lost { count } = event.what {
                pages.extend(page.take().map(PageBuilder::finish));
                page = Some(self.page(event.time).missed(count));
                continue;
            }
            let data = self.record(event);
            let mut open = page.take().unwrap_or_else(|| self.page(event.time));
            if !open.push(event.time, &data) {
                pages.push(open.finish());
                open = self.page(event.time);
                open.push(event.time, &data);
            }
            page = Some(open);
        }
        pages.extend(page.map(PageBuilder::finish));
        pages
    }

    /// The data of an event's record; empty for [`RawHappening::Lost`], which has none.
    pub fn record(&self, event: &RawEvent<'_>) -> Vec<u8> {
        let Some(Content { name, mut ints, texts }) = self.content(event) else { return Vec::new() };
        let Some((_, format)) = self.formats.iter().find(|(_, format)| format.name == name) else {
            return Vec::new();
        };
        // In a hard interrupt, or with interrupts off (`TRACE_FLAG_IRQS_OFF`).
        let flags = if event.in_interrupt { 0x08 } else { 0x01 };
        ints.extend([("common_type", u64::from(format.id)), ("common_flags", flags), ("common_pid", event.pid as u64)]);
        let length = format.fields.iter().map(|field| field.offset + field.size).max().unwrap_or(0);
        let mut data = vec![0; length];
        for (field, value) in ints.iter().filter_map(|(name, value)| Some((format.field(name)?, value))) {
            // The low bytes, whatever this machine's byte order.
            let bytes = value.to_le_bytes();
            let place = &mut data[field.offset..field.offset + field.size];
            place.copy_from_slice(&bytes[..field.size]);
            if cfg!(target_endian = "big") {
                place.reverse();
            }
        }
        for (field, text) in texts.iter().filter_map(|(name, text)| Some((format.field(name)?, text))) {
            put_text(&mut data, field, text);
        }
        data
    }

    /// The content of an event's record; `None` for [`RawHappening::Lost`], which has no record.
    fn content<'e>(&self, event: &RawEvent<'e>) -> Option<Content<'e>> {
        let entry = |yes: bool| if yes { "entry" } else { "exit" };
        let mut ints: Vec<(&'static str, u64)> = Vec::new();
        let mut texts: Vec<(&'static str, &'e [u8])> = Vec::new();
        let name = match event.what {
            RawHappening::Lost { .. } => return None,
            RawHappening::IrqHandlerEntry { irq, name } => {
                ints.push(("irq", irq as u64));
                texts.push(("name", name));
                "irq_handler_entry".to_owned()
            }
            RawHappening::IrqHandlerExit { irq } => {
                ints.extend([("irq", irq as u64), ("ret", 1)]);
                "irq_handler_exit".to_owned()
            }
            RawHappening::VectorEntry { name, vector } | RawHappening::VectorExit { name, vector } => {
                ints.push(("vector", vector as u64));
                let begins = matches!(event.what, RawHappening::VectorEntry { .. });
                format!("{}_{}", self.decoder.vector_name(name), entry(begins))
            }
            RawHappening::SoftirqEntry { vec } | RawHappening::SoftirqExit { vec } => {
                ints.push(("vec", u64::from(vec)));
                format!("softirq_{}", entry(matches!(event.what, RawHappening::SoftirqEntry { .. })))
            }
            RawHappening::NmiHandler { handler, delta_ns } => {
                ints.extend([("handler", handler), ("delta_ns", delta_ns as u64), ("handled", 1)]);
                "nmi_handler".to_owned()
            }
            RawHappening::IpiEntry { reason } | RawHappening::IpiExit { reason } => {
                ints.push(("reason", reason));
                format!("ipi_{}", entry(matches!(event.what, RawHappening::IpiEntry { .. })))
            }
            RawHappening::SchedSwitch {
                prev_comm,
                prev_pid,
                prev_prio,
                prev_state,
                next_comm,
                next_pid,
                next_prio,
            } => {
                texts.extend([("prev_comm", prev_comm), ("next_comm", next_comm)]);
                ints.extend([("prev_pid", prev_pid as u64), ("prev_prio", prev_prio as u64)]);
                ints.extend([("next_pid", next_pid as u64), ("next_prio", next_prio as u64)]);
                ints.push(("prev_state", prev_state as u64));
                "sched_switch".to_owned()
            }
            RawHappening::WorkStart { work, function } => {
                ints.extend([("work", work), ("function", function)]);
                "workqueue_execute_start".to_owned()
            }
            RawHappening::WorkEnd { work, function } => {
                ints.extend([("work", work), ("function", function.unwrap_or(0))]);
                "workqueue_execute_end".to_owned()
            }
            RawHappening::FunctionEntry { callback, function, request } => {
                let (field, name) = match callback {
                    Callback::HighResolutionTimer => ("function", "hrtimer_expire_entry"),
                    Callback::Timer => ("function", "timer_expire_entry"),
                    Callback::Tasklet => ("func", "tasklet_entry"),
                    Callback::Call => ("func", "csd_function_entry"),
                };
                ints.extend([(field, function), ("csd", request)]);
                name.to_owned()
            }
            RawHappening::CallQueued { cpu, site, function, request } => {
                ints.extend([("cpu", u64::from(cpu)), ("callsite", site), ("func", function), ("csd", request)]);
                "csd_queue_cpu".to_owned()
            }
            RawHappening::InterruptSent { cpu, site, callback } => {
                ints.extend([("cpu", u64::from(cpu)), ("callsite", site), ("callback", callback)]);
                "ipi_send_cpu".to_owned()
            }
            RawHappening::WorkQueued { work, function } => {
                ints.extend([("work", work), ("function", function), ("cpu", u64::MAX)]);
                "workqueue_queue_work".to_owned()
            }
            RawHappening::SoftirqRaised { vec } => {
                ints.push(("vec", u64::from(vec)));
                "softirq_raise".to_owned()
            }
            RawHappening::FunctionExit { callback: Callback::Call } => "csd_function_exit".to_owned(),
            RawHappening::FunctionExit { .. } => "hrtimer_expire_exit".to_owned(),
            RawHappening::Waking { comm, pid } => {
                texts.push(("comm", comm));
                ints.extend([("pid", pid as u64), ("prio", 120), ("target_cpu", 0)]);
                "sched_waking".to_owned()
            }
            RawHappening::Woken { comm, pid, cpu, is_new } => {
                texts.push(("comm", comm));
                ints.extend([("pid", pid as u64), ("prio", 120), ("target_cpu", cpu as u64)]);
                if is_new { "sched_wakeup_new" } else { "sched_wakeup" }.to_owned()
            }
            RawHappening::Moved { pid, cpu } => {
                ints.extend([("pid", pid as u64), ("dest_cpu", cpu as u64)]);
                "sched_migrate_task".to_owned()
            }
            RawHappening::Created { comm, pid, in_process } => {
                texts.push(("comm", comm));
                ints.extend([
                    ("pid", pid as u64),
                    ("clone_flags", if in_process { libc::CLONE_THREAD as u64 } else { 0 }),
                ]);
                "task_newtask".to_owned()
            }
            RawHappening::Forked { comm, pid } => {
                texts.push(("child_comm", comm));
                ints.push(("child_pid", pid as u64));
                "sched_process_fork".to_owned()
            }
            RawHappening::Renamed { comm, pid } => {
                texts.push(("newcomm", comm));
                ints.push(("pid", pid as u64));
                "task_rename".to_owned()
            }
            RawHappening::Accounted { pid, runtime_ns } => {
                ints.extend([("pid", pid as u64), ("runtime", runtime_ns)]);
                "sched_stat_runtime".to_owned()
            }
            RawHappening::WorkBegan(work) | RawHappening::WorkEnded(work) => {
                let stem = match work {
                    OwnWork::Reclaim => "mm_vmscan_direct_reclaim",
                    OwnWork::GroupReclaim => "mm_vmscan_memcg_reclaim",
                    OwnWork::Compaction => "mm_compaction",
                    OwnWork::KernelLock => "contention",
                };
                let began = matches!(event.what, RawHappening::WorkBegan(_));
                format!("{stem}_{}", if began { "begin" } else { "end" })
            }
            RawHappening::CallBegan { number } => {
                ints.push(("id", number as u64));
                "sys_enter".to_owned()
            }
            RawHappening::CallEnded => "sys_exit".to_owned(),
            RawHappening::Dirtied { pause } => {
                ints.push(("pause", pause as u64));
                "balance_dirty_pages".to_owned()
            }
            RawHappening::PageFault { user, address, ip, error_code } => {
                ints.extend([("address", address), ("ip", ip), ("error_code", error_code)]);
                format!("page_fault_{}", if user { "user" } else { "kernel" })
            }
        };
        Some(Content { name, ints, texts })
    }
}

/// The content of a record: the name of its event, and its fields by name.
struct Content<'e> {
    name: String,
    ints: Vec<(&'static str, u64)>,
    texts: Vec<(&'static str, &'e [u8])>,
}

/// Writes a string with a terminating zero, cut to the size of the field.
fn put_text(data: &mut Vec<u8>, field: &EventField, text: &[u8]) {
    if field.kind == FieldKind::DataLoc {
        let text = &text[..text.len().min(usize::from(u16::MAX) - 1)];
        let locator = ((text.len() as u32 + 1) << 16) | data.len() as u32;
        data[field.offset..field.offset + 4].copy_from_slice(&locator.to_ne_bytes());
        data.extend_from_slice(text);
        data.push(0);
    } else {
        let text = &text[..text.len().min(field.size.saturating_sub(1))];
        data[field.offset..field.offset + text.len()].copy_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_formats_are_those_of_a_real_kernel() {
        // Except for the event numbers and the unread print format, the layout is that of 6.18 on x86-64.
        let real = EventFormat::parse(
            "sched_switch",
            include_str!("../../../tests/data/linux-6.18-x86_64/sched/sched_switch/format"),
        );
        let kernel = SynthKernel::new(Long::Bits64, 4096);
        let ours = kernel.formats.iter().find(|(_, format)| format.name == "sched_switch").unwrap();
        assert_eq!(ours.1.fields, real.unwrap().fields);
        let real = HeaderPage::parse("h", include_str!("../../../tests/data/linux-6.18-x86_64/header_page")).unwrap();
        assert_eq!(*kernel.header(), real);
    }
}
