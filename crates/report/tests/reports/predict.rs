use becalm_model::node::Warning;
use becalm_report::PredictReport;
use becalm_scale::collective::Collective;
use becalm_scale::predict::{Prediction, Question};
use becalm_scale::tolerance::Tolerance;
use becalm_scale::watch::ReplayWatch;
use becalm_scale::{Noise, NoiseTrace};
use becalm_units::{Nanos, Share};

use crate::{check, check_page};

#[test]
fn a_job_under_periodic_noise() {
    let detour = (Nanos::ZERO, Nanos::from_micros(50));
    let trace = NoiseTrace::new(Nanos::from_millis(10), [detour]).unwrap();
    let noise = Noise::apart("periodic", trace);
    let question = Question {
        grain: Nanos::from_millis(1),
        phases: 100,
        collective: Collective::Ideal,
        network: "infiniband".parse().unwrap(),
        bytes: 8,
        per_node: 1,
        synchronized: false,
        seed: 1,
        replicas: 3,
    };
    let prediction = Prediction::new(&noise, question).unwrap();
    let rows = [4, 64].map(|ranks| prediction.row(ranks).unwrap());
    let share: Share = "3%".parse().unwrap();
    let tolerance = Tolerance::new(&prediction, &noise, &[4, 64], share, ReplayWatch::NOBODY).unwrap();
    let warning = Warning {
        code: "short".to_owned(),
        message: "the recording is short".to_owned(),
        advice: "record longer".to_owned(),
    };
    let (tolerances, warnings) = ([tolerance], [warning]);
    let report = PredictReport {
        name: "periodic:interval=10ms,detour=50us",
        noise: &noise,
        summary: false,
        of_threads: false,
        without: &[],
        question,
        rows: &rows,
        blame: &[],
        sources: &[],
        places: &[],
        tolerance: Some((share, &tolerances)),
        node_hours: Some(1e6),
        warnings: &warnings,
    };
    check("predict", &report);
    check_page("predict", &report);
}
