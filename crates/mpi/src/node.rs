//! The placement and clock of a rank: its CPU, its scheduling class, and the counter that the ranks of its node share.

use std::path::Path;

use becalm_linux::clock::{self, Counter};
use becalm_linux::sched::{self, Policy};
use becalm_linux::signals;
use becalm_measure::machine::Host;
use becalm_model::node::ClockDoc;
use becalm_model::node_name;
use becalm_units::fault::{Context, Result};
use becalm_units::{CpuId, CpuList, Nanos, TickRate, Ticks, TicksToNanos};
use mpi::traits::{Communicator, CommunicatorCollectives, Root};

use crate::job::{Job, tell, texts};
use crate::place::{crowd, places};

/// The length of the comparison between the counter and the kernel's clock.
const CALIBRATION: Nanos = Nanos::from_millis(100);

/// The placement of a rank.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The unique name of its node.
    pub node: String,
    /// The CPU to which it is pinned.
    pub cpu: CpuId,
    /// The CPUs that it was allowed to run on before.
    pub allowed: CpuList,
    /// The reason for an unknown node name, if it is.
    pub nameless: Option<String>,
    /// The largest number of ranks that share a CPU.
    pub crowd: usize,
    /// Whether this rank is the first of those on its CPU.
    pub first_on_cpu: bool,
    /// Converts the counter to the node's time, which starts with the placement.
    pub axis: TicksToNanos,
    /// The rate of the counter.
    pub rate: TickRate,
    /// The wall-clock time at the node's time 0.
    pub origin: jiff::Timestamp,
    /// The counter in the node's document.
    pub clock: ClockDoc,
}

impl Seat {
    /// Pins the rank, sets its class and agrees with the node's other ranks on a clock. Fails if any rank cannot get its CPU or class, or a
    /// counter cannot be used.
    pub fn take<C: Counter>(job: &Job, policy: Policy) -> Result<Self> {
        let root = Path::new("/");
        let allowed = sched::allowed_cpus().context("cannot read where this rank may run");
        let told = allowed.as_ref().map_or_else(|_| String::new(), ToString::to_string);
        let sets: Vec<CpuList> =
            texts(&job.shared, &told).iter().map(|text| text.parse().unwrap_or_default()).collect();
        let placed = places(&sets);
        let own = job.shared.rank() as usize;
        let sit = || {
            let allowed = allowed?;
            let cpu = placed[own].context("this rank may run on no CPU")?;
            sched::pin_current_thread(cpu)?;
            if policy != Policy::Other {
                sched::set_policy(policy)?;
            }
            signals::end_with_parent().context("cannot ask to end with the launcher")?;
            Ok((allowed, cpu))
        };
        let (allowed, cpu) = job.agree(sit())?;

        // The first rank's rate and origin apply to the node.
        let calibrated = job.agree(clock::calibrate::<C>(CALIBRATION).map_err(Into::into))?;
        let mut told = [calibrated.rate.hz(), calibrated.error_ratio];
        tell(&job.node, &mut told);
        let [rate_hz, rate_error_ratio] = told;
        let rate = TickRate::from_hz(rate_hz);
        job.world.barrier();
        let mut origin_ticks = C::read();
        let origin = jiff::Timestamp::now();
        job.node.process_at_rank(0).broadcast_into(&mut origin_ticks);
        let host = Host::read(root);
        let nameless = host.warning.map(|warning| warning.message);
        let host = host.node;
        Ok(Self {
            node: unique(job, &host),
            nameless,
            cpu,
            allowed,
            crowd: crowd(&placed),
            first_on_cpu: !placed[..own].contains(&Some(cpu)),
            axis: TicksToNanos::new(Ticks::new(origin_ticks), rate),
            rate,
            origin,
            clock: ClockDoc {
                counter: C::NAME.to_owned(),
                origin_ticks,
                rate_hz: rate.hz(),
                rate_error_ratio,
                resolution_ns: clock::resolution::<C>(rate),
                ..ClockDoc::default()
            },
        })
    }

    /// The current time of the node.
    pub fn now<C: Counter>(&self) -> i64 {
        self.axis.instant(Ticks::new(C::read())).get()
    }

    /// Limitations of the numbers.
    pub fn warnings(&self) -> Vec<String> {
        let crowded = (self.crowd > 1).then(|| {
            format!(
                "up to {} ranks share a CPU: they wait for each other, and what they measure is each other; start no more ranks \
                 than there are CPUs",
                self.crowd
            )
        });
        crowded.into_iter().chain(self.nameless.clone()).collect()
    }
}

/// The host's name, with a number appended if another node has the same.
fn unique(job: &Job, host: &str) -> String {
    let mut name = host.to_owned();
    if let Some(leaders) = &job.leaders {
        let hosts = texts(leaders, host);
        let own = leaders.rank() as usize;
        if hosts.iter().filter(|other| *other == host).count() > 1 {
            let before = hosts[..own].iter().filter(|other| *other == host).count();
            name = node_name(&format!("{host}-{before}"));
        }
    }
    texts(&job.node, if job.node.rank() == 0 { &name } else { "" }).swap_remove(0)
}
