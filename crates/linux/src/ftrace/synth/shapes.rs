//! The events of a synthetic kernel, and their format texts.

use super::long::Long;

/// C types that the formats use.
#[derive(Clone, Copy)]
enum C {
    Int(&'static str, usize, bool),
    Long(&'static str, bool),
    Comm,
    Name,
}

const INT: C = C::Int("int", 4, true);
const UNSIGNED: C = C::Int("unsigned int", 4, false);
const POINTER: C = C::Long("void *", false);
const WORD: C = C::Long("unsigned long", false);

const PID: C = C::Int("pid_t", 4, true);

const WAKEUP: &[(C, &str)] = &[(C::Comm, "comm"), (PID, "pid"), (INT, "prio"), (INT, "target_cpu")];

/// An event: its system, its name, its fields.
type Shape = (&'static str, &'static str, &'static [(C, &'static str)]);

const SHAPES: &[Shape] = &[
    ("irq", "irq_handler_entry", &[(INT, "irq"), (C::Name, "name")]),
    ("irq", "irq_handler_exit", &[(INT, "irq"), (INT, "ret")]),
    ("irq", "softirq_entry", &[(UNSIGNED, "vec")]),
    ("irq", "softirq_exit", &[(UNSIGNED, "vec")]),
    ("irq_vectors", "local_timer_entry", &[(INT, "vector")]),
    ("irq_vectors", "local_timer_exit", &[(INT, "vector")]),
    ("irq_vectors", "reschedule_entry", &[(INT, "vector")]),
    ("irq_vectors", "reschedule_exit", &[(INT, "vector")]),
    ("irq_vectors", "call_function_single_entry", &[(INT, "vector")]),
    ("irq_vectors", "call_function_single_exit", &[(INT, "vector")]),
    ("nmi", "nmi_handler", &[(POINTER, "handler"), (C::Int("s64", 8, true), "delta_ns"), (INT, "handled")]),
    ("ipi", "ipi_entry", &[(C::Long("const char *", false), "reason")]),
    ("ipi", "ipi_exit", &[(C::Long("const char *", false), "reason")]),
    (
        "sched",
        "sched_switch",
        &[
            (C::Comm, "prev_comm"),
            (PID, "prev_pid"),
            (INT, "prev_prio"),
            (C::Long("long", true), "prev_state"),
            (C::Comm, "next_comm"),
            (PID, "next_pid"),
            (INT, "next_prio"),
        ],
    ),
    ("sched", "sched_waking", WAKEUP),
    ("sched", "sched_wakeup", WAKEUP),
    ("sched", "sched_wakeup_new", WAKEUP),
    (
        "sched",
        "sched_migrate_task",
        &[(C::Name, "comm"), (PID, "pid"), (INT, "prio"), (INT, "orig_cpu"), (INT, "dest_cpu")],
    ),
    (
        "sched",
        "sched_process_fork",
        &[(C::Name, "parent_comm"), (PID, "parent_pid"), (C::Name, "child_comm"), (PID, "child_pid")],
    ),
    ("sched", "sched_stat_runtime", &[(C::Name, "comm"), (PID, "pid"), (C::Int("u64", 8, false), "runtime")]),
    (
        "task",
        "task_newtask",
        &[
            (PID, "pid"),
            (C::Comm, "comm"),
            (C::Int("u64", 8, false), "clone_flags"),
            (C::Int("short", 2, true), "oom_score_adj"),
        ],
    ),
    (
        "task",
        "task_rename",
        &[(PID, "pid"), (C::Comm, "oldcomm"), (C::Comm, "newcomm"), (C::Int("short", 2, true), "oom_score_adj")],
    ),
    ("vmscan", "mm_vmscan_direct_reclaim_begin", &[(INT, "order"), (WORD, "gfp_flags")]),
    ("vmscan", "mm_vmscan_direct_reclaim_end", &[(WORD, "nr_reclaimed")]),
    ("vmscan", "mm_vmscan_memcg_reclaim_begin", &[(INT, "order"), (WORD, "gfp_flags")]),
    ("vmscan", "mm_vmscan_memcg_reclaim_end", &[(WORD, "nr_reclaimed")]),
    ("compaction", "mm_compaction_begin", &[(WORD, "zone_start"), (WORD, "migrate_pfn")]),
    ("compaction", "mm_compaction_end", &[(WORD, "zone_start"), (WORD, "migrate_pfn")]),
    ("lock", "contention_begin", &[(POINTER, "lock_addr"), (UNSIGNED, "flags")]),
    ("lock", "contention_end", &[(POINTER, "lock_addr"), (INT, "ret")]),
    ("writeback", "balance_dirty_pages", &[(C::Long("long", true), "pause")]),
    ("raw_syscalls", "sys_enter", &[(C::Long("long", true), "id")]),
    ("raw_syscalls", "sys_exit", &[(C::Long("long", true), "id"), (C::Long("long", true), "ret")]),
    ("workqueue", "workqueue_execute_start", &[(POINTER, "work"), (POINTER, "function")]),
    ("workqueue", "workqueue_execute_end", &[(POINTER, "work"), (POINTER, "function")]),
    ("timer", "hrtimer_expire_entry", &[(POINTER, "hrtimer"), (C::Int("s64", 8, true), "now"), (POINTER, "function")]),
    ("timer", "hrtimer_expire_exit", &[(POINTER, "hrtimer")]),
    ("timer", "timer_expire_entry", &[(POINTER, "timer"), (WORD, "now"), (POINTER, "function"), (WORD, "baseclk")]),
    ("irq", "tasklet_entry", &[(POINTER, "tasklet"), (POINTER, "func")]),
    ("csd", "csd_function_entry", &[(POINTER, "func"), (POINTER, "csd")]),
    ("csd", "csd_function_exit", &[(POINTER, "func"), (POINTER, "csd")]),
    ("csd", "csd_queue_cpu", &[(UNSIGNED, "cpu"), (POINTER, "callsite"), (POINTER, "func"), (POINTER, "csd")]),
    ("ipi", "ipi_send_cpu", &[(UNSIGNED, "cpu"), (POINTER, "callsite"), (POINTER, "callback")]),
    (
        "workqueue",
        "workqueue_queue_work",
        &[(POINTER, "work"), (POINTER, "function"), (C::Name, "workqueue"), (INT, "req_cpu"), (INT, "cpu")],
    ),
    ("irq", "softirq_raise", &[(UNSIGNED, "vec")]),
    ("exceptions", "page_fault_user", &[(WORD, "address"), (WORD, "ip"), (WORD, "error_code")]),
    ("exceptions", "page_fault_kernel", &[(WORD, "address"), (WORD, "ip"), (WORD, "error_code")]),
];

/// The events that a [`SynthKernel`](super::SynthKernel) describes: system, name, and the text of the `format` file.
pub fn formats(long: Long) -> impl Iterator<Item = (&'static str, &'static str, String)> {
    SHAPES
        .iter()
        .zip(300..)
        .map(move |((system, name, fields), id)| (*system, *name, format_text(long, name, id, fields)))
}

fn format_text(long: Long, name: &str, id: u16, fields: &[(C, &str)]) -> String {
    let common = [
        (C::Int("unsigned short", 2, false), "common_type"),
        (C::Int("unsigned char", 1, false), "common_flags"),
        (C::Int("unsigned char", 1, false), "common_preempt_count"),
        (INT, "common_pid"),
    ];
    let mut text = format!("name: {name}\nID: {id}\nformat:\n");
    let mut at = 0_usize;
    for (index, (c, field)) in common.iter().chain(fields).enumerate() {
        if index == common.len() {
            text.push('\n');
        }
        let (declaration, size, align, signed) = match c {
            C::Int(c, size, signed) => (format!("{c} {field}"), *size, *size, *signed),
            C::Long(c, signed) => (format!("{c} {field}"), long.bytes(), long.bytes(), *signed),
            C::Comm => (format!("char {field}[16]"), 16, 1, false),
            C::Name => (format!("__data_loc char[] {field}"), 4, 4, false),
        };
        at = at.next_multiple_of(align);
        text += &format!("\tfield:{declaration};\toffset:{at};\tsize:{size};\tsigned:{};\n", u8::from(signed));
        at += size;
    }
    text + "\nprint fmt: \"\"\n"
}
