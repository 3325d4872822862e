//! Profiles: the intended use of isolated CPUs decides which changes are worth their cost.

use becalm_units::UnknownName;
use serde::{Deserialize, Serialize};

use super::Family;

/// The purpose of the CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
pub enum Profile {
    /// Bulk-synchronous jobs: everything that can be moved away is, and throughput is not paid for it.
    #[default]
    Hpc,
    /// Real time: latency before all else, also before the protections against a thread that never sleeps.
    Rt,
    /// Benchmarks: the same speed in every run, rather than the highest.
    Benchmark,
    /// A virtual machine: what a guest has no say in is left alone.
    CloudGuest,
}

impl Profile {
    /// Whether the profile changes knobs of a family.
    pub const fn wants(self, family: Family) -> bool {
        match family {
            // Disabling throttling is a risk that only real time justifies.
            Family::Throttling => matches!(self, Self::Rt),
            // A guest's frequency and its siblings are under the host's control.
            Family::Frequency | Family::Smt => !matches!(self, Self::CloudGuest),
            // A CPU that computes does not sleep; shallow sleep elsewhere costs the others their turbo.
            Family::Idle => !matches!(self, Self::Hpc),
            _ => true,
        }
    }
}

fn unknown(text: &str) -> UnknownName {
    UnknownName::new::<Profile>("profile", text)
}

#[cfg(test)]
mod tests {
    use becalm_units::Named;

    use super::*;

    #[test]
    fn names_read_back_and_are_those_of_documents() {
        for profile in Profile::ALL.iter().copied() {
            assert_eq!(profile.to_string().parse(), Ok(profile));
            assert_eq!(serde_json::to_value(profile).unwrap(), profile.name());
        }
        assert!("fast".parse::<Profile>().unwrap_err().to_string().contains("cloud-guest"));
    }

    #[test]
    fn only_real_time_gives_up_the_throttling() {
        let giving_up = Profile::ALL.iter().copied().filter(|profile| profile.wants(Family::Throttling));
        assert_eq!(giving_up.collect::<Vec<_>>(), [Profile::Rt]);
    }
}
