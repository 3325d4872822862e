//! The positions of each event's fields, looked up once, and the loads that read them from a record.

use super::event::{Callback, OwnWork, RawHappening, VectorName};
use super::format::{EventField, EventFormat, EventFormatError, FieldKind};

/// An integer in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Int {
    at: u32,
    width: Width,
    signed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Width {
    One,
    Two,
    Four,
    Eight,
}

impl Int {
    /// The value, sign-extended if it is signed; `None` if the record is too short.
    #[inline]
    pub(super) fn read(self, data: &[u8]) -> Option<u64> {
        let rest = data.get(self.at as usize..)?;
        Some(match (self.width, self.signed) {
            (Width::One, false) => u64::from(*rest.first()?),
            (Width::One, true) => i64::from(*rest.first()? as i8) as u64,
            (Width::Two, false) => u64::from(u16::from_ne_bytes(*rest.first_chunk()?)),
            (Width::Two, true) => i64::from(i16::from_ne_bytes(*rest.first_chunk()?)) as u64,
            (Width::Four, false) => u64::from(u32::from_ne_bytes(*rest.first_chunk()?)),
            (Width::Four, true) => i64::from(i32::from_ne_bytes(*rest.first_chunk()?)) as u64,
            (Width::Eight, _) => u64::from_ne_bytes(*rest.first_chunk()?),
        })
    }
}

/// A string in a record.
#[derive(Clone, Copy, Debug)]
pub(super) enum Text {
    /// An array of fixed length.
    Fixed { at: u32, size: u32 },
    /// Behind a locator at `at`, with offsets counted from `from`.
    Located { at: u32, from: u32 },
}

impl Text {
    /// The bytes up to the first zero; `None` if they are not within the record.
    #[inline]
    fn read(self, data: &[u8]) -> Option<&[u8]> {
        let (start, length) = match self {
            Self::Fixed { at, size } => (at as usize, size as usize),
            Self::Located { at, from } => {
                let locator = u32::from_ne_bytes(*data.get(at as usize..)?.first_chunk()?);
                (from as usize + (locator & 0xffff) as usize, (locator >> 16) as usize)
            }
        };
        let bytes = data.get(start..)?.get(..length)?;
        Some(bytes.split(|byte| *byte == 0).next().unwrap_or(bytes))
    }
}

#[derive(Clone, Copy)]
pub(super) struct Look<'f>(pub(super) &'f EventFormat);

impl<'f> Look<'f> {
    fn field(self, name: &str) -> Result<&'f EventField, EventFormatError> {
        self.0.field(name).ok_or_else(|| self.0.lacks(format!("no field '{name}'")))
    }

    pub(super) fn int(self, name: &str) -> Result<Int, EventFormatError> {
        let field = self.field(name)?;
        let width = match (field.kind, field.size) {
            (FieldKind::Scalar, 1) => Width::One,
            (FieldKind::Scalar, 2) => Width::Two,
            (FieldKind::Scalar, 4) => Width::Four,
            (FieldKind::Scalar, 8) => Width::Eight,
            _ => return Err(self.0.lacks(format!("the field '{name}' is not an integer"))),
        };
        // The parser limits offsets and sizes.
        Ok(Int { at: field.offset as u32, width, signed: field.signed })
    }

    fn text(self, name: &str) -> Result<Text, EventFormatError> {
        let field = self.field(name)?;
        let (at, size) = (field.offset as u32, field.size as u32);
        Ok(match field.kind {
            FieldKind::Array => Text::Fixed { at, size },
            FieldKind::DataLoc => Text::Located { at, from: 0 },
            FieldKind::RelLoc => Text::Located { at, from: at + size },
            FieldKind::Scalar => return Err(self.0.lacks(format!("the field '{name}' is not a string"))),
        })
    }
}

/// The positions of one event's fields.
#[derive(Clone, Copy, Debug)]
pub(super) enum DecodingPlan {
    IrqEntry {
        irq: Int,
        name: Text,
    },
    IrqExit {
        irq: Int,
    },
    VectorEntry {
        name: VectorName,
        vector: Int,
    },
    VectorExit {
        name: VectorName,
        vector: Int,
    },
    SoftirqEntry {
        vec: Int,
    },
    SoftirqExit {
        vec: Int,
    },
    Nmi {
        handler: Int,
        delta: Int,
    },
    IpiEntry {
        reason: Int,
    },
    IpiExit {
        reason: Int,
    },
    Switch {
        prev_comm: Text,
        prev_pid: Int,
        prev_prio: Int,
        prev_state: Int,
        next_comm: Text,
        next_pid: Int,
        next_prio: Int,
    },
    WorkStart {
        work: Int,
        function: Int,
    },
    WorkEnd {
        work: Int,
        function: Option<Int>,
    },
    FunctionEntry {
        callback: Callback,
        function: Int,
        request: Option<Int>,
    },
    FunctionExit {
        callback: Callback,
    },
    Waking {
        comm: Text,
        pid: Int,
    },
    Woken {
        comm: Text,
        pid: Int,
        cpu: Int,
        is_new: bool,
    },
    Moved {
        pid: Int,
        cpu: Int,
    },
    Created {
        comm: Text,
        pid: Int,
        clone_flags: Int,
    },
    Forked {
        comm: Text,
        pid: Int,
    },
    Renamed {
        comm: Text,
        pid: Int,
    },
    Accounted {
        pid: Int,
        runtime: Int,
    },
    WorkBegan(OwnWork),
    WorkEnded(OwnWork),
    CallBegan {
        number: Int,
    },
    CallEnded,
    Dirtied {
        pause: Int,
    },
    CallQueued {
        cpu: Int,
        site: Int,
        function: Int,
        request: Int,
    },
    InterruptSent {
        cpu: Int,
        site: Int,
        callback: Int,
    },
    WorkQueued {
        work: Int,
        function: Int,
    },
    SoftirqRaised {
        vec: Int,
    },
    Fault {
        user: bool,
        address: Int,
        ip: Int,
        error_code: Int,
    },
}

impl DecodingPlan {
    /// The plan for an event; `None` if it is not decoded.
    pub(super) fn new(
        system: &str,
        look: Look<'_>,
        vectors: &mut Vec<String>,
    ) -> Result<Option<Self>, EventFormatError> {
        let event = look.0.name.as_str();
        Ok(Some(match (system, event) {
            ("irq", "irq_handler_entry") => Self::IrqEntry { irq: look.int("irq")?, name: look.text("name")? },
            ("irq", "irq_handler_exit") => Self::IrqExit { irq: look.int("irq")? },
            ("irq", "softirq_entry") => Self::SoftirqEntry { vec: look.int("vec")? },
            ("irq", "softirq_exit") => Self::SoftirqExit { vec: look.int("vec")? },
            ("irq_vectors", _) => {
                if let Some(stem) = event.strip_suffix("_entry") {
                    let vector = look.int("vector")?;
                    Self::VectorEntry { name: intern(vectors, stem), vector }
                } else if let Some(stem) = event.strip_suffix("_exit") {
                    let vector = look.int("vector")?;
                    Self::VectorExit { name: intern(vectors, stem), vector }
                } else {
                    return Ok(None);
                }
            }
            ("nmi", "nmi_handler") => Self::Nmi { handler: look.int("handler")?, delta: look.int("delta_ns")? },
            ("ipi", "ipi_entry") => Self::IpiEntry { reason: look.int("reason")? },
            ("ipi", "ipi_exit") => Self::IpiExit { reason: look.int("reason")? },
            ("sched", "sched_switch") => Self::Switch {
                prev_comm: look.text("prev_comm")?,
                prev_pid: look.int("prev_pid")?,
                prev_prio: look.int("prev_prio")?,
                prev_state: look.int("prev_state")?,
                next_comm: look.text("next_comm")?,
                next_pid: look.int("next_pid")?,
                next_prio: look.int("next_prio")?,
            },
            ("workqueue", "workqueue_execute_start") => {
                Self::WorkStart { work: look.int("work")?, function: look.int("function")? }
            }
            ("workqueue", "workqueue_execute_end") => {
                let function = look.0.field("function").is_some().then(|| look.int("function")).transpose()?;
                Self::WorkEnd { work: look.int("work")?, function }
            }
            ("timer", "hrtimer_expire_entry") => Self::function(Callback::HighResolutionTimer, look.int("function")?),
            ("timer", "hrtimer_expire_exit") => Self::FunctionExit { callback: Callback::HighResolutionTimer },
            ("csd", "csd_function_entry") => Self::FunctionEntry {
                callback: Callback::Call,
                function: look.int("func")?,
                request: Some(look.int("csd")?),
            },
            ("csd", "csd_queue_cpu") => Self::CallQueued {
                cpu: look.int("cpu")?,
                site: look.int("callsite")?,
                function: look.int("func")?,
                request: look.int("csd")?,
            },
            ("ipi", "ipi_send_cpu") => Self::InterruptSent {
                cpu: look.int("cpu")?,
                site: look.int("callsite")?,
                callback: look.int("callback")?,
            },
            ("workqueue", "workqueue_queue_work") => {
                Self::WorkQueued { work: look.int("work")?, function: look.int("function")? }
            }
            ("irq", "softirq_raise") => Self::SoftirqRaised { vec: look.int("vec")? },
            ("csd", "csd_function_exit") => Self::FunctionExit { callback: Callback::Call },
            ("sched", "sched_waking") => Self::Waking { comm: look.text("comm")?, pid: look.int("pid")? },
            ("sched", "sched_wakeup" | "sched_wakeup_new") => Self::Woken {
                comm: look.text("comm")?,
                pid: look.int("pid")?,
                cpu: look.int("target_cpu")?,
                is_new: event == "sched_wakeup_new",
            },
            ("sched", "sched_migrate_task") => Self::Moved { pid: look.int("pid")?, cpu: look.int("dest_cpu")? },
            ("sched", "sched_stat_runtime") => Self::Accounted { pid: look.int("pid")?, runtime: look.int("runtime")? },
            ("sched", "sched_process_fork") => {
                Self::Forked { comm: look.text("child_comm")?, pid: look.int("child_pid")? }
            }
            ("task", "task_newtask") => {
                Self::Created { comm: look.text("comm")?, pid: look.int("pid")?, clone_flags: look.int("clone_flags")? }
            }
            ("task", "task_rename") => Self::Renamed { comm: look.text("newcomm")?, pid: look.int("pid")? },
            ("vmscan" | "compaction" | "lock", _) => {
                let stem = event.strip_suffix("_begin").or_else(|| event.strip_suffix("_end"));
                let Some(work) = stem.and_then(own_work) else { return Ok(None) };
                if event.ends_with("_begin") { Self::WorkBegan(work) } else { Self::WorkEnded(work) }
            }
            ("raw_syscalls", "sys_enter") => Self::CallBegan { number: look.int("id")? },
            ("raw_syscalls", "sys_exit") => Self::CallEnded,
            ("writeback", "balance_dirty_pages") => Self::Dirtied { pause: look.int("pause")? },
            ("timer", "timer_expire_entry") => Self::function(Callback::Timer, look.int("function")?),
            ("irq", "tasklet_entry") => Self::function(Callback::Tasklet, look.int("func")?),
            ("exceptions", "page_fault_user" | "page_fault_kernel") => Self::Fault {
                user: event == "page_fault_user",
                address: look.int("address")?,
                ip: look.int("ip")?,
                error_code: look.int("error_code")?,
            },
            _ => return Ok(None),
        }))
    }

    const fn function(callback: Callback, function: Int) -> Self {
        Self::FunctionEntry { callback, function, request: None }
    }

    /// The event in a record; `None` if the record is too short for it.
    #[inline]
    pub(super) fn extract<'a>(&self, data: &'a [u8]) -> Option<RawHappening<'a>> {
        Some(match *self {
            Self::IrqEntry { irq, name } => {
                RawHappening::IrqHandlerEntry { irq: irq.read(data)? as i32, name: name.read(data)? }
            }
            Self::IrqExit { irq } => RawHappening::IrqHandlerExit { irq: irq.read(data)? as i32 },
            Self::VectorEntry { name, vector } => RawHappening::VectorEntry { name, vector: vector.read(data)? as i32 },
            Self::VectorExit { name, vector } => RawHappening::VectorExit { name, vector: vector.read(data)? as i32 },
            Self::SoftirqEntry { vec } => RawHappening::SoftirqEntry { vec: vec.read(data)? as u32 },
            Self::SoftirqExit { vec } => RawHappening::SoftirqExit { vec: vec.read(data)? as u32 },
            Self::Nmi { handler, delta } => {
                RawHappening::NmiHandler { handler: handler.read(data)?, delta_ns: delta.read(data)? as i64 }
            }
            Self::IpiEntry { reason } => RawHappening::IpiEntry { reason: reason.read(data)? },
            Self::IpiExit { reason } => RawHappening::IpiExit { reason: reason.read(data)? },
            Self::Switch { prev_comm, prev_pid, prev_prio, prev_state, next_comm, next_pid, next_prio } => {
                RawHappening::SchedSwitch {
                    prev_comm: prev_comm.read(data)?,
                    prev_pid: prev_pid.read(data)? as i32,
                    prev_prio: prev_prio.read(data)? as i32,
                    prev_state: prev_state.read(data)? as i64,
                    next_comm: next_comm.read(data)?,
                    next_pid: next_pid.read(data)? as i32,
                    next_prio: next_prio.read(data)? as i32,
                }
            }
            Self::WorkStart { work, function } => {
                RawHappening::WorkStart { work: work.read(data)?, function: function.read(data)? }
            }
            Self::WorkEnd { work, function } => RawHappening::WorkEnd {
                work: work.read(data)?,
                function: match function {
                    Some(function) => Some(function.read(data)?),
                    None => None,
                },
            },
            Self::FunctionEntry { callback, function, request } => RawHappening::FunctionEntry {
                callback,
                function: function.read(data)?,
                request: match request {
                    Some(request) => request.read(data)?,
                    None => 0,
                },
            },
            Self::CallQueued { cpu, site, function, request } => RawHappening::CallQueued {
                cpu: cpu.read(data)? as u32,
                site: site.read(data)?,
                function: function.read(data)?,
                request: request.read(data)?,
            },
            Self::InterruptSent { cpu, site, callback } => RawHappening::InterruptSent {
                cpu: cpu.read(data)? as u32,
                site: site.read(data)?,
                callback: callback.read(data)?,
            },
            Self::WorkQueued { work, function } => {
                RawHappening::WorkQueued { work: work.read(data)?, function: function.read(data)? }
            }
            Self::SoftirqRaised { vec } => RawHappening::SoftirqRaised { vec: vec.read(data)? as u32 },
            Self::FunctionExit { callback } => RawHappening::FunctionExit { callback },
            Self::Waking { comm, pid } => RawHappening::Waking { comm: comm.read(data)?, pid: pid.read(data)? as i32 },
            Self::Woken { comm, pid, cpu, is_new } => RawHappening::Woken {
                comm: comm.read(data)?,
                pid: pid.read(data)? as i32,
                cpu: cpu.read(data)? as i32,
                is_new,
            },
            Self::Moved { pid, cpu } => {
                RawHappening::Moved { pid: pid.read(data)? as i32, cpu: cpu.read(data)? as i32 }
            }
            Self::Created { comm, pid, clone_flags } => RawHappening::Created {
                comm: comm.read(data)?,
                pid: pid.read(data)? as i32,
                in_process: clone_flags.read(data)? & libc::CLONE_THREAD as u64 != 0,
            },
            Self::Forked { comm, pid } => RawHappening::Forked { comm: comm.read(data)?, pid: pid.read(data)? as i32 },
            Self::Renamed { comm, pid } => {
                RawHappening::Renamed { comm: comm.read(data)?, pid: pid.read(data)? as i32 }
            }
            Self::Accounted { pid, runtime } => {
                RawHappening::Accounted { pid: pid.read(data)? as i32, runtime_ns: runtime.read(data)? }
            }
            Self::WorkBegan(work) => RawHappening::WorkBegan(work),
            Self::WorkEnded(work) => RawHappening::WorkEnded(work),
            Self::CallBegan { number } => RawHappening::CallBegan { number: number.read(data)? as i64 },
            Self::CallEnded => RawHappening::CallEnded,
            Self::Dirtied { pause } => RawHappening::Dirtied { pause: pause.read(data)? as i64 },
            Self::Fault { user, address, ip, error_code } => RawHappening::PageFault {
                user,
                address: address.read(data)?,
                ip: ip.read(data)?,
                error_code: error_code.read(data)?,
            },
        })
    }
}

/// The work that an event's name shows, without its suffix.
fn own_work(stem: &str) -> Option<OwnWork> {
    Some(match stem {
        "mm_vmscan_direct_reclaim" | "mm_vmscan_node_reclaim" => OwnWork::Reclaim,
        "mm_vmscan_memcg_reclaim" | "mm_vmscan_memcg_softlimit_reclaim" => OwnWork::GroupReclaim,
        "mm_compaction" => OwnWork::Compaction,
        "contention" => OwnWork::KernelLock,
        _ => return None,
    })
}

/// The number of a name, the same for a vector's entry and exit. There are at most as many as event numbers.
fn intern(vectors: &mut Vec<String>, stem: &str) -> VectorName {
    let index = vectors.iter().position(|name| name == stem).unwrap_or_else(|| {
        vectors.push(stem.to_owned());
        vectors.len() - 1
    });
    VectorName(index as u16)
}
