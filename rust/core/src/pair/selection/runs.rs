//! The laws of how many runs are made.
//!
//! A law enters through the derivative of its generating function f alone: f′(1 − b), which falls with b, is convex in
//! b and starts at f′(1) = E\[K\]. Everything here is written as `ln f′(1) − ln f′(1 − b)`, the *decay* of b.

use crate::error::{domain, Result};
use crate::special::real;

/// The law of the number of runs K.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Runs {
    /// K ≥ 1 with f(x) = ((1 − (1−γ)x)^{−η} − 1)/(γ^{−η} − 1); its limit η = 0 is ln(1 − (1−γ)x)/ln γ.
    NegativeBinomial {
        /// η > −1: 1 is the geometric law, 0 the logarithmic one.
        shape: f64,
        /// γ in (0, 1): the smaller, the more runs.
        stopping: f64,
    },
    /// f(x) = e^{m(x − 1)}; there is no run with probability e^{−m}.
    Poisson {
        /// m > 0.
        mean: f64,
    },
    /// f(x) = (1 − p + px)^n; there is no run with probability (1 − p)^n.
    Binomial {
        /// n ≥ 1, a whole number.
        trials: f64,
        /// p in (0, 1).
        probability: f64,
    },
}

/// The largest parameters for which the rounding that is allowed for is an upper bound.
const LARGEST: f64 = 1e9;
/// Probabilities of a binomial law are at least this far from 1, where it is a fixed number of runs.
const FIXED: f64 = 1e-4;

impl Runs {
    /// Creates the law `name` with these parameters: `negative-binomial` (η, γ), `geometric` (γ), `logarithmic` (γ),
    /// `poisson` (m) or `binomial` (n, p).
    ///
    /// # Errors
    /// [`Error::Domain`] for a name or a number of parameters that is unknown, and for parameters outside their ranges:
    /// among them are the laws with an infinite mean (η ≤ −1 or γ = 0), and fixed numbers of runs, whose selection has
    /// the guarantee of their composition.
    pub fn new(name: &str, parameters: &[f64]) -> Result<Self> {
        let law = match (name, parameters) {
            ("negative-binomial", &[shape, stopping]) => Self::NegativeBinomial { shape, stopping },
            ("geometric", &[stopping]) => Self::NegativeBinomial { shape: 1.0, stopping },
            ("logarithmic", &[stopping]) => Self::NegativeBinomial { shape: 0.0, stopping },
            ("poisson", &[mean]) => Self::Poisson { mean },
            ("binomial", &[trials, probability]) => Self::Binomial { trials, probability },
            _ => {
                let value = real(parameters.len());
                return domain(
                    "parameters of the law of runs",
                    value,
                    "negative-binomial has 2, geometric 1, logarithmic 1, poisson 1, binomial 2",
                );
            }
        };
        law.checked()
    }

    fn checked(self) -> Result<Self> {
        let within = |name, value: f64, allowed, holds: bool| {
            if holds {
                Ok(())
            } else {
                domain(name, value, allowed)
            }
        };
        match self {
            Self::NegativeBinomial { shape, stopping } => {
                within("shape", shape, "above -1 and at most 1e9", shape > -1.0 && shape <= LARGEST)?;
                within("stopping", stopping, "from 1e-9 to 1, without 1", (1e-9..1.0).contains(&stopping))?;
            }
            Self::Poisson { mean } => {
                within("mean", mean, "positive and at most 1e9", mean > 0.0 && mean <= LARGEST)?;
            }
            Self::Binomial { trials, probability } => {
                let whole = (1.0..=LARGEST).contains(&trials) && trials.fract().abs() < f64::MIN_POSITIVE;
                within("trials", trials, "a whole number from 1 to 1e9", whole)?;
                let open = probability > 0.0 && probability <= 1.0 - FIXED;
                within("probability", probability, "positive and at most 1 - 1e-4", open)?;
            }
        }
        Ok(self)
    }

    /// Returns E\[K\] = f′(1), known to a relative error of 1e-13.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::NegativeBinomial { shape, stopping } => {
                // η/(1 − γ^η) tends to 1/ln(1/γ); the exponent's own error does not matter to x/(1 − e^{−x}).
                let exponent = shape * stopping.ln();
                let share = if exponent == 0.0 { -1.0 / stopping.ln() } else { -shape / exponent.exp_m1() };
                (1.0 - stopping) / stopping * share
            }
            Self::Poisson { mean } => mean,
            Self::Binomial { trials, probability } => trials * probability,
        }
    }

    /// Returns ln f′(1) − ln f′(1 − b) for b in \[0, 1\], known to a relative error of 1e-12: 1 − pb is at least 1e-4, so the
    /// rounding of pb moves its logarithm by less than that.
    pub(super) fn decay(&self, b: f64) -> f64 {
        match *self {
            Self::NegativeBinomial { shape, stopping } => (shape + 1.0) * ((1.0 - stopping) * b / stopping).ln_1p(),
            Self::Poisson { mean } => mean * b,
            Self::Binomial { trials, probability } => -(trials - 1.0) * (-probability * b).ln_1p(),
        }
    }

    /// Returns an upper bound on ln f′(1 − b) − ln f′(1 − B), if B ≤ e^`loss`·b at all b; +∞ if no simple one is known.
    ///
    /// For a truncated negative binomial law it is (η + 1)·`loss`: (γ + (1−γ)B)/(γ + (1−γ)b) ≤ max(1, B/b).
    pub(super) fn gain(&self, loss: f64) -> f64 {
        match *self {
            Self::NegativeBinomial { shape, .. } => (shape + 1.0) * loss.max(0.0),
            Self::Poisson { .. } | Self::Binomial { .. } => f64::INFINITY,
        }
    }

    /// Returns the derivative of [`Runs::decay`] in b, to a relative error of 1e-9.
    pub(super) fn decay_slope(&self, b: f64) -> f64 {
        match *self {
            Self::NegativeBinomial { shape, stopping } => {
                (shape + 1.0) * (1.0 - stopping) / (stopping + (1.0 - stopping) * b)
            }
            Self::Poisson { mean } => mean,
            Self::Binomial { trials, probability } => (trials - 1.0) * probability / (1.0 - probability * b),
        }
    }
}
