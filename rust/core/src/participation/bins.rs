//! Balls in bins: each record is assigned to one of T bins for the whole run, and takes part whenever it is that bin's
//! turn.

use crate::participation::{blend, log_sum_error, square_error, PatternSum};
use crate::special::{log_sum_exp, real, Approximation, UNIT_ROUNDOFF};

/// The law of the bin: one weight for each of T bins (equal for the sampler itself, free for a proposal).
#[derive(Debug, Clone, PartialEq)]
pub struct Bins {
    /// ln of each bin's probability.
    pub log_weights: Vec<f64>,
    /// s_t = ‖m_t‖²/σ², m_t the sum of the columns of bin t.
    pub squares: Vec<f64>,
}

impl Bins {
    /// Creates the law with equal probabilities.
    pub fn uniform(squares: Vec<f64>) -> Self {
        let log_weight = -real(squares.len()).ln();
        Self { log_weights: vec![log_weight; squares.len()], squares }
    }

    /// Returns the law with probabilities proportional to those of this law times `e^{exponent·s_t}`.
    pub fn tilted(&self, exponent: f64) -> Self {
        let raw: Vec<f64> = self.log_weights.iter().zip(&self.squares).map(|(w, s)| w + exponent * s).collect();
        let total = log_sum_exp(raw.iter().copied());
        Self { log_weights: raw.into_iter().map(|w| w - total).collect(), squares: self.squares.clone() }
    }

    /// Returns a bound on the total variation between the law of a drawn bin and this one, and the number of draws.
    pub fn drawn(&self) -> (f64, f64) {
        let bins = real(self.squares.len());
        (bins * (2.0 + bins) * f64::EPSILON, 1.0)
    }
}

impl PatternSum for Bins {
    /// The error of a term is that of its weight, that of the squared norm, and a rounding of each and of their sum.
    fn log_sum(&self, proposal: &Self, power: f64, exponent: f64) -> Approximation {
        let bins = self.squares.len();
        let weights: Vec<_> = (0..bins).map(|t| blend(power, self.log_weights[t], proposal.log_weights[t])).collect();
        let value = log_sum_exp((0..bins).map(|t| weights[t].value + exponent * self.squares[t]));
        let term = |t: usize| {
            let norm = (exponent * self.squares[t]).abs();
            weights[t].error + norm * square_error(bins) + 4.0 * UNIT_ROUNDOFF * (weights[t].value.abs() + norm)
        };
        let worst = (0..bins).filter(|&t| weights[t].value > f64::NEG_INFINITY).map(term).fold(0.0, f64::max);
        Approximation { value, error: (worst + log_sum_error(bins, value)) * (1.0 + 1e-9) }
    }
}
