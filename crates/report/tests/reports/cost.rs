use becalm_bundle::cost;
use becalm_report::CostRunReport;

use crate::check;

#[test]
fn every_stored_measurement_of_costs() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::costs::write_costs(folder.path());
    for name in ["clock", "trap", "catalogue", "scheduler", "interrupted", "placement"] {
        let run = cost::load(&folder.path().join(format!("{name}.becalm")), None).unwrap();
        check(&format!("cost_{name}"), &CostRunReport::new(&run));
    }
}
