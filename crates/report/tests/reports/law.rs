use becalm_report::LawReport;
use becalm_scale::law::Law;
use becalm_units::Nanos;

use crate::check;

#[test]
fn the_law_within_and_beyond_where_it_is_linear() {
    let grain = Nanos::from_millis(1);
    let law = Law::new(grain, Nanos::from_micros(50), 1e-4).unwrap();
    let points = [64, 1 << 10, 1 << 14].map(|ranks| law.at(ranks).unwrap()).to_vec();
    check("law", &LawReport { law, grain, points });
}
