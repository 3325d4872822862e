//! The messages of a trace, with the fields that becalm reads. The names, numbers and types are those of Perfetto's own definitions, but for names
//! of threads, which are any bytes here.
#![allow(missing_docs, reason = "Perfetto's definitions document each of them")]

use prost::Message;

/// `TracePacket.sequence_flags`: what was interned in the sequence before is void.
const STATE_CLEARED: u32 = 1;

#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub ftrace_events: Option<FtraceEventBundle>,
    #[prost(message, optional, tag = "2")]
    pub process_tree: Option<ProcessTree>,
    #[prost(message, optional, tag = "6")]
    pub clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, tag = "10")]
    pub trusted_packet_sequence_id: u32,
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    #[prost(uint32, tag = "13")]
    pub sequence_flags: u32,
    #[prost(message, optional, tag = "33")]
    pub trace_config: Option<Empty>,
    #[prost(bytes = "vec", tag = "36")]
    pub synchronization_marker: Vec<u8>,
    #[prost(bool, tag = "41")]
    pub incremental_state_cleared: bool,
    #[prost(message, optional, tag = "44")]
    pub thread_descriptor: Option<ThreadDescriptor>,
    #[prost(message, optional, tag = "45")]
    pub system_info: Option<SystemInfo>,
    #[prost(bytes = "vec", tag = "50")]
    pub compressed_packets: Vec<u8>,
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub trace_packet_defaults: Option<TracePacketDefaults>,
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
    #[prost(message, optional, tag = "89")]
    pub trace_uuid: Option<Empty>,
}

impl TracePacket {
    /// Whether it has one of the fields with which traces start.
    pub fn is_known(&self) -> bool {
        self.ftrace_events.is_some()
            || self.process_tree.is_some()
            || self.clock_snapshot.is_some()
            || self.timestamp.is_some()
            || self.trusted_packet_sequence_id != 0
            || self.trace_config.is_some()
            || self.trace_uuid.is_some()
            || self.system_info.is_some()
            || self.track_descriptor.is_some()
            || !self.synchronization_marker.is_empty()
            || !self.compressed_packets.is_empty()
    }

    /// Whether it voids what was interned in its sequence.
    pub fn clears_state(&self) -> bool {
        self.sequence_flags & STATE_CLEARED != 0 || self.incremental_state_cleared
    }
}

/// A message whose fields do not matter.
#[derive(Clone, PartialEq, Message)]
pub struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub event: Vec<FtraceEvent>,
    #[prost(bool, tag = "3")]
    pub lost_events: bool,
    #[prost(message, optional, tag = "4")]
    pub compact_sched: Option<CompactSched>,
    /// 0 is the clock of boot time.
    #[prost(uint32, tag = "5")]
    pub ftrace_clock: u32,
    #[prost(int64, tag = "6")]
    pub ftrace_timestamp: i64,
    #[prost(int64, tag = "7")]
    pub boot_timestamp: i64,
}

/// Switches and wake-ups in columns. Each time is the difference from the one before.
#[derive(Clone, PartialEq, Message)]
pub struct CompactSched {
    #[prost(uint64, repeated, tag = "1")]
    pub switch_timestamp: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub switch_prev_state: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    pub switch_next_pid: Vec<i32>,
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub intern_table: Vec<Vec<u8>>,
    #[prost(uint32, repeated, tag = "6")]
    pub switch_next_comm_index: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub waking_timestamp: Vec<u64>,
    #[prost(int32, repeated, tag = "8")]
    pub waking_pid: Vec<i32>,
    #[prost(uint32, repeated, tag = "11")]
    pub waking_comm_index: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FtraceEvent {
    #[prost(uint64, tag = "1")]
    pub timestamp: u64,
    #[prost(uint32, tag = "2")]
    pub pid: u32,
    #[prost(
        oneof = "Ftrace",
        tags = "3, 4, 17, 20, 21, 22, 24, 25, 36, 37, 57, 58, 114, 235, 236, 239, 327, 491, 553, 554, 557, 559, 560"
    )]
    pub event: Option<Ftrace>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Ftrace {
    #[prost(message, tag = "3")]
    Print(Print),
    #[prost(message, tag = "4")]
    SchedSwitch(SchedSwitch),
    #[prost(message, tag = "17")]
    SchedWakeup(SchedWakeup),
    #[prost(message, tag = "20")]
    SchedWaking(SchedWakeup),
    #[prost(message, tag = "21")]
    IpiEntry(Reason),
    #[prost(message, tag = "22")]
    IpiExit(Reason),
    #[prost(message, tag = "24")]
    SoftirqEntry(Softirq),
    #[prost(message, tag = "25")]
    SoftirqExit(Softirq),
    #[prost(message, tag = "36")]
    IrqHandlerEntry(IrqEntry),
    #[prost(message, tag = "37")]
    IrqHandlerExit(IrqExit),
    #[prost(message, tag = "57")]
    WorkqueueExecuteEnd(Work),
    #[prost(message, tag = "58")]
    WorkqueueExecuteStart(Work),
    #[prost(message, tag = "114")]
    SchedWakeupNew(SchedWakeup),
    #[prost(message, tag = "235")]
    TaskNewtask(NewTask),
    #[prost(message, tag = "236")]
    TaskRename(RenamedTask),
    #[prost(message, tag = "239")]
    SchedProcessFork(Fork),
    #[prost(message, tag = "327")]
    Generic(Generic),
    #[prost(message, tag = "491")]
    SchedMigrateTask(Migration),
    #[prost(message, tag = "553")]
    HrtimerExpireEntry(Expiry),
    #[prost(message, tag = "554")]
    HrtimerExpireExit(Empty),
    #[prost(message, tag = "557")]
    TimerExpireEntry(Expiry),
    #[prost(message, tag = "559")]
    LocalTimerEntry(Vector),
    #[prost(message, tag = "560")]
    LocalTimerExit(Vector),
}

#[derive(Clone, PartialEq, Message)]
pub struct Print {
    #[prost(bytes = "vec", tag = "2")]
    pub buf: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SchedSwitch {
    #[prost(bytes = "vec", tag = "1")]
    pub prev_comm: Vec<u8>,
    #[prost(int32, tag = "2")]
    pub prev_pid: i32,
    #[prost(int64, tag = "4")]
    pub prev_state: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub next_comm: Vec<u8>,
    #[prost(int32, tag = "6")]
    pub next_pid: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct SchedWakeup {
    #[prost(bytes = "vec", tag = "1")]
    pub comm: Vec<u8>,
    #[prost(int32, tag = "2")]
    pub pid: i32,
    #[prost(int32, tag = "5")]
    pub target_cpu: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Reason {
    #[prost(bytes = "vec", tag = "1")]
    pub reason: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Softirq {
    #[prost(uint32, tag = "1")]
    pub vec: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct IrqEntry {
    #[prost(int32, tag = "1")]
    pub irq: i32,
    #[prost(bytes = "vec", tag = "2")]
    pub name: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct IrqExit {
    #[prost(int32, tag = "1")]
    pub irq: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Work {
    #[prost(uint64, tag = "1")]
    pub work: u64,
    #[prost(uint64, tag = "2")]
    pub function: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct NewTask {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(bytes = "vec", tag = "2")]
    pub comm: Vec<u8>,
    #[prost(uint64, tag = "3")]
    pub clone_flags: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct RenamedTask {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub newcomm: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Fork {
    #[prost(bytes = "vec", tag = "3")]
    pub child_comm: Vec<u8>,
    #[prost(int32, tag = "4")]
    pub child_pid: i32,
}

/// An event that the recorder has no message for.
#[derive(Clone, PartialEq, Message)]
pub struct Generic {
    #[prost(bytes = "vec", tag = "1")]
    pub event_name: Vec<u8>,
    #[prost(message, repeated, tag = "2")]
    pub field: Vec<GenericField>,
}

#[derive(Clone, PartialEq, Message)]
pub struct GenericField {
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
    #[prost(int64, optional, tag = "4")]
    pub int_value: Option<i64>,
    #[prost(uint64, optional, tag = "5")]
    pub uint_value: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Migration {
    #[prost(int32, tag = "2")]
    pub pid: i32,
    #[prost(int32, tag = "5")]
    pub dest_cpu: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Expiry {
    #[prost(uint64, tag = "3")]
    pub function: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Vector {
    #[prost(int32, tag = "1")]
    pub vector: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<Thread>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Process {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(int32, tag = "2")]
    pub ppid: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Thread {
    #[prost(int32, tag = "1")]
    pub tid: i32,
    #[prost(bytes = "vec", tag = "2")]
    pub name: Vec<u8>,
    #[prost(int32, tag = "3")]
    pub tgid: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    #[prost(uint32, tag = "2")]
    pub primary_trace_clock: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Clock {
    #[prost(uint32, tag = "1")]
    pub clock_id: u32,
    #[prost(uint64, tag = "2")]
    pub timestamp: u64,
    /// Whether each time of it is the difference from the one before in its sequence.
    #[prost(bool, tag = "3")]
    pub is_incremental: bool,
    #[prost(uint64, tag = "4")]
    pub unit_multiplier_ns: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, tag = "9")]
    pub r#type: i32,
    #[prost(uint64, tag = "10")]
    pub name_iid: u64,
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    #[prost(bytes = "vec", tag = "23")]
    pub name: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    #[prost(uint64, tag = "1")]
    pub name_iid: u64,
    #[prost(bool, optional, tag = "2")]
    pub bool_value: Option<bool>,
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    #[prost(int64, optional, tag = "4")]
    pub int_value: Option<i64>,
    #[prost(double, optional, tag = "5")]
    pub double_value: Option<f64>,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub string_value: Option<Vec<u8>>,
    #[prost(bytes = "vec", tag = "10")]
    pub name: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct InternedData {
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "26")]
    pub kernel_symbols: Vec<InternedName>,
}

#[derive(Clone, PartialEq, Message)]
pub struct InternedName {
    #[prost(uint64, tag = "1")]
    pub iid: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub name: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TracePacketDefaults {
    #[prost(message, optional, tag = "11")]
    pub track_event_defaults: Option<TrackEventDefaults>,
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TrackEventDefaults {
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    #[prost(uint64, tag = "1")]
    pub uuid: u64,
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    #[prost(uint64, tag = "5")]
    pub parent_uuid: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    #[prost(int32, tag = "1")]
    pub pid: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct ThreadDescriptor {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(int64, tag = "2")]
    pub tid: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub thread_name: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub utsname: Option<Utsname>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Utsname {
    #[prost(bytes = "vec", tag = "3")]
    pub release: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub machine: Vec<u8>,
}
