//! `deadline`: a thread of the class `SCHED_DEADLINE`, which burns a fixed time in each period and gives the rest back.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use becalm_units::CpuId;

use super::{Maker, Unlimited};

/// Such a thread, while it runs. Under the limit of real-time threads the kernel lets none with a deadline stay on one CPU.
pub struct Deadline {
    maker: Maker<u64>,
    _limit: Unlimited,
}

/// As the kernel takes it (`include/uapi/linux/sched/types.h`).
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SCHED_DEADLINE: u32 = 6;

/// Starts the thread, which burns `burst` in each `period`.
pub fn start(cpu: CpuId, burst: Duration, period: Duration) -> Deadline {
    let limit = Unlimited::begin();
    let maker = Maker::start("deadline", cpu, move |stop| {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).expect("a short time");
        let attributes = Attributes {
            size: size_of::<Attributes>() as u32,
            policy: SCHED_DEADLINE,
            flags: 0,
            nice: 0,
            priority: 0,
            runtime: nanos(period / 4),
            deadline: nanos(period),
            period: nanos(period),
        };
        // SAFETY: the kernel reads the attributes of their own size for the calling thread.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
        assert_eq!(result, 0, "root can take a deadline: {}", std::io::Error::last_os_error());
        let mut bursts = 0;
        while !stop.load(Ordering::Relaxed) {
            let begin = Instant::now();
            while begin.elapsed() < burst {
                std::hint::spin_loop();
            }
            bursts += 1;
            // Until the next period.
            std::thread::yield_now();
        }
        bursts
    });
    Deadline { maker, _limit: limit }
}

impl Deadline {
    /// Ends it, puts the limit back, and returns the number of bursts.
    pub fn stop(self) -> u64 {
        self.maker.stop()
    }
}
