//! Exported rows account for a recording as reports do: by the rule, added up naively.

use std::collections::BTreeMap;

use becalm_bundle::{Bundle, BundleError};
use becalm_fixtures::account::{AccountedRun, ExpectedAccount};
use becalm_foreign::rows::{attributed_detours, stacks};
use becalm_model::Kind;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn rows_account_as_the_rule_says(seed in 0_u64..1 << 40) {
        let run = AccountedRun::random(seed);
        let all = run.expected.iter().fold(ExpectedAccount::default(), ExpectedAccount::plus);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("full.becalm");
        run.write(&path);
        let bundle = Bundle::open(&path).unwrap();

        let (mut detours, mut noise_ns, mut own_ns) = (0, 0, 0);
        let strays = attributed_detours(&bundle, &run.doc, &mut |detour| {
            detours += u64::from(detour.noise().is_some());
            noise_ns += detour.noise().unwrap_or_default().get();
            own_ns += detour.own_time().get();
            Ok::<(), BundleError>(())
        });
        prop_assert_eq!((detours, noise_ns, own_ns, strays.unwrap()), (all.detours, all.noise_ns, all.own_ns, 0));

        let mut roots: BTreeMap<(Kind, String), i64> = BTreeMap::new();
        for stack in stacks(&bundle, &run.doc).unwrap() {
            let root = stack.root.expect("all time is booked");
            *roots.entry(root).or_default() += stack.ns;
        }
        roots.retain(|_, ns| *ns > 0);
        prop_assert_eq!(&roots, &all.sources);
    }
}
