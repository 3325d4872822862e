use becalm_report::{LawReport, LawRow};
use becalm_scale::law::Law;
use becalm_units::Nanos;

use crate::{check, check_page};

#[test]
fn the_law_within_and_beyond_where_it_is_linear() {
    let grain = Nanos::from_millis(1);
    let law = Law::new(grain, Nanos::from_micros(50), 1e-4).unwrap();
    let row = |ranks| LawRow { point: law.at(ranks).unwrap(), tolerable: None };
    let rows = [64, 1 << 10, 1 << 14].map(row).to_vec();
    check("law", &LawReport { law, grain, tolerated: None, rows });
}

#[test]
fn the_law_turned_round() {
    let grain = Nanos::from_millis(1);
    let law = Law::new(grain, Nanos::from_micros(50), 1e-4).unwrap();
    let row = |ranks| LawRow { point: law.at(ranks).unwrap(), tolerable: Some(law.tolerable(ranks, 0.01).unwrap()) };
    let rows = [64, 1 << 10, 1 << 14].map(row).to_vec();
    let tolerated = Some("1%".parse().unwrap());
    let report = LawReport { law, grain, tolerated, rows };
    check("law_tolerated", &report);
    check_page("law_tolerated", &report);
}
