//! The tolls of many CPUs from one measurement per kind of CPU. A measurement takes a third of a second; on a node with 256 equal CPUs, measuring
//! each would take more than a minute.

use becalm_linux::clock::Counter;
use becalm_linux::sched::Policy;
use becalm_linux::sysfs::cpu::CpuKind;
use becalm_units::{CpuId, CpuList, Nanos, TickRate};

use crate::InjectError;
use crate::document::SharedToll;
use crate::grounds::Grounds;
use crate::toll::{self, Toll};

/// Known costs of detours on measured CPUs, kept from one injection to the next because each measurement takes a third of a second per kind of CPU.
/// All injections use the same class.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KnownTolls(Vec<KnownToll>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct KnownToll {
    cpu: CpuId,
    /// The time between trials.
    apart: u64,
    toll: Toll,
}

impl KnownTolls {
    /// The toll measured on this CPU with trials that far apart.
    fn toll(&self, cpu: CpuId, apart: u64) -> Option<Toll> {
        self.0.iter().find(|known| (known.cpu, known.apart) == (cpu, apart)).map(|known| known.toll)
    }

    /// Keeps a measured toll, replacing the known one.
    fn keep(&mut self, cpu: CpuId, apart: u64, toll: Toll) {
        self.0.retain(|known| (known.cpu, known.apart) != (cpu, apart));
        self.0.push(KnownToll { cpu, apart, toll });
    }
}

/// CPUs that share a measurement, made on the first of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Alike {
    /// The CPUs, as indices into the plan.
    members: Vec<usize>,
    /// The mean interval of the first CPU's noise.
    interval: Nanos,
}

/// Groups CPUs of one kind whose trial detours are about equally far apart. Each CPU comes with the mean interval of its noise.
pub(crate) fn alike(cpus: &[(CpuId, Nanos)], grounds: &Grounds) -> Vec<Alike> {
    let mut groups: Vec<(Option<&CpuKind>, u32, Alike)> = Vec::new();
    for (place, (cpu, interval)) in cpus.iter().enumerate() {
        let (kind, distance) = (grounds.kind(*cpu), toll::trials_apart(*interval).ilog2());
        let fits =
            |(other, at, _): &&mut (Option<&CpuKind>, u32, Alike)| kind.is_some() && *other == kind && *at == distance;
        match groups.iter_mut().find(fits) {
            Some((.., group)) => group.members.push(place),
            None => groups.push((kind, distance, Alike { members: vec![place], interval: *interval })),
        }
    }
    groups.into_iter().map(|(.., group)| group).collect()
}

/// The class of the injecting threads, and the rate of the counter.
#[derive(Clone, Copy)]
pub(crate) struct TrialSettings {
    pub policy: Policy,
    pub rate: TickRate,
}

/// Returns the toll of each CPU, in order, and the CPUs on which they were measured. A `known` toll that fits is not measured again; measured ones
/// are added to `known`. `told` gets the number of kinds of CPU done, and their total. Fails if a CPU cannot be used, the class is refused, too few
/// trial detours are seen, or `fits` rejects a toll. The last two fail only after a second measurement, because the first may have been disturbed,
/// for example by the hypervisor.
pub(crate) fn measure<C: Counter>(
    cpus: &[(CpuId, Nanos)],
    TrialSettings { policy, rate }: TrialSettings,
    grounds: &Grounds,
    known: &mut KnownTolls,
    fits: impl Fn(usize, Toll) -> Result<(), InjectError>,
    told: &mut dyn FnMut(usize, usize),
) -> Result<(Vec<Toll>, Vec<SharedToll>), InjectError> {
    let groups = alike(cpus, grounds);
    let (mut tolls, mut shared) = (vec![Toll::default(); cpus.len()], Vec::new());
    told(0, groups.len());
    for (number, Alike { members, interval }) in groups.iter().enumerate() {
        let (cpu, _) = cpus[members[0]];
        let fitting = |toll| members.iter().try_for_each(|member| fits(*member, toll)).map(|()| toll);
        let measured = || fitting(toll::measure::<C>(cpu, policy, rate, *interval)?);
        let apart = toll::trials_apart(*interval);
        let toll = match known.toll(cpu, apart).map(fitting) {
            Some(Ok(toll)) => toll,
            _ => match measured() {
                Err(
                    InjectError::Short { .. }
                    | InjectError::MostlyShort { .. }
                    | InjectError::Close { .. }
                    | InjectError::Toll { .. },
                ) => measured()?,
                other => other?,
            },
        };
        known.keep(cpu, apart, toll);
        members.iter().for_each(|member| tolls[*member] = toll);
        let cpus: CpuList = members.iter().map(|member| cpus[*member].0).collect();
        shared.push(SharedToll { measured_on: cpu, cpus, shortest: toll.shortest });
        told(number + 1, groups.len());
    }
    Ok((tolls, shared))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use becalm_linux::clock::Native;

    use super::*;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join("sys/devices/system/cpu").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn members(cpus: &[(u32, Nanos)], grounds: &Grounds) -> Vec<Vec<usize>> {
        let cpus: Vec<(CpuId, Nanos)> = cpus.iter().map(|(cpu, interval)| (CpuId::new(*cpu), *interval)).collect();
        alike(&cpus, grounds).into_iter().map(|group| group.members).collect()
    }

    #[test]
    fn cpus_of_a_kind_share_a_measurement() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "online", "0-255\n");
        write(root.path(), "nohz_full", "7\n");
        // The last four are small cores.
        for cpu in 0..256 {
            write(root.path(), &format!("cpu{cpu}/cpu_capacity"), if cpu < 252 { "1024\n" } else { "512\n" });
        }
        let grounds = Grounds::read(root.path(), (0..256).map(CpuId::new));
        let (often, seldom) = (Nanos::from_millis(1), Nanos::from_secs(1));
        let all: Vec<(u32, Nanos)> = (0..256).map(|cpu| (cpu, often)).collect();
        let groups = members(&all, &grounds);
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [251, 1, 4]);
        // Trials are as frequent as the detours will be.
        assert_eq!(
            members(&[(0, often), (1, seldom), (2, often), (3, Nanos::from_secs(9))], &grounds),
            [[0, 2], [1, 3]]
        );
        // Nothing is known about these.
        assert_eq!(members(&[(0, often), (1, often)], &Grounds::default()), [[0], [1]]);
    }

    /// A CPU that does not exist cannot be measured: if it succeeds, the toll was known.
    #[test]
    fn what_is_known_and_fits_is_not_measured_again() {
        let (cpu, often, seldom) = (CpuId::new(1 << 20), Nanos::from_millis(1), Nanos::from_millis(3));
        let toll = |us| Toll { entry: Nanos::from_micros(us), ..Toll::default() };
        let ask = |known: &mut KnownTolls, interval, most: i64| {
            let fits = |_, toll: Toll| {
                let (length, shortest) = (Nanos::ZERO, toll.entry);
                if toll.entry <= Nanos::from_micros(most) {
                    Ok(())
                } else {
                    Err(InjectError::Short { cpu, length, shortest })
                }
            };
            let rate = TickRate::from_hz(1e9);
            let cpus = [(cpu, interval)];
            measure::<Native>(
                &cpus,
                TrialSettings { policy: Policy::Fifo(50), rate },
                &Grounds::default(),
                known,
                fits,
                &mut |_, _| (),
            )
        };
        let mut known = KnownTolls::default();
        known.keep(cpu, often.get() as u64, toll(9));
        known.keep(cpu, often.get() as u64, toll(5));
        let (tolls, shared) = ask(&mut known, often, 5).unwrap();
        assert_eq!((tolls, shared.len()), (vec![toll(5)], 1));
        assert!(ask(&mut known, often, 4).is_err(), "what is known is too much, and the CPU is asked once more");
        assert!(ask(&mut known, seldom, 5).is_err(), "trials that are otherwise apart tell another toll");
    }
}
