//! Records that take part independently of one another: Poisson sampling with Gaussian noise.

use std::sync::Arc;

use crate::error::Result;
use crate::exact::Enclosure;
use crate::pair::mixture::MixturePair;
use crate::pair::moments::{integrated, RELATIVE};
use crate::pair::rare::RarePair;
use crate::pair::sampled_moments::{bounded, of_group, of_one};
use crate::pair::{LargestLoss, Profile, ProfilePoint, Reversal};
use crate::run::Run;

/// Records with a smaller probability than this are evaluated by [`RarePair`].
const RARE: f64 = 1e-5;

/// One round of Poisson sampling: the pair of [`MixturePair::poisson`] in one direction.
///
/// * Guarantee: that of the pair that evaluates it.
/// * Source: [`MixturePair::poisson`].
#[derive(Debug, Clone)]
pub struct PoissonPair {
    pair: Arc<dyn Profile>,
    group_size: u32,
    probability: f64,
    noise_multiplier: f64,
    two_sided: bool,
    reverse: bool,
}

impl PoissonPair {
    /// Creates the pair; `reverse` gives the add direction.
    ///
    /// # Errors
    /// As [`MixturePair::poisson`].
    pub fn new(
        group_size: u32,
        probability: f64,
        noise_multiplier: f64,
        two_sided: bool,
        reverse: bool,
    ) -> Result<Self> {
        let pair: Arc<dyn Profile> = if group_size == 1 && !two_sided && probability > 0.0 && probability < RARE {
            Arc::new(RarePair::new(probability, noise_multiplier, reverse)?)
        } else {
            let pair = MixturePair::poisson(group_size, probability, noise_multiplier, two_sided)?;
            Arc::new(if reverse { pair.reversed() } else { pair })
        };
        Ok(Self { pair, group_size, probability, noise_multiplier, two_sided, reverse })
    }

    /// Returns ln E_Q[(P/Q)^a] for a whole order and records that are removed; `None` if the sum would be too long.
    fn at_whole(&self, order: u32, run: &Run) -> Result<Option<f64>> {
        let (a, noise) = (f64::from(order), self.noise_multiplier);
        let gaussian = |j: f64, shift: f64| j * (j - 1.0) * (shift / noise) * (shift / noise) / 2.0 * (1.0 + RELATIVE);
        if self.probability >= 1.0 {
            return Ok(Some(gaussian(a, f64::from(self.group_size))));
        }
        if self.group_size > 1 {
            return of_group(self.group_size, self.probability, noise, order, run);
        }
        let moments: Vec<f64> = (2..=order).map(|j| gaussian(f64::from(j), 1.0)).collect();
        of_one(self.probability, &moments).map(Some)
    }
}

impl Profile for PoissonPair {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        self.pair.at_within(epsilon, bracket)
    }

    fn largest_loss(&self) -> LargestLoss {
        self.pair.largest_loss()
    }

    fn exact_largest_loss(&self) -> Option<Enclosure> {
        self.pair.exact_largest_loss()
    }

    fn reversal(&self) -> Reversal {
        match self.pair.reversal() {
            Reversal::Other(pair) => Reversal::Other(Arc::new(Self { pair, reverse: !self.reverse, ..*self })),
            same_or_unknown => same_or_unknown,
        }
    }

    /// Returns the sum of `sampled_moments` or a chord of it, which the integral of the profile may improve.
    ///
    /// For one record, an added record has a smaller divergence than a removed one (Mironov, Talwar & Zhang 2019,
    /// arXiv:1908.10530, Theorem 5), so the sum holds for both. In all other cases the profile is integrated.
    fn log_moment(&self, order: f64, run: &Run) -> Result<Option<f64>> {
        if self.two_sided || (self.reverse && self.group_size > 1) {
            return integrated(self, order, run);
        }
        bounded(order, |whole| self.at_whole(whole, run), || integrated(self, order, run))
    }

    fn dominating_shift(&self) -> Option<f64> {
        self.pair.dominating_shift()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns ln E_Q[(P/Q)^a] by quadrature of the densities, in one direction.
    fn quadrature(pair: &PoissonPair, a: f64) -> f64 {
        let (q, c) = (pair.probability, 1.0 / pair.noise_multiplier);
        let step = 0.005;
        let sum: f64 = (-8000..24_000)
            .map(|k| f64::from(k) * step)
            .map(|y| {
                let without = (-y * y / 2.0).exp();
                let with = (1.0 - q) * without + q * (-(y - c) * (y - c) / 2.0).exp();
                let (p, q) = if pair.reverse { (without, with) } else { (with, without) };
                if p > 0.0 && q > 0.0 {
                    (a * p.ln() + (1.0 - a) * q.ln()).exp()
                } else {
                    0.0
                }
            })
            .sum();
        (sum * step / (2.0 * std::f64::consts::PI).sqrt()).ln()
    }

    #[test]
    fn divergences_are_those_of_the_densities() {
        let run = Run::default();
        for (q, noise) in [(0.01, 1.0), (0.1, 0.7), (0.5, 2.0), (5e-6, 1.0)] {
            for reverse in [false, true] {
                let pair = PoissonPair::new(1, q, noise, false, reverse).unwrap();
                for a in [1.5, 2.0, 2.5, 6.0] {
                    let truth = quadrature(&pair, a);
                    // The quadrature itself is off by that much of 1.
                    let rounding = 1e-12;
                    let integral = integrated(&pair, a, &run).unwrap().unwrap();
                    assert!(integral >= truth - rounding, "{q} {noise} {reverse} {a} {integral} {truth}");
                    if truth > 1e-8 {
                        assert!(integral <= truth * (1.0 + 2e-4), "{q} {noise} {reverse} {a} {integral} {truth}");
                    }
                    let found = pair.log_moment(a, &run).unwrap().unwrap();
                    assert!(found >= truth - rounding, "{q} {noise} {reverse} {a} {found} {truth}");
                    if !reverse && truth > 1e-8 {
                        assert!(found <= truth * (1.0 + 2e-4), "{q} {noise} {reverse} {a} {found} {truth}");
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_overflows_and_large_orders_are_refused() {
        let run = Run::default();
        for (q, noise) in [(0.5, 0.05), (1e-9, 0.05)] {
            let moment = PoissonPair::new(1, q, noise, false, false).unwrap().log_moment(64.0, &run).unwrap().unwrap();
            assert!(moment > 0.0 && moment.is_finite());
        }
        assert!(PoissonPair::new(1, 0.1, 1.0, false, false).unwrap().log_moment(1e6, &run).unwrap().is_none());
    }
}
