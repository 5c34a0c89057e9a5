//! b-min-sep sampling: after a participation a record sits out b − 1 rounds; while available it joins each round with
//! probability p. And cyclic Poisson sampling with a random phase: every b-th round is a chance, and only that.

use crate::error::{Error, Result};
use crate::participation::PatternSum;
use crate::special::log_sum_exp;

/// The renewal law of one record's participations (Dong & Ganesh 2026, Algorithms 1 and 2).
///
/// A warm start draws the number of rounds for which the record is still unavailable from the stationary law:
/// 0 with probability 1/(1 + (b−1)p), each of 1…b−1 with probability p/(1 + (b−1)p). A cold start is available at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Renewal {
    /// b: the least distance between two participations.
    pub min_separation: usize,
    /// p: the probability to join a round in which the record is available.
    pub sampling_probability: f64,
    /// Whether the start is stationary.
    pub warm: bool,
    /// Whether a record that does not join waits b rounds too: its chances are the rounds φ, φ + b, φ + 2b, … of a random phase φ,
    /// uniform on the first b rounds.
    pub phased: bool,
    /// s_i = ‖c_i‖²/σ² for each round: the squared norm that taking part in it adds.
    pub squares: Vec<f64>,
}

impl Renewal {
    /// The law for `squares.len()` rounds.
    ///
    /// # Errors [`Error::Domain`] for no rounds, a separation of 0, a probability outside (0, 1] or squares that are
    /// not finite and positive.
    pub fn new(min_separation: usize, sampling_probability: f64, warm: bool, squares: Vec<f64>) -> Result<Self> {
        let domain = |name, value, allowed| Err(Error::Domain { name, value, allowed });
        if squares.is_empty() {
            return domain("iterations", 0.0, "at least 1");
        }
        if min_separation == 0 {
            return domain("min_separation", 0.0, "at least 1");
        }
        if !(sampling_probability > 0.0 && sampling_probability <= 1.0) {
            return domain("sampling_probability", sampling_probability, "greater than 0 and at most 1");
        }
        if let Some(&square) = squares.iter().find(|s| !(s.is_finite() && **s >= 0.0)) {
            return domain("squared column norm", square, "finite and at least 0");
        }
        Ok(Self { min_separation, sampling_probability, warm, phased: false, squares })
    }

    /// The law of cyclic Poisson sampling with a random phase.
    ///
    /// # Errors
    /// As [`Self::new`]; also for more phases than rounds.
    pub fn with_phases(min_separation: usize, sampling_probability: f64, squares: Vec<f64>) -> Result<Self> {
        let law = Self::new(min_separation, sampling_probability, false, squares)?;
        if min_separation > law.iterations() {
            #[allow(clippy::cast_precision_loss)] // reported only
            let value = min_separation as f64;
            return Err(Error::Domain { name: "min_separation", value, allowed: "at most the number of iterations" });
        }
        Ok(Self { phased: true, ..law })
    }

    /// The same law with another sampling probability.
    #[must_use]
    pub fn with_probability(&self, sampling_probability: f64) -> Self {
        Self { sampling_probability, ..self.clone() }
    }

    /// The number of rounds.
    #[must_use]
    pub fn iterations(&self) -> usize {
        self.squares.len()
    }

    /// ln of the probability of each number of rounds before the record's first chance (one entry for a cold start).
    #[must_use]
    pub fn log_start(&self) -> Vec<f64> {
        #[allow(clippy::cast_precision_loss)] // b is at most the number of rounds
        if self.phased {
            return vec![-(self.min_separation as f64).ln(); self.min_separation];
        }
        if !self.warm {
            return vec![0.0];
        }
        #[allow(clippy::cast_precision_loss)] // b is at most the number of rounds
        let total = (1.0 + (self.min_separation as f64 - 1.0) * self.sampling_probability).ln();
        let mut law = vec![self.sampling_probability.ln() - total; self.min_separation];
        law[0] = -total;
        law
    }

    /// Rounds from a chance that was not taken to the next: 1, or b with phases.
    #[must_use]
    pub fn waiting(&self) -> usize {
        if self.phased {
            self.min_separation
        } else {
            1
        }
    }

    /// The largest number of participations.
    #[must_use]
    pub fn most_participations(&self) -> usize {
        self.iterations().div_ceil(self.min_separation)
    }
}

impl PatternSum for Renewal {
    /// By the recursion of the law itself: f_i = w₀ f_{i+1} + φ_i f_{i+b} (with phases w₀ f_{i+b}), f_i = 1 beyond the last round, in
    /// logarithms.
    fn log_sum(&self, proposal: &Self, power: f64, exponent: f64) -> f64 {
        #[allow(clippy::float_cmp)] // given as that very number
        let blend = |own: f64, other: f64| match (own == f64::NEG_INFINITY, power == 1.0) {
            // A pattern that neither law can have adds nothing, whatever the power.
            (true, _) => f64::NEG_INFINITY,
            (false, true) => own,
            (false, false) => power * own + (1.0 - power) * other,
        };
        let (n, b) = (self.iterations(), self.min_separation);
        let stay = blend((-self.sampling_probability).ln_1p(), (-proposal.sampling_probability).ln_1p());
        let join = blend(self.sampling_probability.ln(), proposal.sampling_probability.ln());
        let mut sums = vec![0.0; n + b + 1];
        for i in (0..n).rev() {
            let terms = [stay + sums[i + self.waiting()], join + exponent * self.squares[i] + sums[i + b]];
            sums[i] = log_sum_exp(terms.into_iter());
        }
        let start = self.log_start();
        let other = proposal.log_start();
        log_sum_exp((0..start.len()).map(|i| blend(start[i], other[i]) + sums[i]))
    }
}
