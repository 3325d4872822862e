//! The noise law, for all combinations of grains, delays and rates.

use becalm_report::{LawCell, LawOften, LawReport, LawRow, LawSweepReport};
use becalm_scale::ScaleError;
use becalm_scale::law::Law;
use becalm_units::{Nanos, Share, fault};

use crate::Asker;

/// A question about the law. A single grain, delay and rate make `becalm.law/1`, several `becalm.law-sweep/1`.
#[derive(Clone, PartialEq, Debug)]
pub struct LawQuestion {
    /// G: useful CPU time of a phase.
    pub grains: Vec<Nanos>,
    /// D: the delay of a rank.
    pub delays: Vec<Nanos>,
    /// p, or the rate per second.
    pub often: Vec<LawOften>,
    /// Numbers of ranks.
    pub ranks: Vec<u64>,
    /// The share of its time that a job may lose, if given.
    pub tolerated: Option<Share>,
}

impl LawQuestion {
    /// Computes and shows the answer.
    pub fn answer(&self, asker: &mut impl Asker) -> fault::Result<()> {
        match (self.grains.as_slice(), self.delays.as_slice(), self.often.as_slice()) {
            ([grain], [delay], [often]) => asker.show(&self.single(*grain, *delay, *often)?)?,
            _ => asker.show(&self.sweep()?)?,
        }
        Ok(())
    }

    /// The values of a law for each number of ranks.
    fn rows(&self, law: Law) -> Result<Vec<LawRow>, ScaleError> {
        let row = |ranks: &u64| {
            let tolerable = self.tolerated.map(|lost| law.tolerable(*ranks, lost.ratio())).transpose()?;
            Ok(LawRow { point: law.at(*ranks)?, tolerable })
        };
        self.ranks.iter().map(row).collect()
    }

    fn single(&self, grain: Nanos, delay: Nanos, often: LawOften) -> Result<LawReport, ScaleError> {
        let law = law(grain, delay, often)?;
        Ok(LawReport { law, grain, tolerated: self.tolerated, rows: self.rows(law)? })
    }

    fn sweep(&self) -> Result<LawSweepReport, ScaleError> {
        let mut cells = Vec::new();
        for delay in &self.delays {
            for often in &self.often {
                for grain in &self.grains {
                    let law = law(*grain, *delay, *often)?;
                    let cell = |row| LawCell { law, grain: *grain, often: *often, row };
                    cells.extend(self.rows(law)?.into_iter().map(cell));
                }
            }
        }
        Ok(LawSweepReport {
            grains: self.grains.clone(),
            delays: self.delays.clone(),
            often: self.often.clone(),
            ranks: self.ranks.clone(),
            tolerated: self.tolerated,
            cells,
        })
    }
}

fn law(grain: Nanos, delay: Nanos, often: LawOften) -> Result<Law, ScaleError> {
    match often {
        LawOften::Rate(rate) => Law::from_rate(grain, delay, rate),
        LawOften::Probability(share) => Law::new(grain, delay, share.ratio()),
    }
}
