use becalm_report::{LawCell, LawOften, LawRow, LawSweepReport, PredictSweepReport, SweptCell, SweptNoise};
use becalm_scale::Noise;
use becalm_scale::collective::Collective;
use becalm_scale::law::Law;
use becalm_scale::predict::{Prediction, Question};
use becalm_scale::spec::NoiseSpec;
use becalm_units::{Nanos, Share};

use crate::{check, check_page};

#[test]
fn the_law_over_grains_and_ranks() {
    let grains = vec![Nanos::from_millis(1), Nanos::from_millis(10)];
    let (delay, ranks) = (Nanos::from_millis(1), vec![64, 1 << 10, 1 << 14]);
    let share: Share = "0.01%".parse().unwrap();
    let mut cells = Vec::new();
    for grain in &grains {
        let law = Law::new(*grain, delay, share.ratio()).unwrap();
        cells.extend(ranks.iter().map(|ranks| LawCell {
            law,
            grain: *grain,
            often: LawOften::Probability(share),
            row: LawRow { point: law.at(*ranks).unwrap(), tolerable: Some(law.tolerable(*ranks, 0.01).unwrap()) },
        }));
    }
    let often = vec![LawOften::Probability(share)];
    let tolerated = Some("1%".parse().unwrap());
    let report = LawSweepReport { grains, delays: vec![delay], often, ranks, tolerated, cells };
    check("law_sweep", &report);
    check_page("law_sweep", &report);
}

#[test]
fn a_job_under_several_noises() {
    let asked = ["periodic:interval=1ms,detour=16us", "periodic:interval=10ms,detour=16us"];
    let grain = Nanos::from_millis(1);
    let question = Question {
        grain,
        phases: 100,
        collective: Collective::Ideal,
        network: "infiniband".parse().unwrap(),
        bytes: 8,
        per_node: 1,
        synchronized: false,
        seed: 1,
        replicas: 2,
    };
    let noise = |asked: &str| Noise::apart(asked, asked.parse::<NoiseSpec>().unwrap().trace(1).unwrap());
    let made: Vec<Noise> = asked.iter().map(|asked| noise(asked)).collect();
    let noises: Vec<SweptNoise> = asked
        .iter()
        .zip(&made)
        .map(|(asked, noise)| SweptNoise::new((*asked).to_owned(), (*asked).to_owned(), noise, 1, Vec::new()))
        .collect();
    let ranks = [4, 64];
    let mut cells = Vec::new();
    for synchronized in [false, true] {
        for (number, noise) in made.iter().enumerate() {
            let prediction = Prediction::new(noise, question).unwrap().asking(8, synchronized);
            cells.extend(ranks.map(|ranks| SweptCell {
                noise: number,
                coalesced: Nanos::ZERO,
                synchronized,
                bytes: 8,
                row: prediction.row(ranks).unwrap(),
            }));
        }
    }
    let report = PredictSweepReport {
        noises: &noises,
        without: &[],
        question,
        collectives: &[Collective::Ideal],
        bytes: &[8],
        synchronized: &[false, true],
        coalesced: &[Nanos::ZERO],
        grains: &[grain],
        ranks: &ranks,
        cells: &cells,
        node_hours: Some(1e6),
    };
    check("predict_sweep", &report);
    check_page("predict_sweep", &report);
}
