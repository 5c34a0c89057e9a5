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

    /// Returns ln f′(1) − ln f′(1 − b) for b in \[0, 1\], known to a relative error of 1e-12.
    pub(super) fn decay(&self, b: f64) -> f64 {
        self.increase(0.0, b)
    }

    /// Returns ln f′(1 − b) − ln f′(1 − b − w) for b ≥ 0, w ≥ 0 and b + w ≤ 1, known to a relative error of 1e-12: 1 − p(b + w)
    /// is at least 1e-4, so the rounding of its parts moves its logarithm by less than that.
    fn increase(&self, b: f64, w: f64) -> f64 {
        match *self {
            Self::NegativeBinomial { shape, stopping } => {
                (shape + 1.0) * ((1.0 - stopping) * w / (stopping + (1.0 - stopping) * b)).ln_1p()
            }
            Self::Poisson { mean } => mean * w,
            Self::Binomial { trials, probability } => {
                -(trials - 1.0) * (-probability * w / (1.0 - probability * b)).ln_1p()
            }
        }
    }

    /// Returns an upper bound on ln f′(1 − b) − ln f′(1 − B) at all b, if no loss of (P, Q) is above `ahead` and none of (Q, P)
    /// above `behind`.
    ///
    /// *Proof.* Let S be the outcomes better than y, b = P(S) and B = Q(S). Then B ≤ e^`behind` b, and 1 − b ≤ e^`ahead` (1 − B).
    /// The two bounds on B meet at b* = (1 − e^−`ahead`) / (e^`behind` − e^−`ahead`). There the increase is largest, for each of
    /// the laws: ln f′(1 − b) = −k·ln(c + db) + constant with c + db > 0, where k, d ≥ 0 or k, d ≤ 0, or it is linear in b. On
    /// the left of b* the derivative of (c + dmb)/(c + db) has the sign of dc(m − 1), m = e^`behind`, and c ≥ 0. On its right,
    /// that of (c + d(1 − m(1 − b)))/(c + db), m = e^−`ahead`, has the sign of d(m − 1)(c + d), and c + d ≥ 0. ∎ Equality holds
    /// where S has nothing but outcomes with the one loss and the next outcomes have the other: for ε in both directions,
    /// randomized response with a number that is drawn at random. For a truncated negative binomial law it is at most (η +
    /// 1)·`behind`.
    pub(super) fn gain(&self, ahead: f64, behind: f64) -> f64 {
        if ahead <= 0.0 || behind <= 0.0 {
            return 0.0;
        }
        let share = -(-ahead).exp_m1() / -(-ahead - behind).exp_m1();
        let (position, width) = (share * (-behind).exp(), share * -(-behind).exp_m1());
        self.increase(position, width.min(1.0 - position)) * (1.0 + 1e-11)
    }

    /// Returns an upper bound on 1 − f(1 − t), the probability that one of K independent events of probability t occurs.
    pub(super) fn once(&self, t: f64) -> f64 {
        let exact = match *self {
            Self::NegativeBinomial { shape, stopping } => {
                let (log, all) = (((1.0 - stopping) * t / stopping).ln_1p(), stopping.ln());
                if shape * all == 0.0 {
                    log / -all
                } else {
                    (-shape * log).exp_m1() / (shape * all).exp_m1()
                }
            }
            Self::Poisson { mean } => -(-mean * t).exp_m1(),
            Self::Binomial { trials, probability } => -(trials * (-probability * t).ln_1p()).exp_m1(),
        };
        (exact * (1.0 + 1e-12)).min(1.0)
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
